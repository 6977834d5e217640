"""Writes checkpoints, streamed from the previous one (PROTOCOL.md, "Checkpoints").

A checkpoint is one file; for tables with the feature v2Checkpoint an action in it says that it is of version 2, and the
actions on many files may be in others (`checkpoint_sidecars`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from boathouse.bits import system
from boathouse.delta import paths
from boathouse.delta.checkpoint.canonical import checksum
from boathouse.delta.checkpoint.reader import Wanted, read_files
from boathouse.delta.checkpoint.sidecars import (
    FILE_ACTIONS,
    SIDECAR,
    Sidecar,
    added_bytes,
    is_divided,
    kept_sidecars,
    name_of,
    write_sidecar,
)
from boathouse.delta.features.domains import domains
from boathouse.delta.features.support import V2_POLICY, supports
from boathouse.delta.files import map_columns
from boathouse.delta.log.cleanup import clean_log
from boathouse.delta.log.durations import DAY_MS, duration_ms
from boathouse.delta.log.entry import ADD, REMOVE, TEXT_MAP
from boathouse.delta.log.folder import HINT, Log
from boathouse.delta.log.tail import file_keys
from boathouse.delta.log.version_checksum import checksum_from, compare, write
from boathouse.delta.partition_values import decode_column
from boathouse.delta.schema import physical_name
from boathouse.delta.snapshot import DeltaSnapshot, load
from boathouse.delta.stats.bounds import StatsColumn
from boathouse.delta.stats.convert import ParsedLayout, found_in, stat_columns, texts_of
from boathouse.delta.stats.parsed import PARSED
from boathouse.errors import VersionNotFoundError
from boathouse.parquet.unbounded import without_floats
from boathouse.storage import PutMode
from boathouse.table.context import TableContext
from boathouse.table.location import At
from boathouse.types import Field

DEFAULT_INTERVAL: Final = 10
_RETAINED_MS: Final = 7 * DAY_MS
_GROUP_ROWS: Final = 100_000
_TXN: Final = pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])
_METADATA: Final = pa.struct(
    [
        ("id", pa.string()),
        ("name", pa.string()),
        ("description", pa.string()),
        ("format", pa.struct([("provider", pa.string()), ("options", TEXT_MAP)])),
        ("schemaString", pa.string()),
        ("partitionColumns", pa.list_(pa.field("element", pa.string()))),
        ("configuration", TEXT_MAP),
        ("createdTime", pa.int64()),
    ]
)
_FEATURES: Final = pa.list_(pa.field("element", pa.string()))
_PROTOCOL: Final = pa.struct(
    [
        ("minReaderVersion", pa.int32()),
        ("minWriterVersion", pa.int32()),
        ("readerFeatures", _FEATURES),
        ("writerFeatures", _FEATURES),
    ]
)
SCHEMA: Final = pa.schema(
    [
        ("txn", _TXN),
        ("add", pa.struct(list(ADD))),
        ("remove", pa.struct(list(REMOVE))),
        ("metaData", _METADATA),
        ("protocol", _PROTOCOL),
    ]
)
_DOMAIN: Final = pa.struct([("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())])
_CHECKPOINT: Final = pa.struct([("version", pa.int64()), ("tags", TEXT_MAP)])
_NO_ADDS: Final = pa.RecordBatch.from_arrays([pa.nulls(0, f.type) for f in ADD], schema=ADD)


def checkpoint_if_due(context: TableContext, version: int, planned: DeltaSnapshot | None) -> None:
    """Writes the checkpoint of `version` if a multiple of the interval has passed since the last one."""
    if planned is None or not _due(planned, version):
        return
    snapshot: DeltaSnapshot = load(context, At(version=version))
    if _due(snapshot, version):
        write_checkpoint(snapshot)
        if snapshot.metadata.flag("delta.enableExpiredLogCleanup", True):
            clean_log(snapshot)


def _due(snapshot: DeltaSnapshot, version: int) -> bool:
    interval = _interval(snapshot)
    last = snapshot.checkpoint.version if snapshot.checkpoint else 0
    return version // interval > last // interval


def _interval(snapshot: DeltaSnapshot) -> int:
    return max(1, snapshot.metadata.number("delta.checkpointInterval", DEFAULT_INTERVAL))


def write_checkpoint(snapshot: DeltaSnapshot) -> str:
    """Writes checkpoint and hint; returns the checkpoint's URI. Raises VersionNotFoundError without an entry."""
    log = snapshot.log
    if not log.storage.exists(log.commit_key(snapshot.version)):
        raise VersionNotFoundError(
            f"version {snapshot.version} has no entry in the log, so no checkpoint can be written", where=log.root
        )
    key = f"{log.key}/{name_of(snapshot, _interval(snapshot))}"
    form = _Form.of(snapshot)
    sidecars, rest = kept_sidecars(snapshot, form.file_actions) if form.divided else ([], snapshot)
    rows = adds = added = 0
    with log.storage.open_write(key, PutMode.OVERWRITE) as sink:
        file = pa.PythonFile(sink, mode="w")
        # Partition values may be NaN, which pyarrow leaves out of bounds.
        bounded = without_floats(form.schema)
        with pq.ParquetWriter(
            file, form.schema, compression="snappy", store_schema=False, write_statistics=bounded
        ) as out:
            for kind, table in _grouped(_actions(rest, form)):
                if form.divided and kind in FILE_ACTIONS:
                    sidecars.append(write_sidecar(log, kind, table))
                    continue
                out.write_table(table, row_group_size=_GROUP_ROWS)
                rows += table.num_rows
                if kind == "add":
                    adds, added = adds + table.num_rows, added + added_bytes(table)
            if sidecars:
                out.write_table(_table(form.schema, "sidecar", pa.array([s.action for s in sidecars], SIDECAR)))
        size = sink.tell()
    sizes = _sizes(rows, adds, size, sidecars)
    _write_hint(log, {"version": snapshot.version, **sizes})
    added += sum(s.added_bytes for s in sidecars)
    if snapshot.has_checksum:
        compare(snapshot, sizes["numOfAddFiles"], added)
    else:
        write(log, snapshot.version, checksum_from(snapshot, sizes["numOfAddFiles"], added))
    return log.uri(key)


