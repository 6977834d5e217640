"""Rename and drop columns: the schema changes, and no file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from boathouse.bits.names import Names, steps
from boathouse.errors import ColumnNotFoundError, ExpressionError, InvalidArgumentError
from boathouse.expr.parse import parse
from boathouse.expr.resolve import bind_predicate
from boathouse.expr.tree import columns
from boathouse.ops.write import Planned, Start, WritePlan
from boathouse.table.change import DropColumn, Operation, RenameColumn
from boathouse.table.tasks import RowCondition
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
        edit = RenameColumn(_path(self.column, start.snapshot.schema), self.name)
        return _plan(start, edit, "renamed")


@dataclass(frozen=True, slots=True)
class ColumnDropped:
    """The column or struct field `column` is dropped. Raises what ColumnRenamed raises."""

    column: str
    operation: ClassVar[Operation] = "alter-columns"

    def plan(self, start: Start) -> WritePlan:
        return _plan(start, DropColumn(_path(self.column, start.snapshot.schema)), "dropped")


def _plan(start: Start, edit: RenameColumn | DropColumn, what: str) -> WritePlan:
    start.evolved((edit,))
    name = ".".join(edit.path)
    for condition in start.snapshot.write_context(start.write_id).conditions:
        own = (condition.column,)
        if any(_meets(path, edit.path) and path != own for path in _named(condition, start)):
            raise InvalidArgumentError(
                f"`{name}` cannot be {what}: the constraint `{condition.name}` names it ({condition.sql})",
                where=str(start.snapshot.context),
                advice=f"drop {'the constraint' if condition.column is None else f'`{condition.column}`'} first",
            )
    if isinstance(edit, RenameColumn) and edit.name == edit.path[-1]:
        return WritePlan((), lambda _: Planned(None))
    return WritePlan((), lambda _: Planned(start.change("alter-columns", (edit,))))


def _path(name: str, schema: Schema) -> Path:
    """The path as the schema spells it; below lists and maps it has `element`, `key` and `value`.

    `a.b` is a field of `a` if the table has such a column, else a column whose name has a dot.
    """
    path = (name,) if name in schema.names else steps(name)
    if len(path) > 1 and not schema.places.at(path[0]):
        path = (name,)
    type: DataType = StructType(schema.fields)
    found: list[str] = []
    for step in path:
        members = children(type)
        hits = Names(f.name for f in members).at(step)
        if len(hits) != 1:
            raise _absent(step, found, [f.name for f in members], bool(hits))
        below = members[hits[0]]
        found.append(below.name)
        inside, type = type, below.type
    if not isinstance(inside, StructType):
        raise ColumnNotFoundError(f"`{'.'.join(found)}` is part of {inside}, not a column or a field of a struct")
    return tuple(found)


def _absent(step: str, above: Sequence[str], names: Sequence[str], ambiguous: bool) -> ColumnNotFoundError:
    below = f" in `{'.'.join(above)}`" if above else ""
    if ambiguous:
        return ColumnNotFoundError(f"`{step}` is ambiguous{below}", advice="spell it exactly as the table does")
    advice = f"there are {', '.join(names)}" if names else "write a name that has dots of its own in backticks"
    return ColumnNotFoundError(f"there is no column `{step}`{below}", advice=advice)


def _named(condition: RowCondition, start: Start) -> Sequence[Path]:
    """The columns of a condition; one that cannot be understood may name any."""
    try:
        return [*columns(bind_predicate(parse(condition.sql), start.snapshot.schema, start.zone))]
    except ExpressionError:
        return [()]


def _meets(one: Path, other: Path) -> bool:
    return all(a == b for a, b in zip(one, other))
