"""What units lose: from OUTCOMES to the edits of a change, for every operation that deletes or changes rows; and the
removal of the rows that match a predicate, whole units by their metadata where statistics prove it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.bits.roaring import Bitmap, deserialize64, serialize64
from boathouse.expr.tree import Expr
from boathouse.ops.outcomes import change_files, data_files, delete_files, deletions
from boathouse.ops.tasks.position_deletes import PositionsTask, write_positions
from boathouse.ops.tasks.routing import partition_keys
from boathouse.ops.tasks.sink import matched_twice
from boathouse.ops.tasks.unit_rows import UnitTask, mark_rows, write_units
from boathouse.ops.write import LaterWork, Start, TaskWork, Work
from boathouse.table.change import ReadSet
from boathouse.table.edits import AddChangeFiles, AddDeletes, AddFiles, Edit, RemoveFiles, SetDeletes
from boathouse.table.features import RecordedPaths
from boathouse.table.plan import bundles, compact
from boathouse.table.snapshot import RowDeletes, Snapshot
from boathouse.table.tasks import WriteContext

_TASK_BYTES: Final = 8 << 20
"""Bytes of bitmaps whose files one task writes."""


@dataclass(frozen=True, slots=True)
class LostRows:
    """Planned FILES rows of units that lose rows, and of each the positions, as a portable 64-bit roaring bitmap, and
    their number (None: it goes). `way` is how the table deletes some rows of a unit: where the others are written
    again, all of the units go."""

    units: pa.Table
    vectors: tuple[bytes | None, ...]
    counts: tuple[int | None, ...]
    way: RowDeletes

    @staticmethod
    def of(units: pa.Table, outcomes: pa.Table, way: RowDeletes, where: object = None) -> LostRows:
        """From OUTCOMES of work over planned units. Raises ConstraintViolationError if a row is lost twice."""
        found: defaultdict[int, list[Mapping[str, Any]]] = defaultdict(list)
        for row in deletions(outcomes).to_pylist():
            found[row["unit"]].append(row)
        touched = units.filter(pc.is_in(units.column("unit"), pa.array(list(found), pa.int64())))
        lost = [_joined(found[u], where) for u in touched.column("unit").to_pylist()]
        return LostRows(touched, tuple(v for v, _ in lost), tuple(n for _, n in lost), way)

    @property
    def paths(self) -> frozenset[str]:
        return frozenset(self.units.column("path").to_pylist())

    @property
    def _whole(self) -> pa.Array:
        """Which of the units go: also those without any row left, where it is known how many they had."""
        rows, before = self.units.column("rows").to_pylist(), self.units.column("deleted").to_pylist()
        counts = zip(rows, before, self.counts, strict=True)
        every = self.way == "rewrite"
        gone = [every or k is None or (n is not None and b is not None and n - b == k) for n, b, k in counts]
        return pa.array(gone, pa.bool_())

    @property
    def _left(self) -> tuple[pa.Table, tuple[bytes, ...]]:
        """The units that stay without some rows, and the positions of these."""
        whole = self._whole
        kept = (v for v, gone in zip(self.vectors, whole.to_pylist(), strict=True) if v is not None and not gone)
        return self.units.filter(pc.invert(whole)), tuple(kept)

    def files(self, snapshot: Snapshot, context: WriteContext) -> TaskWork:
        """The files of deletes that such a table needs; none for another."""
        tasks: list[PositionsTask] = []
        if self.way == "positions":
            units, vectors = _beside(*self._left)
            recorded = snapshot.offers(RecordedPaths)
            names = units.column("path").to_pylist() if recorded is None else recorded.names(units)
            for start, end in bundles(map(len, vectors), _TASK_BYTES):
                some, specs = compact(units.slice(start, end - start)), snapshot.partitioning.specs
                tasks.append(PositionsTask(some, tuple(names[start:end]), vectors[start:end], specs, context))
        return TaskWork(write_positions, tasks, [t.cost for t in tasks], context)

    def edits(self, outcomes: Sequence[pa.Table], certain: pa.Table | None = None) -> tuple[Edit, ...]:
        """The edits of a change with these OUTCOMES; units that are `certain` to go were not read."""
        edits: list[Edit] = []
        removed = [t for t in (certain, self.units.filter(self._whole)) if t is not None and t.num_rows]
        if removed:
            edits.append(RemoveFiles(pa.concat_tables(removed)))
        units, vectors = self._left
        if units.num_rows and self.way == "positions":
            edits.append(AddDeletes(units, pa.concat_tables([delete_files(o) for o in outcomes])))
        elif units.num_rows:
            edits.append(SetDeletes(units, vectors))
        edits += [AddFiles(files) for o in outcomes if (files := data_files(o)).num_rows]
        edits += [AddChangeFiles(files) for o in outcomes if (files := change_files(o)).num_rows]
        return tuple(edits)


def _beside(units: pa.Table, vectors: Sequence[bytes]) -> tuple[pa.Table, tuple[bytes, ...]]:
    """The units of a partition beside each other."""
    groups: defaultdict[object, list[int]] = defaultdict(list)
    for i, key in enumerate(partition_keys(units)):
        groups[key].append(i)
    order = [i for group in groups.values() for i in group]
    return units.take(pa.array(order, pa.int64())), tuple(vectors[i] for i in order)


def _joined(taken: Sequence[Mapping[str, Any]], where: object) -> tuple[bytes | None, int | None]:
    """What several workers took of one unit."""
    vectors = [row["vector"] for row in taken]
    if len(taken) == 1 or None in vectors:
        return (None, None) if None in vectors else (vectors[0], taken[0]["rows"])
    positions = np.concatenate([deserialize64(v).positions() for v in vectors])
    bitmap = Bitmap.of(positions)
    if len(bitmap) < len(positions):
        raise matched_twice(where)
    return serialize64(bitmap), len(bitmap)


@dataclass(frozen=True, slots=True)
class Removal:
    """The planned removal: units that are `certain` to match entirely are not read, `rest` are those that `work`
    reads."""

    where: Expr
    certain: pa.Table
    rest: pa.Table
    way: RowDeletes
    work: TaskWork
    snapshot: Snapshot

    def works(self, before: int = 0) -> tuple[Work | LaterWork, ...]:
        """The work, after so much other, and that of files of deletes."""
        if self.way != "positions":
            return (self.work,)
        return self.work, lambda done: self._lost(done[before]).files(self.snapshot, self.work.context)

    def _lost(self, removing: pa.Table) -> LostRows:
        return LostRows.of(self.rest, removing, self.way)

    def edits(self, removing: pa.Table, others: Sequence[pa.Table] = ()) -> tuple[tuple[Edit, ...], ReadSet]:
        """The edits, and what was read, from OUTCOMES of `work`, and of others of the same change."""
        lost = self._lost(removing)
        touched = lost.paths | frozenset(self.certain.column("path").to_pylist())
        return lost.edits((removing, *others), self.certain), ReadSet(predicates=(self.where,), units=touched)

    @property
    def certain_rows(self) -> int:
        """The rows of the units that are not read."""
        rows = pc.subtract(self.certain.column("rows"), pc.fill_null(self.certain.column("deleted"), 0))
        return pc.sum(rows).as_py() or 0


def removal(start: Start, where: Expr, context: WriteContext, operation: str) -> Removal:
    """Plans the removal of the rows for which `where` (bound to the snapshot's schema) is true.

    Raises UnsupportedFeatureError if rows of units go, and the table's settings demand a way that is not offered.
    """
    snapshot = start.snapshot
    plan = snapshot.plan(None, where, context.hidden, start.engine.map, classify=True)
    certain = plan.certain
    assert certain is not None
    # The rows of units with deletes that are not counted are counted by reading them.
    certain = pc.and_(certain, pc.is_valid(plan.units.column("deleted")))
    way = snapshot.row_deletes(operation) if pc.any(pc.invert(certain)).as_py() else "vectors"
    rewrites = way == "rewrite"
    if context.changes is not None and rewrites:
        certain = pc.and_(certain, False)  # where there are change files, they name every deleted row
    else:
        context = replace(context, changes=None)  # removed units and vectors say which rows are deleted
    rest = plan.narrowed(plan.units.filter(pc.invert(certain)), replace(plan.read, where=None))
    tasks = [UnitTask(task, context, where) for task in rest.tasks()]
    work = TaskWork(write_units if rewrites else mark_rows, tasks, [t.scan.cost for t in tasks], context)
    return Removal(where, plan.units.filter(certain), rest.units, way, work, snapshot)


def removed_files(edits: Sequence[Edit]) -> int:
    """How many units the edits remove."""
    return sum(e.units.num_rows for e in edits if isinstance(e, RemoveFiles))
