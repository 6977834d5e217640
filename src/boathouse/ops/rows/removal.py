"""What units lose: from OUTCOMES to the edits of a change, for every operation that deletes or changes rows; and the
removal of the rows that match a predicate, whole units by their metadata where statistics prove it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.bits.roaring import deserialize64, serialize64
from boathouse.errors import UnsupportedFeatureError
from boathouse.expr.tree import Expr
from boathouse.ops.outcomes import change_files, data_files, deletions
from boathouse.ops.tasks.sink import matched_twice
from boathouse.ops.tasks.unit_rows import UnitTask, mark_rows, write_units
from boathouse.ops.write import Start, TaskWork
from boathouse.table.change import ReadSet
from boathouse.table.edits import AddChangeFiles, AddFiles, Edit, RemoveFiles, SetDeletes
from boathouse.table.metadata_columns import POSITION, UNIT
from boathouse.table.snapshot import Snapshot
from boathouse.table.tasks import WriteContext


@dataclass(frozen=True, slots=True)
class LostRows:
    """Planned FILES rows of units that lose rows, and of each the positions, as a portable 64-bit roaring bitmap, and
    their number (None: it goes). With `rewrites` the other rows are written again, so that all of the units go."""

    units: pa.Table
    vectors: tuple[bytes | None, ...]
    counts: tuple[int | None, ...]
    rewrites: bool

    @staticmethod
    def of(units: pa.Table, outcomes: pa.Table, rewrites: bool, where: object = None) -> LostRows:
        """From OUTCOMES of work over planned units. Raises ConstraintViolationError if a row is lost twice."""
        found: dict[int, tuple[bytes | None, int | None]] = {}
        for row in deletions(outcomes).to_pylist():
            unit, taken = row["unit"], (row["vector"], row["rows"])
            found[unit] = taken if unit not in found else _both(found[unit], taken, where)
        touched = units.filter(pc.is_in(units.column("unit"), pa.array(list(found), pa.int64())))
        lost = [found[u] for u in touched.column("unit").to_pylist()]
        return LostRows(touched, tuple(v for v, _ in lost), tuple(n for _, n in lost), rewrites)

    @property
    def paths(self) -> frozenset[str]:
        return frozenset(self.units.column("path").to_pylist())

    @property
    def _whole(self) -> pa.Array:
        """Which of the units go: also those without any row left, where it is known how many they had."""
        rows, before = self.units.column("rows").to_pylist(), self.units.column("deleted").to_pylist()
        counts = zip(rows, before, self.counts, strict=True)
        gone = [self.rewrites or k is None or (n is not None and b is not None and n - b == k) for n, b, k in counts]
        return pa.array(gone, pa.bool_())

    def edits(self, outcomes: Sequence[pa.Table], certain: pa.Table | None = None) -> tuple[Edit, ...]:
        """The edits of a change with these OUTCOMES; units that are `certain` to go were not read."""
        whole = self._whole
        edits: list[Edit] = []
        removed = [t for t in (certain, self.units.filter(whole)) if t is not None and t.num_rows]
        if removed:
            edits.append(RemoveFiles(pa.concat_tables(removed)))
        kept = tuple(v for v, gone in zip(self.vectors, whole.to_pylist(), strict=True) if v is not None and not gone)
        if kept:
            edits.append(SetDeletes(self.units.filter(pc.invert(whole)), kept))
        edits += [AddFiles(files) for o in outcomes if (files := data_files(o)).num_rows]
        edits += [AddChangeFiles(files) for o in outcomes if (files := change_files(o)).num_rows]
        return tuple(edits)


def _both(
    one: tuple[bytes | None, int | None], other: tuple[bytes | None, int | None], where: object
) -> tuple[bytes | None, int | None]:
    """What two workers took of one unit."""
    if one[0] is None or other[0] is None:
        return None, None
    both = deserialize64(one[0]) | deserialize64(other[0])
    if len(both) < (one[1] or 0) + (other[1] or 0):
        raise matched_twice(where)
    return serialize64(both), len(both)


@dataclass(frozen=True, slots=True)
class Removal:
    """The planned removal: units that are `certain` to match entirely are not read, `rest` are those that `work`
    reads."""

    where: Expr
    certain: pa.Table
    rest: pa.Table
    rewrites: bool
    work: TaskWork

    def edits(self, removing: pa.Table, others: Sequence[pa.Table] = ()) -> tuple[tuple[Edit, ...], ReadSet]:
        """The edits, and what was read, from OUTCOMES of `work`, and of others of the same change."""
        lost = LostRows.of(self.rest, removing, self.rewrites)
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
    rewrites = bool(pc.any(pc.invert(certain)).as_py()) and snapshot.row_deletes(operation) == "rewrite"
    if rewrites:
        check_names(snapshot)
    if context.changes is not None and rewrites:
        certain = pc.and_(certain, False)  # where there are change files, they name every deleted row
    else:
        context = replace(context, changes=None)  # removed units and vectors say which rows are deleted
    rest = plan.narrowed(plan.units.filter(pc.invert(certain)), replace(plan.read, where=None))
    tasks = [UnitTask(task, context, where) for task in rest.tasks()]
    work = TaskWork(write_units if rewrites else mark_rows, tasks, [t.scan.cost for t in tasks], context)
    return Removal(where, plan.units.filter(certain), rest.units, rewrites, work)


def removed_files(edits: Sequence[Edit]) -> int:
    """How many units the edits remove."""
    return sum(e.units.num_rows for e in edits if isinstance(e, RemoveFiles))


def check_names(snapshot: Snapshot) -> None:
    """Raises UnsupportedFeatureError for a table whose columns have the names by which the places of rows are read."""
    for name in (UNIT, POSITION):
        if name in snapshot.schema.names:
            raise UnsupportedFeatureError(
                f"a column `{name}`: rows of such a table cannot be changed",
                where=snapshot.context.location.uri,
                advice="rename the column",
            )
