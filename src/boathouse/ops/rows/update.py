"""Update: rows that match a predicate get new values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from boathouse.expr.tree import TRUE
from boathouse.expr.values import nothing
from boathouse.ops.rows.assign import assigned, needing, stored
from boathouse.ops.rows.computed import generated, recomputed
from boathouse.ops.rows.identity import check_kept
from boathouse.ops.rows.predicate import bound_or_none
from boathouse.ops.rows.row_changes import RowChanges, marked, target_rows
from boathouse.ops.tasks.sink import UPDATE
from boathouse.ops.write import Planned, Start, WritePlan
from boathouse.table.change import Operation


@dataclass(frozen=True, slots=True)
class Update:
    """Sets columns to the values of expressions (Spark SQL text) where `where` is true (None: in all rows).

    Raises ExpressionError, ColumnNotFoundError, EvaluationError if an expression fails on a row, SchemaMismatchError
    for values that do not fit.
    """

    values: Mapping[str, str]
    where: str | None = None
    operation: ClassVar[Operation] = "update"

    def plan(self, start: Start) -> WritePlan:
        snapshot, engine = start.snapshot, start.engine
        bound = TRUE if self.where is None else bound_or_none(start, self.where)
        context = start.context(changes=True)
        plan = target_rows(start, bound, "update", carried=context.hidden)
        where = self.where if bound is None else None
        left = {name: stored(nothing(), snapshot.schema.field(name)) for name in generated(context)}
        given = assigned(self.values, snapshot.schema)
        check_kept(context, given)
        values = left | needing(given, context)
        rel = engine.project(engine.scan(plan), marked(snapshot.schema, UPDATE, context, values), where)
        rel = recomputed(engine, rel, snapshot.schema, context)
        changes = RowChanges(start, plan, rel, context, "update")
        parameters = {} if self.where is None else {"predicate": self.where}

        def finish(outcomes: Sequence[pa.Table]) -> Planned:
            return changes.planned(outcomes, bound, parameters)

        return WritePlan((changes.rows(), changes.copies), finish)
