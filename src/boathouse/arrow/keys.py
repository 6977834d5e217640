"""Finds rows by the values of key columns: the rows of one side are indexed, any number of others are looked up.

Two keys are equal as in Spark: NaN equals NaN, 0.0 equals -0.0 unless signed zeros are asked for, and a null equals
nothing unless nulls match. Columns are encoded one by one as the numbers of their distinct values, and two numbers
together as the number of the pair, so that any combination of types ends as one integer per row. The result is exact:
bytes are found by a hash and compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.hashing import ByteKeys, HashTable
from boathouse.arrow.layouts import unwrapped
from boathouse.arrow.longs import longs
from boathouse.arrow.vector import Bools, Ints, integers
from boathouse.errors import SchemaMismatchError, UnsupportedTypeError

Keys = npt.NDArray[np.uint64]
Column: TypeAlias = pa.Array | pa.ChunkedArray


@dataclass(frozen=True, slots=True)
class _Encoder:
    """The distinct values of one column by number; `null` is the number of null, -1 if null equals nothing."""

    kind: pa.DataType
    signed_zeros: bool
    table: HashTable
    strings: ByteKeys | None
    null: int

    @staticmethod
    def of(column: Column, null_matches: bool, signed_zeros: bool) -> tuple[_Encoder, Ints]:
        """The encoder, and the number of each row's value."""
        arrays = _plain(column)
        kind = arrays[0].type
        valid = _valid(arrays)
        strings = None
        if _in_bytes(kind):
            strings, table, numbers = ByteKeys.distinct(_bytes(arrays), valid)
        else:
            table, numbers = HashTable.of(_words(arrays, signed_zeros)[valid])
        null = table.size if null_matches and not valid.all() else -1
        return _Encoder(kind, signed_zeros, table, strings, null), _spread(numbers, valid, null)

    @property
    def size(self) -> int:
        return self.table.size + (self.null >= 0)

    def lookup(self, column: Column) -> Ints:
        """The number of each row's value, -1 if it is not among the distinct ones."""
        arrays = _plain(column)
        if arrays[0].type != self.kind:
            raise SchemaMismatchError(
                f"keys of {self.kind} are looked up by {arrays[0].type}", advice="cast both sides to one type first"
            )
        valid = _valid(arrays)
        if self.strings is not None:
            numbers = self.strings.lookup(self.table, _bytes(arrays), valid)
        else:
            words = _words(arrays, self.signed_zeros)
            numbers = self.table.lookup(words if valid.all() else words[valid])
        return _spread(numbers, valid, self.null)


@dataclass(frozen=True, slots=True)
class KeyIndex:
    """Rows by key. Equal keys have the same group, 0 to `size` - 1; `groups` are those of the indexed rows, -1 where a
    row equals nothing."""

    size: int
    groups: Ints
    _encoders: tuple[_Encoder, ...]
    _pairs: tuple[HashTable, ...]
    _counts: Ints
    _starts: Ints
    _rows: Ints

    @staticmethod
    def of(
        columns: Sequence[Column], null_matches: bool | Sequence[bool] = False, *, signed_zeros: bool = False
    ) -> KeyIndex:
        """Indexes the rows of these columns (at least one, of the same length).

        `null_matches` says whether null equals null, for all columns or for each; `signed_zeros`, whether -0.0 differs
        from 0.0. Raises UnsupportedTypeError for nested columns.
        """
        matches = [null_matches] * len(columns) if isinstance(null_matches, bool) else null_matches
        encoders: list[_Encoder] = []
        pairs: list[HashTable] = []
        groups = np.empty(0, np.int64)
        size = 0
        for column, match in zip(columns, matches, strict=True):
            encoder, numbers = _Encoder.of(column, match, signed_zeros)
            if encoders:
                both = _both(groups, numbers, encoder.size)
                table, codes = HashTable.of(both[both >= 0].astype(np.uint64))
                groups, size = _spread(codes, both >= 0, -1), table.size
                pairs.append(table)
            else:
                groups, size = numbers, encoder.size
            encoders.append(encoder)
        return KeyIndex(size, groups, tuple(encoders), tuple(pairs), *_by_group(groups, size))

    def lookup(self, columns: Sequence[Column]) -> Ints:
        """The group of each row, -1 if no indexed row has an equal key.

        The columns have the types of the indexed ones, but for the width of signed integers, and of offsets.
        Raises SchemaMismatchError.
        """
        if len(columns) != len(self._encoders):
            raise ValueError(f"{len(columns)} columns are looked up by {len(self._encoders)}")
        groups = self._encoders[0].lookup(columns[0])
        rows = np.flatnonzero(groups >= 0)
        found = groups[rows]
        for column, encoder, pairs in zip(columns[1:], self._encoders[1:], self._pairs):
            # Only rows that the columns before leave: of deletes, or of a small side of a join, they are few.
            few = len(rows) < len(groups) // 2
            numbers = encoder.lookup(column.take(longs(rows))) if few else encoder.lookup(column)[rows]
            both = _both(found, numbers, encoder.size)
            rows, both = rows[both >= 0], both[both >= 0]
            found = pairs.lookup(both.astype(np.uint64))
            rows, found = rows[found >= 0], found[found >= 0]
        if len(rows) == len(groups):
            return found
        out = np.full(len(groups), -1, np.int64)
        out[rows] = found
        return out

    def counts(self, groups: Ints) -> Ints:
        """How many indexed rows each group has; 0 for -1."""
        return self._counts[groups]

    def row(self, groups: Ints, number: Ints | int = 0) -> Ints:
        """The indexed row at `number` (from 0, below the count) within its group, in the order of the rows."""
        return self._rows[self._starts[groups] + number]


