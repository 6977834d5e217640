"""The columns of the metadata tables, with the names, types and order of the reference (apache/iceberg 1.10)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from boathouse.arrow.schema import to_arrow_field
from boathouse.iceberg.metadata.document import TableMetadata
from boathouse.iceberg.metadata.schemas import by_id, leaves
from boathouse.types import DataType, Field, Schema, VariantType

TIME: Final = pa.timestamp("us", "UTC")
COUNTS: Final = pa.map_(pa.int32(), pa.int64())
BOUNDS: Final = pa.map_(pa.int32(), pa.binary())
TEXTS: Final = pa.map_(pa.string(), pa.string())
LONGS: Final = pa.list_(pa.int64())
INTS: Final = pa.list_(pa.int32())
MAPS: Final = {
    "column_sizes": COUNTS,
    "value_counts": COUNTS,
    "null_value_counts": COUNTS,
    "nan_value_counts": COUNTS,
    "lower_bounds": BOUNDS,
    "upper_bounds": BOUNDS,
}
READABLE: Final = "readable_metrics"
PARTITION: Final = "partition"
_METRICS: Final = ("column_size", "value_count", "null_value_count", "nan_value_count", "lower_bound", "upper_bound")


def required(name: str, type: pa.DataType) -> pa.Field:
    return pa.field(name, type, False)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column of a simple type: its name with those of its parents, and its field id."""

    name: str
    id: int
    type: DataType


@dataclass(frozen=True)
class Layout:
    """What the columns of one table's metadata tables depend on: its partition fields and its columns."""

    partition: tuple[tuple[int, Field], ...]
    """The partition fields of all specs by id."""
    leaves: tuple[Leaf, ...]

    @classmethod
    def of(cls, metadata: TableMetadata, schema: Schema) -> Layout:
        return cls(partition_fields(metadata), leaves_of(schema))

    @property
    def partition_type(self) -> pa.StructType:
        return pa.struct([to_arrow_field(f) for _, f in self.partition])

    @property
    def partition_fields(self) -> list[pa.Field]:
        """The column `partition`, if any spec has fields."""
        return [required(PARTITION, self.partition_type)] if self.partition else []

    @property
    def file_fields(self) -> list[pa.Field]:
        """The fields of a data or delete file."""
        return [
            pa.field("content", pa.int32()),
            required("file_path", pa.string()),
            required("file_format", pa.string()),
            pa.field("spec_id", pa.int32()),
            *self.partition_fields,
            required("record_count", pa.int64()),
            required("file_size_in_bytes", pa.int64()),
            *(pa.field(name, type) for name, type in MAPS.items()),
            pa.field("key_metadata", pa.binary()),
            pa.field("split_offsets", LONGS),
            pa.field("equality_ids", INTS),
            pa.field("sort_order_id", pa.int32()),
            pa.field("first_row_id", pa.int64()),
            pa.field("referenced_data_file", pa.string()),
            pa.field("content_offset", pa.int64()),
            pa.field("content_size_in_bytes", pa.int64()),
        ]

    @property
    def readable_type(self) -> pa.StructType:
        return pa.struct([pa.field(leaf.name, leaf_type(leaf)) for leaf in self.leaves])

    @property
    def files(self) -> pa.Schema:
        return pa.schema([*self.file_fields, pa.field(READABLE, self.readable_type)])

    @property
    def entries(self) -> pa.Schema:
        return pa.schema(
            [
                required("status", pa.int32()),
                pa.field("snapshot_id", pa.int64()),
                pa.field("sequence_number", pa.int64()),
                pa.field("file_sequence_number", pa.int64()),
                required("data_file", pa.struct(self.file_fields)),
                pa.field(READABLE, self.readable_type),
            ]
        )

    @property
    def partitions(self) -> pa.Schema:
        spec = [required("spec_id", pa.int32())] if self.partition else []
        return pa.schema(
            [
                *self.partition_fields,
                *spec,
                required("record_count", pa.int64()),
                required("file_count", pa.int32()),
                required("total_data_file_size_in_bytes", pa.int64()),
                required("position_delete_record_count", pa.int64()),
                required("position_delete_file_count", pa.int32()),
                required("equality_delete_record_count", pa.int64()),
                required("equality_delete_file_count", pa.int32()),
                pa.field("last_updated_at", TIME),
                pa.field("last_updated_snapshot_id", pa.int64()),
            ]
        )


def leaf_type(leaf: Leaf) -> pa.StructType:
    """The readable metrics of one column."""
    bounds = [to_arrow_field(Field(name, leaf.type)) for name in _METRICS[4:]]
    return pa.struct([*(pa.field(name, pa.int64()) for name in _METRICS[:4]), *bounds])


def partition_fields(metadata: TableMetadata) -> tuple[tuple[int, Field], ...]:
    """The union of all specs by field id, named as the newest spec names them; an older field of another id and the
    same name has its id behind it. As in the reference, a field whose column has been dropped is left out."""
    there = by_id(metadata.schema)
    found: dict[int, Field] = {}
    for spec in sorted(metadata.partitioning.specs, key=lambda s: -s.id):
        for f in spec:
            if f.id not in found and (f.source_id is None or f.source_id in there):
                taken = any(f.name == known.name for known in found.values())
                found[f.id] = Field(f"{f.name}_{f.id}" if taken else f.name, f.type)
    return tuple(sorted(found.items()))


def leaves_of(schema: Schema) -> tuple[Leaf, ...]:
    """The columns of simple types, also inside of others, by name; in the order of Java's strings."""
    found = [
        Leaf(".".join(path), f.id, f.type)
        for path, f in leaves(schema)
        if f.id is not None and not isinstance(f.type, VariantType)
    ]
    return tuple(sorted(found, key=lambda leaf: leaf.name.encode("utf-16-be", "surrogatepass")))


def struct(arrays: Sequence[pa.Array], type: pa.StructType, rows: int) -> pa.Array:
    """A struct array of these members, which may be none."""
    if not type.num_fields:
        return pa.array([{}] * rows, type)
    return pa.StructArray.from_arrays(list(arrays), fields=list(type))
