"""Sorting: files are rewritten with their rows in an order, each with a range of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa

from boathouse.arrow.ordering import can_order
from boathouse.errors import InvalidArgumentError
from boathouse.expr.tree import Column, Expr, Literal
from boathouse.ops.files.compact import bytes_of, chosen_units, newest_sequence
from boathouse.ops.outcomes import data_files
from boathouse.ops.tasks.sink import ACTION, COPY
from boathouse.ops.write import Planned, RowWork, Source, Start, WritePlan
from boathouse.table.change import Operation, ReadSet
from boathouse.table.edits import AddFiles, Edit, RemoveFiles
from boathouse.table.engine import Spread
from boathouse.table.tasks import WriteContext
from boathouse.types import STRING, Schema, SortField


@dataclass(frozen=True, slots=True)
class SortedFiles:
    """Rewrites all files of the chosen partitions so that their rows are in the order that `by` makes of the table's
    schema; without it, in the table's own. `where` is that of Compact. One commit; no row changes, and deleted rows are
    dropped. Raises InvalidArgumentError for a table without an order, and for columns that have none.
    """

    by: Callable[[Schema], tuple[SortField, ...]] | None = None
    where: Expr | None = None
    loosely: bool = False
    operation: ClassVar[Operation] = "replace"

    def plan(self, start: Start) -> WritePlan:
        context = start.context(copies=True)
        order = self._order(start, context)
        scan = chosen_units(start, self.where, context, loosely=self.loosely)
        units = scan.units
        dry = Planned(None, files_removed=units.num_rows)
        if not units.num_rows or start.options.dry_run:
            return WritePlan((), lambda _: Planned(None), dry)
        names = [(f.name, Column((f.name,))) for f in context.rows]
        rel = start.engine.project(start.engine.scan(scan), [*names, (ACTION, Literal(COPY, type=STRING))])
        # Rows that are copied keep the values of identity columns.
        ordered = replace(context, order=order, identities=())
        work = RowWork(Source(context.rows, rel), ordered, Spread("range"), fixed=False)

        def finish(outcomes: Sequence[pa.Table]) -> Planned:
            added = data_files(outcomes[0])
            edits: list[Edit] = [RemoveFiles(units)]
            if added.num_rows:
                edits.append(AddFiles(added, newest_sequence(units, [scan.deletes])))
            reads = ReadSet(units=frozenset(units.column("path").to_pylist()))
            parameters = {"sort_by": ", ".join(map(_text, order))}
            if self.where is not None:
                parameters["predicate"] = str(self.where)
            change = start.change("replace", edits, reads, parameters, data_change=False)
            return Planned(change, units.num_rows, bytes_removed=bytes_of(units))

        return WritePlan((work,), finish, dry)

    def _order(self, start: Start, context: WriteContext) -> tuple[SortField, ...]:
        schema, where = start.snapshot.schema, str(start.snapshot.context.location)
        order = context.order if self.by is None else self.by(schema)
        if not order:
            raise InvalidArgumentError(
                "the table has no sort order that rows can be put in", where=where, advice="name columns to sort by"
            )
        if not can_order(schema, order):
            raise InvalidArgumentError("the table has a column to sort by whose type has no order", where=where)
        return order


def _text(field: SortField) -> str:
    name = ".".join(field.source)
    value = name if field.transform.name == "identity" else f"{field.transform}({name})"
    return f"{value} {'desc' if field.descending else 'asc'} nulls {'first' if field.nulls_first else 'last'}"
