"""Shallow clone: a new table of the files of another one, in one commit; no file is copied."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from boathouse import registry
from boathouse.bits import system
from boathouse.ops.handle import check_read_only
from boathouse.ops.options import WriteOptions
from boathouse.ops.result import WriteResult, result_of
from boathouse.ops.run import new_write_id
from boathouse.ops.table.create import already_there, commit_new
from boathouse.ops.write import Planned, new_change
from boathouse.table.context import TableContext
from boathouse.table.features import Clonable, required
from boathouse.table.snapshot import Snapshot


def clone(source: Snapshot, context: TableContext, options: WriteOptions = WriteOptions()) -> WriteResult:
    """Makes the table at `context` of this version. Raises AlreadyExistsError, and what `Clonable.cloning` raises; then
    nothing was written."""
    started = system.current().monotonic()
    check_read_only(str(context))
    if registry.load(source.format).detect(context):
        raise already_there(context.location)
    target, edit = required(source, Clonable, "clone").cloning(context)
    parameters = {"source": source.context.location.uri, "version": str(source.version)}
    change = replace(new_change(target, new_write_id(), "clone", (edit,), options), parameters=parameters)
    size = pc.sum(edit.units.column("size")).as_py() or 0
    planned = Planned(change, files_added=edit.units.num_rows, bytes_added=size)
    if options.dry_run:
        return replace(_result(planned, edit.units), dry_run=True, write_id=None)
    outcome = commit_new(target, change, None)
    seconds = system.current().monotonic() - started
    made = replace(_result(planned, edit.units), version=outcome.commit.version, commit=outcome.commit.token)
    versions = () if made.version is None else (made.version,)
    return replace(made, versions=versions, seconds=seconds, retries=outcome.attempts - 1)


def _result(planned: Planned, units: pa.Table) -> WriteResult:
    """Rows that some file does not count are not added."""
    live = pc.subtract(units.column("rows"), pc.fill_null(units.column("deleted"), 0))
    return replace(result_of("clone", planned, [], None), rows_added=pc.sum(live).as_py() or 0)
