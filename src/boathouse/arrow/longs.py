"""64-bit integers of numpy as Arrow arrays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def longs(values: npt.NDArray[np.int64], valid: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """The values in the same memory, null where not `valid`. `pa.array` of a numpy array first imports numpy.ma, which
    takes longer than reading the metadata of a small table."""
    bits = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    numbers = np.ascontiguousarray(values, np.int64)
    return pa.Array.from_buffers(pa.int64(), len(numbers), [bits, pa.py_buffer(numbers)])
