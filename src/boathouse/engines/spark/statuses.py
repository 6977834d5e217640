"""Hadoop's statuses of files as bytes, made of arrays: `FileStatus.readFields` reads them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_AT_ONCE: Final = 20_000
"""Files whose statuses cross to the JVM in one call."""
_BLOCK: Final = 128 << 20
_PATH_DIGITS, _LONG_DIGITS = 3, 9
"""Bytes of a number of 21 and of 63 bits: each number is written in as many, so that all rows have one layout."""

Longs = np.ndarray[Any, np.dtype[np.int64]]


def chunks(paths: pa.Array, sizes: Longs, modified_ms: Longs) -> Iterator[tuple[int, bytes]]:
    """The number of statuses and their bytes, some thousands at a time, as `ArrayWritable.readFields` reads them."""
    for start in range(0, len(paths), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        found = paths.slice(start, _AT_ONCE)
        yield len(found), np.array(len(found), ">i4").tobytes() + _written(found, sizes[part], modified_ms[part])


def _written(paths: pa.Array, sizes: Longs, modified_ms: Longs) -> bytes:
    """Protocol buffers (FileStatusProto), each behind its length: fields 1 type, 2 path, 3 length, 4 permission,
    5 owner, 6 group, 7 and 8 times, 10 replication, 11 block size."""
    count = len(paths)
    lengths = pc.binary_length(paths).to_numpy(zero_copy_only=False).astype(np.int64)
    after = np.concatenate(
        [
            _same(b"\x18", count),
            _numbers(sizes, _LONG_DIGITS),
            _same(b"\x22\x03\x08\xa4\x03\x2a\x00\x32\x00\x38", count),
            _numbers(modified_ms, _LONG_DIGITS),
            _same(b"\x40\x00\x50\x01\x58", count),
            _numbers(np.full(count, _BLOCK), _LONG_DIGITS),
        ],
        axis=1,
    )
    before = np.concatenate([_same(b"\x08\x02\x12", count), _numbers(lengths, _PATH_DIGITS)], axis=1)
    whole = lengths + before.shape[1] + after.shape[1]
    prefix = np.concatenate([whole.astype(">i4").view(np.uint8).reshape(count, 4), before], axis=1)
    joined = pc.binary_join_element_wise(_binary(prefix), paths.cast(pa.binary()), _binary(after), b"")
    offsets = np.frombuffer(joined.buffers()[1], np.int32)[joined.offset : joined.offset + count + 1]
    return memoryview(joined.buffers()[2])[int(offsets[0]) : int(offsets[-1])].tobytes()


def _same(data: bytes, count: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.broadcast_to(np.frombuffer(data, np.uint8), (count, len(data)))


def _numbers(values: Longs, digits: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Varints, padded to so many bytes."""
    shifted = values[:, None] >> (7 * np.arange(digits))
    found = (shifted & 0x7F).astype(np.uint8)
    found[:, :-1] |= 0x80
    return found


def _binary(rows: np.ndarray[Any, np.dtype[np.uint8]]) -> pa.Array:
    count, width = rows.shape
    data = pa.py_buffer(np.ascontiguousarray(rows).tobytes())
    offsets = pa.py_buffer((np.arange(count + 1, dtype=np.int32) * width).tobytes())
    return pa.Array.from_buffers(pa.binary(), count, [None, offsets, data])
