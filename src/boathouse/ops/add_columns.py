"""Add columns: new nullable columns at the end of the table, null in the rows that are there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from boathouse.errors import InvalidArgumentError
from boathouse.ops.handle import Handle, WriteOptions
from boathouse.ops.result import WriteResult
from boathouse.ops.run import Planned, new_write_id, run
from boathouse.table.change import AddColumn, Change, ReadSet
from boathouse.table.format import Snapshot
from boathouse.types import DataType, Schema


def add_columns(
    handle: Handle, columns: Sequence[tuple[str, DataType]], options: WriteOptions = WriteOptions()
) -> tuple[Snapshot, WriteResult]:
    """Adds top-level columns. Raises InvalidArgumentError for a name that is there already."""
    write_id = new_write_id()

    def plan(snapshot: Snapshot, previous: Planned | None) -> Planned:
        taken = {n.lower() for n in snapshot.schema.names}
        for name, _ in columns:
            if not name or name.lower() in taken:
                raise InvalidArgumentError(
                    f"cannot add column `{name}`: the table has it already", where=str(handle.location)
                )
        change = Change(
            format=handle.format.name,
            location=handle.location,
            planned=snapshot,
            write_id=write_id,
            operation="add-columns",
            edits=tuple(AddColumn(name, type) for name, type in columns),
            reads=ReadSet(),
            ref=snapshot.ref,
            parameters={"columns": ", ".join(f"{n} {t}" for n, t in columns)},
            message=options.message,
            metadata=dict(options.metadata),
        )
        return Planned(change)

    return run(handle, "add-columns", options, plan)


def add_missing(handle: Handle, data: Schema, options: WriteOptions) -> Snapshot:
    """Adds the columns of `data` that the table lacks; the snapshot that has them."""
    known = {n.lower() for n in handle.snapshot.schema.names}
    missing = [(f.name, f.type) for f in data if f.name.lower() not in known]
    if not missing:
        return handle.snapshot
    return add_columns(handle, missing, replace(options, txn=None))[0]
