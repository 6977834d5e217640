"""Every error that boathouse raises, in one tree.

BoathouseError
├── InvalidArgumentError (ValueError)          a call that cannot mean anything
├── NotFoundError (LookupError, FileNotFoundError)
│   ├── TableNotFoundError                     nothing readable as a table there
│   └── VersionNotFoundError                   the table is there, the version is not
├── AlreadyExistsError (FileExistsError)       put-if-absent found a key, create found a table
├── AmbiguousFormatError (ValueError)          two formats under one root
├── CorruptTableError (ValueError)             metadata or data that breaks its specification
├── UnsupportedFeatureError (NotImplementedError)   legal, and not offered here: names the feature
├── SchemaError (ValueError)
│   ├── SchemaMismatchError                    data that does not fit the table
│   └── UnsupportedTypeError (TypeError)       a type that the format or engine cannot hold
├── ExpressionError (ValueError)               SQL text that does not parse or resolve
│   ├── ColumnNotFoundError (LookupError)
│   └── UnsupportedFunctionError
├── EvaluationError (ArithmeticError)          ANSI run-time errors: overflow, bad cast, division by zero
├── ConstraintViolationError (ValueError)      a row that the table's rules refuse
├── StorageError (OSError)                     the store failed
│   ├── UndecidedError                         a request whose effect is unknown (time-out, 5xx)
│   └── UnsafeStorageError                     the store cannot put-if-absent, so it is not written
├── ReadOnlyError (PermissionError)            writes are switched off
├── MixedWritersError (RuntimeError)           another library writes here without our guarantees
├── MissingRequirementError (RuntimeError)     the machine lacks Java, PySpark, or a network
├── CommitConflictError (RuntimeError)         another commit won and ours cannot follow it
└── CommitUnknownError (RuntimeError)          the commit may or may not have landed: settle it with find_write
"""

from __future__ import annotations


class BoathouseError(Exception):
    """Root of the tree: what was found, where, and what to do next.

    `code` is stable across releases; `where` is a path or URI; `advice` is one imperative sentence.
    """

    code = "BOATHOUSE"

    def __init__(self, message: str, *, where: str | None = None, advice: str | None = None) -> None:
        self.message = message
        self.where = where
        self.advice = advice
        super().__init__(message, where, advice)

    def __str__(self) -> str:
        text = self.message
        if self.where:
            text += f" [{self.where}]"
        if self.advice:
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


class NotFoundError(BoathouseError, LookupError, FileNotFoundError):
    code = "NOT_FOUND"


class TableNotFoundError(NotFoundError):
    code = "TABLE_NOT_FOUND"


class VersionNotFoundError(NotFoundError):
    code = "VERSION_NOT_FOUND"


class AlreadyExistsError(BoathouseError, FileExistsError):
    code = "ALREADY_EXISTS"


class AmbiguousFormatError(BoathouseError, ValueError):
    code = "AMBIGUOUS_FORMAT"


class CorruptTableError(BoathouseError, ValueError):
    code = "CORRUPT_TABLE"


class UnsupportedFeatureError(BoathouseError, NotImplementedError):
    code = "UNSUPPORTED_FEATURE"


class SchemaError(BoathouseError, ValueError):
    code = "SCHEMA"


class SchemaMismatchError(SchemaError):
    code = "SCHEMA_MISMATCH"


class UnsupportedTypeError(SchemaError, TypeError):
    code = "UNSUPPORTED_TYPE"


class ExpressionError(BoathouseError, ValueError):
    code = "EXPRESSION"


class ColumnNotFoundError(ExpressionError, LookupError):
    code = "COLUMN_NOT_FOUND"


class UnsupportedFunctionError(ExpressionError):
    code = "UNSUPPORTED_FUNCTION"


class EvaluationError(BoathouseError, ArithmeticError):
    code = "EVALUATION"


class ConstraintViolationError(BoathouseError, ValueError):
    code = "CONSTRAINT_VIOLATION"


class StorageError(BoathouseError, OSError):
    code = "STORAGE"


class UndecidedError(StorageError):
    code = "STORAGE_UNDECIDED"


class UnsafeStorageError(StorageError):
    code = "STORAGE_UNSAFE"


class ReadOnlyError(BoathouseError, PermissionError):
    code = "READ_ONLY"


class MixedWritersError(BoathouseError, RuntimeError):
    code = "MIXED_WRITERS"


class MissingRequirementError(BoathouseError, RuntimeError):
    code = "MISSING_REQUIREMENT"


class CommitConflictError(BoathouseError, RuntimeError):
    code = "COMMIT_CONFLICT"


class CommitUnknownError(BoathouseError, RuntimeError):
    code = "COMMIT_UNKNOWN"
