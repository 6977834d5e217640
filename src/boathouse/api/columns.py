"""The methods of a table that add, rename, drop and widen columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from boathouse.api.arguments import located
from boathouse.api.engines import LOCAL
from boathouse.api.table_part import Part
from boathouse.errors import InvalidArgumentError
from boathouse.expr.tree import Literal
from boathouse.ops.options import WriteOptions
from boathouse.ops.result import WriteResult
from boathouse.ops.schema.add_columns import AddColumns
from boathouse.ops.schema.alter_columns import ColumnDropped, ColumnRenamed, ColumnWidened
from boathouse.types import DataType
from boathouse.types.text import parse_type


class Columns(Part):
    """Columns are named by themselves, fields of structs by their path (`s.c`), names with dots in backticks."""

    @located
    def add_column(
        self,
        name: str,
        type: Any,
        *,
        default: object = None,
        nullable: bool = True,
        comment: str | None = None,
        after: str | None = None,
        first: bool = False,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        txn: tuple[str, int] | None = None,
        dry_run: bool = False,
    ) -> WriteResult:
        """Adds a column, null in existing rows; no file is rewritten. `type` is Spark SQL text or a DataType. A
        `default` (Spark SQL text, or a value) is what existing rows have, and later ones without the column; a column
        that is not `nullable` needs one, and older readers fail on rows without it. It comes last, right `after` a
        sibling, or `first`. These are Iceberg's; a default asks for format version 3.

        Raises InvalidArgumentError for a name that exists, SchemaError for text that is not a type,
        UnsupportedTypeError, UnsupportedFeatureError, CommitConflictError, CommitUnknownError, ReadOnlyError.

        >>> done = t.add_column("tags", "array<string>")
        >>> t.schema.names
        ('id', 'city', 'price', 'tags')
        """
        options = WriteOptions.of(message, metadata, txn, dry_run)
        place = "" if first else after
        write = AddColumns(((named(name), typed(type)),), nullable, constant(default), comment, place)
        return self._run(LOCAL, write, options)

    @located
    def rename_column(
        self,
        name: str,
        new_name: str,
        *,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        txn: tuple[str, int] | None = None,
        dry_run: bool = False,
    ) -> WriteResult:
        """Renames a column or a field of a struct, without rewriting files. `new_name` is the last name alone, and
        taken as it is: dots and backticks in it are part of the name.

        Raises ColumnNotFoundError, InvalidArgumentError if the new name is taken or a constraint names the column,
        UnsupportedFeatureError for a table whose files have the names of columns (Delta without
        `delta.columnMapping.mode`), CommitConflictError, CommitUnknownError, ReadOnlyError.
        """
        options = WriteOptions.of(message, metadata, txn, dry_run)
        return self._run(LOCAL, ColumnRenamed(named(name), named(new_name)), options)

    @located
    def drop_column(
        self,
        name: str,
        *,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        txn: tuple[str, int] | None = None,
        dry_run: bool = False,
    ) -> WriteResult:
        """Drops a column or a field of a struct, without rewriting files: its values stay in them, unread. A column
        that is added later is null in these rows, whatever its name.

        Raises ColumnNotFoundError, InvalidArgumentError for a partition column, the last column, or one that a
        constraint, a sort order or the identifier fields name, UnsupportedFeatureError for a table whose files have the
        names of columns (Delta without `delta.columnMapping.mode`), CommitConflictError, CommitUnknownError,
        ReadOnlyError.
        """
        return self._run(LOCAL, ColumnDropped(named(name)), WriteOptions.of(message, metadata, txn, dry_run))

    @located
    def widen_column(
        self,
        name: str,
        type: Any,
        *,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        txn: tuple[str, int] | None = None,
        dry_run: bool = False,
    ) -> WriteResult:
        """Gives a column, a field of a struct, or a part of a list or map (`l.element`, `m.key`, `m.value`) a wider
        type, without rewriting files. `type` is Spark SQL text or a DataType.

        Raises ColumnNotFoundError, InvalidArgumentError if a constraint names the column, UnsupportedFeatureError for a
        type that the format does not widen to and for a Delta table without `delta.enableTypeWidening`,
        CommitConflictError, CommitUnknownError, ReadOnlyError.

        >>> small = bh.create("lake/small", "id int", properties={"delta.enableTypeWidening": "true"})
        >>> done = small.widen_column("id", "bigint")
        >>> print(small.schema)
        id: bigint
        """
        options = WriteOptions.of(message, metadata, txn, dry_run)
        return self._run(LOCAL, ColumnWidened(named(name), typed(type)), options)


def constant(value: object) -> str | None:
    """A default as SQL text: a string is SQL, any other value a literal."""
    return value if value is None or isinstance(value, str) else str(Literal.of(value))


def typed(type: object) -> DataType:
    found = parse_type(type) if isinstance(type, str) else type
    if not isinstance(found, DataType):
        raise InvalidArgumentError(f"{type!r} is not a type", advice="pass Spark SQL text such as array<string>")
    return found


def named(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise InvalidArgumentError(f"{name!r} is not the name of a column", advice="pass the name as a string")
    return name
