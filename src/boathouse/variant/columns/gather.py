"""Little-endian integers and byte runs picked out of one buffer at many places.

Positions are int64 and must have been checked against their bounds; nothing here reads outside `data`.
A gather through an overlapping view (stride 1) costs the same for 2 bytes as for 64, so callers fetch a whole header at
once rather than byte by byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from boathouse.variant.columns.unaligned import window

Bytes: TypeAlias = npt.NDArray[np.uint8]
Ints: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]


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


def classes(keys: Ints, least: int = 16, most: int = 64) -> Iterator[tuple[int | None, Ints | slice]]:
    """Positions grouped by equal key: (key, positions) for keys of at least `least` rows (`most` groups at most), then
    (None, the rest). Keys are not negative."""
    rows = len(keys)
    if not rows:
        return
    first = int(keys[0])
    if bool((keys == first).all()):
        yield first, slice(None)
        return
    if int(keys.max()) < 1 << 16:
        counts = np.bincount(keys)
        distinct = np.flatnonzero(counts)
        counts = counts[distinct]
    else:
        distinct, counts = np.unique(keys, return_counts=True)
    big = np.flatnonzero(counts >= least)
    if len(big) > most:
        big = big[np.argsort(counts[big])[::-1][:most]]
    left = np.ones(rows, np.bool_)
    for one in distinct[big]:
        same = keys == one
        left[same] = False
        yield int(one), np.flatnonzero(same)
    rest = np.flatnonzero(left)
    if len(rest):
        yield None, rest
