"""Byte strings of many rows as numpy offsets over one buffer, from which columns of variants are built.

A `Rope` is the same before its bytes are copied: parts that follow one another within each row. Parts of fixed width
are interleaved in one matrix, the others are borrowed from their buffers, and one C++ pass joins them all, so that a
byte of a nested row is copied once. Offsets have 64 bits throughout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.bits.unaligned import Bytes, Ints, Mask
from boathouse.errors import UnsupportedTypeError


@dataclass(frozen=True, eq=False)
class Ragged:
    """Row i is `data[offsets[i]:offsets[i + 1]]`; the first offset need not be 0."""

    offsets: Ints
    data: Bytes

    @property
    def rows(self) -> int:
        return len(self.offsets) - 1

    @property
    def sizes(self) -> Ints:
        """Bytes of each row."""
        return np.diff(self.offsets)

    def __getitem__(self, row: int) -> bytes:
        return self.data[self.offsets[row] : self.offsets[row + 1]].tobytes()

    def slice(self, start: int, stop: int) -> Ragged:
        """Rows [start, stop) without a copy."""
        return Ragged(self.offsets[start : stop + 1], self.data)

    def group(self, splits: Ints) -> Ragged:
        """Rows [splits[i], splits[i + 1]) concatenated as row i, without a copy."""
        return Ragged(self.offsets[splits], self.data)

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> Ragged:
        """The selected rows, in that order."""
        return Ragged.from_arrow(self.to_arrow().take(pa.array(rows)))

    def to_arrow(self, mask: Mask | None = None) -> pa.LargeBinaryArray:
        """The same bytes as a large_binary array; rows outside `mask` are null."""
        valid = None if mask is None else pa.py_buffer(np.packbits(mask, bitorder="little"))
        buffers = [valid, pa.py_buffer(np.ascontiguousarray(self.offsets)), pa.py_buffer(self.data)]
        return pa.Array.from_buffers(pa.large_binary(), self.rows, buffers)

    @staticmethod
    def from_arrow(array: pa.Array) -> Ragged:
        """The bytes of a string or binary array of any layout; what null rows hold is undefined.

        Raises UnsupportedTypeError for other types.
        """
        type, t = array.type, pa.types
        if t.is_fixed_size_binary(type):
            return _fixed_rows(array)
        if t.is_string_view(type) or t.is_binary_view(type):
            array = array.cast(pa.large_binary())
        elif not (t.is_binary(type) or t.is_string(type) or t.is_large_binary(type) or t.is_large_string(type)):
            raise UnsupportedTypeError(f"{type} is not a type of bytes")
        large = t.is_large_binary(array.type) or t.is_large_string(array.type)
        _, offsets, data = array.buffers()
        if offsets is None or not offsets.size:
            return Ragged(np.zeros(len(array) + 1, np.int64), np.empty(0, np.uint8))
        width = np.dtype(np.int64 if large else np.int32)
        found = np.frombuffer(offsets, width, len(array) + 1, array.offset * width.itemsize)
        return Ragged(found.astype(np.int64, copy=False), as_bytes(data))

    @staticmethod
    def of(values: Sequence[bytes]) -> Ragged:
        """A column from Python bytes."""
        sizes = np.array([len(value) for value in values], np.int64)
        return Ragged(splits_of(sizes), np.frombuffer(b"".join(values), np.uint8))


def _fixed_rows(array: pa.Array) -> Ragged:
    width = array.type.byte_width
    offsets = np.arange(array.offset * width, (array.offset + len(array)) * width + 1, max(width, 1), dtype=np.int64)
    return Ragged(offsets if width else np.zeros(len(array) + 1, np.int64), as_bytes(array.buffers()[1]))


def as_bytes(buffer: pa.Buffer | None) -> Bytes:
    """A view of an Arrow buffer, which may be missing."""
    return np.empty(0, np.uint8) if buffer is None or not buffer.size else np.frombuffer(buffer, np.uint8)


def fixed_values(array: pa.Array, dtype: str) -> npt.NDArray[Any]:
    """The values' buffer of an array of fixed width as one element per row, null slots included."""
    kind = np.dtype(dtype)
    buffer = array.buffers()[1]
    if buffer is None or not len(array):
        return np.zeros(len(array), kind)
    return np.frombuffer(buffer, kind, len(array), array.offset * kind.itemsize)


def spread(bytes: Ragged, present: Mask) -> Ragged:
    """The rows one after another where `present` is True; those between are empty. Copies no bytes."""
    offsets = np.empty(len(present) + 1, np.int64)
    offsets[0] = bytes.offsets[0]
    offsets[1:] = bytes.offsets[np.cumsum(present)]
    return Ragged(offsets, bytes.data)


def splits_of(counts: npt.NDArray[np.integer[Any]]) -> Ints:
    """0 and the running totals of `counts`."""
    splits = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=splits[1:])
    return splits


def uniform(values: Ints) -> int | Ints:
    """One number if all are the same (0 if there are none)."""
    if not len(values):
        return 0
    first = int(values[0])
    return first if bool((values == first).all()) else values


def stack(columns: Sequence[Ragged]) -> Ragged:
    """The rows of the first, then those of the next (one copy of the bytes)."""
    if len(columns) == 1:
        return columns[0]
    return Ragged.from_arrow(pa.concat_arrays([column.to_arrow() for column in columns]))


