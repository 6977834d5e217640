"""What holds for columns: whether they may be null, what rows without them have, their order, which identify a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from boathouse.ops.schema.alter_columns import column_path, spelled
from boathouse.ops.write import Planned, Start, WritePlan
from boathouse.table.change import Operation
from boathouse.table.edits import MoveColumn, SchemaEdit, SetDefault, SetIdentifiers, SetNullable


@dataclass(frozen=True, slots=True)
class NullabilitySet:
    """The column or struct field may be null, or no longer. Raises ColumnNotFoundError, UnsupportedFeatureError."""

    column: str
    nullable: bool
    unchecked: bool = False
    operation: ClassVar[Operation] = "alter-columns"

    def plan(self, start: Start) -> WritePlan:
        path = column_path(self.column, start.snapshot.schema)
        return _plan(start, SetNullable(path, self.nullable, self.unchecked))


@dataclass(frozen=True, slots=True)
class DefaultChanged:
    """What the column has in later rows that lack it, as SQL text; None: null. Raises ColumnNotFoundError,
    InvalidArgumentError, UnsupportedFeatureError."""

    column: str
    default: str | None
    operation: ClassVar[Operation] = "alter-columns"

    def plan(self, start: Start) -> WritePlan:
        return _plan(start, SetDefault(column_path(self.column, start.snapshot.schema), self.default))


@dataclass(frozen=True, slots=True)
class ColumnMoved:
    """The column or struct field comes right after its sibling `after`; None: first. Raises ColumnNotFoundError,
    UnsupportedFeatureError."""

    column: str
    after: str | None
    operation: ClassVar[Operation] = "alter-columns"

    def plan(self, start: Start) -> WritePlan:
        schema = start.snapshot.schema
        path = column_path(self.column, schema)
        after = "" if self.after is None else spelled((*path[:-1], self.after), schema)[-1]
        return _plan(start, MoveColumn(path, after))


@dataclass(frozen=True, slots=True)
class IdentifiersSet:
    """The columns that identify a row; none: nothing does. Raises ColumnNotFoundError, InvalidArgumentError,
    UnsupportedFeatureError."""

    columns: tuple[str, ...]
    operation: ClassVar[Operation] = "alter-columns"

    def plan(self, start: Start) -> WritePlan:
        schema = start.snapshot.schema
        return _plan(start, SetIdentifiers(tuple(column_path(name, schema) for name in self.columns)))


def _plan(start: Start, edit: SchemaEdit) -> WritePlan:
    start.evolved((edit,))
    return WritePlan((), lambda _: Planned(start.change("alter-columns", (edit,))))
