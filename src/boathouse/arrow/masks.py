"""Booleans of numpy as Arrow arrays and back, by their bits: Arrow's own conversions import numpy.ma and pandas."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def booleans(mask: npt.NDArray[np.bool_]) -> pa.BooleanArray:
    """A mask as an array."""
    return pa.Array.from_buffers(pa.bool_(), len(mask), [None, pa.py_buffer(np.packbits(mask, bitorder="little"))])


def mask_of(array: pa.BooleanArray) -> npt.NDArray[np.bool_]:
    """An array without nulls as a mask."""
    first, last = array.offset, array.offset + len(array)
    if first == last:
        return np.zeros(0, np.bool_)
    bits = np.frombuffer(array.buffers()[1], np.uint8)
    return np.unpackbits(bits, count=last, bitorder="little")[first:].view(np.bool_)
