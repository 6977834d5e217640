"""Name and comments: what a table and its columns say of themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from boathouse.ops.schema.alter_columns import column_path
from boathouse.ops.write import Planned, Start, WritePlan
from boathouse.table.change import Operation
from boathouse.table.edits import SetComment, SetName


@dataclass(frozen=True, slots=True)
class TableNamed:
    """The table has this name of its own; None removes it.

    Raises UnsupportedFeatureError for a format without names.
    """

    name: str | None
    operation: ClassVar[Operation] = "set-properties"

    def plan(self, start: Start) -> WritePlan:
        edit, parameters = SetName(self.name), {"name": self.name or ""}
        return WritePlan((), lambda _: Planned(start.change("set-properties", (edit,), parameters=parameters)))


@dataclass(frozen=True, slots=True)
class Commented:
    """The table, or a column or struct field, has this comment; None removes it.

    Raises ColumnNotFoundError, UnsupportedFeatureError.
    """

    comment: str | None
    column: str | None = None
    operation: ClassVar[Operation] = "set-properties"

    def plan(self, start: Start) -> WritePlan:
        path = () if self.column is None else column_path(self.column, start.snapshot.schema)
        edit = SetComment(path, self.comment)
        start.evolved((edit,))
        parameters = {"comment": self.comment or "", **({"column": ".".join(path)} if path else {})}
        return WritePlan((), lambda _: Planned(start.change("set-properties", (edit,), parameters=parameters)))
