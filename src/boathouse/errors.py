"""Every error that boathouse raises, in one tree; one module because the tree is read as a whole.

The docstring of each class says when it is raised and what to do.

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
├── JobError (RuntimeError)                    a Spark job failed: a worker was lost, a function of the rows raised
├── MissingRequirementError (RuntimeError)     the machine lacks Java, PySpark, or a network
├── CommitConflictError (RuntimeError)         a concurrent commit won and ours cannot be rebased onto it
└── CommitUnknownError (RuntimeError)          the commit may or may not have succeeded: find_write tells
"""

from __future__ import annotations


class BoathouseError(Exception):
    """Root of the tree: what was found, where, and what to do next.

    Raised when anything of this library fails, always as one of its subclasses. Each of them is also the builtin
    exception that fits (ValueError, LookupError, OSError, ...).

    What to do: catch the subclass that you can answer, or this one for all. `str(error)` has everything; `code` is
    stable across releases; `where` is a path or URI; `advice` is one imperative sentence, the class's `general` one
    where the error has none of its own.
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
    """An argument, or a combination of arguments, cannot mean anything.

    Raised when a call is checked, before anything is read or written: a negative limit, two options that exclude each
    other, a time zone that does not exist. The message names the argument and its value.

    What to do: correct the call; the signature and docstring of the function say what it takes.
    """

    code = "INVALID_ARGUMENT"
    general = "see the documentation of the function for its arguments"


class ArgumentTypeError(InvalidArgumentError, TypeError):
    """An argument has the wrong Python type, in interfaces whose original raises TypeError.

    Raised when a method of `boathouse.compat.delta_tables` gets a value of another type than `delta.tables` takes. It
    is an InvalidArgumentError too. Everywhere else a wrong type raises that one.

    What to do: pass the type that the message names.
    """

    code = "ARGUMENT_TYPE"
    general = "see the documentation of the function for its arguments"


class NotFoundError(BoathouseError, LookupError, FileNotFoundError):
    """Something that was named is not there. Its subclasses say what; itself it is about files.

    Raised when a path, or an object in the store, does not exist.

    What to do: check the spelling of the path and the storage options; `boathouse.detect(path)` says what is there.
    """

    code = "NOT_FOUND"
    general = "check the path"


class TableNotFoundError(NotFoundError):
    """There is no table at this place, or no table or namespace of this name.

    Raised when a table is opened, converted or looked up in a catalog. The message says what is at the path instead:
    nothing, plain Parquet files, or a folder that holds tables.

    What to do: check the path or name, or make the table with `boathouse.create` or `boathouse.write`.
    """

    code = "TABLE_NOT_FOUND"
    general = "check the path, or create a table there"


class VersionNotFoundError(NotFoundError):
    """The table exists, but not this version, time, branch or tag of it.

    Raised when a version never existed, is older than what the table retains (vacuum, expired snapshots, log clean-up),
    or when a stream or `Table.changes` needs commits that are gone.

    What to do: `Table.history()` lists the versions that can be opened; start a stream again if it was behind.
    """

    code = "VERSION_NOT_FOUND"
    general = "call history() for the existing versions"


class AlreadyExistsError(BoathouseError, FileExistsError):
    """There is something already where something new should be made.

    Raised when `boathouse.create` or `convert` finds a table, when `boathouse.write` finds one that is partitioned in
    another way, and when a file that must be new is there.

    What to do: choose another location, or write with `mode="append"` or `"overwrite"`.
    """

    code = "ALREADY_EXISTS"
    general = "choose another location, or remove what is there"


class AmbiguousFormatError(BoathouseError, ValueError):
    """There is more than one table under one root.

    Raised when a table is opened without `format=` where two formats have left theirs, or where an Iceberg table has
    metadata of a catalog and of a file-system table. Neither is guessed to be the right one.

    What to do: pass `format="delta"`, `"iceberg"` or `"lance"`, or open the table through its catalog.
    """

    code = "AMBIGUOUS_FORMAT"
    general = "name the format with format="


class CorruptTableError(BoathouseError, ValueError):
    """Metadata or data breaks the specification of its format, so that rows could be wrong or missing.

    Raised when a file cannot be decoded, a number in it contradicts another, a checksum does not match, or a rule of
    the specification is broken. No rows of such a version are returned. `where` is the file.

    What to do: restore the file from a copy, or open an older version. Totals of Iceberg that disagree with the lists
    of files can be passed over with `verify=False`.
    """

    code = "CORRUPT_TABLE"
    general = "restore the file from a copy, or open an older version"


class MissingFileError(CorruptTableError):
    """A file that this version needs is missing; the table itself is there.

    Raised when metadata, data or a deletion file cannot be found: something else removed it, or a vacuum did while an
    older version was read.

    What to do: `Table.refresh()`, restore the file from a copy, or open a version that does not need it.
    """

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
    """Bytes that should be a variant are not.

    Raised when metadata or a value is read that breaks VariantEncoding.md (or VariantShredding.md, for shredded
    columns). `offset` is the byte, counted from the start of the metadata or value; `row` is set in columns.

    What to do: `Variant.validate()` lists every finding; pass a `Lenient` to read a column with null in such rows.
    """

    code = "MALFORMED_VARIANT"
    general = "call validate() for all findings, or read leniently"


class InvalidJsonError(_PlacedError):
    """Text that should be JSON is not, or holds what a variant cannot.

    Raised when text is parsed: bad syntax, a key twice in an object, more nested values than a variant may have.
    `offset` is the byte of the text; `row` is set in columns.

    What to do: correct the text, or pass a `Lenient` to get null in such rows.
    """

    code = "INVALID_JSON"
    general = "correct the text, or read leniently"


class UnsupportedFeatureError(BoathouseError, NotImplementedError):
    """Legal, but not offered here: the message names the feature.

    Raised when a table uses a feature of its format that this library does not have, or a call asks for one that the
    format does not have. It is raised before anything is written, and in place of rows that would be wrong.

    What to do: follow the message where it names another way; else use the engine that wrote the table.
    """

    code = "UNSUPPORTED_FEATURE"
    general = "use the engine that wrote the table for this"


class SchemaError(BoathouseError, ValueError):
    """A schema, or a type in it, is not one. Its subclasses are about data and about single types.

    Raised when the text of a type does not parse, a decimal has impossible digits, a schema has a name twice, or
    arguments about the schema exclude each other.

    What to do: correct the schema as the message says; types are written as in Spark SQL: `array<struct<a:int>>`.
    """

    code = "SCHEMA"
    general = "compare the columns with the schema of the table"


class SchemaMismatchError(SchemaError):
    """The columns of the data do not fit those of the table, or those of several files each other.

    Raised when rows are written (a column that the table lacks, a type that does not convert without loss), and when
    files are read together. The message names the column and both types. Nothing is written.

    What to do: select, rename or cast columns; or let the table change, with `merge_schema=True` or, for an overwrite,
    `overwrite_schema=True`.
    """

    code = "SCHEMA_MISMATCH"
    general = "select, rename or cast the columns to those of the table"


class UnsupportedTypeError(SchemaError, TypeError):
    """A type that the format, the engine or a variant cannot hold.

    Raised when a table is created or written, or rows are given to Spark: an unsigned integer in Delta, a time of day
    on Spark, a map with other keys than strings in a variant.

    What to do: cast the column to a type that the message names, or leave it out.
    """

    code = "UNSUPPORTED_TYPE"
    general = "cast the column to another type"


class ExpressionError(BoathouseError, ValueError):
    """A condition or value in Spark SQL does not parse, or makes no sense for the schema.

    Raised when text is parsed, and when its names and types are resolved against the table: nothing has been read or
    written by then.

    What to do: write it as in Spark SQL: `id > 5 AND day = date '2026-01-31'`. Text has single quotes, names with dots
    have backticks.
    """

    code = "EXPRESSION"
    general = "write a condition in Spark SQL, for example id > 5 AND day = date '2026-01-31'"


class ColumnNotFoundError(ExpressionError, LookupError):
    """A name is of no column, or of more than one.

    Raised when columns are selected, renamed, written by name or named in conditions. Names are found exactly, else
    ignoring case if only one matches; the message lists what there is.

    What to do: look at `Table.schema`; spell the name as there.
    """

    code = "COLUMN_NOT_FOUND"
    general = "look at the schema for the names of the columns"


class UnsupportedFunctionError(ExpressionError):
    """A function of Spark SQL that is not offered here.

    Raised when a condition or value is resolved. docs/functions.md of the project lists what there is.

    What to do: say it with operators and the functions that there are, or filter on Spark: `Table.to_spark().where()`.
    """

    code = "UNSUPPORTED_FUNCTION"
    general = "use operators and common functions, or filter on Spark"


class EvaluationError(BoathouseError, ArithmeticError):
    """An expression fails on a row: overflow, a text that is no number, division by zero (ANSI SQL).

    Raised when rows are read with a condition, deleted, updated or merged, and when variants are cast or edited. A
    write fails as a whole.

    What to do: use `try_cast` or `try_divide`, which give null, or a condition that leaves such rows out.
    """

    code = "EVALUATION"
    general = "use try_cast, try_divide or a condition that excludes such rows"


class ConstraintViolationError(BoathouseError, ValueError):
    """A row breaks a rule of the table.

    Raised when rows are written that have null in a NOT NULL column, fail a CHECK constraint, lie outside the `where`
    of an overwrite, or bring values for an identity column; when an append-only table would lose rows; and when two
    source rows of a merge change one row. The message shows the first such row. Nothing is written.

    What to do: leave out such rows, or change them; make the source of a merge unique on its keys.
    """

    code = "CONSTRAINT_VIOLATION"
    general = "leave out such rows, or change them"


class StorageError(BoathouseError, OSError):
    """The store failed, or refused: permission, network, disk.

    Raised when a request has an answer and the answer is an error. Requests that may succeed later have been repeated
    by then. Secrets are not in the message.

    What to do: check that the store can be reached and permits this; pass `storage_options=`.
    """

    code = "STORAGE"
    general = "check that the store is reachable and permits this"


class UndecidedError(StorageError):
    """A request to the store whose effect is unknown: it timed out, or the server failed while it ran.

    Raised when nothing tells whether the store did it. In a commit it becomes a CommitUnknownError.

    What to do: try again once the store responds; reading is always safe to repeat.
    """

    code = "STORAGE_UNDECIDED"
    general = "try again once the store responds"


class UnsafeStorageError(StorageError):
    """The store cannot create a file only if it is absent, so two writers could overwrite each other.

    Raised when a commit, or a file that must be new, is about to be written to such a store. Reading works.

    What to do: use a store that supports put-if-absent (`If-None-Match`, hard links), or for Iceberg a catalog.
    """

    code = "STORAGE_UNSAFE"
    general = "use a store that supports put-if-absent"


class ReadOnlyError(BoathouseError, PermissionError):
    """Writing is switched off for this handle, this process or this reference.

    Raised when a table was opened at a version, a time or a tag, or BOATHOUSE_READ_ONLY is set, and a write is called.

    What to do: open the newest version, without `version=`, `timestamp=` or a tag, where writes are allowed.
    """

    code = "READ_ONLY"
    general = "open the newest version where writes are allowed"


class ForeignPathError(BoathouseError, PermissionError):
    """Metadata names a file in a store of another kind than the table's.

    Raised when for example a table in a bucket names a local file: whoever wrote the table would have it read from
    your machine.

    What to do: if you trust whoever wrote the table, open it with `allow_foreign_paths=True`.
    """

    code = "FOREIGN_PATH"
    general = "if you trust whoever wrote the table, open it with allow_foreign_paths=True"


class MixedWritersError(BoathouseError, RuntimeError):
    """Another library writes to this table in a way that could overwrite our commits.

    Raised when a write finds that a library without put-if-absent has written to the table on this store, or that an
    Iceberg table belongs to a catalog but was opened by path. docs/writers.md of the project explains the risk.

    What to do: write with one library only, through the catalog where there is one; `allow_mixed_writers=True` of
    `boathouse.open` takes the risk.
    """

    code = "MIXED_WRITERS"
    general = "write with one library only"


class StreamError(BoathouseError, RuntimeError):
    """A stream cannot go on without giving wrong rows.

    Raised when rows that a stream has given were deleted or updated, the table's columns changed, the table was
    replaced, or the checkpoint is of a stream with other options.

    What to do: start the query with a checkpoint of its own; the message names the option that passes over such commits
    where there is one.
    """

    code = "STREAM"
    general = "start the query with a checkpoint of its own"


class JobError(BoathouseError, RuntimeError):
    """A Spark job of a read or write failed for a reason that is neither in the table nor in an expression.

    Raised when a Python worker or an executor was lost (out of memory, killed), when a Python function of the rows
    raised, or when the job was cancelled. The message begins with the cause; `__cause__` has Spark's own error with its
    stack. Nothing was committed, and the files that tasks had written by then were removed.

    What to do: correct the function; where workers are lost, give them more memory
    (`spark.executor.pyspark.memory`, `spark.executor.memoryOverhead`), or write smaller parts. Then run it again.
    """

    code = "JOB"
    general = "correct the cause and run it again"


class MissingRequirementError(BoathouseError, RuntimeError):
    """The machine lacks something that this call needs: a package, Java, a time zone database.

    Raised when pandas, PySpark, PyIceberg or an extra of it is used and not installed, or the workers of Spark lack
    what reading needs.

    What to do: install what the message names.
    """

    code = "MISSING_REQUIREMENT"
    general = "install what is missing"


class CommitConflictError(BoathouseError, RuntimeError):
    """A concurrent commit won, and this write cannot be applied on top of it.

    Raised when the table changed between the version that the write has read and its commit, in a way that the write
    depends on: the other commit removed or changed rows that it removes or changes too, added rows that its condition
    should have seen, or changed the schema or the protocol. Commits that do not touch each other, such as two appends,
    never conflict: the write is repeated on the new version on its own, and `WriteResult.retries` counts that. The
    message names the version that won, what it did, and the files in question. The table has nothing of this write.

    What to do: look at what the other commit did, `Table.refresh()`, and run the write again if it still makes sense:

    >>> try:
    ...     done = t.update({"price": "price * 2"}, "id = 1")
    ... except bh.errors.CommitConflictError:
    ...     t.refresh()  # read again what the write was decided on, then write again

    Where conflicts are frequent: narrow the condition, so that it reads fewer files; write in larger and fewer commits;
    pass `isolation="snapshot"` if rows that were added concurrently do not matter.
    """

    code = "COMMIT_CONFLICT"
    general = "refresh() the table and run the write again if it still makes sense"


class CommitUnknownError(BoathouseError, RuntimeError):
    """The commit may or may not have succeeded: the store gave no answer, and none could be found afterwards.

    Raised when the request that commits timed out, or failed in the server, and reading the table did not show what
    became of it. Nothing is cleaned up, since the files may be part of the table. The message has the write id.

    What to do: do not simply write again, which could write the rows twice. Once the store responds, `find_write` says
    whether the write is in the table, and as which version:

    >>> done = t.append([{"id": 5, "city": "Oslo", "price": 1.0}])
    >>> t.refresh().find_write(done.write_id)  # None: it is not in the table, so write again
    2

    A write with `txn=(application, version)` can be repeated without asking: the second one is skipped.
    """

    code = "COMMIT_UNKNOWN"
    general = "call find_write() once the store responds"
