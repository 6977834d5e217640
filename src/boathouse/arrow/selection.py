"""Takes rows of any Arrow array, including the types for which Arrow's `take` has no kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse.arrow.vector import ragged
from boathouse.errors import UnsupportedTypeError


def take(array: pa.Array, places: npt.NDArray[np.int64] | pa.Array) -> pa.Array:
    """The rows at `places` (null where a place is null). Raises UnsupportedTypeError for unsupported arrays."""
    found = pa.array(places)
    try:
        return array.take(found)
    except pa.ArrowNotImplementedError:
        return _apart(array, found)


def run_end_decoded(array: pa.RunEndEncodedArray) -> pa.Array:
    """One value per row, of any value type."""
    return take(array.values, _runs(array, np.arange(len(array))))


def _runs(array: pa.RunEndEncodedArray, rows: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    ends = np.asarray(array.run_ends.to_numpy(zero_copy_only=False), np.int64)
    return np.searchsorted(ends, rows + array.offset, side="right")


def _apart(array: pa.Array, places: pa.Array) -> pa.Array:
    t, type = pa.types, array.type
    if isinstance(array, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(type, take(array.storage, places))
    if t.is_string_view(type):
        return array.cast(pa.large_string()).take(places)
    if t.is_binary_view(type):
        return array.cast(pa.large_binary()).take(places)
    if isinstance(array, pa.RunEndEncodedArray):
        rows, missing = _rows(places)
        return take(array.values, pa.array(_runs(array, rows), mask=missing))
    if t.is_struct(type):
        children = [take(array.field(i), places) for i in range(type.num_fields)]
        fields = [type.field(i).with_type(child.type) for i, child in enumerate(children)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=_missing(array, places))
    if t.is_fixed_size_list(type):
        return _fixed(array, places)
    if t.is_list(type) or t.is_large_list(type) or t.is_map(type):
        return _lists(array, places)
    raise UnsupportedTypeError(f"rows cannot be taken from {type}", advice="decode run ends and cast views first")


def _rows(places: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """The places, 0 where they are null, and the null mask."""
    rows = np.asarray(places.fill_null(0).to_numpy(zero_copy_only=False), np.int64)
    return rows, np.asarray(places.is_null().to_numpy(zero_copy_only=False), np.bool_)


def _missing(array: pa.Array, places: pa.Array) -> pa.Array:
    return pa.compute.invert(array.is_valid().take(places).fill_null(False))


def _fixed(array: pa.Array, places: pa.Array) -> pa.Array:
    size = array.type.list_size
    rows, missing = _rows(places)
    inside = ((rows + array.offset) * size)[:, None] + np.arange(size)
    elements = take(array.values, pa.array(inside.reshape(-1), mask=np.repeat(missing, size)))
    type = pa.list_(array.type.value_field.with_type(elements.type), size)
    return pa.FixedSizeListArray.from_arrays(elements, type=type, mask=_missing(array, places))


def _lists(array: pa.Array, places: pa.Array) -> pa.Array:
    """Rows of a list, large list or map."""
    type = array.type
    rows, missing = _rows(places)
    edges = np.asarray(array.offsets.to_numpy(zero_copy_only=False), np.int64)
    # One more, for place 0 of an array without rows, which only null places refer to.
    counts = np.where(missing, 0, np.append(np.diff(edges), 0)[rows])
    owner, slot = ragged(counts)
    inside = edges[rows[owner]] + slot
    ends = np.concatenate([[0], np.cumsum(counts)])
    mask = _missing(array, places)
    if not pa.types.is_map(type):
        elements = take(array.values, inside)
        return pa.LargeListArray.from_arrays(
            pa.array(ends, pa.int64()),
            elements,
            type=pa.large_list(type.value_field.with_type(elements.type)),
            mask=mask,
        )
    keys, items = take(array.keys, inside), take(array.items, inside)
    kind = pa.map_(type.key_field.with_type(keys.type), type.item_field.with_type(items.type))
    return pa.MapArray.from_arrays(pa.array(ends, pa.int32()), keys, items, type=kind, mask=mask)
