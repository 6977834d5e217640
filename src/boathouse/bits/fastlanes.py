"""FastLanes bit packing of unsigned integers in blocks of 1,024, vectorised over blocks.

A block of T-bit values is a matrix of T rows by L = 1024/T lanes. Row r, lane l holds element
ORDER[r // 8] * 16 + (r % 8) * 128 + l. Packed to width W, bit r*W of lane l's stream starts row r, and
word w of lane l is at index w * L + l. (Afroozeh and Boncz, "The FastLanes Compression Layout".)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

BLOCK = 1024
_ORDER = (0, 4, 2, 6, 1, 5, 3, 7)
_SLAB = 128  # blocks handled at a time, so that the working set stays in the cache

UInts = npt.NDArray[np.unsignedinteger[Any]]


def start(row: int) -> int:
    """The element in the first lane of a row."""
    return _ORDER[row // 8] * 16 + row % 8 * 128


def words(width: int, bits: int) -> int:
    """The number of words in a packed block of values of `bits` bits, packed to `width`."""
    return width * (BLOCK // bits)


def unpack(packed: UInts, width: int) -> UInts:
    """Blocks of shape (n, words(width, T)) to values of shape (n, 1024); T is the dtype's."""
    bits = packed.dtype.itemsize * 8
    lanes = BLOCK // bits
    n = packed.shape[0]
    if width == 0:
        return np.zeros((n, BLOCK), packed.dtype)
    out = np.empty((n, BLOCK), packed.dtype)
    for first in range(0, n, _SLAB):
        source = packed[first : first + _SLAB].reshape(-1, width, lanes)
        _unpack_slab(source, out[first : first + _SLAB], width, bits, lanes)
    return out


def _unpack_slab(source: UInts, out: UInts, width: int, bits: int, lanes: int) -> None:
    kind = source.dtype.type
    mask = kind((1 << width) - 1)
    for row in range(bits):
        word, shift = divmod(row * width, bits)
        target = out[:, start(row) : start(row) + lanes]
        if shift == 0:
            np.bitwise_and(source[:, word], mask, out=target)
            continue
        np.right_shift(source[:, word], kind(shift), out=target)
        if shift + width > bits:
            target |= source[:, word + 1] << kind(bits - shift)
        if shift + width != bits:
            target &= mask


def pack(values: UInts, width: int) -> UInts:
    """Values of shape (n, 1024), each below 2**width, to blocks of shape (n, words(width, T))."""
    bits = values.dtype.itemsize * 8
    lanes = BLOCK // bits
    n = values.shape[0]
    out = np.zeros((n, width, lanes), values.dtype)
    if width:
        for first in range(0, n, _SLAB):
            _pack_slab(values[first : first + _SLAB], out[first : first + _SLAB], width, bits, lanes)
    return out.reshape(n, width * lanes)


def _pack_slab(values: UInts, out: UInts, width: int, bits: int, lanes: int) -> None:
    kind = values.dtype.type
    for row in range(bits):
        word, shift = divmod(row * width, bits)
        source = values[:, start(row) : start(row) + lanes]
        if shift == 0:
            out[:, word] |= source
            continue
        out[:, word] |= source << kind(shift)
        if shift + width > bits:
            out[:, word + 1] |= source >> kind(bits - shift)


def widths(values: UInts) -> npt.NDArray[np.int64]:
    """The bits that the greatest value of each row of `values` needs; 0 for a row of zeros."""
    if values.dtype.itemsize < 8:
        return _bit_length(values.max(axis=1).astype(np.uint64))
    return _bit_length(np.bitwise_or.reduce(values, axis=1))


def _bit_length(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    high, low = values >> np.uint64(32), values & np.uint64(0xFFFFFFFF)
    # frexp of an integer below 2**53 is exact: its exponent is the bit length
    return np.where(high != 0, np.frexp(high.astype(np.float64))[1] + 32, np.frexp(low.astype(np.float64))[1]).astype(
        np.int64
    )
