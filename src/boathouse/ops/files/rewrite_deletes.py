"""Rewriting row deletes: those by keys, and those that files share, become vectors or positions of each file; no data
file is written, and no row changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from boathouse.ops.rows.removal import LostRows
from boathouse.ops.tasks.deleted_rows import DeletedRowsTask, find_deleted
from boathouse.ops.write import Planned, Start, TaskWork, WritePlan
from boathouse.table.change import Operation, ReadSet
from boathouse.table.edits import Edit, ReplaceDeletes
from boathouse.table.features import RewritableDeletes, required
from boathouse.table.metadata_columns import DELETED, POSITION, UNIT


@dataclass(frozen=True, slots=True)
class RewriteDeletes:
    """In one commit; nothing is committed if there is nothing to rewrite.

    Deletes that are committed after the plan stay; if they are of a rewritten unit, it is planned again. Raises
    UnsupportedFeatureError for a format, or a version of one, without such deletes.
    """

    operation: ClassVar[Operation] = "replace"

    def plan(self, start: Start) -> WritePlan:
        snapshot = start.snapshot
        feature = required(snapshot, RewritableDeletes, "rewriting row deletes")
        plan = snapshot.plan([], None, (UNIT, POSITION, DELETED), start.engine.map)
        found = feature.rewritable(plan)
        context = start.context()
        if not found.files:
            return WritePlan((), lambda outcomes: Planned(None), dry=Planned(None))
        tasks = [DeletedRowsTask(task, context) for task in plan.narrowed(found.units, plan.read).tasks()]
        work = TaskWork(find_deleted, tasks, [t.scan.cost for t in tasks], context)

        # What was deleted before is found again, so that it does not count.
        i = found.units.schema.get_field_index("deleted")
        nothing = pa.repeat(pa.scalar(0, pa.int64()), found.units.num_rows)
        units = found.units.set_column(i, found.units.schema.field(i), nothing)

        def lost(outcomes: Sequence[pa.Table]) -> LostRows:
            return LostRows.of(units, outcomes[0], found.way, snapshot.context)

        def finish(outcomes: Sequence[pa.Table]) -> Planned:
            edits: tuple[Edit, ...] = (ReplaceDeletes(found.units), *lost(outcomes).edits(outcomes))
            reads = ReadSet(units=frozenset(found.units.column("path").to_pylist()))
            change = start.change("replace", edits, reads, {"rewrite": "deletes"}, data_change=False)
            return Planned(change)

        return WritePlan((work, lambda done: lost(done).files(snapshot, context)), finish, dry=Planned(None))
