"""Booleans of numpy as Arrow arrays and back, by their bits: Arrow's own conversions import numpy.ma and pandas."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def booleans(mask: npt.NDArray[np.bool_]) -> pa.BooleanArray:
    """A mask as an array."""
    return pa.Array.from_buffers(pa.bool_(), len(mask), [None, pa.py_buffer(np.packbits(mask, bitorder="little"))])


def mask_of(array: pa.BooleanArray) -> npt.NDArray[np.bool_]:
    """An array as a mask; what it says for nulls is undefined."""
    return bits_of(array.buffers()[1], array.offset, len(array))


def bits_of(buffer: pa.Buffer | None, start: int, count: int) -> npt.NDArray[np.bool_]:
    """So many bits of a buffer, from bit `start` on; False where there is no buffer."""
    if buffer is None or not count:
        return np.zeros(count, np.bool_)
    first, shift = start >> 3, start & 7
    bits = np.frombuffer(buffer, np.uint8)[first:]
    return np.unpackbits(bits, count=count + shift, bitorder="little")[shift:].view(np.bool_)
