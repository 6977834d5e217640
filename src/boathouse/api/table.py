"""A table, pinned to the version it has read; its own writes move it to the new version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import Any

import pyarrow as pa

from boathouse.api.arguments import flag, located, texts
from boathouse.api.detail import detail, files_table, summary_lines
from boathouse.api.engines import engine_for, zone_of
from boathouse.api.later import Later
from boathouse.api.partition_by import partition_fields
from boathouse.api.scan import Scan
from boathouse.errors import InvalidArgumentError, SchemaError
from boathouse.expr.tree import Expr
from boathouse.ops import add_columns as _add_columns
from boathouse.ops import append as _append
from boathouse.ops import delete as _delete
from boathouse.ops import overwrite as _overwrite
from boathouse.ops import set_properties as _set_properties
from boathouse.ops.handle import Handle, WriteOptions
from boathouse.ops.result import WriteResult
from boathouse.table.engine import Engine
from boathouse.table.format import HistoryEntry, Snapshot
from boathouse.table.location import Version
from boathouse.types import DataType, Partitioning, Schema
from boathouse.types.text import parse_type

History = list[HistoryEntry]


class Table(Later):
    """One table of any format. Opened by `boathouse.open` or created by `boathouse.create`.

    Writes accept `message=`, `metadata={...}`, `txn=(app, version)` and `dry_run=True`, always start from the newest
    version, and raise CommitConflictError, CommitUnknownError, SchemaMismatchError, ReadOnlyError.
    """

    def __init__(self, handle: Handle, spark: Any = None, timezone: str | None = None) -> None:
        self._handle = handle
        self._spark = spark
        self._timezone = timezone

    @property
    def format(self) -> str:
        """`delta`, `iceberg` or `lance`."""
        return self._handle.format.name

    @property
    def uri(self) -> str:
        return self._handle.location.uri

    @property
    def version(self) -> Version:
        """The format's own number of this version (Iceberg: the snapshot id)."""
        return self._handle.snapshot.version

    @property
    def schema(self) -> Schema:
        return self._handle.snapshot.schema

    @property
    def partitioning(self) -> Partitioning:
        return self._handle.snapshot.partitioning

    @property
    def properties(self) -> Mapping[str, str]:
        return self._handle.snapshot.properties

    @located
    def history(self, limit: int | None = None) -> History:
        """Commits up to this version, newest first, as far as the table retains them."""
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
            raise InvalidArgumentError(
                f"limit={limit!r} is not a number of commits", advice="pass for example limit=10"
            )
        h = self._handle
        return list(h.format.history(h.snapshot, h.stores, limit))

    @located
    def files(self) -> pa.Table:
        """The data files: path, size, rows, deleted, partition."""
        return files_table(self._handle)

    @located
    def detail(self) -> dict[str, Any]:
        """Format, version, size, rows, files, partitioning, protocol and features."""
        return detail(self._handle)

    def scan(self, columns: Sequence[str] | None = None, where: str | Expr | None = None) -> Scan:
        """Some columns of the rows for which `where`, Spark SQL text, is true; lazy."""
        return Scan(self._handle, columns, where, self._spark, self._timezone)

    def to_arrow(self) -> pa.Table:
        """The whole table in process."""
        return self.scan().to_arrow()

    def to_pandas(self) -> Any:
        """The whole table as a pandas DataFrame."""
        return self.scan().to_pandas()

    def to_spark(self, spark: Any = None) -> Any:
        """The whole table as a Spark DataFrame."""
        return self.scan().to_spark(spark)

    def count(self) -> int:
        """How many rows."""
        return self.scan().count()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.scan().__arrow_c_stream__(requested_schema)

    @located
    def append(self, data: Any, merge_schema: bool = False, **options: Any) -> WriteResult:
        """Adds every row of the data; `merge_schema` adds columns that the table lacks and widens types.

        New columns may be inside structs; int becomes bigint, float double, decimals get more digits, if the format
        supports it.
        """
        engine = engine_for(data)
        flag("merge_schema", merge_schema)
        return self._moved(
            _append.append(self._handle, engine.source(data), engine, write_options(options), merge_schema)
        )

    @located
    def overwrite(
        self,
        data: Any,
        where: str | Expr | None = None,
        overwrite_schema: bool = False,
        partition_by: str | Sequence[str] | None = None,
        merge_schema: bool = False,
        **options: Any,
    ) -> WriteResult:
        """Replaces all rows, or those for which `where` is true; then all of the data must satisfy it.

        `merge_schema` adds columns that the table lacks and widens types; `overwrite_schema` takes all columns from
        the data.
        """
        engine = engine_for(data)
        rel = engine.source(data)
        if flag("merge_schema", merge_schema) and overwrite_schema:
            raise SchemaError("merge_schema= and overwrite_schema= exclude each other", advice="pass one of them")
        if partition_by is not None and not flag("overwrite_schema", overwrite_schema):
            raise SchemaError("partition_by= needs overwrite_schema=True", advice="pass it too, or leave both out")
        by = None if partition_by is None else partition_fields(partition_by, engine.schema(rel))
        return self._moved(
            _overwrite.overwrite(
                self._zoned(engine, where),
                rel,
                engine,
                where,
                write_options(options),
                overwrite_schema,
                by,
                merge_schema,
            )
        )

    @located
    def delete(self, where: str | Expr | None = None, **options: Any) -> WriteResult:
        """Deletes the rows for which `where` is true; without it every row."""
        engine = engine_for(None, self._spark)
        return self._moved(_delete.delete(self._zoned(engine, where), where, engine, write_options(options)))

    @located
    def add_column(self, name: str, type: Any, **options: Any) -> WriteResult:
        """Adds a nullable column, null in existing rows; `type` is Spark SQL text or a DataType."""
        found = parse_type(type) if isinstance(type, str) else type
        if not isinstance(name, str) or not name:
            raise InvalidArgumentError(f"{name!r} is not the name of a column", advice="pass the name as a string")
        if not isinstance(found, DataType):
            raise InvalidArgumentError(f"{type!r} is not a type", advice="pass Spark SQL text such as array<string>")
        column = (name, found)
        return self._moved(_add_columns.add_columns(self._handle, [column], write_options(options)))

    @located
    def set_properties(self, properties: Mapping[str, str | None], **options: Any) -> WriteResult:
        """Sets table properties; None removes one."""
        given = texts("properties", properties, nulls=True)
        return self._moved(_set_properties.set_properties(self._handle, given, write_options(options)))

    @located
    def find_write(self, write_id: str) -> Version | None:
        """The version that a write created, by its write id; resolves a CommitUnknownError."""
        if not isinstance(write_id, str) or not write_id:
            raise InvalidArgumentError(f"{write_id!r} is not a write id", advice="pass WriteResult.write_id")
        h = self._handle
        return h.format.find_write(h.location, h.stores, write_id)

    @located
    def refresh(self) -> Table:
        """Moves to the newest version; returns itself."""
        h = self._handle
        if not h.pinned:
            self._handle = replace(h, snapshot=h.format.newest(h.snapshot, h.stores))
        return self

    def _zoned(self, engine: Engine, where: str | Expr | None) -> Handle:
        """The handle with the time zone of conditions on this engine."""
        if where is None:
            return self._handle
        return replace(self._handle, zone=zone_of(engine, self._timezone, self._spark))

    def _moved(self, done: tuple[Snapshot, WriteResult]) -> WriteResult:
        self._handle = replace(self._handle, snapshot=done[0])
        return done[1]

    def __repr__(self) -> str:
        return "\n".join(summary_lines(self._handle))

    def _repr_html_(self) -> str:
        head, *rest = summary_lines(self._handle)
        rows = "".join(f"<tr><td>{escape(line.strip())}</td></tr>" for line in rest)
        return f"<b>{escape(head)}</b><table>{rows}</table>"


def write_options(options: Mapping[str, Any]) -> WriteOptions:
    """`message=`, `metadata=`, `txn=`, `dry_run=`, `target_file_bytes=` as one value. InvalidArgumentError."""
    known = WriteOptions.__slots__
    for name in options:
        if name not in known:
            raise InvalidArgumentError(f"unknown option {name!r}", advice=f"the options are {', '.join(known)}")
    return WriteOptions(**options)
