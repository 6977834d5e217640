"""Arrays and maps of numbers, strings and bytes in the fields of many Avro records, as Arrow lists and maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse.arrow.longs import longs
from boathouse.avro.codec import is_pair, read_long
from boathouse.avro.columns import Columns, sliced
from boathouse.avro.cursors import ABSENT, Buffer, Longs, Path, Schema, in_64_bits, present, varied
from boathouse.errors import CorruptTableError

_TOGETHER: Final = 4096
"""Records whose items are read together: more do not fit the processor's cache."""
_FEW: Final = 8
"""So few records are read one by one."""
_NUMBERS: Final = ("int", "long")


@dataclass(frozen=True, slots=True)
class Items:
    """The items of many arrays, one after the other: those of row i are offsets[i] to offsets[i + 1]. Each field of the
    items is its numbers, or the places of its bytes."""

    offsets: Longs
    fields: tuple[Longs, ...]


def lists(columns: Columns, path: Path, type: pa.ListType) -> pa.Array:
    """A field of numbers as lists; null where it is null, or where the file does not have it."""
    found = columns.type(path)
    kind = present(found)
    if found is None or not len(columns):
        return pa.nulls(len(columns), type)
    if varied(found) or not isinstance(kind, dict) or kind["type"] != "array" or kind["items"] not in _NUMBERS:
        return pa.array(columns.values(path), type)
    places = columns.places[path]
    read = items(columns.buffer, [kind["items"]], places)
    values = _numbers(read.fields[0], type.value_type, columns.where)
    return pa.ListArray.from_arrays(_offsets(read, columns.where), values, type=type, mask=pa.array(places == ABSENT))


def maps(columns: Columns, path: Path, type: pa.MapType, known: list[pa.Array]) -> pa.Array:
    """A map from numbers to numbers or bytes; null where it is null, or where the file does not have it.

    `known` are the keys of other maps of these records: equal ones, which are the rule, have one place in memory.
    """
    found = columns.type(path)
    if found is None or not len(columns):
        return pa.nulls(len(columns), type)
    pair = _pair(found)
    if pair is None:
        rows = columns.values(path)
        return pa.array([None if row is None else list(row.items()) for row in rows], type)
    places = columns.places[path]
    read = items(columns.buffer, [t for _, t in pair], places)
    by_name = dict(zip((name for name, _ in pair), read.fields))
    keys = _shared(_numbers(by_name["key"], type.key_type, columns.where), known)
    if dict(pair)["value"] in _NUMBERS:
        values = _numbers(by_name["value"], type.item_type, columns.where)
    else:
        values = sliced(columns.buffer, by_name["value"])
    offsets = _offsets(read, columns.where)
    return pa.MapArray.from_arrays(offsets, keys, values, type=type, mask=pa.array(places == ABSENT))


def _shared(keys: pa.Array, known: list[pa.Array]) -> pa.Array:
    for other in known:
        if keys.equals(other):
            return other
    known.append(keys)
    return keys


def _pair(type: Schema) -> list[tuple[str, str]] | None:
    """The names and types of a map's key and value in their order, if they are numbers, and numbers or bytes."""
    kind = present(type)
    if varied(type) or not isinstance(kind, dict) or kind["type"] != "array" or not is_pair(kind["items"]):
        return None
    found = [(f["name"], f["type"]) for f in kind["items"]["fields"]]
    types = dict(found)
    plain = types["key"] in _NUMBERS and types["value"] in (*_NUMBERS, "bytes")
    return found if plain else None


def _numbers(values: Longs, type: pa.DataType, where: str) -> pa.Array:
    if pa.types.is_int64(type):
        return longs(values)
    if len(values) and (values.min() < -(1 << 31) or values.max() >= 1 << 31):
        raise CorruptTableError("an id in a manifest has more than 32 bits", where=where)
    return pa.array(values.astype(np.int32))