def _sizes(rows: int, adds: int, size: int, sidecars: Sequence[Sidecar]) -> dict[str, int]:
    """The sums over the checkpoint's file and its sidecars: actions, bytes, files of the table."""
    return {
        "size": rows + len(sidecars) + sum(s.rows for s in sidecars),
        "sizeInBytes": size + sum(s.size for s in sidecars),
        "numOfAddFiles": adds + sum(s.adds for s in sidecars),
    }


def _write_hint(log: Log, document: dict[str, Any]) -> None:
    """Replaces the hint, unless it names a newer checkpoint."""
    known = log.hint()
    if known is not None and known.version > document["version"]:
        return
    document["checksum"] = checksum(json.dumps(document))
    log.storage.put(f"{log.key}/{HINT}", json.dumps(document).encode())


def _grouped(parts: Iterator[tuple[str, pa.Table]]) -> Iterator[tuple[str, pa.Table]]:
    """Adjacent batches of one kind, joined into row groups."""
    kind, rows = "", 0
    held: list[pa.Table] = []
    for next_kind, table in parts:
        if held and (next_kind != kind or rows + table.num_rows > _GROUP_ROWS):
            yield kind, pa.concat_tables(held)
            held, rows = [], 0
        kind = next_kind
        held.append(table)
        rows += table.num_rows
    if held:
        yield kind, pa.concat_tables(held)


