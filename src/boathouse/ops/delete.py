"""Delete: removes the rows for which a predicate is true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from boathouse.expr.resolve import bind_predicate
from boathouse.expr.tree import TRUE, Expr
from boathouse.ops.rewrite import removal
from boathouse.ops.write import Planned, Start, WritePlan
from boathouse.table.change import Operation


@dataclass(frozen=True, slots=True)
class Delete:
    """Deletes the rows for which `where` is true (by default all rows); nothing is committed if there are none.

    Raises ExpressionError, and EvaluationError if the predicate fails on a row.
    """

    where: Expr = TRUE
    operation: ClassVar[Operation] = "delete"

    def plan(self, start: Start) -> WritePlan:
        bound = bind_predicate(self.where, start.snapshot.schema, start.zone)
        rows = removal(start, bound, start.context(), "delete")

        def finish(outcomes: Sequence[pa.Table]) -> Planned:
            taken = rows.taken(outcomes[0])
            done = Planned(None, taken.removed.num_rows, taken.rows_by_metadata)
            edits = taken.edits()
            if not edits:
                return done
            parameters = {"predicate": str(self.where)}
            return Planned(
                start.change("delete", edits, taken.reads, parameters), done.files_removed, done.rows_removed
            )

        return WritePlan((rows.work,), finish)
