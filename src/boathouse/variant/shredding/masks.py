"""Masks and selections of instances: None means all of them, so that uniform columns cost nothing."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from boathouse.arrow.masks import bits_of
from boathouse.bits.unaligned import Ints, Mask

Sizes: TypeAlias = "int | Ints"
"""A number for each instance: one int where all have the same."""


def valid(array: pa.Array) -> Mask | None:
    """Where an Arrow array is not null; None if it has no null."""
    if not array.null_count:
        return None
    if pa.types.is_null(array.type):
        return np.zeros(len(array), np.bool_)
    return bits_of(array.buffers()[0], array.offset, len(array))


def both(a: Mask | None, b: Mask | None) -> Mask | None:
    """Where both hold."""
    if a is None or b is None:
        return b if a is None else a
    return a & b


def minus(a: Mask | None, b: Mask | None, count: int) -> Mask:
    """Where `a` holds and `b` does not, of `count` instances."""
    if b is None:
        return np.zeros(count, np.bool_)
    return ~b if a is None else a & ~b


def places(mask: Mask | None) -> Ints | None:
    """The positions where a mask holds; None for all."""
    return None if mask is None or mask.all() else np.flatnonzero(mask)


def pick(values: Any, at: Ints | None) -> Any:
    """`values` at positions; a single number for all stays as it is."""
    return values if at is None or isinstance(values, int) else values[at]


def spread(values: Sizes, at: Ints | None, count: int) -> Sizes:
    """`values` of the instances `at` among `count`, 0 for the others."""
    if at is None:
        return values
    out = np.zeros(count, np.int64)
    out[at] = values
    return out


def groups(keys: Ints, count: int) -> list[Ints]:
    """The positions of each key 0 to count - 1, ascending; other keys are left out."""
    small = keys.astype(np.int16 if count < 1 << 15 else np.int32)
    order = np.argsort(small, kind="stable")
    edges = np.searchsorted(small[order], np.arange(count + 1))
    return [order[edges[key] : edges[key + 1]] for key in range(count)]
