"""Names of columns where there are two sides, each a struct column: `target.id`, or `id` if only one side has it."""

from __future__ import annotations

from collections.abc import Iterable

from boathouse.errors import ColumnNotFoundError
from boathouse.expr.parse import parse
from boathouse.expr.tree import Column, Expr, columns, rebuild
from boathouse.types import Schema, StructType


class Sides:
    """Qualifies names by the side that has the column. `schema` has one struct column per side; names of `others` are
    columns beside them."""

    def __init__(self, schema: Schema, others: Iterable[str] = ()) -> None:
        self._sides = {f.name: f.type.places for f in schema.fields if isinstance(f.type, StructType)}
        self._known = {name.lower() for name in (*self._sides, *others)}

    def qualified(self, e: Expr) -> Expr:
        """`e` with every name qualified. A name that is that of a side means the side.

        Raises ColumnNotFoundError for a name that no side has, or that more than one has.
        """
        if not isinstance(e, Column):
            return rebuild(e, self.qualified)
        name = e.path[0]
        if name.lower() in self._known:
            return e
        having = [side for side, names in self._sides.items() if names.at(name)]
        if not having:
            raise ColumnNotFoundError(
                f"no column `{name}` in {' or '.join(self._sides)}",
                advice=f"write a column as {' or '.join(f'{side}.name' for side in self._sides)}",
            )
        if len(having) > 1:
            raise ColumnNotFoundError(
                f"column `{name}` is ambiguous: {' and '.join(having)} have it",
                advice=f"write {' or '.join(str(Column((side, name))) for side in having)}",
            )
        return Column((having[0], *e.path))

    def condition(self, on: str) -> Expr:
        """The condition of a join, every name qualified. Raises ExpressionError, also for a side as a whole."""
        condition = self.qualified(parse(on))
        for path in columns(condition):
            if len(path) == 1:
                raise ColumnNotFoundError(
                    f"{path[0]!r} in the condition of a join is a side, not a column",
                    advice=f"write a column as {path[0]}.name",
                )
        return condition
