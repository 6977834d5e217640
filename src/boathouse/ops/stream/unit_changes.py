"""The units whose rows differ between two versions of a table, found by comparing their files and row deletes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from boathouse.bits.roaring import EMPTY, Bitmap, deserialize64, serialize64
from boathouse.table.plan import ScanPlan
from boathouse.table.tasks import ReadColumn
from boathouse.table.units import EQUALITY, VECTOR

Deletes = list[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Rows:
    """Some rows of a version, which `version` describes: FILES rows, and the DELETES that leave the others out."""

    units: pa.Table
    deletes: pa.Table
    version: str
    keys: tuple[ReadColumn, ...] = ()
    """How the version reads the keys of equality deletes."""

    @property
    def any(self) -> bool:
        return bool(self.units.num_rows)

    @staticmethod
    def of(plan: ScanPlan) -> Rows:
        """All rows of a plan of every column."""
        ids = {id for keys in plan.deletes.column("keys").to_pylist() for id in keys or ()}
        keys = tuple(c for c in plan.read.columns if c.field_id in ids)
        return Rows(plan.units, plan.deletes, plan.read.version, keys)


def compare(before: ScanPlan | None, after: ScanPlan) -> tuple[Rows, Rows]:
    """What the first version has and the second has not, and the other way round.

    A unit that both have is compared by the positions that are deleted in it. If it has other deletes in one of them,
    it is on both sides, with all its live rows.
    """
    old, new = None if before is None else _Units(before), _Units(after)
    lost: list[tuple[int, Deletes]] = []
    gained: list[tuple[int, Deletes]] = []
    for key, i in new.places.items():
        j = None if old is None else old.places.get(key)
        if j is None or old is None:
            gained.append((i, new.deletes(i)))
        else:
            _compare_deletes(old, j, new, i, lost, gained)
    if before is None or old is None:
        return new.rows([]), new.rows(gained)
    lost += [(j, old.deletes(j)) for key, j in old.places.items() if key not in new.places]
    return old.rows(sorted(lost, key=lambda found: found[0])), new.rows(gained)


class _Units:
    """The units of a plan by the files that they are stored in."""

    def __init__(self, plan: ScanPlan) -> None:
        self._plan = plan
        self._deletes = {d["delete"]: d for d in plan.deletes.to_pylist()}
        self._numbers = plan.units.column("deletes").to_pylist()
        parts = [tuple(p["path"] for p in found or ()) for found in plan.units.column("parts").to_pylist()]
        self.places = {key: i for i, key in enumerate(zip(plan.units.column("path").to_pylist(), parts, strict=True))}

    def deletes(self, i: int) -> Deletes:
        return [self._deletes[n] for n in self._numbers[i] or ()]

    def positions(self, i: int) -> Bitmap:
        """The deleted positions of a unit."""
        found = EMPTY
        for d in self.deletes(i):
            if d["kind"] != EQUALITY:
                found = found | deserialize64(d["inline"], where=d["path"])
        return found

    def equality(self, i: int) -> Deletes:
        return [d for d in self.deletes(i) if d["kind"] == EQUALITY]

    def count(self, i: int) -> int | None:
        """The number of rows in the unit's files, if it is recorded."""
        found: int | None = self._plan.units.column("rows")[i].as_py()
        return found

    def rows(self, chosen: Sequence[tuple[int, Deletes]]) -> Rows:
        """These units, each with these deletes."""
        units = self._plan.units.take(pa.array([i for i, _ in chosen], pa.int64()))
        rows: list[Mapping[str, Any]] = []
        numbers: list[list[int]] = []
        for _, deletes in chosen:
            numbers.append(list(range(len(rows), len(rows) + len(deletes))))
            rows += [{**d, "delete": len(rows) + n} for n, d in enumerate(deletes)]
        at = units.schema.get_field_index("deletes")
        lists = pa.array([n or None for n in numbers], pa.list_(pa.int32()))
        units = units.set_column(at, units.schema.field(at), lists)
        ids = {id for d in rows for id in d.get("keys") or ()}
        keys = tuple(c for c in self._plan.read.columns if c.field_id in ids)
        deletes = pa.Table.from_pylist(rows, schema=self._plan.deletes.schema)
        return Rows(units, deletes, self._plan.read.version, keys)


def _compare_deletes(
    old: _Units, j: int, new: _Units, i: int, lost: list[tuple[int, Deletes]], gained: list[tuple[int, Deletes]]
) -> None:
    before, after = old.positions(j), new.positions(i)
    same = _signature(old.equality(j)) == _signature(new.equality(i))
    if same and before == after:
        return
    count = new.count(i)
    if not same or count is None:
        lost.append((j, old.deletes(j)))
        gained.append((i, new.deletes(i)))
        return
    if len(after - before):
        lost.append((j, [_all_but(after - before, count), *old.equality(j)]))
    if len(before - after):
        gained.append((i, [_all_but(before - after, count), *new.equality(i)]))


def _signature(deletes: Deletes) -> set[object]:
    return {(d["path"], d["inline"], tuple(d["keys"] or ())) for d in deletes}


def _all_but(positions: Bitmap, count: int) -> Mapping[str, Any]:
    """A vector that deletes every position of a unit but these."""
    others = Bitmap.of(np.flatnonzero(~positions.mask(0, count)))
    return {"kind": VECTOR, "inline": serialize64(others), "rows": len(others), "path": None}
