"""Add columns: new nullable columns at the end of the table or of a struct, null in existing rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from boathouse.bits.names import steps
from boathouse.errors import InvalidArgumentError
from boathouse.ops.schema.alter_columns import spelled
from boathouse.ops.write import Planned, Start, WritePlan
from boathouse.table.change import Operation
from boathouse.table.edits import AddColumn
from boathouse.types import DataType, Schema, StructType


@dataclass(frozen=True, slots=True)
class AddColumns:
    """Adds columns, or fields of structs, elements and values (`s.c`, `l.element.c`), the same of each: whether they
    may be null, the default of rows without them (SQL text), the comment, and the sibling that they come after (an
    empty name: first). Raises InvalidArgumentError for a name that already exists."""

    columns: tuple[tuple[str, DataType], ...]
    nullable: bool = True
    default: str | None = None
    comment: str | None = None
    after: str | None = None
    operation: ClassVar[Operation] = "add-columns"

    def plan(self, start: Start) -> WritePlan:
        schema = start.snapshot.schema
        edits: list[AddColumn] = []
        for name, type in self.columns:
            edit = replace(
                _edit(name, type, schema),
                nullable=self.nullable,
                default=self.default,
                comment=self.comment,
                after=self.after,
            )
            there = {(e.parent, e.name.lower()) for e in edits}
            taken = {n.lower() for n in _members(edit.parent, schema)}
            if not name or edit.name.lower() in taken or (edit.parent, edit.name.lower()) in there:
                why = "it already exists in the table" if name else "it has no name"
                raise InvalidArgumentError(
                    f"cannot add column `{name}`: {why}",
                    where=str(start.snapshot.context),
                    advice="choose another name",
                )
            edits.append(edit)
        if any(given is not None for given in (self.default, self.comment, self.after)) or not self.nullable:
            start.evolved(tuple(edits))
        parameters = {"columns": ", ".join(f"{n} {t}" for n, t in self.columns)}
        return WritePlan((), lambda _: Planned(start.change("add-columns", tuple(edits), parameters=parameters)))


def _edit(name: str, type: DataType, schema: Schema) -> AddColumn:
    """`a.b` is a field of `a` if the table has such a column, else a column whose name has a dot."""
    path = (name,) if name in schema.names else steps(name)
    if len(path) > 1 and not schema.places.at(path[0]):
        path = (name,)
    parent = spelled(path[:-1], schema, parts=True)
    found = _type_at(parent, schema)
    if not isinstance(found, StructType):
        raise InvalidArgumentError(
            f"cannot add column `{name}`: `{'.'.join(parent)}` is {found}, so it has no fields",
            advice="write a name that has dots of its own in backticks",
        )
    return AddColumn(path[-1], type, parent)


def _type_at(path: tuple[str, ...], schema: Schema) -> DataType:
    """The type of the column at the path; that of all columns if it is empty."""
    return next((f.type for p, f in schema.walk() if p == path), StructType(schema.fields))


def _members(parent: tuple[str, ...], schema: Schema) -> list[str]:
    found = _type_at(parent, schema)
    return [f.name for f in found.fields] if isinstance(found, StructType) else []
