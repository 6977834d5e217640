"""Constraints: conditions that every row of a table satisfies, added and dropped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from boathouse.errors import ConstraintViolationError, InvalidArgumentError
from boathouse.expr.identifiers import quote
from boathouse.expr.parse import parse
from boathouse.expr.resolve import bind_predicate
from boathouse.expr.tree import Literal, columns
from boathouse.ops.write import Planned, Start, WritePlan
from boathouse.table.change import Operation, ReadSet
from boathouse.table.edits import SetConstraint
from boathouse.table.tasks import RowCondition
from boathouse.types import BinaryType
from boathouse.types.data_types import children


@dataclass(frozen=True, slots=True)
class ConstraintAdded:
    """Every row must satisfy `condition` (Spark SQL text) from now on: it must be true, not null.

    Raises ExpressionError, InvalidArgumentError for a name that is taken, and ConstraintViolationError if a row of the
    table does not satisfy it.
    """

    name: str
    condition: str
    operation: ClassVar[Operation] = "add-constraint"

    def plan(self, start: Start) -> WritePlan:
        taken = _conditions(start)
        if any(c.name.lower() == self.name.lower() for c in taken):
            raise InvalidArgumentError(
                f"the table has a constraint `{self.name}`",
                where=str(start.snapshot.context),
                advice="drop it first, or choose another name",
            )
        bound = bind_predicate(parse(self.condition), start.snapshot.schema, start.zone)
        engine = start.engine
        shown = self._shown(start, {path[0] for path in columns(bound)})
        wrong = engine.project(
            engine.scan(start.snapshot.plan(None, None, (), engine.map)),
            [("row", shown)],
            f"not coalesce(({self.condition}), false)",
        )
        counted = engine.summary(wrong, [("rows", "count_all", "1"), ("first", "min", "row")]).to_pylist()[0]
        if counted["rows"]:
            raise ConstraintViolationError(
                f"{counted['rows']:,} row{'s do' if counted['rows'] > 1 else ' does'} not satisfy {self.condition}, "
                f"among them {counted['first']}",
                where=str(start.snapshot.context),
                advice="correct or delete these rows first",
            )
        edits = (SetConstraint(self.name, self.condition),)
        parameters = {"name": self.name, "expr": self.condition}
        change = start.change("add-constraint", edits, ReadSet(whole=True), parameters)
        return WritePlan((), lambda _: Planned(change))

    def _shown(self, start: Start, names: set[str]) -> str:
        """SQL text that spells the columns of a row by which it is recognised."""
        plain = [f for f in start.snapshot.schema if not children(f.type) and not isinstance(f.type, BinaryType)]
        fields = [f for f in plain if f.name in names]
        if not fields:
            return "'a row'"
        parts = [
            f"concat({Literal.of(f.name + '=')}, coalesce(cast({quote(f.name)} as string), 'null'))" for f in fields
        ]
        return f"concat({', , '.join(parts)})"


@dataclass(frozen=True, slots=True)
class ConstraintDropped:
    """Rows need not satisfy the constraint any more. Raises InvalidArgumentError if there is none of this name."""

    name: str
    operation: ClassVar[Operation] = "drop-constraint"

    def plan(self, start: Start) -> WritePlan:
        names = [c.name for c in _conditions(start)]
        found = [name for name in names if name.lower() == self.name.lower()]
        if not found:
            raise InvalidArgumentError(
                f"the table has no constraint `{self.name}`",
                where=str(start.snapshot.context),
                advice=f"its constraints are {', '.join(names)}" if names else "there is none to drop",
            )
        change = start.change("drop-constraint", (SetConstraint(found[0], None),), parameters={"name": self.name})

        def finish(outcomes: Sequence[pa.Table]) -> Planned:
            return Planned(change)

        return WritePlan((), finish)


def _conditions(start: Start) -> tuple[RowCondition, ...]:
    """The table's constraints as they are stored: one that cannot be checked here can still be dropped."""
    return start.snapshot.write_context(start.write_id).conditions
