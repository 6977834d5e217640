"""Arrow arrays as plain numpy values and back: fixed-width bytes, bits, variable bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Fixed:
    """`data` of shape (n, width): n values of `width` bytes."""

    data: Bytes

    def __len__(self) -> int:
        return len(self.data)

    @property
    def width(self) -> int:
        return int(self.data.shape[1])


@dataclass(frozen=True)
class Bits:
    """Booleans, one per value."""

    data: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.data)


@dataclass(frozen=True)
class Var:
    """Value i is data[offsets[i]:offsets[i + 1]]; offsets[0] is 0; `offset_bytes` is their width in files."""

    offsets: Ints
    data: Bytes
    offset_bytes: int = 4

    def __len__(self) -> int:
        return len(self.offsets) - 1


@dataclass(frozen=True)
class Vectors:
    """Rows of `dimension` items each; `valid` has one bit per item (None: all). Where the dimension is 0, `rows` is
    their number."""

    dimension: int
    items: Plain
    valid: npt.NDArray[np.bool_] | None = None
    rows: int = 0

    def __len__(self) -> int:
        return len(self.items) // self.dimension if self.dimension else self.rows


@dataclass(frozen=True)
class Nulls:
    """Items of fixed-size lists none of which has a value."""

    count: int

    def __len__(self) -> int:
        return self.count


Plain = Fixed | Bits | Var | Vectors | Nulls


def byte_width(kind: pa.DataType) -> int:
    """The size in bytes of a value of a fixed-width, byte-aligned type."""
    return int(kind.byte_width) if pa.types.is_fixed_size_binary(kind) else int(kind.bit_width) // 8


def bytes_of(buffer: pa.Buffer | None) -> Bytes:
    """The bytes of a buffer without copying; none of a missing one."""
    return np.frombuffer(buffer, np.uint8) if buffer is not None and buffer.size else np.empty(0, np.uint8)


def unpack_bits(data: Bytes, start: int, count: int) -> npt.NDArray[np.bool_]:
    """`count` bits from bit `start`, least significant first."""
    first = start // 8
    raw = np.unpackbits(data[first : (start + count + 7) // 8], bitorder="little")
    return raw[start - first * 8 : start - first * 8 + count].view(np.bool_)


def plain_of(array: pa.Array) -> Plain:
    """The values of a leaf array, including the undefined ones of null slots."""
    kind = array.type
    t = pa.types
    if t.is_boolean(kind):
        return Bits(unpack_bits(bytes_of(array.buffers()[1]), array.offset, len(array)))
    if t.is_fixed_size_list(kind):
        return _vectors_of(array)
    if t.is_null(kind):
        return Nulls(len(array))
    if t.is_string(kind) or t.is_binary(kind) or t.is_large_string(kind) or t.is_large_binary(kind):
        return _var_of(array)
    width = byte_width(kind)
    raw = bytes_of(array.buffers()[1])[array.offset * width : (array.offset + len(array)) * width]
    return Fixed(raw.reshape(len(array), width))


def _vectors_of(array: pa.Array) -> Vectors:
    dim = array.type.list_size
    child = array.values.slice(array.offset * dim, len(array) * dim)
    valid = None
    if child.null_count:
        valid = np.asarray(child.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)
        if array.null_count:  # the contents of a null list are undefined
            outer = np.asarray(array.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)
            valid = valid | ~np.repeat(outer, dim)
        if valid.all():
            valid = None
    return Vectors(dim, plain_of(child), valid, len(array))


def _var_of(array: pa.Array) -> Var:
    large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    _, ends, data = array.buffers()
    if ends is None or not ends.size:
        return Var(np.zeros(1, np.int64), np.empty(0, np.uint8), 8 if large else 4)
    offsets = np.frombuffer(ends, np.int64 if large else np.int32)[array.offset : array.offset + len(array) + 1]
    start, stop = int(offsets[0]), int(offsets[-1])
    return Var(offsets.astype(np.int64) - start, bytes_of(data)[start:stop], 8 if large else 4)


def compact(values: Var, valid: npt.NDArray[np.bool_]) -> Var:
    """The same with empty invalid slots."""
    lengths = np.diff(values.offsets)
    if not lengths[~valid].any():
        return values
    keep = np.repeat(valid, lengths)
    offsets = np.concatenate(([0], np.cumsum(np.where(valid, lengths, 0))))
    return Var(offsets, values.data[keep], values.offset_bytes)


def buffer(data: npt.NDArray[Any]) -> pa.Buffer:
    return pa.py_buffer(np.ascontiguousarray(data))


def validity(valid: npt.NDArray[np.bool_] | None) -> pa.Buffer | None:
    """The Arrow bitmap of a mask; None when all are valid."""
    if valid is None or valid.all():
        return None
    return pa.py_buffer(np.packbits(valid, bitorder="little"))


def to_arrow(values: Plain, kind: pa.DataType, valid: npt.NDArray[np.bool_] | None) -> pa.Array:
    """An Arrow array of a leaf type over the values (bytes of the type's width)."""
    n = len(values)
    if isinstance(values, Nulls):
        return pa.nulls(n, kind)
    mask = validity(valid)
    nulls = 0 if mask is None else -1
    if isinstance(values, Vectors):
        child = to_arrow(values.items, kind.value_type, values.valid)
        return pa.FixedSizeListArray.from_buffers(kind, n, [mask], nulls, 0, [child])
    if isinstance(values, Bits):
        data = pa.py_buffer(np.packbits(values.data, bitorder="little"))
        return pa.Array.from_buffers(kind, n, [mask, data], nulls)
    if isinstance(values, Var):
        large = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
        offsets = buffer(values.offsets if large else values.offsets.astype(np.int32))
        return pa.Array.from_buffers(kind, n, [mask, offsets, buffer(values.data)], nulls)
    return pa.Array.from_buffers(kind, n, [mask, buffer(values.data)], nulls)
