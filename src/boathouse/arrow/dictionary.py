"""Decodes dictionary arrays to one value per row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.memory import read_pool

Codes = npt.NDArray[Any]
_LAST_OFFSET = (1 << 31) - 1
_NUMBERS = {1: pa.uint8(), 2: pa.uint16(), 4: pa.uint32(), 8: pa.uint64()}
_SHARED_ROWS = 1 << 17
_MOST_RUNS = 1 << 12
_RUN_BYTES = 1 << 18
"""The expanded runs of a small dictionary must stay in a core's cache."""
_ROWS_PER_RUN = 16
"""Building a run costs as much as taking this number of rows."""


def spread(array: pa.DictionaryArray) -> pa.Array:
    """The values of a dictionary array row by row, in the read pool. Raises ArrowIndexError for an out-of-range
    index."""
    return next(pieces(array, max(len(array), 1)))


def pieces(array: pa.DictionaryArray, rows: int) -> Iterator[pa.Array]:
    """The result of `spread`, in arrays of at most `rows` rows: chunks that fit into a core's cache are faster."""
    values, indices = array.dictionary, array.indices
    way = _way(values, indices, rows)
    for at in range(0, max(len(indices), 1), rows):
        yield way.take(indices.slice(at, rows))


class _Way(Protocol):
    """How values are taken from one dictionary."""

    def take(self, indices: pa.Array) -> pa.Array: ...


def _way(values: pa.Array, indices: pa.Array, rows: int) -> _Way:
    if values.type not in (pa.string(), pa.binary()) or not len(values) or values.null_count:
        return _Any(values)
    require_bounds(indices, len(values))
    _, offsets, _ = values.buffers()
    ends = np.frombuffer(offsets, np.int32, len(values) + 1, 4 * values.offset)
    lengths = ends[1:] - ends[:-1]
    longest = int(lengths.max())
    if (min(rows, len(indices)) + 1) * longest > _LAST_OFFSET:
        return _Any(values)
    if not indices.null_count and longest in _NUMBERS and (lengths == longest).all():
        return _OneWidth(values, longest)
    return _few(values, lengths, indices) or _Any(values)


def require_bounds(indices: pa.Array, count: int) -> None:
    """Raises ArrowIndexError for an index that is not below `count`; Arrow does not check indexes when it reads
    them."""
    if pa.types.is_int32(indices.type) and len(indices):
        # As unsigned, a negative index is a large one. Null rows may hold anything, so they are excluded if the check
        # fails.
        found = np.frombuffer(indices.buffers()[1], np.uint32, len(indices), 4 * indices.offset)
        if found.max() < count:
            return
    found = pc.min_max(indices)
    low, high = found["min"].as_py(), found["max"].as_py()
    if low is not None and (low < 0 or high >= count):
        raise pa.ArrowIndexError(f"index {high if low >= 0 else low} in a dictionary of {count} values")


@dataclass(frozen=True, slots=True)
class _Any:
    values: pa.Array

    def take(self, indices: pa.Array) -> pa.Array:
        return pc.take(self.values, indices, memory_pool=read_pool())


@dataclass(frozen=True, slots=True)
class _OneWidth:
    """Strings of one length, such as flags and codes: they are taken as numbers."""

    values: pa.Array
    width: int

    def take(self, indices: pa.Array) -> pa.Array:
        values, width, rows = self.values, self.width, len(indices)
        _, offsets, data = values.buffers()
        first = int(np.frombuffer(offsets, np.int32, 1, 4 * values.offset)[0])
        numbers = pa.Array.from_buffers(_NUMBERS[width], len(values), [None, data.slice(first)])
        taken = pc.take(numbers, indices, boundscheck=False, memory_pool=read_pool())
        starts = _starts(width, _SHARED_ROWS) if rows <= _SHARED_ROWS else _starts.__wrapped__(width, rows)
        return pa.Array.from_buffers(values.type, rows, [None, starts, taken.buffers()[1]])


@lru_cache(maxsize=len(_NUMBERS))
def _starts(width: int, rows: int) -> pa.Buffer:
    """Offsets of values of one width, shared between arrays."""
    return pa.py_buffer(np.arange(0, (rows + 1) * width, width, dtype=np.int32))


