"""Routes rows to partitions: splits batches by partition values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.schema import to_arrow_type
from boathouse.arrow.transforms import transform
from boathouse.types import PartitionField, PartitionSpec, Schema

PartitionKey = tuple[object, ...]
_SLICE_ROWS = 1 << 16
_SLICE_BYTES = 64 << 20


def partition_keys(units: pa.Table) -> list[tuple[int, object]]:
    """A key for each row of FILES, equal for units of one spec and partition."""
    values = [tuple(p.values()) for p in units.column("partition").to_pylist()]
    return [(spec, same(v)) for spec, v in zip(units.column("spec").to_pylist(), values, strict=True)]


def partition_arrays(batch: pa.RecordBatch, spec: PartitionSpec, schema: Schema) -> list[pa.Array]:
    """The partition values of each row, one array per partition field."""
    return [_values(batch, f, schema) for f in spec]


def _values(batch: pa.RecordBatch, field: PartitionField, schema: Schema) -> pa.Array:
    if field.transform.name == "void":  # its column may have been dropped
        return pa.nulls(batch.num_rows, to_arrow_type(field.type))
    column: pa.Array = batch.column(schema.index(field.source[0]))
    source = schema.field(field.source[0])
    type = source.type
    for name in field.source[1:]:
        column = pc.struct_field(column, name)
        type = next(f.type for f in type if f.name == name)  # type: ignore[attr-defined]
    return transform(column, field.transform, type)


def split(
    batches: Sequence[pa.RecordBatch], spec: PartitionSpec, schema: Schema
) -> Iterator[tuple[PartitionKey, pa.RecordBatch]]:
    """The rows grouped by partition values: those of one partition are contiguous and keep their order.

    A partition may be returned in several parts. Values are Python objects, null is None. Besides the batches, the rows
    of a slice are held in memory, and a few bytes for each row.
    """
    batches = [b for b in batches if b.num_rows]
    if not batches:
        return
    if not spec.fields:
        yield from (((), b) for b in batches)
        return
    encoded = [_encode(column) for column in zip(*(partition_arrays(b, spec, schema) for b in batches))]
    _, first, inverse = np.unique(_codes(encoded), return_index=True, return_inverse=True)
    keys = [tuple(values[indices[at]] for indices, values in encoded) for at in first]
    if len(keys) == 1:
        yield from ((keys[0], b) for b in batches)
        return
    ends = np.cumsum(np.bincount(inverse)).tolist()
    at = group = 0
    for rows in _in_order(batches, np.argsort(inverse, kind="stable")):
        start, stop = at, at + rows.num_rows
        while at < stop:
            end = min(stop, ends[group])
            yield keys[group], rows.slice(at - start, end - at)
            at = end
            group += at == ends[group]


def grouped(rows: pa.RecordBatch, spec: PartitionSpec, schema: Schema) -> tuple[list[PartitionKey], np.ndarray]:
    """The partitions of the rows, and for each row the number of its own."""
    if not spec.fields or not rows.num_rows:
        return [()], np.zeros(rows.num_rows, np.int64)
    encoded = [_encode([column]) for column in partition_arrays(rows, spec, schema)]
    _, first, inverse = np.unique(_codes(encoded), return_index=True, return_inverse=True)
    return [tuple(values[indices[at]] for indices, values in encoded) for at in first], inverse


def _codes(encoded: Sequence[tuple[np.ndarray, list[object]]]) -> np.ndarray:
    """An integer for each row, equal for rows of one partition."""
    codes, bound = encoded[0][0], len(encoded[0][1])
    for indices, values in encoded[1:]:
        if bound * len(values) >= 1 << 62:
            codes = np.unique(codes, return_inverse=True)[1]
            bound = int(codes.max()) + 1
        codes, bound = codes * len(values) + indices, bound * len(values)
    return codes


def _in_order(batches: Sequence[pa.RecordBatch], order: np.ndarray) -> Iterator[pa.RecordBatch]:
    """The rows of the batches in this order, one slice at a time."""
    starts = np.cumsum([0, *(b.num_rows for b in batches)])
    size = len(order) * _SLICE_BYTES // max(1, sum(b.nbytes for b in batches))
    size = max(1, min(size, _SLICE_ROWS))
    for at in range(0, len(order), size):
        yield from _taken(batches, starts, order[at : at + size])


def _taken(batches: Sequence[pa.RecordBatch], starts: np.ndarray, rows: np.ndarray) -> Iterator[pa.RecordBatch]:
    if len(batches) == 1:
        yield batches[0].take(pa.array(rows))
        return
    source = np.searchsorted(starts, rows, side="right") - 1
    by_batch = np.argsort(source, kind="stable")
    used, at = np.unique(source[by_batch], return_index=True)
    within = (rows - starts[source])[by_batch]
    parts = [batches[u].take(pa.array(w)) for u, w in zip(used, np.split(within, at[1:]))]
    place = np.empty(len(rows), np.int64)
    place[by_batch] = np.arange(len(rows))
    try:
        columns = [pa.concat_arrays(column) for column in zip(*(p.columns for p in parts))]
    except pa.ArrowInvalid:  # more string bytes than one array holds
        if len(rows) == 1:
            raise
        half = len(rows) // 2
        yield from _taken(batches, starts, rows[:half])
        yield from _taken(batches, starts, rows[half:])
        return
    yield pa.RecordBatch.from_arrays(columns, schema=batches[0].schema).take(pa.array(place))


def same(key: PartitionKey) -> PartitionKey:
    """A key that is equal for equal partitions only: -0.0 is not 0.0, and NaN is NaN."""
    return tuple(repr(v) if isinstance(v, float) else v for v in key)


def _encode(chunks: Sequence[pa.Array]) -> tuple[np.ndarray, list[object]]:
    """Small integers for values, with null and NaN each one group; the formats distinguish the two zeros."""
    type = chunks[0].type
    floating = pa.types.is_floating(type)
    values = pa.chunked_array([_bits(c) if floating else c for c in chunks])
    encoded = pc.dictionary_encode(values, null_encoding="encode").chunks
    indices = np.concatenate([c.indices.to_numpy(zero_copy_only=False) for c in encoded]).astype(np.int64)
    distinct = encoded[-1].dictionary  # the chunks share one
    return indices, (distinct.view(type) if floating else distinct).to_pylist()


def _bits(values: pa.Array) -> pa.Array:
    """The bits of floats as integers, with one NaN."""
    one_nan = pc.if_else(pc.is_nan(values), pa.scalar(float("nan"), values.type), values)
    return one_nan.view(pa.int32() if values.type == pa.float32() else pa.int64())
