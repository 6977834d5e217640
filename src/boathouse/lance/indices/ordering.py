"""Values in the order that indices have: nulls first, floats in their total order (-NaN, -inf, ..., -0.0, 0.0, ...,
inf, NaN), strings by bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]


def order_of(values: pa.Array) -> Ints:
    """Where the values are, least first; equal ones stay in their order."""
    key = _key(values)
    if isinstance(key, pa.Array):
        found = pc.array_sort_indices(key, null_placement="at_start")
        return found.to_numpy(zero_copy_only=False).astype(np.int64)
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    return np.lexsort((np.where(valid, key, 0), valid))


def changes_in(ordered: pa.Array) -> Ints:
    """Where in ordered values another one begins, the first included."""
    if not len(ordered):
        return np.empty(0, np.int64)
    valid = ordered.is_valid().to_numpy(zero_copy_only=False)
    key = _key(ordered)
    if isinstance(key, pa.Array):
        other = pc.fill_null(pc.not_equal(key.slice(1), key.slice(0, len(key) - 1)), False)
        differs = np.asarray(other.to_numpy(zero_copy_only=False), np.bool_)
    else:
        differs = (key[1:] != key[:-1]) & valid[1:]
    return np.concatenate(([0], np.flatnonzero(differs | (valid[1:] != valid[:-1])) + 1))


def _key(values: pa.Array) -> Any:
    """Integers that are ordered as floats are; other values themselves."""
    if not pa.types.is_floating(values.type):
        return values
    width = values.type.bit_width
    floats = values.fill_null(pa.scalar(0, values.type)) if values.null_count else values
    bits = floats.to_numpy(zero_copy_only=False).view(f"i{width // 8}")
    return np.where(bits < 0, bits ^ ((1 << width - 1) - 1), bits)
