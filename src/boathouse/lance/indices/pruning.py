"""Which rows of a version may satisfy a condition, by its indices.

Each conjunct on one column alone is answered by the indices on that column, for the fragments that they cover; in
others any row may satisfy it. What cannot be read of an index, or does not fit together, leaves it aside: rows are
never lost by it, and it is not needed to read the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from boathouse.errors import BoathouseError
from boathouse.expr.tree import Expr, all_of, conjuncts
from boathouse.expr.tree import columns as columns_of
from boathouse.lance.indices import lookup
from boathouse.lance.indices.row_ranges import NOTHING, Ranges, both, merged, of_positions
from boathouse.lance.indices.stored import BITMAP, BTREE, VERSIONS, ZONE_MAP, StoredIndex, usable
from boathouse.lance.manifests.features import has_stable_row_ids
from boathouse.lance.manifests.overlays import stale
from boathouse.lance.places import LancePlaces
from boathouse.lance.snapshot import LanceSnapshot
from boathouse.table.features.random_access import Numbers

_DAMAGED = (BoathouseError, pa.ArrowException, OSError, ValueError, OverflowError)


@dataclass(frozen=True, slots=True)
class Candidates:
    """The rows that may satisfy a condition, of each fragment of which that is known, and the indices that said so."""

    rows: dict[int, Ranges] = field(default_factory=dict)
    names: dict[str, None] = field(default_factory=dict)

    def narrow(self, index: StoredIndex, rows: Mapping[int, Ranges]) -> None:
        self.names[index.message.name] = None
        for fragment, ranges in rows.items():
            known = self.rows.get(fragment)
            self.rows[fragment] = ranges if known is None else both(known, ranges)


def candidates(snapshot: LanceSnapshot, where: Expr, rows: Mapping[int, int]) -> Candidates:
    """`rows` are the physical rows of each fragment."""
    found = Candidates()
    asked = _by_column(where)
    fragments = snapshot.manifest.fragments
    if not asked or len(rows) < len(fragments):  # two fragments have the same id
        return found
    try:
        indices = list(usable(snapshot))
    except _DAMAGED:
        return found
    for column, condition in asked.items():
        open_ = set(rows)
        for index in _best_first(indices, column):
            if open_.isdisjoint(index.fragments):
                continue
            answer = _answer(snapshot, index, condition, rows)
            if answer is not None:
                found.narrow(index, {id: ranges for id, ranges in answer.items() if id in open_})
                open_ -= answer.keys()
    return found


def _by_column(where: Expr) -> dict[str, Expr]:
    """The conjuncts on one top-level column alone, by its name."""
    found: dict[str, list[Expr]] = {}
    for part in conjuncts(where):
        used = set(columns_of(part))
        if len(used) == 1 and len(path := used.pop()) == 1:
            found.setdefault(path[0], []).append(part)
    return {name: all_of(parts) for name, parts in found.items()}


def _best_first(indices: Sequence[StoredIndex], column: str) -> Iterator[StoredIndex]:
    for kind in VERSIONS:
        yield from (i for i in indices if i.kind == kind and i.column == column)


def _answer(
    snapshot: LanceSnapshot, index: StoredIndex, condition: Expr, rows: Mapping[int, int]
) -> dict[int, Ranges] | None:
    """The rows of the covered fragments, and those that have other values than the index; None if it is left aside."""
    try:
        found = _told(snapshot, index, condition, rows)
        if found is None:
            return None
        for id, newer in stale(snapshot.manifest, index.message, snapshot.location.uri).items():
            if id in found:
                others = of_positions(newer.within(0, rows[id]).astype(np.int64))
                found[id] = merged(np.concatenate([found[id], others]))
        return found
    except _DAMAGED:
        return None


def _told(
    snapshot: LanceSnapshot, index: StoredIndex, condition: Expr, rows: Mapping[int, int]
) -> dict[int, Ranges] | None:
    """The rows that satisfy the condition by the values of the index."""
    addresses = index.of_addresses or not has_stable_row_ids(snapshot.manifest)
    if index.kind == BTREE:
        ids = lookup.btree(index, condition)
    elif index.kind == BITMAP:
        ids = lookup.bitmap(index, condition, addresses)
    elif index.kind == ZONE_MAP:
        return lookup.zones(index, condition, rows)
    else:
        return lookup.filters(index, condition, rows)
    return None if ids is None else _placed(snapshot, index, ids, addresses)


def _placed(snapshot: LanceSnapshot, index: StoredIndex, ids: Numbers, addresses: bool) -> dict[int, Ranges]:
    """The places of rows in the covered fragments; those that are gone, or were moved to others, have none there."""
    known = LancePlaces.of(snapshot)
    places = known.by_address(ids) if addresses else known.by_id(ids)
    found: dict[int, Ranges] = dict.fromkeys(index.fragments, NOTHING)
    order = np.argsort(places.unit, kind="stable")
    units, begins = np.unique(places.unit[order], return_index=True)
    for unit, positions in zip(units.tolist(), np.split(places.position[order], begins[1:])):
        fragment = snapshot.manifest.fragments[unit].id
        if fragment in found:
            found[fragment] = of_positions(positions)
    return found
