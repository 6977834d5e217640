"""Partition statistics files (spec, "Partition Statistics File"): a row for each partition of a version, sorted by its
values, with the field ids of the specification."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.ordering import in_order, keys
from boathouse.arrow.schema import to_arrow_type
from boathouse.iceberg.inspect.columns import Layout
from boathouse.iceberg.inspect.partitions import with_vectors
from boathouse.iceberg.snapshot import IcebergSnapshot

_ID: Final = b"PARQUET:field_id"
_COUNTS: Final = (
    (3, "data_record_count", "record_count", pa.int64()), (4, "data_file_count", "file_count", pa.int32()),
    (5, "total_data_file_size_in_bytes", "total_data_file_size_in_bytes", pa.int64()),
    (6, "position_delete_record_count", "position_delete_record_count", pa.int64()),
    (7, "position_delete_file_count", "position_delete_file_count", pa.int32()),
    (8, "equality_delete_record_count", "equality_delete_record_count", pa.int64()),
    (9, "equality_delete_file_count", "equality_delete_file_count", pa.int32()),
)  # fmt: skip
"""The id, the name, the column of the metadata table `partitions`, the type."""
_ALWAYS: Final = 5
"""Up to this id the fields are required in every format version."""


def partition_rows(snapshot: IcebergSnapshot) -> pa.Table:
    """The rows of the file for this version. Total record counts are not known without reading, so they are null."""
    layout = Layout.of(snapshot.metadata, snapshot.schema)
    found, vectors = with_vectors(snapshot.listing, layout)
    found = found.combine_chunks()
    marks = pa.array(vectors.astype("int32"))
    version_3 = snapshot.metadata.format.row_lineage
    columns: dict[str, Any] = {}
    fields = [_field(1, "partition", _with_ids(layout), True), _field(2, "spec_id", pa.int32(), True)]
    for id, name, column, type in _COUNTS:
        fields.append(_field(id, name, type, id <= _ALWAYS or version_3))
        columns[name] = found.column(column)
    if version_3:
        columns["position_delete_file_count"] = pc.subtract(columns["position_delete_file_count"], marks)
    for id, name, type in (
        (10, "total_record_count", pa.int64()), (11, "last_updated_at", pa.int64()),
        (12, "last_updated_snapshot_id", pa.int64()),
    ):  # fmt: skip
        fields.append(_field(id, name, type, False))
    columns["total_record_count"] = pa.nulls(found.num_rows, pa.int64())
    columns["last_updated_at"] = found.column("last_updated_at").cast(pa.int64())
    columns["last_updated_snapshot_id"] = found.column("last_updated_snapshot_id")
    if version_3:
        fields.append(_field(13, "dv_count", pa.int32(), True))
        columns["dv_count"] = marks
    partition = found.column("partition").combine_chunks()
    columns["partition"] = _as(partition, fields[0].type)
    columns["spec_id"] = found.column("spec_id")
    table = pa.Table.from_arrays([columns[f.name] for f in fields], schema=pa.schema(fields))
    return table.take(in_order(_keys(partition, layout)))


def _keys(partition: pa.StructArray, layout: Layout) -> list[Any]:
    members = zip(layout.partition, partition.flatten(), strict=True)
    return [key for (_, f), array in members for key in keys(array, f.type)]


def _with_ids(layout: Layout) -> pa.StructType:
    return pa.struct([_field(id, f.name, to_arrow_type(f.type), False) for id, f in layout.partition])


def _as(partition: pa.StructArray, type: pa.StructType) -> pa.StructArray:
    return pa.StructArray.from_arrays(partition.flatten(), fields=list(type))


def _field(id: int, name: str, type: pa.DataType, required: bool) -> pa.Field:
    metadata: Mapping[bytes, bytes] = {_ID: str(id).encode()}
    return pa.field(name, type, not required, metadata)
