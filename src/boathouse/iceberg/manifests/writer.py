"""Writes manifests from columns of their entries (module manifest_columns), and manifest lists."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.avro import container as avro
from boathouse.avro import writer as avro_writer
from boathouse.iceberg.manifests.columns import ENTRY, MAPS, TYPES, partition_column
from boathouse.iceberg.manifests.entries import FEW, FILE
from boathouse.iceberg.manifests.records import ADDED, DATA, DELETED, EXISTING, Row
from boathouse.iceberg.manifests.schemas import avro_name
from boathouse.iceberg.manifests.values import Physical, encode, physical_list, to_avro
from boathouse.iceberg.metadata.schemas import schema_json
from boathouse.iceberg.metadata.versions import NEW, FormatVersion
from boathouse.types import DataType, FloatType, PartitionField, PartitionSpec, Schema

_UNUSED: Final = {"block_size_in_bytes": 64 << 20}
"""What version 1 requires of a file and no reader uses; later versions do not have it."""
STATUSES = {ADDED: "added", EXISTING: "existing", DELETED: "deleted"}


def write(
    entries: pa.Table,
    spec: PartitionSpec,
    schema: Schema,
    schema_id: int,
    content: int,
    codec: str,
    version: FormatVersion = NEW,
) -> bytes:
    """A manifest. Entries with a column `data_file` are written with what it has encoded."""
    metadata = {
        "schema": json.dumps(schema_json(schema, schema_id)),
        "schema-id": str(schema_id),
        "partition-spec": json.dumps(_spec_fields(spec)),
        "partition-spec-id": str(spec.id),
        "format-version": str(version),
    }
    if version.sequence_numbers:
        metadata["content"] = "data" if content == DATA else "deletes"
    avro_schema = version.manifest(spec)
    if FILE in entries.column_names:
        encoded = {name: entries.column(name).combine_chunks() for name in (*ENTRY, FILE)}
        return avro.container(avro_schema, avro_writer.blocks(encoded, avro_schema, entries.num_rows), metadata, codec)
    if entries.num_rows <= FEW:
        return avro.write(avro_schema, _records(entries, spec), metadata, codec)
    columns = {_path(name): entries.column(name).combine_chunks() for name in entries.column_names}
    columns |= {f"data_file.{name}": pa.repeat(value, entries.num_rows) for name, value in _UNUSED.items()}
    for f in spec:
        columns[f"data_file.partition.{avro_name(f.name)}"] = columns[f"data_file.{partition_column(f)}"]
    return avro.container(avro_schema, avro_writer.blocks(columns, avro_schema, entries.num_rows), metadata, codec)


def _path(name: str) -> str:
    return name if name in ENTRY else f"data_file.{name}"


def _records(entries: pa.Table, spec: PartitionSpec) -> list[Row]:
    """The entries one by one: of a few, they are written faster."""
    values = {name: entries.column(name).to_pylist() for name in TYPES}
    for name in MAPS:
        values[name] = [None if v is None else dict(v) for v in values[name]]
    partition = {
        avro_name(f.name): physical_list(entries.column(partition_column(f)).combine_chunks(), f.type) for f in spec
    }
    types = {avro_name(f.name): f.type for f in spec}
    return [
        {
            **{name: values[name][i] for name in ENTRY},
            "data_file": {
                **{name: values[name][i] for name in TYPES if name not in ENTRY},
                **_UNUSED,
                "partition": {name: to_avro(column[i], types[name]) for name, column in partition.items()},
            },
        }
        for i in range(entries.num_rows)
    ]


def _spec_fields(spec: PartitionSpec) -> list[Row]:
    return [
        {"source-id": f.source_id, "field-id": f.recorded_id, "name": f.name, "transform": str(f.transform)}
        for f in spec
    ]


def write_list(rows: Sequence[Row], metadata: Mapping[str, str], codec: str, version: FormatVersion = NEW) -> bytes:
    """A manifest list."""
    return avro.write(version.manifest_list(), rows, {**metadata, "format-version": str(version)}, codec)


def counts(entries: pa.Table) -> dict[str, int]:
    """Files and rows by status, under the names of the manifest list."""
    found = {f"{how}_{what}_count": 0 for how in STATUSES.values() for what in ("files", "rows")}
    status, rows = (entries.column(name).to_numpy() for name in ("status", "record_count"))
    for number, how in STATUSES.items():
        of = status == number
        found[f"{how}_files_count"], found[f"{how}_rows_count"] = int(of.sum()), int(rows[of].sum())
    return found


def list_row(
    path: str, length: int, spec: PartitionSpec, entries: pa.Table, content: int, sequence: int, snapshot_id: int
) -> Row:
    """The manifest list's row for a manifest written by snapshot `snapshot_id` at `sequence`."""
    live = entries.column("sequence_number").filter(pc.not_equal(entries.column("status"), DELETED))
    lowest = pc.min(live).as_py()
    return {
        "manifest_path": path,
        "manifest_length": length,
        "partition_spec_id": spec.id,
        "content": content,
        "sequence_number": sequence,
        "min_sequence_number": sequence if lowest is None else min(lowest, sequence),
        "added_snapshot_id": snapshot_id,
        **counts(entries),
        "partitions": summaries(entries, spec),
        "key_metadata": None,
        "first_row_id": None,
    }


def summaries(entries: pa.Table, spec: PartitionSpec) -> list[Row]:
    """Per partition field: whether null or NaN occurs, and bounds of the other values."""
    return [_summarise(distinct(entries, f), f.type) for f in spec]


def distinct(entries: pa.Table, field: PartitionField) -> list[Physical]:
    """The values of a partition field; bits decide, so that the zeros are two."""
    found, type = entries.column(partition_column(field)).combine_chunks(), field.type
    if isinstance(type, FloatType):
        bits = found.view(pa.int32() if type.bits == 32 else pa.int64())
        return physical_list(bits.unique().view(found.type), type)
    return physical_list(found.unique(), type)


def _summarise(values: Iterable[Physical], type: DataType) -> Row:
    values = list(values)
    present = [v for v in values if v is not None]
    floating = isinstance(type, FloatType)
    numbers: list[Any] = [v for v in present if not (floating and math.isnan(v))]  # type: ignore[arg-type]
    key = _zero_order if floating else None
    return {
        "contains_null": len(present) < len(values),
        "contains_nan": len(numbers) < len(present),
        "lower_bound": encode(min(numbers, key=key, default=None), type),
        "upper_bound": encode(max(numbers, key=key, default=None), type),
    }


def _zero_order(value: float) -> tuple[float, float]:
    """-0.0 before +0.0."""
    return (value, math.copysign(1.0, value))
