"""Rewrites the variants of a column for other dictionaries: same types and values, canonical form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from boathouse.bits.unaligned import Ints
from boathouse.errors import MalformedVariant
from boathouse.variant.columns.assemble import arrays, objects
from boathouse.variant.columns.byte_columns import Ragged, interleave, splits_of
from boathouse.variant.columns.byte_slices import join
from boathouse.variant.columns.nodes import ARRAY, OBJECT, Children, Nodes
from boathouse.variant.primitives import MAX_DEPTH


@dataclass(frozen=True, eq=False)
class _Level:
    """All values at one depth: scalars, objects and arrays (positions in `nodes`), and the children of both.

    `counts` are the children of each node; of objects' children `name` is the rank of their name, else -1.
    """

    nodes: Nodes
    kinds: Ints
    counts: Ints
    name: Ints


class Rewriter:
    """Reads the values of `nodes` whole, level by level. Raises MalformedVariant, UnsupportedFeatureError.

    `names` are all names that their objects use, sorted by their UTF-8 bytes.
    """

    def __init__(self, nodes: Nodes) -> None:
        self._rows = len(nodes)
        self._levels: list[_Level] = []
        found: dict[bytes, int] = {}
        tables: dict[int, Ints] = {}
        while len(nodes):
            if len(self._levels) > MAX_DEPTH:
                raise MalformedVariant(f"more than {MAX_DEPTH:,} nested objects and arrays", row=int(nodes.row[0]))
            kinds = nodes.kinds().astype(np.int64)
            nested = np.flatnonzero(kinds >= OBJECT)
            below = nodes.take(nested).children()
            counts = np.zeros(len(nodes), np.int64)
            counts[nested] = np.bincount(below.owner, minlength=len(nested))
            self._levels.append(_Level(nodes, kinds, counts, _interned(below, found, tables)))
            nodes = below.nodes
        self.names = sorted(found)
        rank = np.empty(len(found), np.int64)
        rank[[found[name] for name in self.names]] = np.arange(len(found))
        self._levels = [
            _Level(
                one.nodes, one.kinds, one.counts, np.where(one.name < 0, -1, rank[one.name]) if len(rank) else one.name
            )
            for one in self._levels
        ]

    @cached_property
    def uses(self) -> tuple[Ints, Ints]:
        """Rows, and the ranks of names that they use (with repetition)."""
        rows, names = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for level in self._levels:
            named = level.name >= 0
            rows.append(np.repeat(level.nodes.row, level.counts)[named])
            names.append(level.name[named])
        return np.concatenate(rows), np.concatenate(names)

    def write(self, ids: Callable[[Ints, Ints], Ints]) -> Ragged:
        """The values of the nodes; `ids(rows, ranks)` gives the ids of names in the dictionaries of rows."""
        below = Ragged(np.zeros(1, np.int64), np.empty(0, np.uint8))
        for level in reversed(self._levels):
            below = _written(level, below, ids)
        return below


def _interned(below: Children, found: dict[bytes, int], tables: dict[int, Ints]) -> Ints:
    """The ids that `found` gives for the names of children (-1 in arrays)."""
    meta = below.nodes.column.meta
    named = np.flatnonzero(below.id >= 0)
    codes = meta.codes[below.nodes.row[named]]
    used = np.unique(codes).tolist()
    for code in used:
        if code not in tables:
            names = [name.encode() for name in meta.names(code)]
            tables[code] = np.array([found.setdefault(name, len(found)) for name in names], np.int64)
    out = np.full(len(below.id), -1, np.int64)
    if len(used) == 1:
        out[named] = tables[used[0]][below.id[named]]
    elif used:
        first = splits_of(np.array([len(tables[code]) for code in used]))[:-1]
        together = np.concatenate([tables[code] for code in used])
        out[named] = together[first[np.searchsorted(used, codes)] + below.id[named]]
    return out


def _written(level: _Level, below: Ragged, ids: Callable[[Ints, Ints], Ints]) -> Ragged:
    nodes = level.nodes
    scalar = np.flatnonzero(level.kinds < OBJECT)
    some = nodes.take(scalar)
    scalars = Ragged.from_arrow(join(nodes.data, some.pos, some.pos + some.sizes()))
    built, places = [scalars], [scalar]
    owner = np.repeat(np.arange(len(nodes)), level.counts)
    for kind in (OBJECT, ARRAY):
        which = np.flatnonzero(level.kinds == kind)
        if not len(which):
            continue
        splits = splits_of(level.counts[which])
        mine = np.flatnonzero(level.kinds[owner] == kind)
        if kind == OBJECT:
            mine = _by_name(level, mine, owner)
            names = level.name[mine]
            children = below if len(mine) == below.rows and (np.diff(mine) == 1).all() else below.take(mine)
            built.append(objects(splits, ids(nodes.row[owner[mine]], names), children).join())
        else:
            children = below if len(mine) == below.rows else below.take(mine)
            built.append(arrays(splits, children).join())
        places.append(which)
    return built[0] if len(built) == 1 else interleave(built, places, len(nodes))


def _by_name(level: _Level, mine: Ints, owner: Ints) -> Ints:
    """Children of objects in the order of their names. Raises MalformedVariant for a name twice in an object."""
    keys = owner[mine] * (int(level.name.max(initial=0)) + 1) + level.name[mine]
    if not (np.diff(keys) > 0).all():
        order = np.argsort(keys, kind="stable")
        mine, keys = mine[order], keys[order]
        twice = np.flatnonzero(np.diff(keys) == 0)
        if len(twice):
            at = owner[mine[twice[0]]]
            nodes = level.nodes
            row = int(nodes.row[at])
            offset = int(nodes.pos[at] - nodes.column.start[row])
            raise MalformedVariant("an object has a field twice", row=nodes.faults.first_row + row, offset=offset)
    return mine
