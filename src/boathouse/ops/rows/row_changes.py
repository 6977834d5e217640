"""Row programs: a relation of rows with their action becomes deleted positions, new files, and the copies that a table
without deletion vectors needs.

The relation has the table's columns, ACTION, UNIT_MARK and POSITION_MARK (see `ops.tasks.sink`). Every matched row is
found once; where the table cannot mark rows as deleted, the other rows of their units are then copied by position.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from boathouse.errors import UnsupportedFeatureError
from boathouse.expr.tree import TRUE, Column, Expr, Literal, Path
from boathouse.ops.outcomes import deletions
from boathouse.ops.rows.removal import LostRows, removed_files
from boathouse.ops.tasks.sink import ACTION, BEFORE, DELETE, POSITION_MARK, UNIT_MARK
from boathouse.ops.tasks.unit_rows import UnitTask, write_units
from boathouse.ops.write import Planned, RowWork, Source, Start, TaskWork, spread_of
from boathouse.table.change import Operation, ReadSet
from boathouse.table.edits import Edit
from boathouse.table.engine import Rel, Value
from boathouse.table.metadata_columns import POSITION, UNIT
from boathouse.table.plan import ScanPlan
from boathouse.table.snapshot import Snapshot
from boathouse.table.tasks import ReadSpec, WriteContext
from boathouse.types import STRING, Schema


@dataclass(frozen=True, slots=True)
class RowChanges:
    """The work of a row program over the units of `plan`."""

    start: Start
    plan: ScanPlan
    rel: Rel
    context: WriteContext
    operation: Operation

    def rows(self) -> RowWork:
        """The rows through the sink."""
        source = Source(self.context.rows, self.rel)
        return RowWork(source, self.context, spread_of(self.context, moved=False), fixed=False)

    def copies(self, outcomes: Sequence[pa.Table]) -> TaskWork:
        """The remaining rows of the units that lost some, or files of deletes; none if the table has vectors."""
        tasks: list[UnitTask] = []
        lost = self._lost(outcomes)
        if lost.way == "positions":
            return lost.files(self.start.snapshot, self.context)
        if lost.way == "rewrite":
            # They were counted, and are in change files, with the rows of the program.
            context = replace(self.context, changes=None)
            scan = self.plan.narrowed(lost.units, replace(self._whole_rows(), where=None, hidden=()))
            at = 0
            for task in scan.tasks():
                tasks.append(UnitTask(task, context, gone=lost.vectors[at : at + task.units.num_rows]))
                at += task.units.num_rows
        return TaskWork(write_units, tasks, [t.scan.cost for t in tasks], self.context)

    def _whole_rows(self) -> ReadSpec:
        """How all columns are read, where the plan of the program reads only those that it needs."""
        snapshot = self.start.snapshot
        if self.plan.read.output == snapshot.schema.names:
            return self.plan.read
        return snapshot.plan(hidden=self.context.hidden).read

    def planned(
        self,
        outcomes: Sequence[pa.Table],
        bound: Expr | None,
        parameters: Mapping[str, str],
        further: Sequence[Edit] = (),
    ) -> Planned:
        """The change, with the edits of the schema that its rows need, and of marks; nothing to commit if there are no
        edits.

        `bound` is what every changed row satisfies, None if only the engine knows. Raises ConstraintViolationError if
        a row was changed twice.
        """
        lost = self._lost(outcomes)
        edits = (*further, *lost.edits(outcomes))
        if not edits:
            return Planned(None)
        reads = ReadSet(predicates=(TRUE if bound is None else bound,), units=lost.paths)
        return Planned(self.start.change(self.operation, edits, reads, parameters), removed_files(edits))

    def _lost(self, outcomes: Sequence[pa.Table]) -> LostRows:
        snapshot, gone = self.start.snapshot, outcomes[0]
        way = snapshot.row_deletes(self.operation) if deletions(gone).num_rows else "vectors"
        return LostRows.of(self.plan.units, gone, way, snapshot.context)


def target_rows(
    start: Start,
    bound: Expr | None,
    operation: Operation,
    rewrites: bool = True,
    columns: Sequence[str] | None = None,
    carried: Sequence[str] = (),
) -> ScanPlan:
    """The scan of the rows that may change, with their places and these metadata columns; of all columns, or of these.

    Raises UnsupportedFeatureError if rows of units go (`rewrites`), and the table's settings demand a way that is not
    offered.
    """
    snapshot = start.snapshot
    _check_names(snapshot)
    plan = snapshot.plan(columns, bound, (UNIT, POSITION, *carried), start.engine.map)
    if rewrites and plan.units.num_rows:
        snapshot.row_deletes(operation)
    return plan


def marked(
    schema: Schema, action: str, context: WriteContext, values: Mapping[str, Expr] = {}
) -> list[tuple[str, Value]]:
    """The columns of a program in which the same happens to every row: the table's, and the marks of the sink."""
    columns = [(f.name, values[f.name] if f.name in values else Column((f.name,))) for f in schema]
    carried = context.hidden if action != DELETE else ()
    return [*columns, (ACTION, Literal(action, type=STRING)), *places(carried), *before(schema, context)]


def places(carried: Sequence[str], row: Path = ()) -> list[tuple[str, Value]]:
    """The columns of a program that say where a row is, to which `row` leads, and what it carries."""
    named = {UNIT_MARK: UNIT, POSITION_MARK: POSITION} | {name: name for name in carried}
    return [(name, Column((*row, column))) for name, column in named.items()]


def before(schema: Schema, context: WriteContext, row: Path = ()) -> list[tuple[str, Value]]:
    """The columns of a program with the rows as they were, to which `row` leads, if the table wants change files."""
    return [(f"{BEFORE}{f.name}", Column((*row, f.name))) for f in schema] if context.changes is not None else []


def _check_names(snapshot: Snapshot) -> None:
    """Raises UnsupportedFeatureError for a table whose columns have the names by which the places of rows are read."""
    for name in (UNIT, POSITION):
        if name in snapshot.schema.names:
            raise UnsupportedFeatureError(
                f"a column `{name}`: rows of such a table cannot be changed",
                where=snapshot.context.location.uri,
                advice="rename the column",
            )
