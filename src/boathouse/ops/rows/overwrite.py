"""Overwrite: the data replaces every row, or the rows for which a predicate is true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.expr.resolve import bind_predicate
from boathouse.expr.tree import Expr
from boathouse.ops.outcomes import data_files
from boathouse.ops.rows.computed import completed
from boathouse.ops.rows.identity import advanced, numbered
from boathouse.ops.rows.removal import removal, removed_files
from boathouse.ops.schema.evolve import evolution
from boathouse.ops.schema.stored_types import held
from boathouse.ops.write import Planned, Source, Start, WritePlan, row_work
from boathouse.table.change import Operation, ReadSet
from boathouse.table.edits import AddFiles, CreateTable, Edit, RemoveAll, ReplaceSchema, SchemaEdit
from boathouse.table.engine import Engine
from boathouse.table.metadata_columns import POSITION
from boathouse.table.plan import ScanPlan
from boathouse.table.snapshot import Snapshot
from boathouse.table.tasks import Rule
from boathouse.types import PartitionField


@dataclass(frozen=True, slots=True)
class Overwrite:
    """Replaces all rows.

    `replace_schema` takes the schema, and `partition_by`, from the data; `merge_schema` adds columns that the table
    lacks, and widens types, in the same commit. Raises SchemaMismatchError, CommitConflictError.
    """

    source: Source
    merge_schema: bool = False
    replace_schema: bool = False
    partition_by: tuple[PartitionField, ...] | None = None
    operation: ClassVar[Operation] = "overwrite"

    def plan(self, start: Start) -> WritePlan:
        snapshot = start.snapshot
        edits: tuple[SchemaEdit, ...] = ()
        if self.replace_schema:
            edits = (self._schema(snapshot),)
        elif self.merge_schema:
            edits = evolution(snapshot.schema, self.source.schema)
        context = numbered(start.context(edits), self.source)
        rows = row_work(completed(start.engine, self.source, context), context)
        live = partial(_live, start.engine)
        removed = live(snapshot)

        def finish(outcomes: Sequence[pa.Table]) -> Planned:
            marks = advanced(context, outcomes)
            all_edits: tuple[Edit, ...] = (RemoveAll(), *edits, AddFiles(data_files(outcomes[0])), *marks)
            return Planned(start.change("overwrite", all_edits, ReadSet(whole=True)), *removed, recount=live)

        return WritePlan((rows,), finish, dry=Planned(None, *removed))

    def _schema(self, snapshot: Snapshot) -> ReplaceSchema:
        fields = snapshot.partitioning.current.fields if self.partition_by is None else self.partition_by

        def evolved(table: CreateTable) -> Snapshot:
            return snapshot.evolve((ReplaceSchema(table.schema, table.partition_by),))

        table = held(evolved, CreateTable(self.source.schema, tuple(fields), dict(snapshot.properties)))
        future = evolved(table)
        return ReplaceSchema(future.schema, future.partitioning.current.fields)


@dataclass(frozen=True, slots=True)
class OverwriteWhere:
    """Replaces the rows for which `where` is true; every row of the data must satisfy it.

    `merge_schema` as in Overwrite. Raises SchemaMismatchError, ConstraintViolationError (data outside `where`),
    CommitConflictError.
    """

    source: Source
    where: Expr
    merge_schema: bool = False
    operation: ClassVar[Operation] = "overwrite"

    def plan(self, start: Start) -> WritePlan:
        bound = bind_predicate(self.where, start.snapshot.schema, start.zone)
        added = evolution(start.snapshot.schema, self.source.schema) if self.merge_schema else ()
        context = numbered(start.context(added, changes=True), self.source)
        rule = Rule("the overwrite condition", bound, "widen the condition, or filter the data")
        source = completed(start.engine, self.source, context)
        rows = row_work(source, replace(context, rules=(*context.rules, rule), carried=()))
        if start.options.dry_run:
            return WritePlan((), lambda outcomes: Planned(None))
        gone = removal(start, bound, context, "overwrite")
        # Either both the removed and the new rows are in change files, or neither.
        rows = replace(rows, context=replace(rows.context, changes=gone.work.context.changes))

        def finish(outcomes: Sequence[pa.Table]) -> Planned:
            new, removing, *files = outcomes
            changed, reads = gone.edits(removing, (new, *files))
            edits = (*added, *changed, *advanced(context, (new,)))
            if not edits and start.options.txn is None:
                return Planned(None)
            parameters = {"predicate": str(self.where)}
            change = start.change("overwrite", edits or (AddFiles(data_files(new)),), reads, parameters)
            return Planned(change, removed_files(changed), gone.certain_rows)

        return WritePlan((rows, *gone.works(1)), finish)


def live_rows(engine: Engine, plan: ScanPlan) -> int:
    """The number of rows, by reading them if some file does not record it."""
    if plan.rows is not None:
        return plan.rows
    found: int = engine.summary(engine.scan(plan), [("rows", "count_all", "1")]).column("rows")[0].as_py()
    return found


def _live(engine: Engine, snapshot: Snapshot) -> tuple[int, int]:
    """The number of files and rows of the snapshot; deletes are resolved only if some file does not record their
    number."""
    files = rows = 0
    for batch in snapshot.files():
        if batch.column("rows").null_count or batch.column("deleted").null_count:
            plan = snapshot.plan([], None, (POSITION,), engine.map)
            return plan.units.num_rows, live_rows(engine, plan)
        files += batch.num_rows
        for column, sign in (("rows", 1), ("deleted", -1)):
            rows += sign * (pc.sum(batch.column(column)).as_py() or 0)
    return files, rows
