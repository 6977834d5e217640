"""Byte slices of one buffer, concatenated by Arrow's `take`: 20 ns each, whatever their length."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse.bits.unaligned import Bytes, Ints, copy
from boathouse.errors import InvalidArgumentError
from boathouse.variant.columns.byte_columns import splits_of

LIMIT = 2**31 - 1


def join(data: Bytes, start: Ints, end: Ints) -> pa.Array:
    """The byte strings `data[start[i]:end[i]]` as a binary array (large_binary beyond 2 GiB).

    The spans may overlap and be in any order; they must be within `data`.
    """
    lengths = end - start
    offsets = splits_of(lengths)
    total = int(offsets[-1])
    out = np.empty(total, np.uint8)
    copy(out, offsets[:-1], data, start, lengths)
    wide = total > LIMIT
    edges = pa.py_buffer(offsets if wide else offsets.astype(np.int32))
    return pa.Array.from_buffers(
        pa.large_binary() if wide else pa.binary(), len(lengths), [None, edges, pa.py_buffer(out)]
    )


def flat(array: pa.Array) -> tuple[Bytes, npt.NDArray[Any]]:
    """The bytes of a binary or string array that `join` made, and the offsets of its elements, one more than there are
    elements."""
    wide = array.type in (pa.large_binary(), pa.large_string())
    _, offsets, data = array.buffers()
    if not len(array):
        return np.zeros(0, np.uint8), np.zeros(1, np.int64 if wide else np.int32)
    found = np.frombuffer(offsets, np.int64 if wide else np.int32, len(array) + 1)
    return (np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8, int(found[-1]))), found


def is_ascii(array: pa.Array) -> bool:
    """Whether all bytes of a binary array that `join` made are UTF-8: then its strings need not be checked one by
    one."""
    data, _ = flat(array)
    return not len(data) or int(data.max()) < 128


def is_utf8(raw: bytes) -> bool:
    """Whether the bytes are UTF-8."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def as_text(array: pa.Array) -> pa.Array:
    """A binary array as a string array of the same buffers, not checked to be UTF-8."""
    type = pa.large_string() if array.type == pa.large_binary() else pa.string()
    return pa.Array.from_buffers(type, len(array), array.buffers(), array.null_count, array.offset)


def validity(index: Ints, count: int) -> pa.Buffer | None:
    """The validity bitmap of an array of `count` entries of which those at `index` are valid; None if all are."""
    if len(index) == count:
        return None
    there = np.zeros(count, np.bool_)
    there[index] = True
    return pa.py_buffer(np.packbits(there, bitorder="little"))


def imported(data: Any, advice: str) -> pa.Array | pa.ChunkedArray:
    """Arrow data of pyarrow, or of anything that exports it. Raises InvalidArgumentError with the given advice."""
    if isinstance(data, pa.Array | pa.ChunkedArray):
        return data
    if hasattr(data, "__arrow_c_stream__"):
        return pa.chunked_array(data)
    if hasattr(data, "__arrow_c_array__"):
        return pa.array(data)
    raise InvalidArgumentError(f"{type(data).__name__} is not an Arrow array", advice=advice)