@dataclass(frozen=True, slots=True)
class _Few:
    """Strings of a small dictionary: the codes of two or four rows are packed into one code, which indexes a table of
    all combinations."""

    type: pa.DataType
    null: int
    """The code of the last value, which is empty and represents nulls, if there are any."""
    runs: pa.Array
    lengths: pa.Array
    """The lengths of the values of each run, as adjacent int32."""
    bits: int
    """The number of bits of a row's code."""
    together: int
    """The number of rows in a run."""

    def take(self, indices: pa.Array) -> pa.Array:
        rows = len(indices)
        runs = pa.array(_packed(self._codes(indices), self.bits, self.together))
        data = pc.take(self.runs, runs, boundscheck=False, memory_pool=read_pool()).buffers()[2]
        lengths = pc.take(self.lengths, runs, boundscheck=False, memory_pool=read_pool())
        offsets = pa.allocate_buffer(4 * (rows + 1), read_pool())
        ends = np.frombuffer(offsets, np.int32)
        ends[0] = 0
        np.cumsum(np.frombuffer(lengths.buffers()[1], np.int32, rows), dtype=np.int32, out=ends[1:])
        validity = None
        if indices.null_count:
            validity = pa.concat_arrays([indices.is_valid()]).buffers()[1]  # not a slice's bitmap, which has an offset
        return pa.Array.from_buffers(self.type, rows, [validity, offsets, data])

    def _codes(self, indices: pa.Array) -> npt.NDArray[np.uint8]:
        """One byte per row, padded to whole runs."""
        codes = _scratch(-(-len(indices) // self.together) * self.together)
        codes[len(indices) :] = 0
        if indices.null_count:
            indices = indices.fill_null(pa.scalar(self.null, indices.type))
        codes[: len(indices)] = indices.to_numpy(zero_copy_only=False)
        return codes


def _few(values: pa.Array, lengths: Codes, indices: pa.Array) -> _Few | None:
    """The dictionary's runs; None if they are too many, or too long, to pay."""
    nulls = indices.null_count > 0
    bits = max((len(values) + nulls - 1).bit_length(), 1)
    for together in (4, 2):
        count = 1 << (bits * together)
        size = together * (count >> bits) * int(lengths.sum())  # each value equally often in each position
        if count <= _MOST_RUNS and len(indices) >= _ROWS_PER_RUN * count and size <= _RUN_BYTES:
            _, offsets, data = values.buffers()
            first = int(np.frombuffer(offsets, np.int32, 1, 4 * values.offset)[0])
            text = b"" if data is None else data[first : first + int(lengths.sum())].to_pybytes()
            return _runs(lengths.tobytes() + bytes(4 * nulls), text, values.type == pa.string(), bits, together)
    return None


@lru_cache(maxsize=64)
def _runs(lengths: bytes, text: bytes, utf8: bool, bits: int, together: int) -> _Few:
    """All the runs of these values, cached: the row groups and files of a table mostly have the same few."""
    type = pa.string() if utf8 else pa.binary()
    sizes = np.frombuffer(lengths, np.int32)
    ends = np.cumsum(np.append(np.int32(0), sizes), dtype=np.int32)
    values = pa.Array.from_buffers(type, len(sizes), [None, pa.py_buffer(ends), pa.py_buffer(text)])
    # A code without a value gives the last one; it is never used.
    codes = np.minimum(np.arange(1 << bits), len(sizes) - 1)
    runs, each = values.take(pa.array(codes)), sizes[codes].reshape(-1, 1)
    empty = pa.scalar("" if utf8 else b"", type)
    for _ in range(together.bit_length() - 1):
        first, then = np.tile(np.arange(len(runs)), len(runs)), np.repeat(np.arange(len(runs)), len(runs))
        runs = pc.binary_join_element_wise(runs.take(pa.array(first)), runs.take(pa.array(then)), empty)
        each = np.hstack((each[first], each[then]))
    held = pa.Array.from_buffers(pa.binary(4 * together), len(runs), [None, pa.py_buffer(np.ascontiguousarray(each))])
    return _Few(type, len(sizes) - 1, runs, held, bits, together)


def _packed(codes: npt.NDArray[np.uint8], bits: int, together: int) -> Codes:
    """The codes of a run packed into one number, the first lowest; the input is overwritten."""
    low = (1 << bits) - 1
    runs: Codes = codes.view(np.uint16 if together == 2 else np.uint32)
    moved = _scratch(len(codes)).view(runs.dtype)
    if together == 2:
        np.right_shift(runs, 8 - bits, out=moved)
        moved &= low << bits
        runs &= low
        runs |= moved
        return runs
    pair = low | low << bits
    for shift, kept in ((8 - bits, pair | pair << 16), (16 - 2 * bits, pair | pair << (2 * bits))):
        np.right_shift(runs, shift, out=moved)
        runs |= moved
        runs &= kept
    return runs


def _scratch(size: int) -> npt.NDArray[np.uint8]:
    """A work buffer from the read pool, which reuses freed memory: new memory from the system has to be cleared
    first."""
    return np.frombuffer(pa.allocate_buffer(size, read_pool()), np.uint8)