def _offsets(read: Items, where: str) -> pa.Array:
    if read.offsets[-1] >= 1 << 31:
        raise CorruptTableError("the metrics of a manifest have more than 2 billion items", where=where)
    return pa.array(read.offsets.astype(np.int32))


def items(buffer: Buffer, types: Sequence[str], places: Longs) -> Items:
    """The items of the arrays at these places, which were stepped over before, so that they are whole. Those that are
    ABSENT have none. `types` are int, long, bytes or string."""
    rows = np.flatnonzero(places != ABSENT)
    counts = np.zeros(len(places), np.int64)
    found: list[tuple[Longs, ...]] = []
    for first in range(0, len(rows), _TOGETHER):
        some = rows[first : first + _TOGETHER]
        walk = _Walk(buffer, types, places[some])
        walk.run()
        counts[some] = walk.counts
        found.append(walk.flat())
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    nothing = np.zeros(0, np.int64)
    return Items(offsets, tuple(np.concatenate([nothing, *(f[i] for f in found)]) for i in range(len(types))))


class _Walk:
    """Goes over some arrays at once, the first item of all of them, then the second, and so on."""

    def __init__(self, buffer: Buffer, types: Sequence[str], at: Longs) -> None:
        self.buffer = buffer
        self.types = types
        self.at = at
        self.counts = np.zeros(len(at), np.int64)
        self.rows: list[Longs] = []
        self.even = True
        self.values: list[list[Longs]] = [[] for _ in types]

    def run(self) -> None:
        """Until the blocks of all arrays have ended."""
        rows = np.arange(len(self.at))
        while len(rows):
            count, self.at[rows] = self.buffer.counts(self.at[rows])
            on = count > 0
            self.even = self.even and (bool(on.all()) or not on.any())
            rows, count = rows[on], count[on]
            self.counts[rows] += count
            self._block(rows, count)

    def _block(self, rows: Longs, count: Longs) -> None:
        done = 0
        while len(rows) > _FEW:
            self._items(rows)
            done += 1
            more = count > done
            if not more.all():
                rows, count = rows[more], count[more]
                self.even = self.even and not len(rows)
        for row, left in zip(rows.tolist(), (count - done).tolist()):
            self._one(row, left)

    def _items(self, rows: Longs) -> None:
        """One item of each of these arrays."""
        at = self.at[rows]
        for values, type in zip(self.values, self.types):
            if type in _NUMBERS:
                value, at = self.buffer.longs(at)
                values.append(value)
            else:
                values.append(at)
                size, at = self.buffer.longs(at)
                at = at + size
        self.at[rows] = at
        self.rows.append(rows)

    def _one(self, row: int, count: int) -> None:
        """The next items of one array."""
        self.even = False
        data, at = self.buffer.data, int(self.at[row])
        found: list[list[int]] = [[] for _ in self.types]
        for _ in range(count):
            for values, type in zip(found, self.types):
                number, after = read_long(data, at)
                values.append(in_64_bits(number) if type in _NUMBERS else at)
                at = after if type in _NUMBERS else after + number
        self.at[row] = at
        self.rows.append(np.full(count, row, np.int64))
        for all_values, values in zip(self.values, found):
            all_values.append(np.array(values, np.int64))

    def flat(self) -> tuple[Longs, ...]:
        """Each field of the items, in the order of the arrays."""
        if not self.rows:
            return tuple(np.zeros(0, np.int64) for _ in self.types)
        if self.even:
            return tuple(np.stack(values, 1).ravel() for values in self.values)
        order = _stable(np.concatenate(self.rows), len(self.at))
        return tuple(np.concatenate(values)[order] for values in self.values)


def _stable(rows: Longs, below: int) -> npt.NDArray[np.int64]:
    """Where each row's items are, in their order; small integers are sorted by their digits."""
    small = rows.astype(np.int16) if below <= 1 << 15 else rows
    return np.argsort(small, kind="stable")
