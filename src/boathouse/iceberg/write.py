"""The write context of a table's files, and written files as manifest entries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.filesystem import data_files
from boathouse.errors import InvalidArgumentError, MixedWritersError, UnsafeStorageError, UnsupportedFeatureError
from boathouse.iceberg.commit.defaults import computed
from boathouse.iceberg.commit.row_ids import carried
from boathouse.iceberg.data_writer import OF_POSITIONS
from boathouse.iceberg.manifests.columns import MAPS, TYPES, map_array, partition_column, table
from boathouse.iceberg.manifests.records import ADDED, DATA
from boathouse.iceberg.manifests.values import (
    TRUNCATE_WIDTH,
    encode,
    encode_numbers,
    number_kind,
    physical_list,
    truncated,
)
from boathouse.iceberg.metadata import rules
from boathouse.iceberg.metadata.partitions import FIRST_FIELD_ID, bind_spec, unknown_transforms
from boathouse.iceberg.metadata.schema_rules import check_lineage_names
from boathouse.iceberg.metadata.schemas import fresh_schema
from boathouse.iceberg.metadata.versions import MODERN, NEW, PROPERTY, FormatVersion, asked_version
from boathouse.iceberg.paths import version_of
from boathouse.iceberg.row_modes import positions_per
from boathouse.iceberg.snapshot import IcebergSnapshot
from boathouse.parquet.stats import SchemaLeaf, schema_leaves
from boathouse.storage import absolute, join
from boathouse.table.context import TableContext
from boathouse.table.edits import CreateTable
from boathouse.table.tasks import WriteContext
from boathouse.types import DataType, FloatType, NullType, PartitionSpec, Schema

DATA_PATH: Final = "write.data.path"
DEFAULT_TARGET: Final = 512 << 20
SHRED: Final = "write.parquet.shred-variants"
_METRICS = "write.metadata.metrics."


def create(context: TableContext, create: CreateTable) -> tuple[Schema, PartitionSpec, FormatVersion]:
    """The schema, spec and format version that a new table will have.

    Raises UnsupportedTypeError naming the column, UnsupportedFeatureError for a format version that is not offered.
    """
    create.require_no_identities("Iceberg", str(context))
    if create.profile not in (None, "modern"):
        raise UnsupportedFeatureError(f"Iceberg tables have no profile {create.profile!r}", where=str(context))
    version = NEW if create.profile is None else MODERN
    if PROPERTY in create.properties:
        version = asked_version(create.properties[PROPERTY])
    schema, _ = fresh_schema(create.schema, version)
    if version.row_lineage:
        check_lineage_names(schema, str(context))
    return schema, bind_spec(create.partition_by, schema, 0, FIRST_FIELD_ID - 1)[0], version


def write_context(
    context: TableContext, schema: Schema, spec: PartitionSpec, properties: Mapping[str, str], root: str, write_id: str
) -> WriteContext:
    """How data files are written: below `write.data.path`, else the `data` folder of the table at `root`.

    Raises UnsupportedFeatureError if the table asks for files of another format than Parquet.
    """
    format = properties.get("write.format.default", "parquet").lower()
    if format != "parquet":
        raise UnsupportedFeatureError(
            f"the table's data files are written as {format}, which is not offered",
            where=str(context.location),
            advice="set the property write.format.default to parquet",
        )
    options = _parquet(properties, "write.parquet.")
    options[OF_POSITIONS] = _parquet(properties, "write.delete.parquet.")
    if properties.get(SHRED, "false").lower() == "true":
        options["shred"] = True
    size = properties.get("write.target-file-size-bytes")
    return WriteContext(
        format="iceberg",
        files=data_files(context.stores),
        schema=schema,
        spec=spec,
        directory=data_folder(properties, root),
        write_id=write_id,
        target_bytes=DEFAULT_TARGET if size is None else _number("write.target-file-size-bytes", size),
        options=options,
    )


def table_context(snapshot: IcebergSnapshot, write_id: str) -> WriteContext:
    """How data files for a table that exists are written."""
    spec, properties = snapshot.partitioning.current, snapshot.properties
    found = write_context(snapshot.context, snapshot.schema, spec, properties, snapshot.paths.root, write_id)
    made = computed(snapshot.schema, snapshot.token)
    return replace(found, carried=carried(snapshot.metadata), computed=made, positions_per=positions_per(properties))


def check_writable(found: IcebergSnapshot) -> None:
    """Raises if this library may not write the table, because of its location, other writers, or its features."""
    metadata = found.metadata
    where = metadata.uri
    if found.location.metadata is not None:
        raise UnsupportedFeatureError(
            "a table opened by its metadata file is read only", where=where, advice="open the table's folder to write"
        )
    managed = found.context.catalog is not None
    if not managed and version_of(where) is None:
        raise MixedWritersError(
            "the table belongs to a catalog, and only the catalog may make a new version current",
            where=where,
            advice='open it by its name in the catalog: bh.open("catalog.namespace.table")',
        )
    if found.paths.moved:
        raise UnsupportedFeatureError(
            f"the table was relocated from {metadata.location}, which its metadata still names",
            where=where,
            advice="copy its rows into a new table",
        )
    unknown = unknown_transforms(metadata.partitioning.current)
    if unknown:
        raise UnsupportedFeatureError(f"writing with partition transform {unknown[0]} is not offered", where=where)
    if metadata.document.get("encryption-keys") or metadata.properties.get("encryption.key-id"):
        raise UnsupportedFeatureError("Iceberg table encryption is not offered", where=where)
    rules.check(metadata.document, where)
    if metadata.format.row_lineage:
        check_lineage_names(found.schema, where)
    storage, _ = found.stores.resolve(found.location.uri)
    if not managed and not storage.atomic_create:
        raise UnsafeStorageError("this store does not support put-if-absent", where=found.location.uri)


def data_folder(properties: Mapping[str, str], root: str) -> str:
    """Where the data files of the table at `root` are written, and their deletion vectors."""
    return absolute(properties[DATA_PATH]) if properties.get(DATA_PATH) else join(root, "data")


def _parquet(properties: Mapping[str, str], prefix: str) -> dict[str, Any]:
    """What the properties with this prefix say of Parquet files."""
    found: dict[str, Any] = {}
    if f"{prefix}compression-codec" in properties:
        found["compression"] = _codec(properties[f"{prefix}compression-codec"])
    level = properties.get(f"{prefix}compression-level")
    if level not in (None, "", "null"):
        found["compression_level"] = _number(f"{prefix}compression-level", level)
    group = properties.get(f"{prefix}row-group-size-bytes")
    if group is not None:
        found["row_group_bytes"] = _number(f"{prefix}row-group-size-bytes", group)
    return found


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


def added_columns(
    outcomes: pa.Table, schema: Schema, spec: PartitionSpec, properties: Mapping[str, str], sequence: int | None
) -> pa.Table:
    """Manifest entries for files that were just written: OUTCOMES of kind data, all with this schema and spec.

    Snapshot id and sequence numbers are null, to be inherited; `sequence` sets the data sequence number.
    """
    files = outcomes.combine_chunks()
    rows = files.num_rows
    partition = files.column("partition").combine_chunks() if spec.fields else None
    arrays = {
        "status": pa.repeat(pa.scalar(ADDED, pa.int32()), rows),
        "sequence_number": pa.repeat(pa.scalar(sequence, pa.int64()), rows),
        "content": pa.repeat(pa.scalar(DATA, pa.int32()), rows),
        "file_path": files.column("path").combine_chunks(),
        "file_format": pa.repeat("PARQUET", rows),
        "record_count": files.column("rows").combine_chunks(),
        "file_size_in_bytes": files.column("size").combine_chunks(),
        "split_offsets": files.column("native").combine_chunks().field("split_offsets"),
        **_metrics(files, _leaves(schema, properties)),
    }
    if partition is not None:
        arrays |= {partition_column(f): partition.field(str(f.id)) for f in spec}
    return table(arrays, spec, rows)


def _leaves(schema: Schema, properties: Mapping[str, str]) -> list[_Leaf]:
    """Which metrics are written for which leaf, by `write.metadata.metrics.*`; by default for the first 100 leaves."""
    limit = _number("max-inferred-column-defaults", properties.get(f"{_METRICS}max-inferred-column-defaults", 100))
    default = properties.get(f"{_METRICS}default")
    found = []
    for i, leaf in enumerate(schema_leaves(schema)):
        if isinstance(leaf.field.type, NullType):
            continue  # no file has it
        fallback = default or (f"truncate({TRUNCATE_WIDTH})" if i < limit else "none")
        mode = properties.get(f"{_METRICS}column.{'.'.join(leaf.path)}", fallback).strip().lower()
        bounds = mode == "full" or mode.startswith("truncate")
        width = None if mode == "full" else TRUNCATE_WIDTH
        if mode.startswith("truncate(") and mode.endswith(")"):
            width = max(1, _number(_METRICS, mode[9:-1]))
        # Elements of lists and maps have counts only.
        found.append(_Leaf(i, leaf, mode != "none", bounds and not leaf.repeated, width))
    return found


def _metrics(files: pa.Table, leaves: Sequence[_Leaf]) -> dict[str, pa.Array]:
    """The metric maps, each from the values of all leaves that have them."""
    stats, rows = files.column("stats").combine_chunks(), files.num_rows
    sizes = files.column("native").combine_chunks().field("column_sizes")
    found: dict[str, dict[int, pa.Array]] = {name: {} for name in MAPS}
    for kept in leaves:
        id, type = kept.leaf.field.id, kept.leaf.field.type
        assert id is not None
        if not kept.counts:
            continue
        s = stats.field(str(kept.index))
        found["column_sizes"][id] = _element(sizes, kept.index)
        found["value_counts"][id], found["null_value_counts"][id] = s.field("values"), s.field("nulls")
        if isinstance(type, FloatType):
            found["nan_value_counts"][id] = s.field("nans")
        if kept.bounds:
            bounds = _bounds(s.field("lower"), s.field("upper"), type, kept.width)
            found["lower_bounds"][id], found["upper_bounds"][id] = bounds
    return {name: map_array(list(maps), list(maps.values()), TYPES[name], rows) for name, maps in found.items()}


def _element(lists: pa.Array, index: int) -> pa.Array:
    """One element of each list; null where the list is null."""
    if lists.null_count == 0:
        return pc.list_element(lists, index)
    return pa.array([None if v is None else v[index] for v in lists.to_pylist()], pa.int64())


def _bounds(lower: pa.Array, upper: pa.Array, type: DataType, width: int | None) -> tuple[pa.Array, pa.Array]:
    """Bounds in binary form, truncated."""
    kind = number_kind(type)
    if kind is not None:
        return encode_numbers(lower, kind), encode_numbers(upper, kind)
    pairs = zip(physical_list(lower, type), physical_list(upper, type))
    cut = [truncated(low, high, width) for low, high in pairs]
    made = [pa.array([encode(pair[i], type) for pair in cut], pa.binary()) for i in (0, 1)]
    return made[0], made[1]
