"""Shallow clone: a new table of the files of another one, in one commit; no file is copied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from boathouse import registry
from boathouse.bits import system
from boathouse.errors import UnsupportedFeatureError
from boathouse.ops.handle import check_read_only
from boathouse.ops.options import WriteOptions
from boathouse.ops.result import WriteResult, result_of
from boathouse.ops.run import new_write_id
from boathouse.ops.table.create import already_there, commit_new
from boathouse.ops.write import Planned, Start, WritePlan, new_change
from boathouse.table.change import Operation, ReadSet
from boathouse.table.context import TableContext
from boathouse.table.edits import CloneTable, RemoveAll
from boathouse.table.features import Clonable, required
from boathouse.table.snapshot import Snapshot, Target


@dataclass(frozen=True, slots=True)
class TableCloned:
    """The table becomes a clone of the version `source` of another one, with these properties beside those of it. The
    versions before stay. Raises UnsupportedFeatureError, and what `clone` raises."""

    source: Snapshot
    properties: Mapping[str, str] = field(default_factory=dict)
    operation: ClassVar[Operation] = "clone"

    def plan(self, start: Start) -> WritePlan:
        edit = _edit(self.source, start.snapshot.context, self.properties, True)[1]
        files = sum(batch.num_rows for batch in start.snapshot.files())
        size = pc.sum(edit.units.column("size")).as_py() or 0

        def finish(outcomes: Sequence[pa.Table]) -> Planned:
            change = start.change("clone", (RemoveAll(), edit), ReadSet(whole=True), _parameters(self.source))
            return Planned(
                change, files, files_added=edit.units.num_rows, rows_added=_rows(edit.units), bytes_added=size
            )

        return WritePlan((), finish)


def clone(
    source: Snapshot,
    context: TableContext,
    options: WriteOptions = WriteOptions(),
    properties: Mapping[str, str] | None = None,
) -> WriteResult:
    """Makes the table at `context` of this version. Raises AlreadyExistsError, and what `Clonable.cloning` raises; then
    nothing was written."""
    started = system.current().monotonic()
    check_read_only(str(context))
    if registry.load(source.format).detect(context):
        raise already_there(context.location)
    target, edit = _edit(source, context, properties or {}, False)
    change = replace(new_change(target, new_write_id(), "clone", (edit,), options), parameters=_parameters(source))
    size = pc.sum(edit.units.column("size")).as_py() or 0
    planned = Planned(change, files_added=edit.units.num_rows, bytes_added=size)
    if options.dry_run:
        return replace(_result(planned, edit.units), dry_run=True, write_id=None)
    outcome = commit_new(target, change, None)
    seconds = system.current().monotonic() - started
    made = replace(_result(planned, edit.units), version=outcome.commit.version, commit=outcome.commit.token)
    versions = () if made.version is None else (made.version,)
    return replace(made, versions=versions, seconds=seconds, retries=outcome.attempts - 1)


def _edit(
    source: Snapshot, context: TableContext, properties: Mapping[str, str], replaces: bool
) -> tuple[Target, CloneTable]:
    feature = required(source, Clonable, "clone")
    if (replaces or properties) and not feature.alters:
        raise UnsupportedFeatureError(
            f"a clone of a {source.format} table that {'replaces another' if replaces else 'has its own properties'} "
            "is not offered",
            where=str(context),
            advice="clone to a new path, then set properties",
        )
    target, edit = feature.cloning(context)
    return target, replace(edit, properties=dict(properties))


def _parameters(source: Snapshot) -> dict[str, str]:
    return {"source": source.context.location.uri, "version": str(source.version)}


def _result(planned: Planned, units: pa.Table) -> WriteResult:
    """Rows that some file does not count are not added."""
    return replace(result_of("clone", planned, [], None), rows_added=_rows(units))


def _rows(units: pa.Table) -> int:
    live = pc.subtract(units.column("rows"), pc.fill_null(units.column("deleted"), 0))
    return pc.sum(live).as_py() or 0
