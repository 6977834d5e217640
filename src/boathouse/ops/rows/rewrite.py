"""Removes rows that match a predicate: whole units by their metadata where statistics prove it, the others by
reading them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.expr.tree import Expr
from boathouse.ops.outcomes import change_files, data_files, deletions
from boathouse.ops.rows.row_changes import check_names
from boathouse.ops.tasks.delete import DeleteTask, delete_rows
from boathouse.ops.write import Start, TaskWork
from boathouse.table.change import ReadSet
from boathouse.table.edits import AddChangeFiles, AddFiles, Edit, RemoveFiles, SetDeletes
from boathouse.table.tasks import WriteContext


@dataclass(frozen=True, slots=True)
class TakenOut:
    """`removed` are FILES rows of removed units; `outcomes` are files with the remaining rows, and deletions."""

    removed: pa.Table
    changed: pa.Table
    vectors: tuple[bytes, ...]
    outcomes: pa.Table
    reads: ReadSet
    rows_by_metadata: int

    def edits(self) -> tuple[Edit, ...]:
        """The edits of the change."""
        edits: list[Edit] = []
        if self.removed.num_rows:
            edits.append(RemoveFiles(self.removed))
        if self.changed.num_rows:
            edits.append(SetDeletes(self.changed, self.vectors))
        added, changes = data_files(self.outcomes), change_files(self.outcomes)
        if added.num_rows:
            edits.append(AddFiles(added))
        if changes.num_rows:
            edits.append(AddChangeFiles(changes))
        return tuple(edits)


@dataclass(frozen=True, slots=True)
class Removal:
    """The planned removal: `by_metadata` are units all of whose rows match, `rest` are those that `work` reads."""

    where: Expr
    by_metadata: pa.Table
    rest: pa.Table
    work: TaskWork

    def taken(self, outcomes: pa.Table) -> TakenOut:
        """The result of the work."""
        gone = deletions(outcomes)
        full = gone.filter(pc.is_null(gone.column("vector"))).column("unit")
        part = gone.filter(pc.is_valid(gone.column("vector"))).sort_by("unit")
        removed = pa.concat_tables([self.by_metadata, _of(self.rest, full)])
        changed = _of(self.rest, part.column("unit")).sort_by("unit")
        touched = [*removed.column("path").to_pylist(), *changed.column("path").to_pylist()]
        return TakenOut(
            removed=removed,
            changed=changed,
            vectors=tuple(part.column("vector").to_pylist()),
            outcomes=outcomes,
            reads=ReadSet(predicates=(self.where,), units=frozenset(touched)),
            rows_by_metadata=_live_rows(self.by_metadata),
        )


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
    partial = pc.any(pc.invert(certain)).as_py()
    rewrite = bool(partial) and snapshot.row_deletes(operation) == "rewrite"
    if rewrite:
        check_names(snapshot)
    if context.changes is not None and rewrite:
        certain = pc.and_(certain, False)  # where there are change files, they name every deleted row
    else:
        context = replace(context, changes=None)  # removed units and vectors say which rows are deleted
    rest = plan.narrowed(plan.units.filter(pc.invert(certain)), replace(plan.read, where=None))
    tasks = [DeleteTask(task, where, context, rewrite) for task in rest.tasks()]
    work = TaskWork(delete_rows, tasks, [t.scan.cost for t in tasks], context)
    return Removal(where, plan.units.filter(certain), rest.units, work)


def _of(units: pa.Table, ids: pa.ChunkedArray) -> pa.Table:
    return units.filter(pc.is_in(units.column("unit"), ids.combine_chunks()))


def _live_rows(units: pa.Table) -> int:
    rows = pc.subtract(units.column("rows"), pc.fill_null(units.column("deleted"), 0))
    return pc.sum(rows).as_py() or 0
