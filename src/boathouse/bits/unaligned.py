"""Reads and writes of k bytes at any positions of a byte buffer, whole arrays of positions at once.

numpy indexes a view whose items overlap (stride 1) at about 5 ns per item, whatever its width: callers fetch a whole
header at once rather than byte by byte, and byte strings of length n with 2**k <= n < 2**(k+1) are moved as two blocks
of 2**k bytes, one from each end. Positions are int64 and must have been checked against their bounds; numpy raises
IndexError for one beyond the buffer. `take` must not be used on these views (numpy copies the whole view before it
takes). Integers are little-endian.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Bytes: TypeAlias = npt.NDArray[np.uint8]
Ints: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]


def window(data: Bytes, dtype: Any) -> npt.NDArray[Any]:
    """A view of `data` whose item i is the `dtype` that starts at byte i; empty where the buffer is too short."""
    kind = np.dtype(dtype)
    return np.ndarray((max(len(data) - kind.itemsize + 1, 0),), kind, data, 0, (1,))


def gather(data: Bytes, at: Ints, dtype: Any) -> npt.NDArray[Any]:
    """The items of `dtype` that start at the bytes `at`."""
    return window(data, dtype)[at]


def scatter(out: Bytes, at: Ints, values: npt.NDArray[Any]) -> None:
    """Writes `values` (of any fixed-width dtype) at the bytes `at`."""
    window(out, values.dtype)[at] = values


def put(out: Bytes, at: Ints, values: Any, width: int | Ints) -> None:
    """Writes unsigned integers (`values`: one for all, or one each) of 1 to 4 bytes (`width`: one for all, or one each)
    at the bytes `at`."""
    if not isinstance(width, int):
        out[at] = _byte(values, 0)
        for i in range(1, 4):
            wide = np.flatnonzero(width > i)
            if not len(wide):
                return
            out[at[wide] + i] = _byte(values if isinstance(values, int) else values[wide], i)
    elif width == 4:
        window(out, "<u4")[at] = values
    else:
        for i in range(width):
            out[at + i if i else at] = _byte(values, i)


def _byte(values: Any, i: int) -> Any:
    return values >> 8 * i & 0xFF if isinstance(values, int) else (values >> 8 * i if i else values).astype(np.uint8)


def unsigned(data: Bytes, pos: Ints, width: int | Ints) -> Ints:
    """The unsigned integers of 1 to 4 bytes at `pos`; one width for all, or one each."""
    if isinstance(width, int) and width != 3:
        return (data[pos] if width == 1 else window(data, f"<u{width}")[pos]).astype(np.int64)
    mask = (1 << (8 * width)) - 1 if isinstance(width, int) else (np.int64(1) << (width << 3)) - 1
    limit = len(data) - 8
    if len(pos) and limit >= 0 and int(pos.max()) <= limit:
        return np.bitwise_and(window(data, "<i8")[pos], mask)
    if limit < 0:
        data, limit = np.concatenate([data, np.zeros(8, np.uint8)]), len(data)
    # The word may extend beyond the end of the buffer: it is fetched from a lower position and shifted.
    at = np.minimum(pos, limit)
    words = window(data, "<u8")[at] >> ((pos - at) << 3).astype(np.uint64)
    return np.bitwise_and(words.view(np.int64), mask)


def prefix(data: Bytes, pos: Ints, width: int) -> Bytes:
    """`width` bytes from each of `pos`, shape (rows, width); zeros where the buffer ends before that."""
    if not len(pos):
        return np.zeros((0, width), np.uint8)
    if not width:
        return np.zeros((len(pos), 0), np.uint8)
    limit = len(data) - width
    over = pos > limit
    if not over.any():
        return window(data, f"V{width}")[pos].view(np.uint8).reshape(len(pos), width)
    out = np.zeros((len(pos), width), np.uint8)
    inside = ~over
    if inside.any():
        out[inside] = window(data, f"V{width}")[pos[inside]].view(np.uint8).reshape(-1, width)
    base = max(limit, 0)
    tail = np.concatenate([data[base:], np.zeros(width, np.uint8)])
    at = np.minimum(pos[over] - base, len(tail) - width)
    out[over] = window(tail, f"V{width}")[at].view(np.uint8).reshape(-1, width)
    return out


def integers(block: Bytes, width: int) -> npt.NDArray[Any]:
    """Rows of packed unsigned integers, shape (rows, n * width), as an unsigned array of shape (rows, n)."""
    rows, size = block.shape
    if width == 1:
        return block
    if width != 3:
        return np.ascontiguousarray(block).view(f"<u{width}").reshape(rows, size // width)
    parts = block.reshape(rows, size // 3, 3).astype(np.uint32)
    return parts[:, :, 0] | (parts[:, :, 1] << 8) | (parts[:, :, 2] << 16)


def copy(out: Bytes, to: Ints, data: Bytes, start: Ints, length: Ints) -> None:
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


def _copy_class(out: Bytes, to: Ints, data: Bytes, start: Ints, length: Ints, block: int) -> None:
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
