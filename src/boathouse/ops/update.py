"""Update: rows that match a predicate get new values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from boathouse.expr.identifiers import quote
from boathouse.expr.tree import TRUE
from boathouse.ops.assign import assigned
from boathouse.ops.predicate import bound_or_none
from boathouse.ops.row_changes import RowChanges, files_removed
from boathouse.ops.tasks.sink import ACTION, UPDATE
from boathouse.ops.write import Planned, Start, WritePlan
from boathouse.table.change import Operation, ReadSet
from boathouse.table.metadata_columns import POSITION, UNIT


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
        plan = snapshot.plan(None, bound, (UNIT, POSITION), engine.map)
        if snapshot.capabilities.deletes == "copy-on-write" and plan.units.num_rows:
            snapshot.check_rewritable("update")
        values = assigned(self.values, snapshot.schema)
        columns = [(f.name, values.get(f.name, quote(f.name))) for f in snapshot.schema]
        marks = [(ACTION, f"'{UPDATE}'"), (UNIT, UNIT), (POSITION, POSITION)]
        rel = engine.project(engine.scan(plan), [*columns, *marks], self.where if bound is None else None)
        changes = RowChanges(start, plan, rel, start.context())

        def finish(outcomes: Sequence[pa.Table]) -> Planned:
            edits = changes.edits(outcomes)
            if not edits:
                return Planned(None)
            reads = ReadSet(predicates=(TRUE if bound is None else bound,), units=changes.paths(outcomes))
            parameters = {} if self.where is None else {"predicate": self.where}
            return Planned(start.change("update", edits, reads, parameters), files_removed(edits))

        return WritePlan((changes.rows(), changes.copies), finish)
