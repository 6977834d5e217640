"""What holds for columns: whether they may be null, what rows without them have, their order, which identify a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from boathouse.errors import ConstraintViolationError
from boathouse.expr.identifiers import dotted
from boathouse.ops.schema.alter_columns import column_path, spelled
from boathouse.ops.write import Planned, Start, WritePlan
from boathouse.table.change import Operation
from boathouse.table.edits import MoveColumn, SchemaEdit, SetDefault, SetIdentifiers, SetNullable


@dataclass(frozen=True, slots=True)
class NullabilitySet:
    """The column or struct field may be null, or no longer: where the format relies on the rows alone, they are read.

    Raises ColumnNotFoundError, UnsupportedFeatureError, and ConstraintViolationError if one is null.
    """

    column: str
    nullable: bool
    unchecked: bool = False
    operation: ClassVar[Operation] = "alter-columns"

    def plan(self, start: Start) -> WritePlan:
        path = column_path(self.column, start.snapshot.schema)
        plan = _plan(start, SetNullable(path, self.nullable, self.unchecked))
        if not self.nullable and not self.unchecked:
            self._check(start, path)
        return plan

    def _check(self, start: Start, path: tuple[str, ...]) -> None:
        engine = start.engine
        null = engine.project(engine.scan(start.snapshot.plan((path[0],))), [("at", "1")], f"{dotted(path)} IS NULL")
        found = engine.summary(null, [("rows", "count_all", "1")]).to_pylist()[0]["rows"]
        if found:
            raise ConstraintViolationError(
                f"`{'.'.join(path)}` is null in {found:,} row{'' if found == 1 else 's'}",
                where=str(start.snapshot.context),
                advice="give it values there, or delete these rows first",
            )


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
