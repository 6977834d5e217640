"""Removes the rows that match a predicate: whole units by their metadata where statistics prove it, the others by
reading them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from boathouse import registry
from boathouse.compute.prune import Pruner
from boathouse.expr.tree import Expr, columns
from boathouse.ops.handle import Handle
from boathouse.ops.outcomes import data_files, deletions, settle
from boathouse.ops.tasks.delete import DeleteTask, delete_rows
from boathouse.table.change import AddFiles, Edit, ReadSet, RemoveUnits, SetDeletes
from boathouse.table.engine import Engine
from boathouse.table.format import Snapshot
from boathouse.table.plan import ScanPlan
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

    def edits(self, more: pa.Table | None = None) -> tuple[Edit, ...]:
        """The edits of the change; `more` are OUTCOMES of new rows in the same commit."""
        added = data_files(self.outcomes)
        if more is not None:
            added = pa.concat_tables([added, data_files(more)])
        edits: list[Edit] = []
        if self.removed.num_rows:
            edits.append(RemoveUnits(self.removed))
        if self.changed.num_rows:
            edits.append(SetDeletes(self.changed, self.vectors))
        if added.num_rows:
            edits.append(AddFiles(added))
        return tuple(edits)


def take_out(
    handle: Handle, snapshot: Snapshot, engine: Engine, where: Expr, context: WriteContext, operation: str
) -> TakenOut:
    """Plans and runs the removal of the rows for which `where` (bound to the snapshot's schema) is true.

    Raises UnsupportedFeatureError if `operation` must rewrite units and the table forbids that.
    """
    plan = handle.format.plan(snapshot, handle.stores, None, where, (), engine.map)
    certain = _certain(snapshot, where, engine)
    whole = pc.is_in(plan.units.column("unit"), certain)
    by_metadata = plan.units.filter(whole)
    rest = replace(plan, units=plan.units.filter(pc.invert(whole)), read=replace(plan.read, where=None))
    if rest.units.num_rows and handle.format.capabilities.deletes == "copy-on-write":
        handle.format.rewritable(snapshot, operation)
    outcomes = _run(handle, engine, rest, where, context)
    gone = deletions(outcomes)
    full = gone.filter(pc.is_null(gone.column("vector"))).column("unit")
    part = gone.filter(pc.is_valid(gone.column("vector"))).sort_by("unit")
    rewritten = rest.units.filter(pc.is_in(rest.units.column("unit"), full.combine_chunks()))
    changed = rest.units.filter(pc.is_in(rest.units.column("unit"), part.column("unit").combine_chunks()))
    changed = changed.sort_by("unit")
    removed = pa.concat_tables([by_metadata, rewritten])
    touched = [*removed.column("path").to_pylist(), *changed.column("path").to_pylist()]
    return TakenOut(
        removed=removed,
        changed=changed,
        vectors=tuple(part.column("vector").to_pylist()),
        outcomes=outcomes,
        reads=ReadSet(predicates=(where,), units=frozenset(touched)),
        rows_by_metadata=_live_rows(by_metadata),
    )


def _certain(snapshot: Snapshot, where: Expr, engine: Engine) -> pa.Array:
    """Ids of the units all of whose rows certainly satisfy the predicate."""
    paths = columns(where)
    pruner = Pruner(where, paths)
    found: list[pa.Array] = [pa.array([], pa.int64())]
    for batch in snapshot.files(paths, where, engine.map):
        found.append(batch.column("unit").filter(pruner.must_match(batch.column("stats"), batch.column("rows"))))
    return pa.concat_arrays(found)


def _run(handle: Handle, engine: Engine, plan: ScanPlan, where: Expr, context: WriteContext) -> pa.Table:
    rewrite = handle.format.capabilities.deletes == "copy-on-write"
    work = [DeleteTask(task, where, context, rewrite) for task in plan.tasks()]
    schema = registry.tasks(context.format).outcomes_schema(context)
    return settle(engine.map(delete_rows, work, [t.scan.cost for t in work]), schema, context)


def _live_rows(units: pa.Table) -> int:
    rows = pc.subtract(units.column("rows"), pc.fill_null(units.column("deleted"), 0))
    return pc.sum(rows).as_py() or 0
