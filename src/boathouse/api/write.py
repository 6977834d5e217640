"""write."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from boathouse import registry
from boathouse.api.arguments import errors_at, flag, strings
from boathouse.api.audit import run_audited
from boathouse.api.catalog import Catalog, in_catalog, newest_in
from boathouse.api.detection import choose, detected, locate, marked_at, not_found, require_free
from boathouse.api.engines import described, engine_for, time_zone, zone_of
from boathouse.api.manifest_store import check_manifest_store
from boathouse.api.opening import path_text, point, session_allows
from boathouse.api.overwriting import Partitions, overwriting, partition_mode
from boathouse.api.partition_by import partition_fields
from boathouse.api.python_rows import fitted
from boathouse.bits import system
from boathouse.errors import AlreadyExistsError, CommitConflictError, InvalidArgumentError, TableNotFoundError
from boathouse.expr.tree import Expr
from boathouse.ops.external_write import begin
from boathouse.ops.handle import Handle, check_read_only
from boathouse.ops.options import WriteOptions
from boathouse.ops.result import WriteResult
from boathouse.ops.rows.append import Append
from boathouse.ops.rows.overwrite_partitions import check_partitions
from boathouse.ops.schema.stored_types import held
from boathouse.ops.table import create as _create
from boathouse.ops.table.create import already_there
from boathouse.ops.write import Done, RowWork, Source, Write
from boathouse.storage import Stores
from boathouse.table.change import Isolation
from boathouse.table.context import TableContext
from boathouse.table.edits import CreateTable
from boathouse.table.engine import Engine
from boathouse.table.format import TableFormat
from boathouse.table.location import At, Location

Mode = Literal["error", "errorifexists", "append", "overwrite", "ignore"]


def write(
    data: Any,
    uri: str,
    format: str | None = None,
    mode: Mode = "error",
    partition_by: str | Sequence[str] | None = (),
    properties: Mapping[str, str] | None = None,
    where: str | Expr | None = None,
    merge_schema: bool = False,
    overwrite_schema: bool = False,
    storage_options: Mapping[str, str] | None = None,
    timezone: str | None = None,
    allow_mixed_writers: bool = False,
    partitions: Partitions | None = None,
    *,
    message: str | None = None,
    metadata: Mapping[str, str] | None = None,
    txn: tuple[str, int] | None = None,
    dry_run: bool = False,
    target_file_bytes: int | None = None,
    isolation: Isolation | None = None,
    catalog_options: Mapping[str, str] | None = None,
    ref: str | None = None,
) -> WriteResult:
    """Writes data to a table, creating it if there is none (then in `format`, `delta` by default).

    `mode` is Spark's: error, append, overwrite, ignore. `where` with mode overwrite replaces only the rows for which it
    is true, and `partitions="dynamic"` only the partitions that the data has rows in, as in `Table.overwrite`;
    `timezone` is the zone of `where`, unless the data is a Spark DataFrame (then it is the session's).
    `allow_mixed_writers` and `catalog_options` are those of `open`: with the latter, or with a catalog of PyIceberg's
    configuration, `uri` may be `catalog.namespace.table` of a table that is there. `ref` is a branch of a table that is
    there, which the rows go to. `data` and the other options are
    those of `Table.append`.

    Raises AlreadyExistsError (mode error, or another partitioning than `partition_by`), TableNotFoundError (in a
    catalog, or with `ref`), VersionNotFoundError (no such branch), SchemaMismatchError, SchemaError,
    ConstraintViolationError, ExpressionError, InvalidArgumentError, UnsupportedTypeError, UnsupportedFeatureError,
    CommitConflictError, CommitUnknownError, MixedWritersError, ReadOnlyError, StorageError.

    >>> rows = pa.table({"id": [1, 2], "city": ["Kiel", "Bergen"]})
    >>> bh.write(rows, "lake/places", format="lance").rows_added
    2
    >>> bh.write(rows, "lake/places", mode="append").version
    2
    """
    with errors_at(path_text(uri)):
        call = WriteCall(
            uri,
            format,
            mode,
            partition_by,
            properties,
            where,
            merge_schema,
            overwrite_schema,
            storage_options,
            timezone,
            allow_mixed_writers,
            partitions,
            WriteOptions.of(message, metadata, txn, dry_run, target_file_bytes, isolation),
            catalog_options,
            ref,
        )
        engine = engine_for(data)
        place = call.place() if isinstance(data, list) else None
        if isinstance(place, Handle) and not overwrite_schema:
            data = fitted(data, place.snapshot.schema)
        return call.run(engine, lambda: Source.of(engine, engine.source(data)), place=place)


@dataclass(frozen=True, slots=True)
class _New:
    """The table does not exist: the rows become its first version."""

    source: Source
    format: TableFormat
    context: TableContext
    table: CreateTable


@dataclass(frozen=True, slots=True)
class _Existing:
    handle: Handle
    write: Write


@dataclass(frozen=True, slots=True)
class _Skipped:
    result: WriteResult


_Target = _New | _Existing | _Skipped
Place = Handle | TableContext | _Skipped
"""What is there when a call looks: a table, nothing, or a table of which the mode says that nothing is written."""


@dataclass(frozen=True, slots=True)
class WriteCall:
    """The arguments of one call of `write`. A host that writes the rows itself, as Spark's data source does, first
    asks for their work with `rows`, and then commits what was written with `run`; both may be given the place, which
    is then not opened again."""

    uri: str
    format: str | None = None
    mode: Mode = "error"
    partition_by: str | Sequence[str] | None = ()
    properties: Mapping[str, str] | None = None
    where: str | Expr | None = None
    merge_schema: bool = False
    overwrite_schema: bool = False
    storage_options: Mapping[str, str] | None = None
    timezone: str | None = None
    allow_mixed_writers: bool = False
    partitions: Partitions | None = None
    options: WriteOptions = field(default_factory=WriteOptions)
    catalog_options: Mapping[str, str] | None = None
    ref: str | None = None

    def rows(self, engine: Engine, source: Source, place: Place | None = None) -> RowWork | None:
        """How the rows are written; None if there is nothing to write. Raises what `run` raises before it writes."""
        match self._target(engine, lambda: source, place):
            case _New(_, format, context, table):
                return _create.first_rows(format.create(context, table), source, self.options)
            case _Existing(handle, write):
                return begin(handle, engine, write, self.options)
        return None

    def run(
        self,
        engine: Engine,
        source: Callable[[], Source],
        written: Done | None = None,
        place: Place | None = None,
    ) -> WriteResult:
        """Writes and commits the rows, or commits the files that the host has written; then `source` has no rows."""
        try:
            found = self._target(engine, source, place)
            if isinstance(found, _New):
                try:
                    return self._create(found, engine, written)
                except AlreadyExistsError as error:
                    found = self._created_meanwhile(found, engine, source, error)
        except BaseException:
            if written is not None:
                written.discard()
            raise
        if isinstance(found, _Existing):
            return run_audited(found.handle, engine, found.write, self.options, written)[1]
        if written is not None:
            written.discard()
        assert isinstance(found, _Skipped)
        return found.result

    def place(self) -> Place:
        """Looks what is there. Raises AlreadyExistsError, TableNotFoundError, and errors of the arguments."""
        if self.mode not in ("error", "errorifexists", "append", "overwrite", "ignore"):
            raise InvalidArgumentError(f"mode={self.mode!r}", advice="it is one of error, append, overwrite, ignore")
        flag("overwrite_schema", self.overwrite_schema)
        if partition_mode(self.partitions) is not None and self.mode != "overwrite":
            raise InvalidArgumentError("partitions= needs mode='overwrite'", advice="pass it too, or leave both out")
        time_zone(self.timezone)
        at = self._at
        named = in_catalog(self.uri, self.catalog_options, self.storage_options)
        if named is not None:
            handle = self._in_catalog(*named)
            return self._settled(handle.location) or handle
        location = locate(path_text(self.uri))
        stores = Stores(self.storage_options, home=location.uri)
        check_read_only(str(location))
        marked = marked_at(location, stores)
        only = self._only(location, stores, marked)
        if only is not None:
            return only
        there = detected(location, stores, marked)
        if not there and at.ref is not None:
            raise not_found(location, stores)
        if not there:
            return TableContext(location, stores)
        return self._settled(location) or self._opened(location, stores, there)

    @property
    def _at(self) -> At:
        return point(None, None, self.ref, "UTC")

    def _target(self, engine: Engine, source: Callable[[], Source], place: Place | None = None) -> _Target:
        """What the call writes to. Raises what `place` raises."""
        place = self.place() if place is None else place
        if isinstance(place, Handle):
            return self._existing(place, engine, source)
        if isinstance(place, _Skipped):
            return place
        if self.where is not None:
            raise not_found(place.location, place.stores)
        require_free(place.location, place.stores)
        return self._new(place, source())

    def _settled(self, location: Location) -> _Skipped | None:
        """What a table that is there means by itself. Raises AlreadyExistsError."""
        if self.mode in ("error", "errorifexists"):
            raise already_there(location)
        return _Skipped(WriteResult("write", None, skipped="a table already exists")) if self.mode == "ignore" else None

    def _in_catalog(self, catalog: Catalog, identifier: str) -> Handle:
        """A table of a catalog. Raises TableNotFoundError, InvalidArgumentError."""
        if self.format not in (None, "iceberg"):
            raise InvalidArgumentError(
                f"format={self.format!r}: tables of catalogs are Iceberg's", advice="leave it out"
            )
        try:
            return newest_in(catalog, identifier, self.storage_options, self._at)
        except TableNotFoundError as error:
            error.advice = "create it first, by bh.catalog(...).create(...): tables that are there are written"
            raise

    def _only(self, location: Location, stores: Stores, marked: Sequence[str]) -> Handle | None:
        """The table to write to, if it is of the given format, or of the only one that may have one here: to open it is
        to see that it is there."""
        known = tuple(name for name in marked if self.format in (None, name))
        if self.mode not in ("append", "overwrite") or len(known) != 1:
            return None
        try:
            return self._opened(location, stores, known)
        except TableNotFoundError:
            return None

    def _opened(self, location: Location, stores: Stores, there: Sequence[str]) -> Handle:
        """The newest version of the table, of a format that is `there`. Raises what `boathouse.open` raises."""
        allowed = flag("allow_mixed_writers", self.allow_mixed_writers) or session_allows(None)
        with errors_at(str(location)):
            known = self.format or there[0]
            chosen = registry.load(known) if there == (known,) else choose(location, stores, self.format)
            check_manifest_store(chosen.name, location, stores)
            loaded = system.current().monotonic()
            snapshot = chosen.open(TableContext(location, stores, allowed), self._at)
        return Handle(snapshot, location.metadata is not None, loaded=loaded)

    def _new(self, context: TableContext, source: Source) -> _New:
        format = registry.load(self.format or "delta")
        check_manifest_store(format.name, context.location, context.stores)
        if self.partitions == "dynamic":
            check_partitions(format.name, format.capabilities.partitions)
        partitions = partition_fields(self.partition_by, source.schema)
        asked = CreateTable(source.schema, partitions, strings("properties", self.properties))
        return _New(source, format, context, held(lambda table: format.create(context, table), asked))

    def _create(self, new: _New, engine: Engine, written: Done | None) -> WriteResult:
        if self.options.dry_run:
            new.format.create(new.context, new.table)
            return WriteResult("create", None, dry_run=True)
        with described(engine, "create", str(new.context.location)):
            return _create.create(new.format, new.context, new.table, self.options, new.source, engine, written)[1]

    def _created_meanwhile(
        self, new: _New, engine: Engine, source: Callable[[], Source], error: AlreadyExistsError
    ) -> _Target:
        """The table that another writer created first. Raises `error`, or CommitConflictError for rows that can be
        read only once."""
        if self.mode in ("error", "errorifexists"):
            raise error
        if self.mode != "ignore" and (new.source.once or new.source.rel is None):
            raise CommitConflictError(
                "a table was created here concurrently, and these rows can be read only once",
                advice="run the write again with a new reader of the rows",
            ) from error
        return self._target(engine, lambda: new.source)

    def _existing(self, handle: Handle, engine: Engine, source: Callable[[], Source]) -> _Existing:
        if self.where is not None:
            handle = replace(handle, zone=zone_of(engine, time_zone(self.timezone), None))
        by = self.partition_by if self.partition_by and self.overwrite_schema else None
        if self.mode == "append" or by is None:
            _check_partitioning(handle, self.partition_by)
        if self.mode == "append":
            return _Existing(handle, Append(source(), flag("merge_schema", self.merge_schema)))
        write = overwriting(engine, source(), self.where, self.overwrite_schema, by, self.merge_schema, self.partitions)
        return _Existing(handle, write)


def _check_partitioning(handle: Handle, partition_by: str | Sequence[str] | None) -> None:
    if not partition_by:
        return
    snapshot = handle.snapshot
    have = [(f.source, f.transform) for f in snapshot.partitioning.current]
    want = [(f.source, f.transform) for f in partition_fields(partition_by, snapshot.schema)]
    if have != want:
        raise AlreadyExistsError(
            f"the table is partitioned by {[f'{t}({s[0]})' for s, t in have] or 'nothing'}, not by {partition_by}",
            where=str(handle.location),
            advice="leave out partition_by, or overwrite with overwrite_schema=True",
        )
