"""Masks that depend on all preceding bytes, computed on words of 64 bits, one bit per byte, so that they cost
little."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from boathouse.bits.unaligned import Bytes, Ints, Mask

LANE = 64  # buffers of text are padded to a multiple of this number of bytes


def between(marks: Mask) -> Mask:
    """From each odd mark (inclusive) up to the next even one (exclusive). `marks` are a multiple of 64."""
    words = np.packbits(marks, bitorder="little").view("<u8")
    for shift in (1, 2, 4, 8, 16, 32):
        words ^= words << np.uint64(shift)
    odd = (words >> np.uint64(63)).astype(np.uint8)
    carried = np.bitwise_xor.accumulate(odd)
    words[1:] ^= np.uint64(0) - carried[:-1].astype(np.uint64)
    return np.unpackbits(words.view(np.uint8), bitorder="little").view(np.bool_)


def edges(mask: Mask) -> tuple[Ints, Ints]:
    """Where the runs of True start, and where they end (exclusive). The last element of `mask` must be False."""
    turns = np.empty(len(mask), np.bool_)
    turns[0] = mask[0]
    np.not_equal(mask[1:], mask[:-1], out=turns[1:])
    found = np.flatnonzero(turns)
    return found[0::2], found[1::2]


def ragged_range(starts: Ints, counts: npt.NDArray[np.int64], step: int = 1) -> Ints:
    """starts[0], starts[0] + step, … (counts[0] of them), then the same from starts[1], and so on."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(starts - (ends - counts) * step, counts) + np.arange(0, total * step, step)


def padded(data: Bytes, size: int, front: int) -> Bytes:
    """A buffer of zeros around `data[:size]`: `front` bytes before, and padding after, so that the rest is whole
    lanes."""
    lanes = size // LANE + 1
    out = np.empty(front + lanes * LANE + LANE, np.uint8)
    out[:front] = 0
    out[front : front + size] = data[:size]
    out[front + size :] = 0
    return out