def interleave(columns: Sequence[Ragged], places: Sequence[Ints], rows: int) -> Ragged:
    """Row i of column c becomes row `places[c][i]`; together the places contain each of the `rows` at most once.

    Rows that no place contains are empty.
    """
    source = np.full(rows, -1, np.int64)
    first = 0
    for column, place in zip(columns, places, strict=True):
        source[place] = np.arange(first, first + column.rows)
        first += column.rows
    if not first:
        return Ragged(np.zeros(rows + 1, np.int64), np.empty(0, np.uint8))
    both = stack(columns).to_arrow()
    return Ragged.from_arrow(both.take(pa.array(source, mask=source < 0)))


def prefixes(records: Bytes, sizes: npt.NDArray[np.integer[Any]]) -> Ragged:
    """Row i is the first `sizes[i]` bytes of `records[i]` (a C-contiguous matrix)."""
    rows, width = records.shape
    offsets = splits_of(sizes)
    if not rows or not width:
        return Ragged(offsets, np.empty(0, np.uint8))
    return Ragged(offsets, records[np.arange(width) < np.asarray(sizes)[:, None]])


@dataclass(frozen=True, eq=False)
class Fixed:
    """A part of `width` bytes in each row of `mask` (all when None), and of none in the other rows.

    `columns` are (byte offset, values): a scalar byte for all rows, or an array of one element per row, whose
    little-endian bytes are written there.
    """

    width: int
    columns: tuple[tuple[int, int | npt.NDArray[Any]], ...]
    mask: Mask | None = None

    def materialise(self, rows: int) -> Ragged:
        matrix = np.empty((rows, self.width), np.uint8)
        if not rows:
            return Ragged(np.zeros(1, np.int64), matrix.reshape(-1))
        for at, values in self.columns:
            if isinstance(values, int):
                matrix[:, at] = values
            else:
                np.ndarray((rows,), values.dtype, matrix, at, (self.width,))[:] = values
        return Ragged(np.arange(0, rows * self.width + 1, self.width, dtype=np.int64), matrix.reshape(-1))

    def followed_by(self, other: Fixed) -> Fixed:
        """Both, interleaved; they must have the same mask."""
        moved = tuple((at + self.width, values) for at, values in other.columns)
        return Fixed(self.width + other.width, self.columns + moved, self.mask)


@dataclass(frozen=True, eq=False)
class Loose:
    """A part of variable length in the rows of `mask` (all when None), and of none in the other rows."""

    bytes: Ragged
    mask: Mask | None = None


@dataclass(frozen=True, eq=False)
class Rope:
    """The bytes of `rows` rows as parts that follow one another in each row."""

    rows: int
    parts: tuple[Fixed | Loose, ...]

    @cached_property
    def size(self) -> int | Ints:
        """Bytes of each row: one number if all have the same."""
        constant, varying = 0, None
        for part in self.parts:
            size: int | Ints = part.width if isinstance(part, Fixed) else part.bytes.sizes
            if part.mask is not None:
                size = size * part.mask
            if isinstance(size, int):
                constant += size
            else:
                varying = size if varying is None else varying + size
        return constant if varying is None else varying + constant

    @property
    def sizes(self) -> Ints:
        return np.full(self.rows, self.size, np.int64) if isinstance(self.size, int) else self.size

    def within(self, mask: Mask | None) -> Rope:
        """Empty outside `mask`."""
        if mask is None:
            return self
        known: dict[int, Mask] = {}  # equal masks stay the same object, so that parts still merge
        parts: list[Fixed | Loose] = []
        for part in self.parts:
            own = part.mask
            both = mask
            if own is not None and own is not mask:
                if id(own) not in known:
                    known[id(own)] = own & mask
                both = known[id(own)]
            parts.append(Fixed(part.width, part.columns, both) if isinstance(part, Fixed) else Loose(part.bytes, both))
        return Rope(self.rows, tuple(parts))

    def join(self) -> Ragged:
        """The rows with their bytes in one buffer."""
        arrays = [_arrow_part(part, self.rows) for part in _merged(self.parts)]
        if not arrays:
            return Ragged(np.zeros(self.rows + 1, np.int64), np.empty(0, np.uint8))
        if len(arrays) == 1 and arrays[0].null_count == 0:
            return Ragged.from_arrow(arrays[0])
        joined = pc.binary_join_element_wise(
            *arrays, pa.scalar(b"", pa.large_binary()), null_handling="replace", null_replacement=""
        )
        return Ragged.from_arrow(joined)


def rope(*ropes: Rope) -> Rope:
    """The parts of all, one after another."""
    return Rope(ropes[0].rows, tuple(part for one in ropes for part in one.parts))


def loose(bytes: Ragged) -> Rope:
    """A rope of one part."""
    return Rope(bytes.rows, (Loose(bytes),))


def _merged(parts: tuple[Fixed | Loose, ...]) -> list[Fixed | Loose]:
    merged: list[Fixed | Loose] = []
    for part in parts:
        last = merged[-1] if merged else None
        if isinstance(part, Fixed) and isinstance(last, Fixed) and part.mask is last.mask:
            merged[-1] = last.followed_by(part)
        else:
            merged.append(part)
    return merged


def _arrow_part(part: Fixed | Loose, rows: int) -> pa.Array:
    found = part.materialise(rows) if isinstance(part, Fixed) else part.bytes
    return found.to_arrow(part.mask)
