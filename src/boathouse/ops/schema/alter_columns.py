"""Rename, drop and widen columns: the schema changes, and no file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from boathouse.bits.names import Names, steps
from boathouse.errors import ColumnNotFoundError
from boathouse.ops.schema.dependents import check_unnamed
from boathouse.ops.write import Planned, Start, WritePlan
from boathouse.table.change import Operation
from boathouse.table.edits import DropColumn, RenameColumn, SetType
from boathouse.types import DataType, Schema, StructType
from boathouse.types.data_types import children

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ColumnRenamed:
    """The column or struct field `column` is called `name` from now on.

    Raises ColumnNotFoundError, InvalidArgumentError if the name is taken or a constraint names the column, and
    UnsupportedFeatureError if files would have to be rewritten.
    """

    column: str
    name: str
    operation: ClassVar[Operation] = "alter-columns"

    def plan(self, start: Start) -> WritePlan:
        edit = RenameColumn(column_path(self.column, start.snapshot.schema), self.name)
        return _plan(start, edit, "renamed")


@dataclass(frozen=True, slots=True)
class ColumnDropped:
    """The column or struct field `column` is dropped. Raises what ColumnRenamed raises."""

    column: str
    operation: ClassVar[Operation] = "alter-columns"

    def plan(self, start: Start) -> WritePlan:
        return _plan(start, DropColumn(column_path(self.column, start.snapshot.schema)), "dropped")


@dataclass(frozen=True, slots=True)
class ColumnWidened:
    """The column, struct field, or part of a list or map (`l.element`, `m.key`, `m.value`) gets a wider type.

    Raises ColumnNotFoundError, InvalidArgumentError if a constraint names the column, and UnsupportedFeatureError for a
    type that is not wider, or a table that does not allow it.
    """

    column: str
    type: DataType
    operation: ClassVar[Operation] = "alter-columns"

    def plan(self, start: Start) -> WritePlan:
        schema = start.snapshot.schema
        edit = SetType(column_path(self.column, schema, parts=True), self.type)
        if next(f.type for path, f in schema.walk() if path == edit.path) == self.type:
            return WritePlan((), lambda _: Planned(None))
        start.evolved((edit,))
        return WritePlan((), lambda _: Planned(start.change("alter-columns", (edit,))))


def _plan(start: Start, edit: RenameColumn | DropColumn, what: str) -> WritePlan:
    start.evolved((edit,))
    check_unnamed(start.snapshot, start.write_id, start.zone, edit.path, what)
    if isinstance(edit, RenameColumn) and edit.name == edit.path[-1]:
        return WritePlan((), lambda _: Planned(None))
    return WritePlan((), lambda _: Planned(start.change("alter-columns", (edit,))))


def column_path(name: str, schema: Schema, parts: bool = False) -> Path:
    """The path as the schema spells it; below lists and maps it has `element`, `key` and `value`. With `parts` it may
    end there.

    `a.b` is a field of `a` if the table has such a column, else a column whose name has a dot.
    """
    path = (name,) if name in schema.names else steps(name)
    if len(path) > 1 and not schema.places.at(path[0]):
        path = (name,)
    return spelled(path, schema, parts)


def spelled(path: Path, schema: Schema, parts: bool = False) -> Path:
    """See `column_path`. Raises ColumnNotFoundError."""
    type: DataType = StructType(schema.fields)
    inside: DataType = type
    found: list[str] = []
    for step in path:
        members = children(type)
        hits = Names(f.name for f in members).at(step)
        if len(hits) != 1:
            raise _absent(step, found, [f.name for f in members], bool(hits))
        below = members[hits[0]]
        found.append(below.name)
        inside, type = type, below.type
    if not parts and not isinstance(inside, StructType):
        raise ColumnNotFoundError(f"`{'.'.join(found)}` is part of {inside}, not a column or a field of a struct")
    return tuple(found)


def _absent(step: str, above: Sequence[str], names: Sequence[str], ambiguous: bool) -> ColumnNotFoundError:
    below = f" in `{'.'.join(above)}`" if above else ""
    if ambiguous:
        return ColumnNotFoundError(f"`{step}` is ambiguous{below}", advice="spell it exactly as the table does")
    advice = f"there are {', '.join(names)}" if names else "write a name that has dots of its own in backticks"
    return ColumnNotFoundError(f"there is no column `{step}`{below}", advice=advice)