@dataclass(frozen=True)
class _Form:
    """The forms in which the statistics of files are written (`delta.checkpoint.writeStatsAsJson`, `...AsStruct`)."""

    columns: tuple[StatsColumn, ...]
    partition: tuple[Field, ...]
    as_json: bool
    as_struct: ParsedLayout | None
    more: tuple[pa.Field, ...] = ()
    """Actions that only tables with these features have."""
    divided: bool = False

    @classmethod
    def of(cls, snapshot: DeltaSnapshot) -> _Form:
        metadata = snapshot.metadata
        columns = stat_columns(snapshot.schema, metadata.partition_columns)
        layout = None
        if metadata.flag("delta.checkpoint.writeStatsAsStruct"):
            found = found_in(live_actions(snapshot, "add", ADD))
            layout = ParsedLayout(columns, frozenset(found))
        partition = tuple(snapshot.schema.field(n) for n in metadata.partition_columns) if layout else ()
        columns_of = {"domainMetadata": ("domainMetadata", _DOMAIN)}
        if metadata.configuration.get(V2_POLICY, "").lower() != "classic":
            columns_of["v2Checkpoint"] = ("checkpointMetadata", _CHECKPOINT)
        more = tuple(pa.field(*f) for name, f in columns_of.items() if supports(snapshot.protocol, name))
        as_json = metadata.flag("delta.checkpoint.writeStatsAsJson", True)
        return cls(columns, partition, as_json, layout, more, is_divided(snapshot))

    @cached_property
    def schema(self) -> pa.Schema:
        i = SCHEMA.get_field_index("add")
        found = SCHEMA.set(i, pa.field("add", pa.struct(list(self.adds(_NO_ADDS).schema))))
        return pa.schema([*found, *self.more, *([pa.field("sidecar", SIDECAR)] if self.divided else [])])

    @property
    def file_actions(self) -> pa.Schema:
        """The columns of a sidecar."""
        return pa.schema([self.schema.field(name) for name in FILE_ACTIONS])

    def adds(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Add actions with their statistics in the requested forms."""
        columns = {f.name: batch.column(f.name) for f in ADD if f.name != "stats"}
        if self.as_json:
            columns["stats"] = texts_of(batch, self.columns)
        if self.as_struct is not None:
            columns["stats_parsed"] = self.as_struct.of(batch)
            if self.partition:
                columns["partitionValues_parsed"] = self._values(batch.column("partitionValues"))
        return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))

    def _values(self, maps: pa.MapArray) -> pa.StructArray:
        names = [physical_name(f) for f in self.partition]
        values = [decode_column(t, f.type, "") for t, f in zip(map_columns(maps, names), self.partition)]
        return pa.StructArray.from_arrays(values, names=names)


def _actions(snapshot: DeltaSnapshot, form: _Form) -> Iterator[tuple[str, pa.Table]]:
    table = partial(_table, form.schema)
    protocol = {k: v for k, v in snapshot.protocol.raw.items() if k in _PROTOCOL.names}
    yield "protocol", table("protocol", pa.array([protocol], _PROTOCOL))
    yield "metaData", table("metaData", _metadata(snapshot))
    txns = [
        {"appId": a["appId"], "version": a["version"], "lastUpdated": a.get("lastUpdated")} for a in _txns(snapshot)
    ]
    if txns:
        yield "txn", table("txn", pa.array(txns, _TXN))
    for f in form.more:
        if rows := _domains(snapshot) if f.type == _DOMAIN else [{"version": snapshot.version}]:
            yield f.name, table(f.name, pa.array(rows, f.type))
    for batch in live_actions(snapshot, "add", ADD):
        yield "add", table("add", _rows(form.adds(_unchanged(batch, ADD))))
    since = system.current().now_ms() - retention_ms(snapshot)
    for batch in live_actions(snapshot, "remove", REMOVE):
        kept = batch.filter(pc.greater(pc.fill_null(batch.column("deletionTimestamp"), 0), since))
        if kept.num_rows:
            yield "remove", table("remove", _rows(_unchanged(kept, REMOVE)))


def _txns(snapshot: DeltaSnapshot) -> list[dict[str, Any]]:
    return list({a["appId"]: a for a in snapshot.all_of("txn")}.values())


def _domains(snapshot: DeltaSnapshot) -> list[dict[str, Any]]:
    return [{"domain": d, "configuration": c, "removed": False} for d, c in domains(snapshot).items()]


def _metadata(snapshot: DeltaSnapshot) -> pa.Array:
    raw = dict(snapshot.metadata.raw)
    raw["configuration"] = list(snapshot.metadata.configuration.items())
    form = raw.get("format") or {}
    raw["format"] = {"provider": form.get("provider"), "options": list((form.get("options") or {}).items())}
    return pa.array([{k: raw.get(k) for k in _METADATA.names}], _METADATA)


def live_actions(snapshot: DeltaSnapshot, kind: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Add or remove actions of the version, as they were written; with `stats_parsed` where it holds more."""
    tail = snapshot.tail
    if snapshot.checkpoint is not None:
        parsed = (PARSED,) if kind == "add" else ()
        for _, batch in read_files(snapshot.checkpoint, Wanted(kind, schema, parsed=parsed)):
            keys = file_keys(paths.keys_of(batch.column("path"), snapshot.location.uri), batch.column("deletionVector"))
            keep = pc.invert(tail.superseded(keys))
            yield batch if pc.all(keep).as_py() else batch.filter(keep)
    table = tail.adds if kind == "add" else tail.removes
    yield from table.to_batches(max_chunksize=_GROUP_ROWS)


def _unchanged(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The actions with dataChange false: a checkpoint changes nothing."""
    i = schema.get_field_index("dataChange")
    return batch.set_column(i, schema.field(i), pa.array(np.zeros(batch.num_rows, bool)))


def _rows(batch: pa.RecordBatch) -> pa.Array:
    return pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema))


def _table(schema: pa.Schema, kind: str, actions: pa.Array) -> pa.Table:
    columns = [actions if f.name == kind else pa.nulls(len(actions), f.type) for f in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def retention_ms(snapshot: DeltaSnapshot) -> int:
    """How long removed files are retained; a duration that cannot be parsed retains them all."""
    text = snapshot.metadata.configuration.get("delta.deletedFileRetentionDuration")
    return _RETAINED_MS if text is None else duration_ms(text, system.current().now_ms())
