"""Reads and writes of k bytes at any position of a byte buffer, whole arrays of positions at once.

numpy indexes a view whose items overlap (stride 1) at about 5 ns per item, whatever its width: byte strings of
length n with 2**k <= n < 2**(k+1) are moved as two blocks of 2**k bytes, one from each end. Positions are checked
by numpy: one beyond the buffer raises IndexError, so callers check against the rows' bounds first.
`take` must not be used on these views (numpy copies the whole view before it takes).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Positions = NDArray[np.int64]


def window(data: Bytes, dtype: Any) -> NDArray[Any]:
    """A view of `data` whose item i is the `dtype` that starts at byte i; empty where the buffer is too short."""
    kind = np.dtype(dtype)
    return np.ndarray((max(len(data) - kind.itemsize + 1, 0),), kind, data, 0, (1,))


def gather(data: Bytes, at: Positions, dtype: Any) -> NDArray[Any]:
    """The items of `dtype` that start at the bytes `at`."""
    return window(data, dtype)[at]


def scatter(out: Bytes, at: Positions, values: NDArray[Any]) -> None:
    """Writes `values` (of any fixed-width dtype) at the bytes `at`."""
    window(out, values.dtype)[at] = values


def scatter_uint(out: Bytes, at: Positions, values: NDArray[Any], width: int) -> None:
    """Writes unsigned little-endian integers of 1 to 4 bytes."""
    if width == 3:
        scatter(out, at, values.astype("<u2"))
        out[at + 2] = values >> 16
    else:
        scatter(out, at, values.astype(f"<u{width}"))


def copy(out: Bytes, to: Positions, data: Bytes, start: Positions, length: Positions) -> None:
    """Copies `data[start:start + length]` to `out[to:]`, one byte string an item; none may overlap in `out`."""
    if not len(length):
        return
    classes = np.frexp(length.astype(np.float64))[1].astype(np.int8)  # 0: empty; c: 2**(c-1) <= length < 2**c
    low, high = int(classes.min()), int(classes.max())
    for c in range(max(low, 1), high + 1):
        if low == high:
            _copy_class(out, to, data, start, length, 1 << (c - 1))
            return
        which = np.flatnonzero(classes == c)
        if len(which):
            _copy_class(out, to[which], data, start[which], length[which], 1 << (c - 1))


def _copy_class(out: Bytes, to: Positions, data: Bytes, start: Positions, length: Positions, block: int) -> None:
    if block > 1 << 12:
        for t, s, n in zip(to.tolist(), start.tolist(), length.tolist()):
            out[t : t + n] = data[s : s + n]
        return
    kind = f"V{block}"
    source, target = window(data, kind), window(out, kind)
    target[to] = source[start]
    if block > 1:
        rest = length - block
        target[to + rest] = source[start + rest]
