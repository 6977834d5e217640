"""Every error that boathouse raises, in one tree.

BoathouseError
├── InvalidArgumentError (ValueError)          a call that cannot mean anything
│   └── ArgumentTypeError (TypeError)          an argument of the wrong type, where the original raises TypeError
├── NotFoundError (LookupError, FileNotFoundError)
│   ├── TableNotFoundError                     nothing that can be read as a table
│   └── VersionNotFoundError                   the table exists, the version does not
├── AlreadyExistsError (FileExistsError)       put-if-absent found a key, create found a table
├── AmbiguousFormatError (ValueError)          two formats under one root
├── CorruptTableError (ValueError)             metadata or data that breaks its specification
│   └── MissingFileError                       a file that the version needs is missing; the table itself exists
├── MalformedVariant (ValueError)              bytes that are not a variant: names the offset, and the row of a column
├── InvalidJsonError (ValueError)              text that is not JSON, or JSON that a variant cannot hold
├── UnsupportedFeatureError (NotImplementedError)   legal, but not offered here: names the feature
├── SchemaError (ValueError)
│   ├── SchemaMismatchError                    data that does not fit the table
│   └── UnsupportedTypeError (TypeError)       a type that the format or engine cannot hold
├── ExpressionError (ValueError)               SQL text that does not parse or resolve
│   ├── ColumnNotFoundError (LookupError)
│   └── UnsupportedFunctionError
├── EvaluationError (ArithmeticError)          ANSI run-time errors: overflow, bad cast, division by zero
├── ConstraintViolationError (ValueError)      a row that violates the table's rules
├── StorageError (OSError)                     the store failed
│   ├── UndecidedError                         a request whose effect is unknown (time-out, 5xx)
│   └── UnsafeStorageError                     the store cannot put-if-absent, so it is not written to
├── ReadOnlyError (PermissionError)            writes are switched off
├── ForeignPathError (PermissionError)         metadata names a file in a store of another kind than the table's
├── MixedWritersError (RuntimeError)           another library writes here without our guarantees
├── StreamError (RuntimeError)                 a stream that cannot go on: rows it gave were changed, or the schema was
├── MissingRequirementError (RuntimeError)     the machine lacks Java, PySpark, or a network
├── CommitConflictError (RuntimeError)         a concurrent commit won and ours cannot be rebased onto it
└── CommitUnknownError (RuntimeError)          the commit may or may not have succeeded: find_write tells
"""

from __future__ import annotations


class BoathouseError(Exception):
    """Root of the tree: what was found, where, and what to do next.

    `code` is stable across releases; `where` is a path or URI; `advice` is one imperative sentence, the class's
    `general` one where the error has none of its own.
    """

    code = "BOATHOUSE"
    general = "see the message for what was found"

    def __init__(self, message: str, *, where: str | None = None, advice: str | None = None) -> None:
        self.message = message
        self.where = where
        self.advice = advice or self.general
        super().__init__(message, where, advice)

    def __str__(self) -> str:
        text = self.message
        if self.where:
            text += f" [{self.where}]"
        if self.advice:
            text += "" if text.endswith((".", "?", "!", "]")) else "."
            text += f" {self.advice[0].upper()}{self.advice[1:]}"
            if not text.endswith((".", "?", "!")):
                text += "."
        return text

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.message, self.where, self.advice))


def _rebuild(kind: type[BoathouseError], message: str, where: str | None, advice: str | None) -> BoathouseError:
    return kind(message, where=where, advice=advice)


class InvalidArgumentError(BoathouseError, ValueError):
    code = "INVALID_ARGUMENT"
    general = "see the documentation of the function for its arguments"


class ArgumentTypeError(InvalidArgumentError, TypeError):
    code = "ARGUMENT_TYPE"
    general = "see the documentation of the function for its arguments"


class NotFoundError(BoathouseError, LookupError, FileNotFoundError):
    code = "NOT_FOUND"
    general = "check the path"


class TableNotFoundError(NotFoundError):
    code = "TABLE_NOT_FOUND"
    general = "check the path, or create a table there"


class VersionNotFoundError(NotFoundError):
    code = "VERSION_NOT_FOUND"
    general = "call history() for the existing versions"


class AlreadyExistsError(BoathouseError, FileExistsError):
    code = "ALREADY_EXISTS"
    general = "choose another location, or remove what is there"


class AmbiguousFormatError(BoathouseError, ValueError):
    code = "AMBIGUOUS_FORMAT"
    general = "name the format with format="


