"""Metadata tables under the names and columns of Iceberg's reference: which there are, and those that FILES and the
history of any format answer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.longs import longs
from boathouse.arrow.schema import to_arrow_field
from boathouse.bits.roaring import deserialize64
from boathouse.errors import InvalidArgumentError, UnsupportedFeatureError
from boathouse.table.grouping import Groups
from boathouse.table.history import HistoryEntry
from boathouse.table.plan import PlannedUnits
from boathouse.table.snapshot import Snapshot
from boathouse.table.units import AVRO, EQUALITY, LANCE, ORC, PARQUET
from boathouse.types import Field, FixedSizeListType, ListType, MapType, StructType, VariantType

NAMES: Final = (
    "entries", "files", "data_files", "delete_files", "history", "metadata_log_entries", "snapshots", "refs",
    "manifests", "partitions", "all_data_files", "all_delete_files", "all_files", "all_manifests", "all_entries",
    "position_deletes",
)  # fmt: skip
_OF_ANY: Final = ("files", "data_files", "history", "snapshots", "partitions", "position_deletes")
_TIME: Final = pa.timestamp("us", "UTC")
_FORMATS: Final = {PARQUET: "PARQUET", ORC: "ORC", AVRO: "AVRO", LANCE: "LANCE"}
_COUNTED: Final = ("value_count", "null_value_count", "nan_value_count")
_SNAPSHOTS: Final = pa.schema(
    [
        pa.field("committed_at", _TIME, False),
        pa.field("snapshot_id", pa.int64(), False),
        pa.field("parent_id", pa.int64()),
        pa.field("operation", pa.string()),
        pa.field("summary", pa.map_(pa.string(), pa.string())),
    ]
)
_HISTORY: Final = pa.schema(
    [
        pa.field("made_current_at", _TIME, False),
        pa.field("snapshot_id", pa.int64(), False),
        pa.field("parent_id", pa.int64()),
        pa.field("is_current_ancestor", pa.bool_(), False),
    ]
)
REFS: Final = pa.schema(
    [
        pa.field("name", pa.string(), False),
        pa.field("type", pa.string(), False),
        pa.field("snapshot_id", pa.int64(), False),
        pa.field("max_reference_age_in_ms", pa.int64()),
        pa.field("min_snapshots_to_keep", pa.int32()),
        pa.field("max_snapshot_age_in_ms", pa.int64()),
    ]
)


def check_name(name: object) -> str:
    """Raises InvalidArgumentError for anything that is not the name of a metadata table."""
    if isinstance(name, str) and name in NAMES:
        return name
    raise InvalidArgumentError(f"{name!r} is not a metadata table", advice=f"the names are {', '.join(NAMES)}")


@dataclass(frozen=True, slots=True)
class CommonTables:
    """See `table.features.MetadataTables`: those that mean something in every format, of a format without manifests.

    `metrics`: FILES has statistics, which become `readable_metrics`. `offered` are the tables that the format answers
    itself.
    """

    snapshot: Snapshot
    metrics: bool
    offered: Sequence[str] = ()

    def inspect(self, name: str) -> pa.Table:
        """Raises UnsupportedFeatureError for a table that such formats do not have."""
        snapshot = self.snapshot
        match name:
            case "files" | "data_files":
                return _files(snapshot, self.metrics)
            case "history":
                return _history(snapshot)
            case "snapshots":
                return pa.Table.from_pylist([_commit(e) for e in _oldest_first(snapshot)], _SNAPSHOTS)
            case "partitions":
                return partitions_of(snapshot, list(snapshot.files()))
            case "position_deletes":
                return _position_deletes(snapshot)
        there = [n for n in NAMES if n in (*_OF_ANY, *self.offered)]
        raise UnsupportedFeatureError(
            f"the metadata table {name} has no meaning for {snapshot.format} tables",
            where=str(snapshot.context.location),
            advice=f"those of this format are {', '.join(there)}",
        )


def _partition_fields(snapshot: Snapshot) -> list[tuple[int, pa.Field]]:
    found: dict[int, pa.Field] = {}
    for spec in snapshot.partitioning.specs:
        for f in spec:
            found.setdefault(f.id, to_arrow_field(Field(f.name, f.type)))
    return sorted(found.items())


def _partition(units: pa.StructArray, fields: Sequence[tuple[int, pa.Field]]) -> list[pa.Array]:
    """The partition values of FILES, named as the table names them; nothing if there are no partitions."""
    if not fields:
        return []
    values = [units.field(units.type.get_field_index(str(id))) for id, _ in fields]
    return [pa.StructArray.from_arrays(values, fields=[f for _, f in fields])]


def _partition_column(fields: Sequence[tuple[int, pa.Field]]) -> list[pa.Field]:
    return [pa.field("partition", pa.struct([f for _, f in fields]), False)] if fields else []


def _files(snapshot: Snapshot, metrics: bool) -> pa.Table:
    fields = _partition_fields(snapshot)
    measured = leaves(snapshot) if metrics else []
    readable = pa.struct([pa.field(".".join(path), _metrics_type(f)) for path, f in measured])
    schema = pa.schema(
        [
            pa.field("content", pa.int32()),
            pa.field("file_path", pa.string(), False),
            pa.field("file_format", pa.string(), False),
            *_partition_column(fields),
            pa.field("record_count", pa.int64()),
            pa.field("file_size_in_bytes", pa.int64()),
            *([pa.field("readable_metrics", readable)] if measured else []),
        ]
    )
    paths = [path for path, _ in measured]

    def batches() -> Iterator[pa.RecordBatch]:
        for units in snapshot.files(paths):
            arrays = [
                pa.repeat(pa.scalar(0, pa.int32()), units.num_rows),
                units.column("path"),
                _format_names(units.column("format")),
                *_partition(units.column("partition"), fields),
                units.column("rows"),
                units.column("size"),
                *([_readable(units.column("stats"), readable)] if measured else []),
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    return pa.Table.from_batches(batches(), schema)


def leaves(snapshot: Snapshot) -> list[tuple[tuple[str, ...], Field]]:
    """The columns that may have statistics: of simple types, also inside of structs, by name."""

    def below(path: tuple[str, ...], f: Field) -> Iterator[tuple[tuple[str, ...], Field]]:
        if isinstance(f.type, StructType):
            for child in f.type:
                yield from below((*path, child.name), child)
        elif not isinstance(f.type, ListType | MapType | FixedSizeListType | VariantType):
            yield path, f

    found = [leaf for f in snapshot.schema for leaf in below((f.name,), f)]
    return sorted(found, key=lambda leaf: ".".join(leaf[0]).encode("utf-16-be", "surrogatepass"))


def _metrics_type(field: Field) -> pa.StructType:
    bounds = [to_arrow_field(Field(name, field.type)) for name in ("lower_bound", "upper_bound")]
    return pa.struct([*(pa.field(n, pa.int64()) for n in _COUNTED), *bounds])


def _readable(stats: pa.StructArray, readable: pa.StructType) -> pa.Array:
    """The waist's statistics as readable metrics."""
    found = []
    for i, field in enumerate(readable):
        of_column = stats.field(i)
        arrays = [of_column.field(n) for n in ("values", "nulls", "nans", "lower", "upper")]
        found.append(pa.StructArray.from_arrays(arrays, fields=list(field.type)))
    return pa.StructArray.from_arrays(found, fields=list(readable))


