"""A table, pinned to the version it has read; its own writes move it to the new version.

One module because its methods are what a user reads in one place: half of the lines are their docstrings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from boathouse import registry
from boathouse.api.adding_files import AddingFiles
from boathouse.api.arguments import errors_at, flag, located, strings
from boathouse.api.audit import run_audited
from boathouse.api.changes import Changes
from boathouse.api.cleanup import Cleanup
from boathouse.api.column_rules import ColumnRules
from boathouse.api.column_values import ColumnValues
from boathouse.api.columns import Columns
from boathouse.api.commit_list import History
from boathouse.api.conditions import Condition, condition_text
from boathouse.api.constraints import Constraints
from boathouse.api.description import Description
from boathouse.api.detail import detail, files_table, summary_html, summary_lines
from boathouse.api.engines import LOCAL, engine_for, zone_of
from boathouse.api.examining import Examining
from boathouse.api.features import Features
from boathouse.api.indices import Indices
from boathouse.api.inspect import Inspect
from boathouse.api.maintenance import Maintenance
from boathouse.api.merge import MergeBuilder, key_columns, same_keys
from boathouse.api.merge import texts as value_texts
from boathouse.api.overwriting import Partitions, overwriting
from boathouse.api.python_rows import fitted
from boathouse.api.reading import Reading
from boathouse.api.refs import Refs
from boathouse.api.relocating import Relocating
from boathouse.api.statistics import Statistics
from boathouse.api.taking import Taking
from boathouse.engines.local import LocalEngine
from boathouse.errors import InvalidArgumentError
from boathouse.ops.handle import Handle
from boathouse.ops.options import WriteOptions
from boathouse.ops.result import WriteResult
from boathouse.ops.rows.append import Append
from boathouse.ops.rows.delete import Delete
from boathouse.ops.rows.key_upsert import KeyUpsert
from boathouse.ops.rows.merge import Merge
from boathouse.ops.rows.update import Update
from boathouse.ops.table.set_properties import PropertiesSet
from boathouse.ops.write import Source, Write
from boathouse.table.change import Isolation
from boathouse.table.engine import Engine
from boathouse.table.features import Identifiers
from boathouse.table.location import At, Version
from boathouse.types import Partitioning, Schema


class Table(
    Reading,
    Maintenance,
    Cleanup,
    AddingFiles,
    Relocating,
    Columns,
    ColumnValues,
    ColumnRules,
    Constraints,
    Features,
    Statistics,
    Indices,
    Taking,
    Examining,
    Description,
):
    """One table of any format, pinned to the version it has read. Opened by `boathouse.open`, created by
    `boathouse.create`.

    Reading methods give the rows of that version, whatever others commit; `refresh` moves on. Writes always start from
    the newest version and move to the one they made. They accept `message=` and `metadata={...}` (for the history),
    `txn=(app, version)` (a repeated one is skipped), `dry_run=True` (everything is computed, nothing committed),
    `target_file_bytes=` and `isolation="serializable"` or `"snapshot"`, and raise CommitConflictError,
    CommitUnknownError, SchemaMismatchError, ReadOnlyError.

    A table exports itself as an Arrow stream: `pa.table(t)`, `polars.DataFrame(t)` and DuckDB read it.

    >>> t = bh.create("lake/flights", "carrier string, delay double")
    >>> done = t.append([{"carrier": "UA", "delay": 11.0}, {"carrier": "AA", "delay": 48.0}], message="first load")
    >>> t.scan(where="delay > 20").to_arrow().to_pylist()
    [{'carrier': 'AA', 'delay': 48.0}]
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
        """The table's root folder as a URI: `file:///data/flights`, `s3://bucket/flights`."""
        return self._handle.location.uri

    @property
    def version(self) -> Version:
        """The format's own number of this version: 0, 1, 2, ... in Delta, 1, 2, ... in Lance, in Iceberg the snapshot
        id, 0 before the first snapshot."""
        return self._handle.snapshot.version

    @property
    def schema(self) -> Schema:
        """The columns of this version, in order: `t.schema.names`, `t.schema.field("id").type`."""
        return self._handle.snapshot.schema

    @property
    def partitioning(self) -> Partitioning:
        """How this version is partitioned: `t.partitioning.current` has the fields for new files, none if it is not.

        Iceberg tables may have files of older specs: `t.partitioning.specs` are all of them. Lance tables are never
        partitioned.
        """
        return self._handle.snapshot.partitioning

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties, as its metadata has them: `delta.appendOnly`, `write.format.default`, ... Read only;
        `set_properties` changes them."""
        return self._handle.snapshot.properties

    @located
    def history(self, limit: int | None = None) -> History:
        """Commits up to this version, newest first, as far as the table retains them; at most `limit`.

        Raises InvalidArgumentError, CorruptTableError, StorageError.

        >>> [h.version for h in t.history()]
        [1, 0]
        """
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
            raise InvalidArgumentError(
                f"limit={limit!r} is not a number of commits", advice="pass for example limit=10"
            )
        return History(self._handle.snapshot.history.entries(limit))

    @located
    def files(self) -> pa.Table:
        """The data files of this version, one row each: `path`, `size` (bytes), `rows` and `deleted` (null where not
        recorded), `partition`.

        Raises CorruptTableError, StorageError.
        """
        return files_table(self._handle)

    @property
    def inspect(self) -> Inspect:
        """The metadata tables of this version, under Iceberg's names: `t.inspect.files()`, `t.inspect.snapshots()`."""
        return Inspect(self._handle, self._spark)

    @property
    def refs(self) -> Refs:
        """The branches and tags of the table, by name: `t.refs["audit"]`, `t.refs.create_branch("audit")`."""
        return Refs(lambda: self._handle, self._run, zone_of(LOCAL, self._timezone, self._spark))

    @located
    def detail(self) -> dict[str, Any]:
        """What the table is, as a dict: format, location, version, timestamp, identity, rows, files and bytes, columns,
        partitioning, properties, and what its format adds (Delta: protocol and features).

        Raises CorruptTableError, StorageError.
        """
        return detail(self._handle)

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
        by now.

        Raises InvalidArgumentError for what is not a version, ColumnNotFoundError, ExpressionError; when rows are
        requested, VersionNotFoundError if a version is gone, UnsupportedFeatureError if a schema was replaced in
        between, CorruptTableError, StorageError.

        >>> done = t.delete("id = 1")
        >>> t.changes(done.version, columns=["id"]).to_arrow().select(["id", "_change_type"]).to_pylist()
        [{'id': 1, '_change_type': 'delete'}]
        """
        for name, version in (("start", start), ("end", end)):
            if isinstance(version, bool) or not isinstance(version, int if name == "start" else int | None):
                raise InvalidArgumentError(f"{name}={version!r} is not a version", advice="pass a number of history()")
        snapshot = self._handle.snapshot
        if end is not None and end != snapshot.version:
            snapshot = registry.load(snapshot.format).open(snapshot.context, At(version=end))
        appends = flag("appends_only", appends_only)
        return Changes(snapshot, start, columns, where, self._spark, self._timezone, appends)

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

        `data` is anything that exports Arrow data (pyarrow, pandas, polars, DuckDB), a list of dicts, or a Spark
        DataFrame, whose rows are then written by the executors, or by this process if they are few and Spark's driver
        holds them (`WriteResult.engine` says which). Columns are matched by name; one that the data lacks is null.
        Numbers of dicts become as wide as the table's columns, where they fit; other data is never narrowed. New
        columns may be inside structs; int becomes bigint, float double, decimals get more digits, if the format
        supports it.

        Raises SchemaMismatchError for columns that do not fit, ConstraintViolationError for rows that break a rule of
        the table, InvalidArgumentError, UnsupportedFeatureError, CommitConflictError, CommitUnknownError,
        ReadOnlyError, StorageError.

        >>> t.append([{"id": 4, "city": "Oslo", "price": 31.5}], message="late arrival").rows_added
        1
        """
        options = WriteOptions.of(message, metadata, txn, dry_run, target_file_bytes, isolation)
        engine = engine_for(data)
        flag("merge_schema", merge_schema)
        self._handle.check_open()
        return self._run(engine, Append(self._source(engine, data), merge_schema), options)

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
        data, and `partition_by` with it.

        Raises ConstraintViolationError for data outside `where`, SchemaError for arguments that exclude each other,
        SchemaMismatchError, ExpressionError, InvalidArgumentError, UnsupportedFeatureError, CommitConflictError,
        CommitUnknownError, ReadOnlyError, StorageError.

        >>> t.overwrite([{"id": 1, "city": "Kiel", "price": 12.0}], where="id = 1").rows_deleted
        1
        """
        options = WriteOptions.of(message, metadata, txn, dry_run, target_file_bytes, isolation)
        engine = engine_for(data)
        source = Source.of(engine, engine.source(data)) if overwrite_schema else self._source(engine, data)
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

        Raises ColumnNotFoundError, ExpressionError, EvaluationError if the condition fails on a row,
        UnsupportedFeatureError, CommitConflictError, CommitUnknownError, ReadOnlyError.

        >>> t.delete("city IS NULL").rows_deleted
        1
        """
        options = WriteOptions.of(message, metadata, txn, dry_run, target_file_bytes, isolation)
        engine = engine_for(None, self._spark)
        self._handle.check_open()
        return self._run(
            engine, Delete(None if where is None else condition_text(where, self.schema)), options, where is not None
        )

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
        """Sets columns to the values of expressions (Spark SQL text) in the rows for which `where` is true; without it
        in all.

        A string constant has its own quotes: `{"city": "'Kiel'"}`. All expressions see the row as it was. `s.x` is a
        field of the struct `s`, whose other fields stay (null where `s` is), `` `s.x` `` a column of this name.

        Raises ColumnNotFoundError, ExpressionError, EvaluationError if an expression fails on a row,
        ConstraintViolationError, SchemaMismatchError for a value that does not convert, InvalidArgumentError,
        UnsupportedFeatureError, CommitConflictError, CommitUnknownError, ReadOnlyError.

        >>> t.update({"price": "price * 2", "city": "upper(city)"}, where="id = 2").rows_updated
        1
        """
        options = WriteOptions.of(message, metadata, txn, dry_run, target_file_bytes, isolation)
        self._handle.check_open()
        write = Update(value_texts(set), None if where is None else condition_text(where, self.schema))
        return self._run(self._engine(engine_for(None, self._spark)), write, options, True)

    def merge(
        self, source: Any, on: Condition, sides: tuple[str, str] = ("target", "source"), merge_schema: bool = False
    ) -> MergeBuilder:
        """Starts a merge of rows into the table; nothing happens before `execute` of what it returns.

        `source` is anything that `append` accepts; `on` is the condition under which rows match, in which columns are
        named by `sides`; with `merge_schema`, columns that only the source has and clauses assign are added.

        Raises InvalidArgumentError, ExpressionError.

        >>> news = pa.table({"id": [2, 9], "city": ["Bergen", "Turku"], "price": [1.0, 2.0]})
        >>> merge = t.merge(news, "target.id = source.id").when_matched_update({"price": "source.price"})
        >>> merge.when_not_matched_insert_all().execute().rows_updated
        1
        """
        with errors_at(self.uri):
            engine = self._engine(engine_for(source))
            self._handle.check_open()
            rows = self._source(engine, source)
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
        deletes: str | None = None,
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

        `deletes="equality"`, for streams of upserts into Iceberg tables of version 2 and later, does not read the
        table: the commit has the rows, which must have all columns, and a file of their keys (equality deletes), which
        hides older rows with these keys from readers, until `rewrite_deletes` or `compact` make an end of it. Every row
        counts as added. Keys are no floats, and no fields of structs.

        Raises ConstraintViolationError if two rows of `source` have the same values in `on`, ColumnNotFoundError,
        InvalidArgumentError, ExpressionError, SchemaMismatchError, CommitConflictError, CommitUnknownError,
        ReadOnlyError.

        >>> rows = [{"id": 2, "city": "Bergen", "price": 1.0}, {"id": 9, "city": "Turku", "price": 2.0}]
        >>> done = t.upsert(rows, on="id")
        >>> done.rows_updated, done.rows_added
        (1, 1)
        """
        with errors_at(self.uri):
            named = self._handle.snapshot.offers(Identifiers)
            keys = key_columns(on, self.schema, () if named is None else named.columns)
            if deletes not in (None, "equality"):
                raise InvalidArgumentError(f"deletes={deletes!r}", advice="pass deletes='equality', or leave it out")
            if deletes is not None:
                options = WriteOptions.of(message, metadata, txn, dry_run, target_file_bytes, isolation)
                engine = self._engine(engine_for(source))
                self._handle.check_open()
                rows = self._source(engine, source)
                return self._run(engine, KeyUpsert(rows, keys, flag("merge_schema", merge_schema)), options)
        merge = self.merge(source, same_keys(keys), merge_schema=merge_schema).when_matched_update_all()
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
        """Sets table properties; None removes one. Properties that are not named stay.

        Raises InvalidArgumentError for a value that is not a string or that the property cannot have,
        UnsupportedFeatureError, CommitConflictError, CommitUnknownError, ReadOnlyError.

        >>> done = t.set_properties({"delta.appendOnly": "true", "owner": None})
        """
        options = WriteOptions.of(message, metadata, txn, dry_run)
        return self._run(LOCAL, PropertiesSet(strings("properties", properties, nulls=True)), options)

    @located
    def find_write(self, write_id: str) -> Version | None:
        """The table's version once a write was committed, by its write id, or None; resolves a CommitUnknownError.

        The write id is in that error's message, and in `WriteResult.write_id` of every write. Call `refresh` first:
        commits after this table's version are not seen.

        Raises InvalidArgumentError, CorruptTableError, StorageError; CommitUnknownError where the table's log does not
        tell whether a version with this write is part of the table.
        """
        if not isinstance(write_id, str) or not write_id:
            raise InvalidArgumentError(f"{write_id!r} is not a write id", advice="pass WriteResult.write_id")
        return self._handle.snapshot.history.find_write(write_id)

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

    def _source(self, engine: Engine, data: Any) -> Source:
        return Source.of(engine, engine.source(fitted(data, self.schema)))

    def _run(self, engine: Engine, write: Write, options: WriteOptions, zoned: bool = False) -> WriteResult:
        """Commits the write and moves to the version after it; `zoned` if it has a condition."""
        handle = self._handle
        if zoned:
            handle = replace(handle, zone=zone_of(engine, self._timezone, self._spark))
        snapshot, result = run_audited(handle, engine, write, options)
        self._handle = replace(self._handle, snapshot=snapshot)
        return result

    def __repr__(self) -> str:
        return "\n".join(summary_lines(self._handle))

    def _repr_html_(self) -> str:
        return summary_html(self._handle)
