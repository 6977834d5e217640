"""Values inside the rows of a column, many at a time: headers, counts, children and sizes, bounds-checked."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from boathouse.arrow.vector import ragged
from boathouse.bits.unaligned import Bytes, Ints, Mask, unsigned
from boathouse.variant.columns.faults import Faults
from boathouse.variant.columns.layout import Column
from boathouse.variant.primitives import BINARY, KINDS, STRING

OBJECT = 64
ARRAY = 65


def _tables() -> tuple[npt.NDArray[Any], ...]:
    """By header byte: kind, bytes of the whole value (0: the length follows), whether it is large, widths of ids and
    of offsets."""
    header = np.arange(256)
    basic, rest = header & 3, header >> 2
    kind = np.select([basic == 0, basic == 1, basic == 2], [rest, STRING, OBJECT], ARRAY)
    fixed = np.full(64, 0)
    fixed[: len(KINDS)] = [1 + one.size for one in KINDS]
    size = np.select([basic == 0, basic == 1], [fixed[rest], 1 + rest], 0)
    large = np.where(basic == 2, rest >> 4 & 1, rest >> 2 & 1)
    id_width = np.where(basic == 2, (rest >> 2 & 3) + 1, 0)
    return kind.astype(np.uint8), size, large, id_width, (rest & 3) + 1


KIND, SIZE, LARGE, ID_WIDTH, OFFSET_WIDTH = _tables()


@dataclass(frozen=True, eq=False)
class Containers:
    """Parsed headers of objects and arrays; positions are absolute in the column's data, all arrays have one entry per
    node.

    `count` elements; ids at `ids` of `id_width` bytes (0 for arrays); count + 1 offsets at `offsets` of
    `offset_width` bytes, relative to `values`; the values end at `values_end`. A malformed one has count 0.
    """

    count: Ints
    ids: Ints
    id_width: Ints
    offsets: Ints
    offset_width: Ints
    values: Ints
    values_end: Ints

    def take(self, which: npt.NDArray[Any] | slice) -> Containers:
        """Those at the positions, or where the mask is True."""
        return Containers(*(getattr(self, name)[which] for name in _PARTS))


_PARTS = tuple(f.name for f in fields(Containers))


@dataclass(frozen=True, eq=False)
class Nodes:
    """`len` values: value k is in row `row[k]` at `pos[k]`, and may not extend beyond `end[k]`.

    `end` is that of the row or of the enclosing values: a bound, not the value's own end (see `sizes`). In lenient
    reading a malformed node counts as a variant null, and its row is noted in `faults`.
    """

    column: Column
    row: Ints
    pos: Ints
    end: Ints
    faults: Faults

    def __len__(self) -> int:
        return len(self.row)

    @property
    def data(self) -> Bytes:
        return self.column.data

    def take(self, which: npt.NDArray[Any] | slice) -> Nodes:
        """Those at the positions, or where the mask is True."""
        return Nodes(self.column, self.row[which], self.pos[which], self.end[which], self.faults)

    def as_column(self) -> Column:
        """The nodes as rows of a new column; copies no bytes."""
        return Column(self.data, self.pos, self.end, self.column.meta.with_codes(self.column.meta.codes[self.row]))

    def check(self, ok: Mask, message: str, pos: Ints | None = None) -> Mask | None:
        """None if all nodes are `ok`; else raises for the first that is not or, if lenient, returns the mask."""
        if ok.all():
            return None
        at = self.pos if pos is None else pos
        return self.faults.check(ok, self.row, at - self.column.start[self.row], message)

    def headers(self) -> npt.NDArray[np.uint8]:
        """The first byte of each; 0 (null) where it is missing."""
        ok = self.check(self.pos < self.end, "a value is missing: its bytes end here")
        if ok is None:
            return self.data[self.pos]
        out = np.zeros(len(self), np.uint8)
        out[ok] = self.data[self.pos[ok]]
        return out

    def kinds(self) -> npt.NDArray[np.uint8]:
        """Primitive id 0 to 63 (a short string is 16, STRING), OBJECT or ARRAY."""
        return KIND[self.headers()]

    def containers(self) -> Containers:
        """The parts of nodes that are all objects or arrays (others are returned as empty)."""
        header = self.headers()
        large, id_width, offset_width = LARGE[header], ID_WIDTH[header], OFFSET_WIDTH[header]
        count_width = 1 + 3 * large
        ids = self.pos + 1 + count_width
        good = (header & 2) != 0
        good = self._both(good, ids <= self.end, "a container ends within its count")
        count = self._read(good, self.pos + 1, count_width)
        offsets = ids + count * id_width
        values = offsets + (count + 1) * offset_width
        good = self._both(good, values <= self.end, "a container counts more elements than it has bytes for")
        last = self._read(good, offsets + count * offset_width, offset_width)
        values_end = values + last
        good = self._both(good, values_end <= self.end, "the values of a container end beyond it")
        if not good.all():
            count = np.where(good, count, 0)
            values_end = np.where(good, values_end, self.pos + 1)
        return Containers(count, ids, id_width, offsets, offset_width, values, values_end)

    def _both(self, good: Mask, ok: Mask, message: str) -> Mask:
        wrong = good & ~ok
        self.check(~wrong, message)
        return good & ok

    def _read(self, good: Mask, pos: Ints, width: Ints) -> Ints:
        if good.all():
            return unsigned(self.data, pos, width)
        out = np.zeros(len(self), np.int64)
        out[good] = unsigned(self.data, pos[good], width[good])
        return out

    def children(self, parts: Containers | None = None) -> Children:
        """The children of all containers, in order (for objects: in the order of their ids).

        Visits are counted against the row's bytes: expansion by shared children is MalformedVariant.
        """
        parts = parts or self.containers()
        kept = self._spend(parts.count)
        owner, slot = ragged(parts.count if kept is None else np.where(kept, parts.count, 0))
        row = self.row[owner]
        width = parts.offset_width[owner]
        at = unsigned(self.data, parts.offsets[owner] + slot * width, width)
        below = Nodes(self.column, row, parts.values[owner] + at, parts.values_end[owner], self.faults)
        kept = below.check(below.pos < below.end, "a child starts at or beyond the end of its container")
        if kept is not None:
            owner, slot, below = owner[kept], slot[kept], below.take(kept)
        return Children(owner, slot, self._ids(parts, owner, slot), below)

    def _ids(self, parts: Containers, owner: Ints, slot: Ints) -> Ints:
        """The field ids of children; -1 in arrays. Ids beyond the dictionary are malformed."""
        width = parts.id_width[owner]
        named = width > 0
        out = np.full(len(owner), -1, np.int64)
        at = parts.ids[owner] + slot * width
        found = unsigned(self.data, at[named], width[named])
        row = self.row[owner[named]]
        codes = self.column.meta.codes[row]
        sizes = self.column.meta.sizes[codes] if len(self.column.meta) else np.zeros(len(codes), np.int64)
        ok = (found < sizes) & (codes >= 0)
        if not ok.all():
            self.faults.check(ok, row, at[named] - self.column.start[row], "a field id is beyond the dictionary")
        out[named] = np.where(ok, found, -2)
        return out

    def sizes(self, known: bool = True) -> Ints:
        """The bytes of each value, header included; within `end`. UnsupportedFeatureError for an unknown type, which
        counts as its header alone if not `known`. If lenient, so does a malformed one (0 without a header).

        The caller is about to copy them, so they are counted as `children` counts its visits.
        """
        header = self.headers()
        out = SIZE[header]
        kind = KIND[header]
        nested = np.flatnonzero(kind >= OBJECT)
        if len(nested):
            some = self.take(nested)
            out[nested] = some.containers().values_end - some.pos
        rest = np.flatnonzero((out == 0) & (kind < OBJECT))
        if len(rest):
            out[rest] = self.take(rest)._long(kind[rest], known)
        ok = self.check(self.pos + out <= self.end, "a value ends beyond its container")
        if ok is not None:
            out = np.where(ok, out, self.pos < self.end)
        kept = self._spend(out)
        return out if kept is None else np.where(kept, out, self.pos < self.end)

    def _spend(self, cost: Ints) -> Mask | None:
        """Counts the cost of each node against the bytes of its row's value; as `check`."""
        return self.faults.spend(self.row, cost, self.column.end - self.column.start) if len(self) else None

    def _long(self, kind: npt.NDArray[np.uint8], known: bool) -> Ints:
        """Sizes of strings and binaries with a 4-byte length."""
        long = (kind == BINARY) | (kind == STRING)
        if known:
            for k in np.flatnonzero(~long):
                self.faults.unsupported(int(kind[k]), int(self.row[k]))
        ok = ~long | (self.pos + 5 <= self.end)
        self.check(ok, "a value ends within its length")
        good = long & ok
        size = self._read(good, self.pos + 1, np.full(len(self), 4))
        return np.where(good, size + 5, 1)


@dataclass(frozen=True, eq=False)
class Children:
    """Children of containers: `owner` is the position of the parent among the given nodes, `slot` the number within
    it, `id` the field id (-1 in arrays; -2 beyond the dictionary, in lenient reading)."""

    owner: Ints
    slot: Ints
    id: Ints
    nodes: Nodes


def roots(column: Column, faults: Faults | None = None) -> Nodes:
    """The values of the rows that are not null. Their metadata is checked too."""
    faults = faults or column.faults()
    row = np.arange(column.rows) if column.valid is None else np.flatnonzero(column.valid)
    kept = column.meta.check(row, faults)
    if kept is not None:
        row = row[kept]
    return Nodes(column, row, column.start[row], column.end[row], faults)
