"""Delete: removes the rows for which a predicate is true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from boathouse.expr.tree import TRUE
from boathouse.ops.rows.predicate import bound_or_none
from boathouse.ops.rows.removal import removal, removed_files
from boathouse.ops.rows.row_changes import RowChanges, marked, target_rows
from boathouse.ops.tasks.sink import DELETE
from boathouse.ops.write import Planned, Start, WritePlan
from boathouse.table.change import Operation


@dataclass(frozen=True, slots=True)
class Delete:
    """Deletes the rows for which `where` (Spark SQL text) is true, None: all; nothing is committed if there are none.

    Raises ExpressionError, and EvaluationError if the predicate fails on a row.
    """

    where: str | None = None
    operation: ClassVar[Operation] = "delete"

    def plan(self, start: Start) -> WritePlan:
        bound = TRUE if self.where is None else bound_or_none(start, self.where)
        if bound is None:
            return self._by_rows(start)
        rows = removal(start, bound, start.context(changes=True), "delete")
        parameters = {"predicate": "true" if self.where is None else self.where}

        def finish(outcomes: Sequence[pa.Table]) -> Planned:
            edits, reads = rows.edits(outcomes[0], outcomes[1:])
            change = start.change("delete", edits, reads, parameters) if edits else None
            return Planned(change, removed_files(edits), rows.certain_rows)

        return WritePlan(rows.works(), finish)

    def _by_rows(self, start: Start) -> WritePlan:
        """With a predicate that only the engine evaluates: it sees every row."""
        snapshot, engine = start.snapshot, start.engine
        plan = target_rows(start, None, "delete")
        context = start.context(changes=True)
        rel = engine.project(engine.scan(plan), marked(snapshot.schema, DELETE, context), self.where)
        changes = RowChanges(start, plan, rel, context, "delete")

        def finish(outcomes: Sequence[pa.Table]) -> Planned:
            return changes.planned(outcomes, None, {"predicate": self.where or "true"})

        return WritePlan((changes.rows(), changes.copies), finish)
