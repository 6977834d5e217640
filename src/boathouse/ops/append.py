"""Append: every row of the data becomes a row of the table."""

from __future__ import annotations

from dataclasses import replace

from boathouse.arrow.conform import conform
from boathouse.arrow.schema import to_arrow
from boathouse.ops.add_columns import add_missing
from boathouse.ops.changes import base_change, context_of, spread_of
from boathouse.ops.handle import Handle, WriteOptions
from boathouse.ops.outcomes import data_files
from boathouse.ops.result import WriteResult
from boathouse.ops.run import Planned, new_write_id, run
from boathouse.table.change import AddFiles
from boathouse.table.engine import Engine, Rel
from boathouse.table.format import Snapshot
from boathouse.table.tasks import WriteContext


def append(
    handle: Handle, data: Rel, engine: Engine, options: WriteOptions = WriteOptions(), merge_schema: bool = False
) -> tuple[Snapshot, WriteResult]:
    """Writes the rows and commits them; columns are matched by name, missing nullable ones are null.

    `merge_schema` first adds the columns that the table lacks, in a commit of its own. Raises
    SchemaMismatchError before anything is written where the data cannot fit.
    """
    handle.check_writable()
    if merge_schema and not options.dry_run:
        handle = replace(handle, snapshot=add_missing(handle, engine.schema(data), options))
    write_id = new_write_id()

    def plan(snapshot: Snapshot, previous: Planned | None) -> Planned | None:
        context = context_of(handle, snapshot, write_id, options)
        if previous is not None:
            return _again(previous, snapshot, context)
        conform(to_arrow(engine.schema(data)).empty_table(), context.schema, str(handle.location))
        if options.dry_run:
            return Planned(None)
        outcomes = engine.sink(data, context, spread_of(context))
        change = base_change(handle, snapshot, "append", write_id, options, (AddFiles(data_files(outcomes)),))
        return Planned(change, outcomes, context)

    return run(handle, "append", options, plan)


def _again(previous: Planned, snapshot: Snapshot, context: WriteContext) -> Planned | None:
    """The files written before, on the new head: right as long as they would be written the same way."""
    before = previous.context
    if before is None or previous.change is None or (before.schema, before.spec) != (context.schema, context.spec):
        return None
    return replace(previous, change=replace(previous.change, planned=snapshot))
