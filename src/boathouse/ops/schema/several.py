"""Several edits of the columns in one commit: each as it would be after those before it, none without all others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from boathouse.errors import InvalidArgumentError
from boathouse.ops.write import Planned, Start, Write, WritePlan
from boathouse.table.change import Operation
from boathouse.table.edits import AddColumn, SchemaEdit


@dataclass(frozen=True, slots=True)
class SeveralEdits:
    """The edits of `steps`, operations that change the schema and no rows. Raises what they raise."""

    steps: tuple[Write, ...]
    operation: ClassVar[Operation] = "alter-columns"

    def plan(self, start: Start) -> WritePlan:
        if not self.steps:
            raise InvalidArgumentError("there is nothing to change", advice="add an edit before execute()")
        edits: list[SchemaEdit] = []
        then = start
        for step in self.steps:
            change = step.plan(then).finish(()).change
            found = () if change is None else change.schema_edits
            if found:
                edits += found
                then = replace(then, snapshot=then.snapshot.evolve(found))
        if not edits:
            return WritePlan((), lambda _: Planned(None))
        if all(isinstance(edit, AddColumn) for edit in edits):
            text = ", ".join(f"{'.'.join((*e.parent, e.name))} {e.type}" for e in edits if isinstance(e, AddColumn))
            change = start.change("add-columns", edits, parameters={"columns": text})
        else:
            change = start.change("alter-columns", edits)
        return WritePlan((), lambda _: Planned(change))