class CorruptTableError(BoathouseError, ValueError):
    code = "CORRUPT_TABLE"
    general = "restore the file from a copy, or open an older version"


class MissingFileError(CorruptTableError):
    code = "MISSING_FILE"
    general = "restore the file from a copy, or open a version that does not need it"


class _PlacedError(BoathouseError, ValueError):
    """`offset` counts bytes from the start of the metadata, value or text; `row` is set in columns."""

    def __init__(
        self,
        message: str,
        *,
        offset: int | None = None,
        row: int | None = None,
        where: str | None = None,
        advice: str | None = None,
    ) -> None:
        super().__init__(message, where=where, advice=advice)
        self.offset = offset
        self.row = row

    def __str__(self) -> str:
        places = [f"{name} {at:,}" for name, at in (("row", self.row), ("byte", self.offset)) if at is not None]
        return f"{', '.join(places)}: {super().__str__()}" if places else super().__str__()

    def __reduce__(self) -> tuple[object, ...]:
        return (_placed_again, (type(self), self.message, self.offset, self.row, self.where, self.advice))


def _placed_again(
    kind: type[_PlacedError],
    message: str,
    offset: int | None,
    row: int | None,
    where: str | None,
    advice: str | None,
) -> _PlacedError:
    return kind(message, offset=offset, row=row, where=where, advice=advice)


class MalformedVariant(_PlacedError):
    code = "MALFORMED_VARIANT"
    general = "call validate() for all findings, or read leniently"


class InvalidJsonError(_PlacedError):
    code = "INVALID_JSON"
    general = "correct the text, or read leniently"


class UnsupportedFeatureError(BoathouseError, NotImplementedError):
    code = "UNSUPPORTED_FEATURE"
    general = "use the engine that wrote the table for this"


class SchemaError(BoathouseError, ValueError):
    code = "SCHEMA"
    general = "compare the columns with the schema of the table"


class SchemaMismatchError(SchemaError):
    code = "SCHEMA_MISMATCH"
    general = "select, rename or cast the columns to those of the table"


class UnsupportedTypeError(SchemaError, TypeError):
    code = "UNSUPPORTED_TYPE"
    general = "cast the column to another type"


class ExpressionError(BoathouseError, ValueError):
    code = "EXPRESSION"
    general = "write a condition in Spark SQL, for example id > 5 AND day = date '2026-01-31'"


class ColumnNotFoundError(ExpressionError, LookupError):
    code = "COLUMN_NOT_FOUND"
    general = "look at the schema for the names of the columns"


class UnsupportedFunctionError(ExpressionError):
    code = "UNSUPPORTED_FUNCTION"
    general = "use operators and common functions, or filter on Spark"


class EvaluationError(BoathouseError, ArithmeticError):
    code = "EVALUATION"
    general = "use try_cast, try_divide or a condition that excludes such rows"


class ConstraintViolationError(BoathouseError, ValueError):
    code = "CONSTRAINT_VIOLATION"
    general = "leave out such rows, or change them"


class StorageError(BoathouseError, OSError):
    code = "STORAGE"
    general = "check that the store is reachable and permits this"


class UndecidedError(StorageError):
    code = "STORAGE_UNDECIDED"
    general = "try again once the store responds"


class UnsafeStorageError(StorageError):
    code = "STORAGE_UNSAFE"
    general = "use a store that supports put-if-absent"


class ReadOnlyError(BoathouseError, PermissionError):
    code = "READ_ONLY"
    general = "open the newest version where writes are allowed"


class ForeignPathError(BoathouseError, PermissionError):
    code = "FOREIGN_PATH"
    general = "if you trust whoever wrote the table, open it with allow_foreign_paths=True"


class MixedWritersError(BoathouseError, RuntimeError):
    code = "MIXED_WRITERS"
    general = "write with one library only"


class StreamError(BoathouseError, RuntimeError):
    code = "STREAM"
    general = "start the query with a checkpoint of its own"


class MissingRequirementError(BoathouseError, RuntimeError):
    code = "MISSING_REQUIREMENT"
    general = "install what is missing"


class CommitConflictError(BoathouseError, RuntimeError):
    code = "COMMIT_CONFLICT"
    general = "refresh() the table and run the write again if it still makes sense"


class CommitUnknownError(BoathouseError, RuntimeError):
    code = "COMMIT_UNKNOWN"
    general = "call find_write() once the store responds"
