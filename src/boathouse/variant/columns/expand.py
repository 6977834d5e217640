"""Every value of some rows of a column at once, breadth first, with all the checks of a full reading except those of
the contents of scalars.

The rules are those of `boathouse.variant.decode`. Where one is violated, `Faulty` names the rows; the caller lets the
single-value implementation report the fault, so both implementations raise the same errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.bits.unaligned import Bytes, Ints, Mask, unsigned
from boathouse.variant.columns.byte_slices import as_text, is_utf8, join
from boathouse.variant.columns.layout import Column
from boathouse.variant.columns.nodes import ID_WIDTH, KIND, LARGE, OBJECT, OFFSET_WIDTH, SIZE
from boathouse.variant.primitives import BINARY, KINDS, MAX_DEPTH, STRING, Kind, budget

_FEW = 8  # dictionaries that are read only once, however large: each batch of rows may use them all


class Faulty(Exception):
    """Some rows are malformed: `rows` are their positions among those asked for. Never raised to a caller outside the
    package."""

    def __init__(self, rows: npt.NDArray[Any]) -> None:
        super().__init__(f"{len(rows)} rows")
        self.rows = np.unique(rows)


@dataclass(frozen=True, eq=False)
class Names:
    """The field names of several dictionaries: `raw` are their distinct bytes, sorted; `rank[base[d] + id]` is the
    index of one.

    `broken` marks those that are not UTF-8; None if all are.
    """

    raw: pa.Array
    rank: npt.NDArray[np.int32]
    base: Ints
    sizes: Ints
    broken: Mask | None

    @staticmethod
    def of_all(column: Column) -> Names | None:
        """The names of all dictionaries of a column; None where that would not pay, or one is malformed."""
        meta = column.meta
        if not len(meta) or meta.wrong.any():
            return None
        if len(meta) > _FEW and int(meta.sizes.sum()) > column.rows // 4 + 10_000:
            return None
        return Names.of(column, np.arange(len(meta)))

    @staticmethod
    def of(column: Column, codes: npt.NDArray[Any]) -> Names:
        """The names of the dictionaries `codes`, which must be well-formed."""
        start, end, sizes = column.meta.spans(codes)
        coded = join(column.meta.data, start, end).dictionary_encode()
        order = pc.sort_indices(coded.dictionary).to_numpy()
        rank = np.empty(len(order), np.int32)
        rank[order] = np.arange(len(order))
        raw = coded.dictionary.take(pa.array(order))
        return Names(raw, rank[coded.indices.to_numpy()], np.cumsum(sizes) - sizes, sizes, _not_utf8(raw))


def _not_utf8(raw: pa.Array) -> Mask | None:
    try:
        as_text(raw).validate(full=True)
        return None
    except pa.ArrowInvalid:
        return np.array([not is_utf8(name) for name in raw.to_pylist()])


@dataclass(frozen=True, eq=False)
class Tree:
    """All values of some rows, level by level; the arrays have one entry per value.

    Value k occupies `pos[k]` to `end[k]` of the column's data, in row `row[k]` of the requested rows, whose numbers in
    the whole column are `numbers`. Its children are the `count[k]` values from `first[k]` on (both 0 for a scalar).
    `name[k]` is the rank of its field name in `names`, -1 in arrays and at the top. Level d is `levels[d]` to
    `levels[d + 1]`; the first level is the rows themselves.
    """

    data: Bytes
    numbers: Ints
    row: Ints
    pos: Ints
    end: Ints
    kind: npt.NDArray[np.uint8]
    name: npt.NDArray[np.int32]
    count: Ints
    first: Ints
    levels: list[int]
    names: Names

    def __len__(self) -> int:
        return len(self.row)

    def require(self, ok: Mask, which: Ints) -> None:
        """Raises Faulty with the rows of the values `which` that are not `ok`."""
        _all(ok, self.row[which])

    @cached_property
    def kinds(self) -> dict[int, Ints]:
        """The positions of the values of each kind (primitive id, OBJECT or ARRAY), ascending."""
        order = np.argsort(self.kind, kind="stable")
        ends = np.cumsum(np.bincount(self.kind, minlength=1)).tolist()
        return {kind: order[start:end] for kind, (start, end) in enumerate(pairwise([0, *ends])) if end > start}

    def scalars(self) -> Iterator[tuple[Kind, Ints]]:
        """The positions of the scalars of each primitive type that occurs."""
        return ((KINDS[kind], which) for kind, which in self.kinds.items() if kind < OBJECT)

    def bodies(self, which: Ints) -> tuple[Ints, Ints]:
        """Where the bytes of strings or binaries start and end."""
        pos = self.pos[which]
        return pos + np.where(self.data[pos] & 3, 1, 5), self.end[which]


@dataclass(eq=False)
class _Level:
    row: Ints
    pos: Ints
    end: Ints
    kind: npt.NDArray[np.uint8]
    name: npt.NDArray[np.int32]
    count: Ints


@dataclass(eq=False)
class _Boxes:
    """The containers of a level: `at` their positions in it; the rest as in `decode.Container`."""

    at: Ints
    count: Ints
    ids: Ints
    id_width: npt.NDArray[Any]
    offsets: Ints
    offset_width: npt.NDArray[Any]
    values: Ints
    end: Ints
    first: Ints  # the first child among all of the next level


def expand(column: Column, rows: Ints, names: Names | None = None) -> Tree:
    """The tree of `rows`, none of them null; `names` are those of all the column's dictionaries, if known.

    Raises Faulty.
    """
    return _Expansion(column, rows, names).run()


class _Expansion:
    def __init__(self, column: Column, rows: Ints, names: Names | None) -> None:
        self.column, self.data, self.rows = column, column.data, rows
        codes = column.meta.codes[rows]
        wrong = codes < 0
        if len(column.meta):
            wrong |= column.meta.wrong[codes] > 0
        if wrong.any():
            raise Faulty(np.flatnonzero(wrong))
        self.dictionary: npt.NDArray[Any] = codes
        if names is None:
            used, self.dictionary = np.unique(codes, return_inverse=True)
            names = Names.of(column, used)
        self.names = names
        self.levels: list[tuple[_Level, _Boxes | None]] = []
        self.spent: Ints | None = None  # bytes visited in each row, once shared children have been found
        self.allowed = np.zeros(0, np.int64)

    def run(self) -> Tree:
        row = np.arange(len(self.rows))
        pos, bound = self.column.start[self.rows], self.column.end[self.rows]
        name = np.full(len(row), -1, np.int32)
        owner: Ints | None = None
        boxes: _Boxes | None = None
        while len(row):
            level, inner = self.measure(row, pos, bound, name)
            if boxes is not None and owner is not None:
                self.check_layout(boxes, owner, level)
            self.levels.append((level, inner))
            self.count(level, inner)
            if inner is None:
                return self.finish()
            if len(self.levels) > MAX_DEPTH:
                raise Faulty(row[inner.at])
            boxes = inner
            row, pos, bound, name, owner = self.children(level, inner)
        if boxes is not None and owner is not None:
            _all(boxes.values == boxes.end, self.levels[-1][0].row[boxes.at])
        return self.finish()

    def number(self, pos: Ints, width: npt.NDArray[Any]) -> Ints:
        """Unsigned integers of 1 to 4 bytes, mostly of one and two."""
        most = int(width.max()) if len(width) else 1
        if most == 1:
            return self.data[pos].astype(np.int64)
        if most > 2 or int(pos.max()) + 1 >= len(self.data):
            return unsigned(self.data, pos, width)
        high = self.data[pos + 1].astype(np.int64) << 8
        high *= width == 2
        high += self.data[pos]
        return high

    def measure(self, row: Ints, pos: Ints, bound: Ints, name: npt.NDArray[np.int32]) -> tuple[_Level, _Boxes | None]:
        """Kinds and ends of the values at `pos`, and the layout of the containers among them."""
        _all(pos < bound, row)
        header = self.data[pos]
        kind, size = KIND.take(header), SIZE.take(header)
        level = _Level(row, pos, pos + size, kind, name, np.zeros(len(row), np.int64))
        open = np.flatnonzero(size == 0)
        boxes = None
        if len(open):
            kinds = kind[open]
            nested = open[kinds >= OBJECT]
            if len(nested) != len(open):
                self.measure_long(level, bound, open[kinds < OBJECT])
            if len(nested):
                boxes = self.measure_boxes(level, bound, nested, header[nested])
        _all(level.end <= bound, row)
        return level, boxes

    def measure_long(self, level: _Level, bound: Ints, which: Ints) -> None:
        kind = level.kind[which]
        pos = level.pos[which] + 1
        _all(((kind == STRING) | (kind == BINARY)) & (pos + 4 <= bound[which]), level.row[which])
        level.end[which] = pos + 4 + unsigned(self.data, pos, 4)

    def measure_boxes(self, level: _Level, bound: Ints, at: Ints, header: npt.NDArray[np.uint8]) -> _Boxes:
        row, pos, limit = level.row[at], level.pos[at], bound[at]
        id_width, width = ID_WIDTH.take(header), OFFSET_WIDTH.take(header)
        count_width = 1 + 3 * LARGE.take(header)
        ids = pos + 1 + count_width
        _all(ids <= limit, row)
        count = self.number(pos + 1, count_width)
        offsets = ids + count * id_width
        last = offsets + count * width
        values = last + width
        _all(values <= limit, row)
        end = values + self.number(last, width)
        level.end[at] = end
        level.count[at] = count
        return _Boxes(at, count, ids, id_width, offsets, width, values, end, np.cumsum(count) - count)

    def children(self, level: _Level, boxes: _Boxes) -> tuple[Ints, Ints, Ints, npt.NDArray[np.int32], Ints]:
        """Row, position, bound and name of all children, and their containers (positions in `boxes`)."""
        count = boxes.count
        owner = np.repeat(np.arange(len(count)), count)
        slot = np.arange(len(owner)) - boxes.first[owner]
        row = level.row[boxes.at][owner]
        width = boxes.offset_width[owner]
        pos = boxes.values[owner] + self.number(boxes.offsets[owner] + slot * width, width)
        bound = boxes.end[owner]
        if boxes.id_width.all():
            name = self.name(boxes, owner, slot, row)
        else:
            name = np.full(len(owner), -1, np.int32)
            named = np.flatnonzero(boxes.id_width[owner])
            name[named] = self.name(boxes, owner[named], slot[named], row[named])
        return row, pos, bound, name, owner

    def name(self, boxes: _Boxes, owner: Ints, slot: Ints, row: Ints) -> npt.NDArray[np.int32]:
        """The names of the children of objects: within the dictionary, UTF-8, each once in an object."""
        width = boxes.id_width[owner]
        id = self.number(boxes.ids[owner] + slot * width, width)
        names, dictionary = self.names, self.dictionary[row]
        _all(id < names.sizes[dictionary], row)
        rank = names.rank[names.base[dictionary] + id]
        if names.broken is not None:
            _all(~names.broken[rank], row)
        falls = (rank[1:] <= rank[:-1]) & (owner[1:] == owner[:-1])
        if falls.any():
            self.check_unique(owner, rank, row, owner[1:][falls])
        return rank

    def check_unique(self, owner: Ints, rank: npt.NDArray[np.int32], row: Ints, unsorted: Ints) -> None:
        some = np.zeros(int(owner[-1]) + 1, np.bool_)
        some[unsorted] = True
        which = np.flatnonzero(some[owner])
        keys = owner[which] * len(self.names.raw) + rank[which]
        order = np.argsort(keys, kind="stable")
        ordered = keys[order]
        _all(ordered[1:] != ordered[:-1], row[which][order][1:])

    def check_layout(self, boxes: _Boxes, owner: Ints, level: _Level) -> None:
        """Values of a container do not overlap (unless they start at the same byte), and the last ends where the
        container ends."""
        count = boxes.count
        full = count > 0
        last = boxes.values.copy()
        last[full] = np.maximum.reduceat(level.end, boxes.first[full])
        _all(last == boxes.end, self.levels[-1][0].row[boxes.at])
        pos, end = level.pos, level.end
        bad = (pos[1:] < end[:-1]) & (owner[1:] == owner[:-1])
        if not bad.any():
            return
        # Some are not in the order of their positions. Starts and ends sorted separately still show whether two spans
        # overlap: they do if and only if a start is before the end that precedes it.
        shift = ((np.arange(len(count)) << 32) - boxes.values)[owner]
        starts, ends = pos + shift, end + shift
        in_order, ended = np.sort(starts), np.sort(ends)
        bad = (in_order[1:] < ended[:-1]) & (in_order[1:] >> 32 == in_order[:-1] >> 32)
        if bad.any():
            self.check_shared(starts, ends, level.row)

    def check_shared(self, start: Ints, end: Ints, row: Ints) -> None:
        """Children that start at the same byte are shared: legal, and from here on visits are counted."""
        order = np.lexsort((end, start))
        start, end = start[order], end[order]
        bad = (start[1:] < end[:-1]) & (start[1:] != start[:-1]) & (start[1:] >> 32 == start[:-1] >> 32)
        _all(~bad, row[order][1:])
        if self.spent is None:
            self.spent = np.zeros(len(self.rows), np.int64)
            top = self.levels[0][0]
            self.allowed = budget(top.end - top.pos)
            for past, inner in self.levels:
                self.count(past, inner)

    def count(self, level: _Level, boxes: _Boxes | None) -> None:
        """Adds the cost of visiting a level: the bytes of its scalars, and of its containers up to their values."""
        if self.spent is None:
            return
        cost = level.end - level.pos
        if boxes is not None:
            cost[boxes.at] = boxes.values - level.pos[boxes.at]
        self.spent += np.bincount(level.row, cost, len(self.rows)).astype(np.int64)
        over = self.spent > self.allowed
        if boxes is not None:
            # The children to come count at least one byte each: refused before an array of them is allocated.
            more = np.bincount(level.row[boxes.at], boxes.count, len(self.rows))
            over |= self.spent + more > self.allowed
        if over.any():
            raise Faulty(np.flatnonzero(over))

    def finish(self) -> Tree:
        levels = [level for level, _ in self.levels]
        edges = [0]
        first = np.zeros(sum(len(level.row) for level in levels), np.int64)
        for level, boxes in self.levels:
            if boxes is not None:
                first[edges[-1] + boxes.at] = boxes.first + edges[-1] + len(level.row)
            edges.append(edges[-1] + len(level.row))
        return Tree(
            self.data,
            self.rows + self.column.first_row,
            _joined([level.row for level in levels]),
            _joined([level.pos for level in levels]),
            _joined([level.end for level in levels]),
            _joined([level.kind for level in levels]),
            _joined([level.name for level in levels]),
            _joined([level.count for level in levels]),
            first,
            edges,
            self.names,
        )


def _joined(parts: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _all(ok: Mask, row: Ints) -> None:
    """Raises Faulty with the rows that are not `ok`."""
    if not ok.all():
        raise Faulty(row[~ok])
