"""A table, pinned to the version it has read; its own writes move it to the new version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import Any

import pyarrow as pa

from boathouse import registry
from boathouse.api.arguments import errors_at, flag, located, texts
from boathouse.api.changes import Changes
from boathouse.api.columns import Columns
from boathouse.api.conditions import Condition, condition_text
from boathouse.api.constraints import Constraints
from boathouse.api.description import Description
from boathouse.api.detail import detail, files_table, summary_lines
from boathouse.api.engines import LOCAL, engine_for, zone_of
from boathouse.api.features import Features
from boathouse.api.inspect import Inspect
from boathouse.api.maintenance import Maintenance
from boathouse.api.merge import MergeBuilder, same_keys
from boathouse.api.merge import texts as value_texts
from boathouse.api.overwriting import Partitions, overwriting
from boathouse.api.scan import Scan
from boathouse.engines.local import LocalEngine
from boathouse.errors import InvalidArgumentError
from boathouse.ops.append import Append
from boathouse.ops.delete import Delete
from boathouse.ops.handle import Handle
from boathouse.ops.merge import Merge
from boathouse.ops.options import WriteOptions
from boathouse.ops.result import WriteResult
from boathouse.ops.run import run
from boathouse.ops.set_properties import PropertiesSet
from boathouse.ops.update import Update
from boathouse.ops.write import Source, Write
from boathouse.table.change import Isolation
from boathouse.table.engine import Engine
from boathouse.table.features import Identifiers
from boathouse.table.location import At, Version
from boathouse.table.snapshot import HistoryEntry
from boathouse.types import Partitioning, Schema

History = list[HistoryEntry]


class Table(Maintenance, Columns, Constraints, Features, Description):
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
        return self._handle.snapshot.format

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
        """Commits up to this version, newest first, as far as the table retains them.

        Raises InvalidArgumentError, CorruptTableError, StorageError.
        """
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
            raise InvalidArgumentError(
                f"limit={limit!r} is not a number of commits", advice="pass for example limit=10"
            )
        return list(self._handle.snapshot.history(limit))

    @located
    def files(self) -> pa.Table:
        """The data files: path, size, rows, deleted, partition. Raises CorruptTableError, StorageError."""
        return files_table(self._handle)

    @property
    def inspect(self) -> Inspect:
        """The metadata tables of this version, under Iceberg's names: `t.inspect.files()`."""
        return Inspect(self._handle, self._spark)

    @located
    def detail(self) -> dict[str, Any]:
        """Format, version, size, rows, files, partitioning, protocol and features.

        Raises CorruptTableError, StorageError.
        """
        return detail(self._handle)

    def scan(self, columns: Sequence[str] | None = None, where: Condition | None = None) -> Scan:
        """Some columns of the rows for which `where`, Spark SQL text or an expression, is true; lazy.

        `columns` may name metadata columns, which a column of the same name hides: `_file`, `_pos`, `_spec_id`,
        `_sequence`; of Iceberg tables also `_partition`, `_row_id`, `_last_updated_sequence_number`, and `_deleted`,
        with which the scan returns deleted rows too, as far as their files still have them.

        Raises ColumnNotFoundError, ExpressionError, InvalidArgumentError.
        """
        return Scan(self._handle, columns, where, self._spark, self._timezone)

    @located
    def changes(
        self,
        start: Version,
        end: Version | None = None,
        columns: Sequence[str] | None = None,
        where: Condition | None = None,
        appends_only: bool = False,
    ) -> Changes:
        """The rows that the commits from version `start` to `end` inserted and deleted, both included; lazy.

        `end` is by default this table's version. `start=0` is the first commit in every format. An updated row is a
        delete and an insert. Rows are found by comparing the files of neighbouring versions, and read with the schema
        of `end`: columns that a version lacks are null. With `appends_only`, commits that deleted or updated rows are
        passed over, with the rows that they inserted: what is left are the appended rows, also those that are deleted
        by now. When rows are requested, raises VersionNotFoundError if a version is gone, UnsupportedFeatureError if a
        schema was replaced in between.
        """
        for name, version in (("start", start), ("end", end)):
            if isinstance(version, bool) or not isinstance(version, int if name == "start" else int | None):
                raise InvalidArgumentError(f"{name}={version!r} is not a version", advice="pass a number of history()")
        snapshot = self._handle.snapshot
        if end is not None and end != snapshot.version:
            snapshot = registry.load(snapshot.format).open(snapshot.context, At(version=end))
        appends = flag("appends_only", appends_only)
        return Changes(snapshot, start, columns, where, self._spark, self._timezone, appends)

    def to_arrow(self) -> pa.Table:
        """The whole table in process. Raises what `Scan.to_arrow` raises."""
        return self.scan().to_arrow()

    def to_pandas(self) -> Any:
        """The whole table as a pandas DataFrame. Raises what `Scan.to_pandas` raises."""
        return self.scan().to_pandas()

    def to_spark(self, spark: Any = None) -> Any:
        """The whole table as a Spark DataFrame. Raises what `Scan.to_spark` raises."""
        return self.scan().to_spark(spark)

    def count(self) -> int:
        """How many rows. Raises what `Scan.count` raises."""
        return self.scan().count()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.scan().__arrow_c_stream__(requested_schema)

    @located
    def append(
        self,
        data: Any,
        merge_schema: bool = False,
        *,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        txn: tuple[str, int] | None = None,
        dry_run: bool = False,
        target_file_bytes: int | None = None,
        isolation: Isolation | None = None,
    ) -> WriteResult:
        """Adds every row of the data; `merge_schema` adds columns that the table lacks and widens types.

        New columns may be inside structs; int becomes bigint, float double, decimals get more digits, if the format
        supports it. Raises SchemaMismatchError, CommitConflictError, CommitUnknownError, ReadOnlyError.
        """
        options = WriteOptions.of(message, metadata, txn, dry_run, target_file_bytes, isolation)
        engine = engine_for(data)
        flag("merge_schema", merge_schema)
        self._handle.check_open()
        return self._run(engine, Append(Source.of(engine, engine.source(data)), merge_schema), options)

    @located
    def overwrite(
        self,
        data: Any,
        where: Condition | None = None,
        overwrite_schema: bool = False,
        partition_by: str | Sequence[str] | None = None,
        merge_schema: bool = False,
        partitions: Partitions | None = None,
        *,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        txn: tuple[str, int] | None = None,
        dry_run: bool = False,
        target_file_bytes: int | None = None,
        isolation: Isolation | None = None,
    ) -> WriteResult:
        """Replaces all rows, or those for which `where` is true; then all of the data must satisfy it.

        `partitions="dynamic"` replaces the partitions that the data has rows in, and leaves the others; "static"
        replaces all. By default a DataFrame's session decides (`spark.sql.sources.partitionOverwriteMode`).
        `merge_schema` adds columns that the table lacks and widens types; `overwrite_schema` takes all columns from the
        data. Raises ConstraintViolationError for data outside `where`, and what `append` raises.
        """
        options = WriteOptions.of(message, metadata, txn, dry_run, target_file_bytes, isolation)
        engine = engine_for(data)
        source = Source.of(engine, engine.source(data))
        write = overwriting(engine, source, where, overwrite_schema, partition_by, merge_schema, partitions)
        return self._run(engine, write, options, where is not None)

    @located
    def delete(
        self,
        where: Condition | None = None,
        *,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        txn: tuple[str, int] | None = None,
        dry_run: bool = False,
        target_file_bytes: int | None = None,
        isolation: Isolation | None = None,
    ) -> WriteResult:
        """Deletes the rows for which `where` is true; without it every row.

        Raises ExpressionError, EvaluationError if the condition fails on a row, CommitConflictError,
        CommitUnknownError, ReadOnlyError.
        """
        options = WriteOptions.of(message, metadata, txn, dry_run, target_file_bytes, isolation)
        engine = engine_for(None, self._spark)
        self._handle.check_open()
        return self._run(engine, Delete(None if where is None else condition_text(where)), options, where is not None)

    @located
    def update(
        self,
        set: Mapping[str, Condition],
        where: Condition | None = None,
        *,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        txn: tuple[str, int] | None = None,
        dry_run: bool = False,
        target_file_bytes: int | None = None,
        isolation: Isolation | None = None,
    ) -> WriteResult:
        """Sets columns to the values of expressions (Spark SQL text) in the rows for which `where` is true.

        Raises ColumnNotFoundError, ExpressionError, EvaluationError if an expression fails on a row, and what `append`
        raises.
        """
        options = WriteOptions.of(message, metadata, txn, dry_run, target_file_bytes, isolation)
        self._handle.check_open()
        write = Update(value_texts(set), None if where is None else condition_text(where))
        return self._run(self._engine(engine_for(None, self._spark)), write, options, True)

    def merge(
        self, source: Any, on: Condition, sides: tuple[str, str] = ("target", "source"), merge_schema: bool = False
    ) -> MergeBuilder:
        """Starts a merge of rows into the table: `t.merge(rows, "target.id = source.id").when_matched_update_all()`.

        `source` is anything that `append` accepts; `on` is the condition under which rows match, in which columns are
        named by `sides`; with `merge_schema`, columns that only the source has are added. See MergeBuilder.
        Raises InvalidArgumentError, ExpressionError.
        """
        with errors_at(self.uri):
            engine = self._engine(engine_for(source))
            self._handle.check_open()
            rows = Source.of(engine, engine.source(source))
            flag("merge_schema", merge_schema)
            matches = condition_text(on)

        def run(merge: Merge, options: WriteOptions) -> WriteResult:
            return self._run(engine, merge, options, True)

        return MergeBuilder(self.uri, run, lambda clauses: Merge(rows, matches, clauses, sides, merge_schema))

    def upsert(
        self,
        source: Any,
        on: str | Sequence[str] | None = None,
        merge_schema: bool = False,
        *,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        txn: tuple[str, int] | None = None,
        dry_run: bool = False,
        target_file_bytes: int | None = None,
        isolation: Isolation | None = None,
    ) -> WriteResult:
        """Updates the rows that have the same values as a row of `source` in the columns `on`, and inserts the others:
        the short form of a merge. As there, rows with null in one of these columns match no row. Without `on`, those
        that the table says identify a row (Iceberg's identifier fields).

        Raises ConstraintViolationError if two rows of `source` have the same values in `on`, ColumnNotFoundError, and
        what `merge` raises.
        """
        with errors_at(self.uri):
            named = self._handle.snapshot.offers(Identifiers)
            equal = same_keys(on, () if named is None else named.columns)
        merge = self.merge(source, equal, merge_schema=merge_schema).when_matched_update_all()
        return merge.when_not_matched_insert_all().execute(
            message=message,
            metadata=metadata,
            txn=txn,
            dry_run=dry_run,
            target_file_bytes=target_file_bytes,
            isolation=isolation,
        )

    @located
    def set_properties(
        self,
        properties: Mapping[str, str | None],
        *,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        txn: tuple[str, int] | None = None,
        dry_run: bool = False,
    ) -> WriteResult:
        """Sets table properties; None removes one. Raises InvalidArgumentError, CommitConflictError."""
        options = WriteOptions.of(message, metadata, txn, dry_run)
        return self._run(LOCAL, PropertiesSet(texts("properties", properties, nulls=True)), options)

    @located
    def find_write(self, write_id: str) -> Version | None:
        """The table's version once a write was committed, by its write id, or None; resolves a CommitUnknownError.

        Raises InvalidArgumentError, CorruptTableError, StorageError.
        """
        if not isinstance(write_id, str) or not write_id:
            raise InvalidArgumentError(f"{write_id!r} is not a write id", advice="pass WriteResult.write_id")
        return self._handle.snapshot.find_write(write_id)

    @located
    def refresh(self) -> Table:
        """Moves to the newest version, unless the table was opened at a version or time; returns itself.

        Raises TableNotFoundError if the table is gone, CorruptTableError, UnsupportedFeatureError, StorageError.
        """
        h = self._handle
        if not h.pinned:
            self._handle = replace(h, snapshot=h.snapshot.newest())
        return self

    def _engine(self, engine: Engine) -> Engine:
        """The engine, in process with the time zone of this table's conditions."""
        zone = zone_of(engine, self._timezone, self._spark)
        return engine if engine.name != "local" or zone in (None, engine.timezone) else LocalEngine(zone)

    def _run(self, engine: Engine, write: Write, options: WriteOptions, zoned: bool = False) -> WriteResult:
        """Commits the write and moves to the version after it; `zoned` if it has a condition."""
        handle = self._handle
        if zoned:
            handle = replace(handle, zone=zone_of(engine, self._timezone, self._spark))
        snapshot, result = run(handle, engine, write, options)
        self._handle = replace(self._handle, snapshot=snapshot)
        return result

    def __repr__(self) -> str:
        return "\n".join(summary_lines(self._handle))

    def _repr_html_(self) -> str:
        head, *rest = summary_lines(self._handle)
        rows = "".join(f"<tr><td>{escape(line.strip())}</td></tr>" for line in rest)
        return f"<b>{escape(head)}</b><table>{rows}</table>"
