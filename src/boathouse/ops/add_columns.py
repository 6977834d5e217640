"""Add columns: new nullable columns at the end of the table or of a struct, null in existing rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from boathouse.bits.names import steps
from boathouse.errors import InvalidArgumentError
from boathouse.expr.resolve import resolve_path
from boathouse.ops.changes import base_change
from boathouse.ops.handle import Handle, WriteOptions
from boathouse.ops.result import WriteResult
from boathouse.ops.run import Planned, new_write_id, run
from boathouse.table.change import AddColumn
from boathouse.table.format import Snapshot
from boathouse.types import DataType, Schema, StructType


def add_columns(
    handle: Handle,
    columns: Sequence[tuple[str, DataType]],
    options: WriteOptions = WriteOptions(),
) -> tuple[Snapshot, WriteResult]:
    """Adds columns, or fields of structs (`s.c`). Raises InvalidArgumentError for a name that already exists."""
    write_id = new_write_id()

    def plan(snapshot: Snapshot, previous: Planned | None) -> Planned:
        edits: list[AddColumn] = []
        for name, type in columns:
            edit = _edit(name, type, snapshot.schema)
            there = {(e.parent, e.name.lower()) for e in edits}
            taken = {n.lower() for n in _members(edit.parent, snapshot.schema)}
            if not name or edit.name.lower() in taken or (edit.parent, edit.name.lower()) in there:
                why = "it already exists in the table" if name else "it has no name"
                raise InvalidArgumentError(
                    f"cannot add column `{name}`: {why}", where=str(handle.location), advice="choose another name"
                )
            edits.append(edit)
        change = base_change(handle, snapshot, "add-columns", write_id, options, tuple(edits))
        change = replace(change, parameters={"columns": ", ".join(f"{n} {t}" for n, t in columns)})
        return Planned(change)

    return run(handle, "add-columns", options, plan)


def _edit(name: str, type: DataType, schema: Schema) -> AddColumn:
    """`a.b` is a field of `a` if the table has such a column, else a column whose name has a dot."""
    path = (name,) if name in schema.names else steps(name)
    if len(path) > 1 and not schema.places.at(path[0]):
        path = (name,)
    parent, found = resolve_path(path[:-1], schema)
    if not isinstance(found, StructType):
        raise InvalidArgumentError(
            f"cannot add column `{name}`: `{'.'.join(parent)}` is {found}, so it has no fields",
            advice="write a name that has dots of its own in backticks",
        )
    return AddColumn(path[-1], type, parent)


def _members(parent: tuple[str, ...], schema: Schema) -> list[str]:
    found = resolve_path(parent, schema)[1]
    return [f.name for f in found.fields] if isinstance(found, StructType) else []
