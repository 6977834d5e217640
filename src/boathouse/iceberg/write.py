"""The write context of a table's files, and written files as manifest entries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from boathouse.arrow.filesystem import data_files
from boathouse.errors import InvalidArgumentError, UnsupportedFeatureError
from boathouse.iceberg.manifests import ADDED, Entry, partition_row
from boathouse.iceberg.metadata import TableMetadata
from boathouse.iceberg.partitions import FIRST_FIELD_ID, bind_spec
from boathouse.iceberg.schemas import fresh_schema
from boathouse.iceberg.values import TRUNCATE_WIDTH, Physical, encode, physical_list, truncated
from boathouse.parquet.stats import SchemaLeaf, schema_leaves
from boathouse.storage import absolute, join
from boathouse.table.context import TableContext
from boathouse.table.edits import CreateTable
from boathouse.table.snapshot import RowDeletes, Target
from boathouse.table.tasks import WriteContext
from boathouse.types import FloatType, PartitionSpec, Schema

DATA_PATH: Final = "write.data.path"
DEFAULT_TARGET: Final = 512 << 20
ROW_OPERATIONS: Final = frozenset({"delete", "update", "merge"})
COPY_ON_WRITE: Final = "copy-on-write"
_METRICS = "write.metadata.metrics."


def create(context: TableContext, create: CreateTable) -> tuple[Schema, PartitionSpec]:
    """The schema and spec that a new table will have.

    Raises UnsupportedTypeError naming the column, UnsupportedFeatureError for another format version.
    """
    create.require_no_identities("Iceberg", str(context))
    if create.profile == "modern" or create.properties.get("format-version", "2") != "2":
        raise UnsupportedFeatureError(
            f"writing Iceberg format version {create.properties.get('format-version', '3')} is not offered",
            where=str(context),
            advice="leave format-version and profile out: version 2 is written",
        )
    if create.profile is not None:
        raise UnsupportedFeatureError(f"Iceberg tables have no profile {create.profile!r}", where=str(context))
    schema, _ = fresh_schema(create.schema)
    return schema, bind_spec(create.partition_by, schema, 0, FIRST_FIELD_ID - 1)[0]


def write_context(target: Target, root: str, write_id: str) -> WriteContext:
    """How data files are written: below `write.data.path`, else the `data` folder of the table at `root`."""
    properties = target.properties
    directory = absolute(properties[DATA_PATH]) if properties.get(DATA_PATH) else join(root, "data")
    options: dict[str, Any] = {"compression": _codec(properties.get("write.parquet.compression-codec", "zstd"))}
    level = properties.get("write.parquet.compression-level")
    if level not in (None, "", "null"):
        options["compression_level"] = _number("write.parquet.compression-level", level)
    group = properties.get("write.parquet.row-group-size-bytes")
    if group is not None:
        options["row_group_bytes"] = _number("write.parquet.row-group-size-bytes", group)
    size = properties.get("write.target-file-size-bytes")
    return WriteContext(
        format="iceberg",
        files=data_files(target.context.stores),
        schema=target.schema,
        spec=target.partitioning.current,
        directory=directory,
        write_id=write_id,
        target_bytes=DEFAULT_TARGET if size is None else _number("write.target-file-size-bytes", size),
        options=options,
    )


def row_deletes(metadata: TableMetadata, operation: str) -> RowDeletes:
    """`Snapshot.row_deletes`, from the property of the operation. Raises UnsupportedFeatureError for merge-on-read,
    InvalidArgumentError for a mode that does not exist."""
    name = f"write.{operation}.mode"
    mode = metadata.properties.get(name, COPY_ON_WRITE).lower()
    if operation not in ROW_OPERATIONS or mode == COPY_ON_WRITE:
        return "rewrite"
    if mode != "merge-on-read":
        raise InvalidArgumentError(
            f"the table property {name} is {mode!r}", where=metadata.uri, advice="set it to copy-on-write"
        )
    raise UnsupportedFeatureError(
        f"the table has {name} = merge-on-read, and writing delete files is not offered for Iceberg tables",
        where=metadata.uri,
        advice=f"to rewrite data files instead: table.set_properties({{{name!r}: {COPY_ON_WRITE!r}}})",
    )


def _codec(name: str) -> str:
    known = {"uncompressed": "none", "lz4_raw": "lz4"}
    return known.get(name.lower(), name.lower())


def _number(name: str, value: object) -> int:
    try:
        return int(str(value))
    except ValueError:
        raise InvalidArgumentError(f"table property {name} is {value!r}, which is not a number") from None


@dataclass(frozen=True, slots=True)
class _Leaf:
    """The metrics of one leaf: its counts, and its bounds truncated to `width` (None: complete; 0: none)."""

    index: int
    leaf: SchemaLeaf
    counts: bool
    bounds: bool
    width: int | None


def added_entries(
    outcomes: pa.Table, schema: Schema, spec: PartitionSpec, properties: Mapping[str, str], sequence: int | None
) -> list[Entry]:
    """Manifest entries for files that were just written: OUTCOMES of kind data, all with this schema and spec.

    Snapshot id and sequence numbers are null, to be inherited; `sequence` sets the data sequence number.
    """
    files = outcomes.combine_chunks()
    metrics = _metrics(files, _leaves(schema, properties))
    partitions = _partitions(files, spec)
    native = files.column("native").to_pylist()
    columns = [files.column(n).to_pylist() for n in ("path", "rows", "size")]
    return [
        {
            "status": ADDED,
            "snapshot_id": None,
            "sequence_number": sequence,
            "file_sequence_number": None,
            "data_file": {
                "content": 0,
                "file_path": path,
                "file_format": "PARQUET",
                "partition": partitions[i],
                "record_count": rows,
                "file_size_in_bytes": size,
                **metrics[i],
                "key_metadata": None,
                "split_offsets": native[i]["split_offsets"],
                "equality_ids": None,
                "sort_order_id": None,
                "referenced_data_file": None,
            },
        }
        for i, (path, rows, size) in enumerate(zip(*columns))
    ]


def _partitions(files: pa.Table, spec: PartitionSpec) -> list[dict[str, Physical]]:
    if not spec.fields:
        return [{} for _ in range(files.num_rows)]
    struct = files.column("partition").combine_chunks()
    columns = {f.id: physical_list(struct.field(str(f.id)), f.type) for f in spec}
    return [partition_row({id: c[i] for id, c in columns.items()}, spec) for i in range(files.num_rows)]


def _leaves(schema: Schema, properties: Mapping[str, str]) -> list[_Leaf]:
    """Which metrics are written for which leaf, by `write.metadata.metrics.*`; by default for the first 100 leaves."""
    limit = _number("max-inferred-column-defaults", properties.get(f"{_METRICS}max-inferred-column-defaults", 100))
    default = properties.get(f"{_METRICS}default")
    found = []
    for i, leaf in enumerate(schema_leaves(schema)):
        fallback = default or (f"truncate({TRUNCATE_WIDTH})" if i < limit else "none")
        mode = properties.get(f"{_METRICS}column.{'.'.join(leaf.path)}", fallback).strip().lower()
        bounds = mode == "full" or mode.startswith("truncate")
        width = None if mode == "full" else TRUNCATE_WIDTH
        if mode.startswith("truncate(") and mode.endswith(")"):
            width = max(1, _number(_METRICS, mode[9:-1]))
        # Elements of lists and maps have counts only.
        found.append(_Leaf(i, leaf, mode != "none", bounds and not leaf.repeated, width))
    return found


def _metrics(files: pa.Table, leaves: Sequence[_Leaf]) -> list[dict[str, Any]]:
    names = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
    maps: list[dict[str, dict[int, Any]]] = [{n: {} for n in names} for _ in range(files.num_rows)]
    stats = files.column("stats").combine_chunks()
    sizes = files.column("native").combine_chunks().field("column_sizes").to_pylist()
    for kept in leaves:
        if not kept.counts:
            continue
        id = kept.leaf.field.id
        assert id is not None
        s = stats.field(str(kept.index))
        for name, part in (("value_counts", "values"), ("null_value_counts", "nulls"), ("nan_value_counts", "nans")):
            if part == "nans" and not isinstance(kept.leaf.field.type, FloatType):
                continue
            for row, value in enumerate(s.field(part).to_pylist()):
                if value is not None:
                    maps[row][name][id] = value
        for row, per_leaf in enumerate(sizes):
            if per_leaf is not None and per_leaf[kept.index] is not None:
                maps[row]["column_sizes"][id] = per_leaf[kept.index]
        if kept.bounds:
            _bounds(maps, kept, id, s)
    return [dict(m) for m in maps]


def _bounds(maps: list[dict[str, dict[int, Any]]], kept: _Leaf, id: int, stats: pa.StructArray) -> None:
    type = kept.leaf.field.type
    lowers = physical_list(stats.field("lower"), type)
    uppers = physical_list(stats.field("upper"), type)
    for row, (low, high) in enumerate(zip(lowers, uppers)):
        lower, upper = truncated(low, high, kept.width)
        for name, value in (("lower_bounds", lower), ("upper_bounds", upper)):
            data = encode(value, type)
            if data is not None:
                maps[row][name][id] = data