def _format_names(numbers: pa.Array) -> pa.Array:
    names = pa.array([_FORMATS[i] for i in range(len(_FORMATS))], pa.string())
    return names.take(numbers)


def _oldest_first(snapshot: Snapshot) -> list[HistoryEntry]:
    return [e for e in snapshot.history.entries() if not e.metadata_only][::-1]


def _history(snapshot: Snapshot) -> pa.Table:
    """Every commit up to this version is an ancestor of it."""
    rows = [
        {
            "made_current_at": e.timestamp_ms * 1000,
            "snapshot_id": e.version,
            "parent_id": e.parent,
            "is_current_ancestor": True,
        }
        for e in _oldest_first(snapshot)
    ]
    return pa.Table.from_pylist(rows, _HISTORY)


def _commit(entry: HistoryEntry) -> dict[str, Any]:
    own = {"engine": entry.engine, "message": entry.message, "write-id": entry.write_id}
    summary: Mapping[str, Any] = {**entry.metadata, **entry.parameters, **entry.metrics, **own}
    return {
        "committed_at": entry.timestamp_ms * 1000,
        "snapshot_id": entry.version,
        "parent_id": entry.parent,
        "operation": entry.operation,
        "summary": [(str(k), _text(v)) for k, v in summary.items() if v is not None],
    }


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)


