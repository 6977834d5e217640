"""How the pairs of a shredded column become bytes: first the size of every value, then each byte written once.

A plan covers `count` instances of one pair. `size` is the bytes of each (0: the value is missing), `mask` says which
are present. `write` writes each at its position. Sizes are summed bottom-up and positions handed top-down, so that a
nested value is never copied from level to level.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from boathouse.bits.unaligned import Bytes, Ints, Mask, copy, put
from boathouse.variant.columns.assemble import widths
from boathouse.variant.columns.byte_columns import Ragged, splits_of, uniform
from boathouse.variant.primitives import ARRAY, OBJECT, width_of
from boathouse.variant.shredding.masks import Sizes, pick, places, spread


class Part(Protocol):
    """The instances `at` (None: all) of a pair that are stored in one way."""

    @property
    def at(self) -> Ints | None: ...
    @property
    def size(self) -> Sizes:
        """Bytes of each of the instances `at`."""

    def write(self, out: Bytes, pos: Ints) -> None:
        """Writes the instances `at`; `pos` has a position for each instance of the pair."""


@dataclass(frozen=True, eq=False)
class Slices:
    """Encoded values copied as they are."""

    at: Ints | None
    data: Bytes
    start: Ints
    size: Ints

    def write(self, out: Bytes, pos: Ints) -> None:
        copy(out, pick(pos, self.at), self.data, self.start, self.size)


@dataclass(frozen=True, eq=False)
class Nulls:
    """Variant null."""

    at: Ints | None
    size: int = 1

    def write(self, out: Bytes, pos: Ints) -> None:
        out[pick(pos, self.at)] = 0


@dataclass(frozen=True, eq=False)
class Plan:
    count: int
    size: Sizes
    mask: Mask | None
    parts: tuple[Part, ...]

    def write(self, out: Bytes, pos: Ints) -> None:
        for part in self.parts:
            part.write(out, pos)


def together(count: int, parts: list[Part]) -> Plan:
    """The plan of instances that are stored in several ways, each instance in at most one."""
    parts = [part for part in parts if part.at is None or len(part.at)]
    if not count:
        return Plan(0, 0, None, ())
    for part in parts:
        if part.at is None:
            size = part.size
            return Plan(count, size if isinstance(size, int) else uniform(size), None, (part,))
    total = np.zeros(count, np.int64)
    for part in parts:
        total += spread(part.size, part.at, count)
    mask = total > 0
    return Plan(count, uniform(total), None if mask.all() else mask, tuple(parts))


@dataclass(frozen=True, eq=False)
class Entries:
    """Fields of those objects that mix shredded and residual ones, in the order of their names within each object.

    Entry k is field `id[k]` of object `owner[k]` (instances of the part), `size[k]` bytes at `offset[k]` among its
    values. `fields[f]` are the entries of shredded field f; `residual` the others, whose bytes are at `start`.
    """

    owners: Ints
    counts: Ints
    totals: Ints
    max_ids: Ints
    owner: Ints
    slot: Ints
    id: Ints
    offset: Ints
    fields: tuple[Ints, ...]
    residual: Ints
    data: Bytes
    start: Ints
    length: Ints


@dataclass(frozen=True, eq=False)
class ObjectField:
    """A shredded field: its id for each object, and the plan of its values."""

    id: Sizes
    plan: Plan


class Objects:
    """Objects of shredded fields (in the order of their names' bytes), some with residual fields among them."""

    def __init__(self, at: Ints | None, count: int, fields: list[ObjectField], mixed: Entries | None) -> None:
        self.at, self.count, self._fields, self._mixed = at, count, fields, mixed
        self._simple = None if mixed is None else np.ones(count, np.bool_)
        if mixed is not None and self._simple is not None:
            self._simple[mixed.owners] = False
        self._counts: Sizes = self._sum([1 if f.plan.mask is None else f.plan.mask for f in fields], "counts")
        self._total = self._sum([f.plan.size for f in fields], "totals")
        self._id_width = self._id_widths()
        self._width: Sizes = _widths(self._total)
        self._large: Sizes = _large(self._counts)
        lead = self._large * 3 + 2
        self._body: Sizes = lead + self._counts * self._id_width + (self._counts + 1) * self._width
        self.size: Sizes = self._body + self._total

    def _sum(self, parts: list[Any], mixed: str) -> Sizes:
        total: Sizes = sum(p for p in parts if isinstance(p, int))
        for part in parts:
            if not isinstance(part, int):
                total = total + part
        if self._mixed is None:
            return total if isinstance(total, int) else uniform(total)
        out = np.full(self.count, total, np.int64) if isinstance(total, int) else total.astype(np.int64)
        out[self._mixed.owners] = getattr(self._mixed, mixed)
        return uniform(out)

    def _id_widths(self) -> Sizes:
        largest = max((f.id if isinstance(f.id, int) else int(f.id.max(initial=0)) for f in self._fields), default=0)
        if self._mixed is not None:
            largest = max(largest, int(self._mixed.max_ids.max(initial=0)))
        if largest < 256:
            return 1
        found = np.zeros(self.count, np.int64)
        for f in self._fields:
            np.maximum(found, f.id if f.plan.mask is None else np.where(f.plan.mask, f.id, 0), out=found)
        if self._mixed is not None:
            found[self._mixed.owners] = self._mixed.max_ids
        return uniform(widths(found))

    def write(self, out: Bytes, pos: Ints) -> None:
        pos = pick(pos, self.at)
        header = OBJECT | (self._width - 1) << 2 | (self._id_width - 1) << 4 | self._large << 6
        out[pos] = header if isinstance(header, int) else header.astype(np.uint8)
        put(out, pos + 1, self._counts, self._large * 3 + 1)
        ids = pos + 2 + self._large * 3
        offsets = ids + self._counts * self._id_width
        values = pos + self._body
        self._write_heads(out, ids, offsets)
        put(out, offsets + self._counts * self._width, self._total, self._width)
        self._write_values(out, values)

    def _write_heads(self, out: Bytes, ids: Ints, offsets: Ints) -> None:
        slot: Sizes = 0
        rel: Sizes = 0
        for f in self._fields:
            mask = f.plan.mask
            if self._simple is not None:
                mask = self._simple if mask is None else mask & self._simple
            at = places(mask)
            if at is None or len(at):
                width, here = pick(self._id_width, at), pick(slot, at)
                put(out, pick(ids, at) + here * width, pick(f.id, at), width)
                width = pick(self._width, at)
                put(out, pick(offsets, at) + here * width, pick(rel, at), width)
            slot = slot + (1 if f.plan.mask is None else f.plan.mask)
            rel = rel + f.plan.size
        if self._mixed is not None:
            m = self._mixed
            width = pick(self._id_width, m.owner)
            put(out, ids[m.owner] + m.slot * width, m.id, width)
            width = pick(self._width, m.owner)
            put(out, offsets[m.owner] + m.slot * width, m.offset, width)

    def _write_values(self, out: Bytes, values: Ints) -> None:
        rel: Sizes = 0
        m = self._mixed
        for i, f in enumerate(self._fields):
            pos = values + rel
            if m is not None:
                entries = m.fields[i]
                pos[m.owner[entries]] = values[m.owner[entries]] + m.offset[entries]
            f.plan.write(out, pos)
            rel = rel + f.plan.size
        if m is not None:
            to = values[m.owner[m.residual]] + m.offset[m.residual]
            copy(out, to, m.data, m.start, m.length)


class Arrays:
    """Arrays: instance i has the elements [splits[i], splits[i + 1])."""

    def __init__(self, at: Ints | None, splits: Ints, elements: Plan) -> None:
        self.at, self._splits, self._elements = at, splits, elements
        self._counts: Ints = np.diff(splits)
        sizes = elements.size
        self._ends: Ints = np.arange(elements.count + 1) * sizes if isinstance(sizes, int) else splits_of(sizes)
        self._total: Ints = np.diff(self._ends[splits])
        self._width: Sizes = _widths(self._total)
        self._large = _large(self._counts)
        self._body = self._large * 3 + 2 + (self._counts + 1) * self._width
        self.size: Sizes = uniform(self._body + self._total)

    def write(self, out: Bytes, pos: Ints) -> None:
        pos = pick(pos, self.at)
        header = ARRAY | (self._width - 1) << 2 | self._large << 4
        out[pos] = header if isinstance(header, int) else header.astype(np.uint8)
        put(out, pos + 1, self._counts, self._large * 3 + 1)
        offsets = pos + 2 + self._large * 3
        put(out, offsets + self._counts * self._width, self._total, self._width)
        owner = np.repeat(np.arange(len(pos)), self._counts)
        slot = np.arange(len(owner)) - self._splits[owner]
        rel = self._ends[:-1] - self._ends[self._splits[:-1]][owner]
        width = pick(self._width, owner)
        put(out, offsets[owner] + slot * width, rel, width)
        self._elements.write(out, (pos + self._body)[owner] + rel)


def _large(counts: Sizes) -> Sizes:
    if isinstance(counts, int):
        return int(counts > 255)
    return uniform((counts > 255).astype(np.int64))


def _widths(totals: Sizes) -> Sizes:
    return width_of(totals) if isinstance(totals, int) else uniform(widths(totals))


class Buffer:
    """The bytes of many plans one after another, in one buffer that grows."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._offsets = np.zeros(rows + 1, np.int64)
        self._done = 0
        self._data = np.empty(0, np.uint8)

    def add(self, plan: Plan, count: int) -> None:
        """The `count` instances of a plan as the next rows."""
        start = int(self._offsets[self._done])
        offsets = self._offsets[self._done : self._done + count + 1]
        offsets[1:] = plan.size
        np.cumsum(offsets, out=offsets)
        self._done += count
        end = int(offsets[-1])
        if end > len(self._data):
            # As much as all rows need if the rest are like these, and some more.
            room = end * self._rows // max(self._done, 1) + (end >> 3 if self._done < self._rows else 0)
            grown = np.empty(max(end, room), np.uint8)
            grown[:start] = self._data[:start]
            self._data = grown
        plan.write(self._data, offsets[:-1])

    def finish(self) -> Ragged:
        return Ragged(self._offsets, self._data[: int(self._offsets[self._done])])


def joined(plan: Plan, rows: int) -> Ragged:
    """The bytes of all instances one after another."""
    buffer = Buffer(rows)
    buffer.add(plan, rows)
    return buffer.finish()
