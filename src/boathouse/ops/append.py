"""Append: every row of the data becomes a row of the table."""

from __future__ import annotations

from dataclasses import replace

from boathouse.arrow.conform import conform
from boathouse.arrow.schema import to_arrow
from boathouse.ops.changes import base_change, context_of, spread_of
from boathouse.ops.evolve import SchemaEdit, evolution, evolved
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

    `merge_schema` adds the columns that the table lacks, and widens types, in the same commit. Raises
    SchemaMismatchError before anything is written if the data cannot fit.
    """
    handle.check_open()
    write_id = new_write_id()

    def plan(snapshot: Snapshot, previous: Planned | None) -> Planned | None:
        schema = engine.schema(data)
        edits = evolution(snapshot.schema, schema) if merge_schema else ()
        context = context_of(handle, evolved(handle, snapshot, edits), write_id, options)
        if previous is not None and (found := _again(previous, snapshot, context, edits)) is not None:
            return found
        if previous is not None:
            if not merge_schema or getattr(data, "once", False):
                return None
            previous.discard()
        conform(to_arrow(schema).empty_table(), context.schema, str(handle.location))
        if options.dry_run:
            return Planned(None)
        outcomes = engine.sink(data, context, spread_of(context))
        added = (*edits, AddFiles(data_files(outcomes)))
        return Planned(base_change(handle, snapshot, "append", write_id, options, added), outcomes, context)

    return run(handle, "append", options, plan)


def _again(
    previous: Planned, snapshot: Snapshot, context: WriteContext, edits: tuple[SchemaEdit, ...]
) -> Planned | None:
    """The files already written, for the new head: valid as long as they would be written the same way."""
    before, change = previous.context, previous.change
    if before is None or change is None or (before.schema, before.spec) != (context.schema, context.spec):
        return None
    files = tuple(e for e in change.edits if isinstance(e, AddFiles))
    return replace(previous, change=replace(change, planned=snapshot, edits=(*edits, *files)))
