"""Overwrite: the data replaces every row, or the rows for which a predicate is true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pyarrow.compute as pc

from boathouse.arrow.conform import conform
from boathouse.arrow.schema import to_arrow
from boathouse.expr.parse import parse
from boathouse.expr.resolve import bind_predicate
from boathouse.expr.tree import Expr
from boathouse.ops.changes import base_change, context_of, spread_of
from boathouse.ops.evolve import evolution, evolved
from boathouse.ops.handle import Handle, WriteOptions
from boathouse.ops.held import held
from boathouse.ops.outcomes import concat, data_files
from boathouse.ops.result import WriteResult
from boathouse.ops.rewrite import take_out
from boathouse.ops.run import Planned, new_write_id, run
from boathouse.table.change import AddFiles, CreateTable, Edit, ReadSet, RemoveAll, ReplaceSchema
from boathouse.table.engine import Engine, Rel
from boathouse.table.format import Snapshot
from boathouse.table.tasks import POSITION, WriteContext
from boathouse.types import PartitionField


def overwrite(
    handle: Handle,
    data: Rel,
    engine: Engine,
    where: str | Expr | None = None,
    options: WriteOptions = WriteOptions(),
    overwrite_schema: bool = False,
    partition_by: Sequence[PartitionField] | None = None,
    merge_schema: bool = False,
) -> tuple[Snapshot, WriteResult]:
    """Replaces all rows, or those for which `where` is true; then every row of the data must satisfy it.

    `overwrite_schema` (whole table only) takes the schema, and `partition_by`, from the data; `merge_schema` adds
    columns that the table lacks, and widens types, in the same commit. Raises SchemaMismatchError,
    ConstraintViolationError (data outside `where`), CommitConflictError.
    """
    handle.check_writable()
    if where is not None:
        return _overwrite_where(handle, data, engine, where, options, merge_schema)
    write_id = new_write_id()
    rel = engine.pin(data)

    def plan(snapshot: Snapshot, previous: Planned | None) -> Planned:
        if previous is not None:
            previous.discard()
        added = evolution(snapshot.schema, engine.schema(rel)) if merge_schema else ()
        context = context_of(handle, evolved(handle, snapshot, added), write_id, options)
        edits: list[Edit] = [RemoveAll(), *added]
        if overwrite_schema:
            context, replaced = _replace_schema(handle, snapshot, engine, rel, context, partition_by)
            edits.append(replaced)
        conform(to_arrow(engine.schema(rel)).empty_table(), context.schema, str(handle.location))
        files, rows = _live(handle, engine, snapshot)
        if options.dry_run:
            return Planned(None, files_removed=files, rows_removed=rows)
        outcomes = engine.sink(rel, context, spread_of(context))
        edits.append(AddFiles(data_files(outcomes)))
        change = base_change(handle, snapshot, "overwrite", write_id, options, tuple(edits))
        change = replace(change, reads=ReadSet(whole=True))
        return Planned(change, outcomes, context, files, rows, recount=partial(_live, handle, engine))

    return run(handle, "overwrite", options, plan)


def _replace_schema(
    handle: Handle,
    snapshot: Snapshot,
    engine: Engine,
    rel: Rel,
    context: WriteContext,
    partition_by: Sequence[PartitionField] | None,
) -> tuple[WriteContext, ReplaceSchema]:
    fields = tuple(snapshot.partitioning.current.fields if partition_by is None else partition_by)
    asked = CreateTable(engine.schema(rel), fields, dict(snapshot.properties))
    create = held(handle.format, handle.location, asked, snapshot)
    schema, spec = handle.format.create(handle.location, create, snapshot)
    new = handle.format.write_context(
        handle.location, handle.stores, schema, spec, snapshot.properties, context.write_id, snapshot
    )
    return replace(new, target_bytes=context.target_bytes), ReplaceSchema(schema, spec.fields)


def _overwrite_where(
    handle: Handle, data: Rel, engine: Engine, where: str | Expr, options: WriteOptions, merge_schema: bool
) -> tuple[Snapshot, WriteResult]:
    predicate = parse(where) if isinstance(where, str) else where
    write_id = new_write_id()
    rel = engine.pin(data)

    def plan(snapshot: Snapshot, previous: Planned | None) -> Planned:
        if previous is not None:
            previous.discard()
        bound = bind_predicate(predicate, snapshot.schema, handle.zone)
        added = evolution(snapshot.schema, engine.schema(rel)) if merge_schema else ()
        context = context_of(handle, evolved(handle, snapshot, added), write_id, options)
        conform(to_arrow(engine.schema(rel)).empty_table(), context.schema, str(handle.location))
        if options.dry_run:
            return Planned(None)
        outcomes = engine.sink(rel, replace(context, must_hold=bound), spread_of(context))
        try:
            taken = take_out(handle, snapshot, engine, bound, context, "overwrite")
        except BaseException:
            Planned(None, outcomes, context).discard()
            raise
        edits = taken.edits(outcomes)
        if added:
            edits = (*added, *(edits or (AddFiles(data_files(outcomes)),)))
        if not edits and options.txn is None:
            return Planned(None, outcomes, context)
        edits = edits or (AddFiles(data_files(outcomes)),)
        change = base_change(handle, snapshot, "overwrite", write_id, options, edits)
        change = replace(change, reads=taken.reads, parameters={"predicate": str(predicate)})
        return Planned(
            change,
            concat(outcomes, taken.outcomes),
            context,
            files_removed=taken.removed.num_rows,
            rows_removed=taken.rows_by_metadata,
        )

    return run(handle, "overwrite", options, plan)


def _live(handle: Handle, engine: Engine, snapshot: Snapshot) -> tuple[int, int]:
    """The number of files and rows of the snapshot; deletes are resolved only if some file does not record their
    number."""
    files = rows = 0
    for batch in snapshot.files():
        if batch.column("rows").null_count or batch.column("deleted").null_count:
            plan = handle.format.plan(snapshot, handle.stores, [], None, (POSITION,), engine.map)
            return plan.units.num_rows, plan.rows or 0
        files += batch.num_rows
        for column, sign in (("rows", 1), ("deleted", -1)):
            rows += sign * (pc.sum(batch.column(column)).as_py() or 0)
    return files, rows