def _both(groups: Ints, numbers: Ints, size: int) -> Ints:
    return np.where((groups < 0) | (numbers < 0), -1, groups * size + numbers)


def _spread(numbers: Ints, present: Bools, otherwise: int) -> Ints:
    """`numbers` where `present`, else `otherwise`."""
    if len(numbers) == len(present):
        return numbers
    out = np.full(len(present), otherwise, np.int64)
    out[present] = numbers
    return out


def _by_group(groups: Ints, size: int) -> tuple[Ints, Ints, Ints]:
    """How many rows each group has, and 0 for group -1; where each group starts among the rows in its order; these."""
    present = np.flatnonzero(groups >= 0)
    mine = groups[present]
    counts = np.bincount(mine, minlength=size + 1)
    starts = np.cumsum(counts) - counts
    if len(mine) == size:
        rows = np.empty(size, np.int64)
        rows[mine] = present
        return counts, starts, rows
    return counts, starts, present[np.argsort(mine, kind="stable")]


def _plain(column: Column) -> list[pa.Array]:
    """At least one array, all of the type that stands for every layout of these values."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    arrays = [_canonical(unwrapped(c)) for c in chunks]
    return arrays or [_canonical(unwrapped(pa.array([], column.type)))]


def _canonical(array: pa.Array) -> pa.Array:
    t, type = pa.types, array.type
    if t.is_nested(type):
        raise UnsupportedTypeError(f"values of {type} cannot be keys", advice="use a field of it")
    if t.is_null(type):
        return array.cast(pa.bool_())
    if t.is_signed_integer(type):
        return array.cast(pa.int64())
    if t.is_string(type) or t.is_string_view(type) or t.is_large_string(type):
        return array.cast(pa.large_string())
    if t.is_binary(type) or t.is_binary_view(type):
        return array.cast(pa.large_binary())
    if t.is_timestamp(type):
        return array.view(pa.timestamp(type.unit, None if type.tz is None else "UTC"))
    return array


def _in_bytes(type: pa.DataType) -> bool:
    t = pa.types
    fixed = t.is_fixed_size_binary(type) or t.is_decimal128(type) or t.is_decimal256(type)
    return bool(fixed or t.is_large_string(type) or t.is_large_binary(type))


def _valid(arrays: Sequence[pa.Array]) -> Bools:
    return np.concatenate(
        [
            np.asarray(a.is_valid().to_numpy(zero_copy_only=False), np.bool_)
            if a.null_count
            else np.ones(len(a), np.bool_)
            for a in arrays
        ]
    )


def _words(arrays: Sequence[pa.Array], signed_zeros: bool) -> Keys:
    """A 64-bit word per value, equal exactly for equal values."""
    return np.concatenate([_words_of(a, signed_zeros) for a in arrays])


def _words_of(array: pa.Array, signed_zeros: bool) -> Keys:
    t, type = pa.types, array.type
    if t.is_floating(type):
        values = pc.fill_null(array, 0.0).to_numpy(zero_copy_only=False)
        if not signed_zeros:
            values = values + values.dtype.type(0)  # -0.0 becomes 0.0
        values = np.where(np.isnan(values), values.dtype.type(np.nan), values)
        return values.view(f"u{values.itemsize}").astype(np.uint64)
    if t.is_boolean(type):
        array = array.cast(pa.uint8())
    elif t.is_decimal32(type) or t.is_decimal64(type):
        array = array.view(pa.int32() if t.is_decimal32(type) else pa.int64())
    return integers(array)[0].view(np.uint64)


def _bytes(arrays: Sequence[pa.Array]) -> ByteKeys:
    return ByteKeys.concatenated([_bytes_of(a) for a in arrays])


def _bytes_of(array: pa.Array) -> ByteKeys:
    buffers = array.buffers()
    if pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type):
        edges: Ints = np.zeros(1, np.int64)
        if len(array):
            edges = np.frombuffer(buffers[1], np.int64)[array.offset : array.offset + len(array) + 1]
        data = np.frombuffer(buffers[2] or b"", np.uint8)[edges[0] : edges[-1]]
        return ByteKeys.of(data, edges[:-1] - edges[0], np.diff(edges))
    width = array.type.byte_width
    data = np.frombuffer(buffers[1] or b"", np.uint8)[array.offset * width : (array.offset + len(array)) * width]
    return ByteKeys.of(data, np.arange(len(array), dtype=np.int64) * width, np.full(len(array), width, np.int64))
