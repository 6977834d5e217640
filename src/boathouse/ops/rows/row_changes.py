"""Row programs: a relation of rows with their action becomes deleted positions, new files, and the copies that a table
without deletion vectors needs.

The relation has the table's columns, ACTION, `_unit` and `_pos` (see `ops.tasks.sink`). Every matched row is found
once; where the table cannot mark rows as deleted, the other rows of their units are then copied by position.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.bits.roaring import Bitmap, deserialize64, serialize64
from boathouse.errors import ConstraintViolationError, UnsupportedFeatureError
from boathouse.expr.tree import TRUE, Column, Expr, Literal, Path
from boathouse.ops.outcomes import change_files, data_files, deletions
from boathouse.ops.tasks.copy import CopyTask, copy_rows
from boathouse.ops.tasks.sink import ACTION, BEFORE, DELETE
from boathouse.ops.write import Planned, RowWork, Source, Start, TaskWork, spread_of
from boathouse.table.change import Operation, ReadSet
from boathouse.table.edits import AddChangeFiles, AddFiles, Edit, RemoveFiles, SetDeletes
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
        return RowWork(source, self.context, spread_of(self.context), fixed=False)

    def copies(self, outcomes: Sequence[pa.Table]) -> TaskWork:
        """The remaining rows of the units that lost some; none if the table marks deleted rows."""
        tasks: list[CopyTask] = []
        touched, vectors = self._touched(outcomes[0])
        if self._rewrites(touched):
            read = replace(self._whole_rows(), where=None, hidden=())
            scan = self.plan.narrowed(touched, read)
            at = 0
            for task in scan.tasks():
                tasks.append(CopyTask(task, vectors[at : at + task.units.num_rows], self.context))
                at += task.units.num_rows
        return TaskWork(copy_rows, tasks, [t.scan.cost for t in tasks], self.context)

    def _whole_rows(self) -> ReadSpec:
        """How all columns are read, where the plan of the program reads only those that it needs."""
        snapshot = self.start.snapshot
        if self.plan.read.output == snapshot.schema.names:
            return self.plan.read
        return snapshot.plan(hidden=self.context.hidden).read

    def edits(self, outcomes: Sequence[pa.Table]) -> tuple[Edit, ...]:
        """The edits of the change. Raises ConstraintViolationError if a row was changed twice."""
        touched, vectors = self._touched(outcomes[0])
        whole = self._whole(touched, vectors)
        edits: list[Edit] = []
        if (removed := touched.filter(whole)).num_rows:
            edits.append(RemoveFiles(removed))
        kept = [v for v, gone in zip(vectors, whole.to_pylist(), strict=True) if not gone]
        if kept:
            edits.append(SetDeletes(touched.filter(pc.invert(whole)), tuple(kept)))
        added = [files for o in outcomes if (files := data_files(o)).num_rows]
        edits += [AddFiles(files) for files in added]
        edits += [AddChangeFiles(files) for o in outcomes if (files := change_files(o)).num_rows]
        return tuple(edits)

    def planned(
        self,
        outcomes: Sequence[pa.Table],
        bound: Expr | None,
        parameters: Mapping[str, str],
        further: Sequence[Edit] = (),
    ) -> Planned:
        """The change, with the edits of the schema that its rows need, and of marks; nothing to commit if there are no
        edits.

        `bound` is what every changed row satisfies, None if only the engine knows.
        """
        edits = (*further, *self.edits(outcomes))
        if not edits:
            return Planned(None)
        reads = ReadSet(predicates=(TRUE if bound is None else bound,), units=self.paths(outcomes))
        removed = sum(e.units.num_rows for e in edits if isinstance(e, RemoveFiles))
        return Planned(self.start.change(self.operation, edits, reads, parameters), removed)

    def paths(self, outcomes: Sequence[pa.Table]) -> frozenset[str]:
        """The paths of the units that lost rows."""
        return frozenset(self._touched(outcomes[0])[0].column("path").to_pylist())

    def _touched(self, outcomes: pa.Table) -> tuple[pa.Table, tuple[bytes, ...]]:
        """The units that lost rows, in the plan's order, and the positions of each."""
        found: dict[int, Bitmap] = {}
        rows = deletions(outcomes)
        for unit, vector in zip(rows.column("unit").to_pylist(), rows.column("vector").to_pylist(), strict=True):
            bitmap = deserialize64(vector)
            if unit in found:
                both = found[unit] | bitmap
                if len(both) < len(found[unit]) + len(bitmap):
                    raise matched_twice(self.start.snapshot.context)
                bitmap = both
            found[unit] = bitmap
        ids = self.plan.units.column("unit")
        touched = self.plan.units.filter(pc.is_in(ids, pa.array(list(found), pa.int64())))
        return touched, tuple(serialize64(found[u]) for u in touched.column("unit").to_pylist())

    def _rewrites(self, touched: pa.Table) -> bool:
        return touched.num_rows > 0 and self.start.snapshot.row_deletes(self.operation) == "rewrite"

    def _whole(self, touched: pa.Table, vectors: Sequence[bytes]) -> pa.Array:
        """Whether each unit goes: all of it if the table is written by copies, else those without any row left."""
        if self._rewrites(touched):
            return pa.array([True] * touched.num_rows, pa.bool_())
        rows, before = touched.column("rows").to_pylist(), touched.column("deleted").to_pylist()
        gone = [len(deserialize64(v)) for v in vectors]
        counts = zip(rows, before, gone, strict=True)
        return pa.array([n is not None and b is not None and n - b == g for n, b, g in counts], pa.bool_())


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
    check_names(snapshot)
    plan = snapshot.plan(columns, bound, (UNIT, POSITION, *carried), start.engine.map)
    if rewrites and plan.units.num_rows:
        snapshot.row_deletes(operation)
    return plan


def check_names(snapshot: Snapshot) -> None:
    """Raises UnsupportedFeatureError for a table whose columns have the names by which the places of rows are read."""
    for name in (UNIT, POSITION):
        if name in snapshot.schema.names:
            raise UnsupportedFeatureError(
                f"a column `{name}`: rows of such a table cannot be changed",
                where=snapshot.context.location.uri,
                advice="rename the column",
            )


def marked(
    schema: Schema, action: str, context: WriteContext, values: Mapping[str, Expr] = {}
) -> list[tuple[str, Value]]:
    """The columns of a program in which the same happens to every row: the table's, and the marks of the sink."""
    columns = [(f.name, values[f.name] if f.name in values else Column((f.name,))) for f in schema]
    carried = context.hidden if action != DELETE else ()
    places = [(name, Column((name,))) for name in (UNIT, POSITION, *carried)]
    return [*columns, (ACTION, Literal(action, type=STRING)), *places, *before(schema, context)]


def before(schema: Schema, context: WriteContext, row: Path = ()) -> list[tuple[str, Value]]:
    """The columns of a program with the rows as they were, to which `row` leads, if the table wants change files."""
    return [(f"{BEFORE}{f.name}", Column((*row, f.name))) for f in schema] if context.changes is not None else []


def matched_twice(where: object) -> ConstraintViolationError:
    """The error for a row that two source rows change."""
    return ConstraintViolationError(
        "more than one source row matched the same target row",
        where=str(where),
        advice="make the source unique on the join keys, or narrow the clauses' conditions",
    )
