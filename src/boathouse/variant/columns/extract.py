"""`extract`: a path of every row of a variant column as an Arrow column of a type."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from boathouse.arrow.schema import from_arrow_type, to_arrow_type
from boathouse.bits.unaligned import Ints, Mask
from boathouse.types import DataType, FixedSizeListType, ListType, MapType, StructType, VariantType
from boathouse.variant.cast import resolve_type
from boathouse.variant.columns.casts import byte_runs, take
from boathouse.variant.columns.faults import Lenient
from boathouse.variant.columns.layout import Column, chunks
from boathouse.variant.columns.locate import locate
from boathouse.variant.columns.nested import nested
from boathouse.variant.columns.nodes import Nodes, roots
from boathouse.variant.path import Step, as_path

# Rows per batch: the intermediate arrays stay in the cache.
_ROWS = 8192
_BYTES = 64 << 20
# The most bytes that one array of 32-bit offsets is filled with.
_FULL = 2**31 - 1


def extract(
    data: Any,
    path: str | Sequence[Step],
    type: DataType | pa.DataType | str = "variant",
    *,
    safe: bool = False,
    lenient: Lenient | None = None,
) -> pa.Array | pa.ChunkedArray:
    """The values at `path` as `type`, by the rules of Spark's variant_get; null where there is none.

    `data`: see `layout.column`; the result is chunked if `data` is, or if it has more than 2 GiB. `path`: a string
    (`$.a[0]`) or steps. `type`: Spark's SQL text, a DataType, or an Arrow type. `safe` is try_variant_get: null where a
    cast fails, else EvaluationError. Malformed rows: MalformedVariant with row and byte; null and counted in `lenient`
    if one is passed. Shredded columns are read by `variant.extraction.extract`.
    """
    steps = as_path(path)
    target = resolve_type(from_arrow_type(type) if isinstance(type, pa.DataType) else type)
    arrow = type if isinstance(type, pa.DataType) else None
    return extract_steps(data, steps, target, arrow, safe, lenient)


def extract_steps(
    data: Any,
    steps: Sequence[Step],
    target: DataType,
    arrow: pa.DataType | None,
    safe: bool,
    lenient: Lenient | None,
) -> pa.Array | pa.ChunkedArray:
    """As `extract`, with checked arguments; `target` may contain VOID, which is null for every value."""
    arrays: list[pa.Array] = []
    for column in chunks(data):
        arrays.extend(_column(column, steps, target, safe, lenient))
    return _result(arrays, target, arrow, isinstance(data, pa.ChunkedArray))


def _result(arrays: list[pa.Array], target: DataType, arrow: pa.DataType | None, chunked: bool) -> Any:
    if arrow is not None:
        arrays = [array if array.type == arrow else array.cast(arrow) for array in arrays]
    kinds = {array.type for array in arrays}
    if not arrays:
        arrays = [pa.array([], arrow or to_arrow_type(target))]
    elif len(kinds) > 1:
        # Some arrays outgrew 32-bit offsets.
        wide = next(kind for kind in kinds if kind != to_arrow_type(target))
        arrays = [array.cast(wide) for array in arrays]
    return pa.chunked_array(arrays) if chunked or len(arrays) > 1 else arrays[0]


def windows(column: Column) -> Iterator[tuple[int, int]]:
    """Ranges of rows to read at once: not too many rows, and not too many bytes."""
    first = 0
    while first < column.rows:
        last = min(first + _ROWS, column.rows)
        size = np.cumsum(column.end[first:last] - column.start[first:last])
        if int(size[-1]) > _BYTES:
            last = first + max(1, int(np.searchsorted(size, _BYTES, side="right")))
        yield first, last
        first = last


def _column(
    column: Column, steps: Sequence[Step], target: DataType, safe: bool, lenient: Lenient | None
) -> Iterator[pa.Array]:
    """One array, or several where one cannot hold everything."""
    waiting: list[pa.Array] = []
    held, start = 0, 0
    is_variant = isinstance(target, VariantType)
    for first, last in windows(column):
        part = column.slice(first, last)
        faults = part.faults(lenient)
        nodes, _ = locate(roots(part, faults), steps)
        array = _values(nodes, part.rows) if is_variant else _typed(nodes, target, safe, part.rows)
        bad = faults.settle()
        if bad is not None:
            array = _without(array, bad)
        size = array.nbytes
        if held + size > _FULL:
            yield _joined(column, start, first, waiting, is_variant)
            waiting, held, start = [], 0, first
        waiting.append(array)
        held += size
    if waiting:
        yield _joined(column, start, column.rows, waiting, is_variant)


def _joined(column: Column, first: int, last: int, arrays: list[pa.Array], is_variant: bool) -> pa.Array:
    wide = [
        array.type for array in arrays if pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    ]
    if wide:
        arrays = [array.cast(wide[0]) for array in arrays]
    whole = arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)
    return _variants(column, first, last, whole) if is_variant else whole


def _typed(nodes: Nodes, target: DataType, safe: bool, rows: int) -> pa.Array:
    make = nested if isinstance(target, StructType | ListType | MapType | FixedSizeListType) else take
    return make(nodes, target, safe, _place(nodes, rows), rows)


def _place(nodes: Nodes, rows: int) -> Ints | None:
    return None if len(nodes) == rows else nodes.row


def _values(nodes: Nodes, rows: int) -> pa.Array:
    """The bytes of the values themselves, without what may follow them; null where there is none."""
    found = byte_runs(nodes, nodes.pos, nodes.pos + nodes.sizes())
    place = _place(nodes, rows)
    if place is None:
        return found
    source = np.full(rows, -1, np.int64)
    source[place] = np.arange(len(found))
    return found.take(pa.array(source, mask=source < 0))


def _variants(column: Column, first: int, last: int, values: pa.Array) -> pa.Array:
    """The column struct<metadata, value>; rows without a value are null."""
    metadata = column.metadata_array().slice(first, last - first)
    absent = None
    if values.null_count:
        absent = values.is_null()
        values = values.fill_null(b"")
    if metadata.null_count:
        metadata = metadata.fill_null(b"")
    fields = [pa.field("metadata", metadata.type, False), pa.field("value", values.type, False)]
    return pa.StructArray.from_arrays([metadata, values], fields=fields, mask=absent)


def _without(array: pa.Array, bad: Mask) -> pa.Array:
    """Null where the row is malformed."""
    index = np.arange(len(array))
    return array.take(pa.array(index, mask=bad))
