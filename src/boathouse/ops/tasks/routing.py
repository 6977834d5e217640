"""Rows to partitions: which rows of a batch belong to which partition values."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.schema import to_arrow_type
from boathouse.arrow.transforms import transform
from boathouse.types import PartitionField, PartitionSpec, Schema

PartitionKey = tuple[object, ...]


def partition_arrays(batch: pa.RecordBatch, spec: PartitionSpec, schema: Schema) -> list[pa.Array]:
    """The partition values of each row, an array a partition field."""
    return [_values(batch, f, schema) for f in spec]


def _values(batch: pa.RecordBatch, field: PartitionField, schema: Schema) -> pa.Array:
    if field.transform.name == "void":  # its column may be gone
        return pa.nulls(batch.num_rows, to_arrow_type(field.type))
    column: pa.Array = batch.column(schema.index(field.source[0]))
    source = schema.field(field.source[0])
    type = source.type
    for name in field.source[1:]:
        column = pc.struct_field(column, name)
        type = next(f.type for f in type if f.name == name)  # type: ignore[attr-defined]
    return transform(column, field.transform, type)


def split(batch: pa.RecordBatch, spec: PartitionSpec, schema: Schema) -> Iterator[tuple[PartitionKey, pa.RecordBatch]]:
    """The batch cut by partition values, each part in the rows' order; values are Python ones, null is None."""
    if batch.num_rows == 0:
        return
    if not spec.fields:
        yield (), batch
        return
    encoded = [_encode(a) for a in partition_arrays(batch, spec, schema)]
    codes = np.zeros(batch.num_rows, dtype=np.int64)
    for indices, values in encoded:
        codes = codes * len(values) + indices
    groups, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    if len(groups) == 1:
        yield tuple(values[indices[0]] for indices, values in encoded), batch
        return
    order = np.argsort(inverse, kind="stable")
    ends = np.cumsum(np.bincount(inverse))
    start = 0
    rows = batch.take(pa.array(order))
    for at, end in zip(first, ends, strict=True):
        yield tuple(values[indices[at]] for indices, values in encoded), rows.slice(start, end - start)
        start = int(end)


def same(key: PartitionKey) -> PartitionKey:
    """What is equal for equal partitions alone: -0.0 is not 0.0, and NaN is NaN."""
    return tuple(repr(v) if isinstance(v, float) else v for v in key)


def _encode(values: pa.Array) -> tuple[np.ndarray, list[object]]:
    """Small integers for values, with null and NaN each one group; the formats tell the two zeros apart."""
    floating = pa.types.is_floating(values.type)
    encoded = pc.dictionary_encode(_bits(values) if floating else values, null_encoding="encode")
    indices = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    distinct = encoded.dictionary.view(values.type) if floating else encoded.dictionary
    return indices, distinct.to_pylist()


def _bits(values: pa.Array) -> pa.Array:
    """The bits of floats as integers, with one NaN."""
    one_nan = pc.if_else(pc.is_nan(values), pa.scalar(float("nan"), values.type), values)
    return one_nan.view(pa.int32() if values.type == pa.float32() else pa.int64())
