"""Indices: made of the rows of the newest version, made again, dropped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from boathouse.errors import InvalidArgumentError
from boathouse.ops.write import Planned, Start, WritePlan
from boathouse.registry import tasks
from boathouse.table.change import Operation
from boathouse.table.edits import DropIndex, SetIndex
from boathouse.table.features import Indices, WantedIndex, required


@dataclass(frozen=True, slots=True)
class IndexCreated:
    """Makes an index of a column; its values are read, and sorted in memory here. No row changes.

    Raises UnsupportedFeatureError for other formats, ColumnNotFoundError, UnsupportedTypeError, InvalidArgumentError.
    """

    column: str
    kind: str
    name: str | None
    replace: bool
    operation: ClassVar[Operation] = "create-index"

    def plan(self, start: Start) -> WritePlan:
        indices = required(start.snapshot, Indices, "an index")
        wanted = indices.wanted(self.column, self.kind, self.name, self.replace)
        return _made(start, indices, (wanted,))


@dataclass(frozen=True, slots=True)
class IndicesRenewed:
    """Makes the indices again that do not cover every unit, of the kinds that are made here."""

    operation: ClassVar[Operation] = "create-index"

    def plan(self, start: Start) -> WritePlan:
        indices = required(start.snapshot, Indices, "an index")
        stale = tuple(
            indices.wanted(row["columns"][0], row["kind"], row["name"], True)
            for row in indices.recorded().to_pylist()
            if row["uncovered"]
            and row["kind"] in indices.kinds
            and len(row["columns"]) == 1
            and row["columns"][0] in start.snapshot.schema.names
        )
        return _made(start, indices, stale)


@dataclass(frozen=True, slots=True)
class IndexDropped:
    """Raises InvalidArgumentError if there is no index of this name, UnsupportedFeatureError for other formats."""

    name: str
    operation: ClassVar[Operation] = "drop-index"

    def plan(self, start: Start) -> WritePlan:
        names = required(start.snapshot, Indices, "an index").recorded().column("name").to_pylist()
        if self.name not in names or self.name.startswith("__"):
            known = ", ".join(n for n in names if not n.startswith("__")) or "none"
            raise InvalidArgumentError(
                f"there is no index `{self.name}`",
                where=str(start.snapshot.context.location),
                advice=f"the table has {known}",
            )
        change = start.change("drop-index", (DropIndex(self.name),), parameters={"name": self.name}, data_change=False)
        return WritePlan((), lambda _: Planned(change))


def _made(start: Start, indices: Indices, wanted: tuple[WantedIndex, ...]) -> WritePlan:
    if start.options.dry_run or not wanted:
        return WritePlan((), lambda _: Planned(None))
    edits = [_of_rows(start, indices, index) for index in wanted]
    parameters = {"name": ", ".join(i.name for i in wanted), "column": ", ".join(i.column for i in wanted)}
    change = start.change("create-index", edits, parameters=parameters, data_change=False)
    return WritePlan((), lambda _: Planned(change))


def _of_rows(start: Start, indices: Indices, wanted: WantedIndex) -> SetIndex:
    plan = start.snapshot.plan([wanted.column], None, wanted.hidden, start.engine.map)
    work = list(plan.tasks())
    rows = start.engine.map(tasks(plan.read.format).read, work, [task.cost for task in work])
    return indices.set(wanted, rows)
