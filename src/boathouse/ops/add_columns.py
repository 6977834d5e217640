"""Add columns: new nullable columns at the end of the table, null in the rows that are there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from boathouse.errors import InvalidArgumentError
from boathouse.ops.changes import base_change
from boathouse.ops.handle import Handle, WriteOptions
from boathouse.ops.result import WriteResult
from boathouse.ops.run import Planned, new_write_id, run
from boathouse.table.change import AddColumn
from boathouse.table.format import Snapshot
from boathouse.types import DataType


def add_columns(
    handle: Handle,
    columns: Sequence[tuple[str, DataType]],
    options: WriteOptions = WriteOptions(),
) -> tuple[Snapshot, WriteResult]:
    """Adds top-level columns. Raises InvalidArgumentError for a name that is there already."""
    write_id = new_write_id()

    def plan(snapshot: Snapshot, previous: Planned | None) -> Planned:
        taken = {n.lower() for n in snapshot.schema.names}
        for name, _ in columns:
            if not name or name.lower() in taken:
                why = "the table has it already" if name else "it has no name"
                raise InvalidArgumentError(
                    f"cannot add column `{name}`: {why}", where=str(handle.location), advice="choose another name"
                )
            taken.add(name.lower())
        edits = tuple(AddColumn(name, type) for name, type in columns)
        change = base_change(handle, snapshot, "add-columns", write_id, options, edits)
        change = replace(change, parameters={"columns": ", ".join(f"{n} {t}" for n, t in columns)})
        return Planned(change)

    return run(handle, "add-columns", options, plan)