def partitions_of(snapshot: Snapshot, files: Sequence[pa.RecordBatch]) -> pa.Table:
    """The metadata table `partitions` of a snapshot whose FILES these are."""
    fields = _partition_fields(snapshot)
    schema = pa.schema(
        [
            *_partition_column(fields),
            pa.field("record_count", pa.int64()),
            pa.field("file_count", pa.int32(), False),
            pa.field("total_data_file_size_in_bytes", pa.int64()),
            pa.field("position_delete_record_count", pa.int64()),
        ]
    )
    if not any(b.num_rows for b in files):
        return schema.empty_table()
    units = pa.Table.from_batches(files).combine_chunks().to_batches()[0]
    named = _partition(units.column("partition"), fields)
    groups = Groups.of([v for p in named for v in p.flatten()], units.num_rows)
    arrays = [
        *(p.take(longs(groups.first)) for p in named),
        _sums(groups, units.column("rows")),
        pa.array(groups.sums(np.ones(units.num_rows, np.int64)).astype(np.int32)),
        _sums(groups, units.column("size")),
        _sums(groups, units.column("deleted")),
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def _sums(groups: Groups, values: pa.Array) -> pa.Array:
    """The sum of each group; null where one of its values is unknown."""
    known = values.is_valid().to_numpy(zero_copy_only=False)
    unknown = groups.sums((~known).astype(np.int64))
    return longs(groups.sums(values.fill_null(0).to_numpy()), unknown == 0)


def _position_deletes(snapshot: Snapshot) -> pa.Table:
    """The deleted positions of each file, as planning resolves them."""
    fields = _partition_fields(snapshot)
    schema = pa.schema(
        [
            pa.field("file_path", pa.string(), False),
            pa.field("pos", pa.int64(), False),
            *_partition_column(fields),
        ]
    )
    plan = snapshot.plan([])
    batches = (b for part in plan.parts() for b in _positions(part, fields, schema))
    return pa.Table.from_batches(batches, schema)


def _positions(
    part: PlannedUnits, fields: Sequence[tuple[int, pa.Field]], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    inline = {
        number: bitmap
        for number, kind, bitmap in zip(*(part.deletes.column(n).to_pylist() for n in ("delete", "kind", "inline")))
        if kind != EQUALITY and bitmap is not None
    }
    units = part.units.select(["path", "deletes", "partition"])
    for batch in units.filter(pc.is_valid(units.column("deletes"))).to_batches():
        named = _partition(batch.column("partition"), fields)
        for i, (path, deletes) in enumerate(zip(batch.column("path").to_pylist(), batch.column("deletes").to_pylist())):
            for number in deletes:
                if number in inline:
                    positions = longs(deserialize64(inline[number], where=path).positions())
                    n = len(positions)
                    row = pa.repeat(i, n)
                    arrays = [pa.repeat(path, n), positions, *(p.take(row) for p in named)]
                    yield pa.RecordBatch.from_arrays(arrays, schema=schema)
