"""Which columns of the target a merge reads: those that its condition, its clauses and the rows they keep name."""

from __future__ import annotations

from collections.abc import Iterable

from boathouse.errors import ExpressionError
from boathouse.expr.tree import columns
from boathouse.expr.values import Value, read
from boathouse.types import Schema


def target_columns(schema: Schema, side: str, values: Iterable[Value]) -> tuple[str, ...] | None:
    """The columns that the values may name, in the table's order; None, all, if only the engine knows one of them.

    A name without its side counts if the table has such a column, whichever side is meant.
    """
    found: set[int] = set()
    try:
        for path in dict.fromkeys(path for value in values for path in columns(read(value))):
            if path[0].lower() == side.lower():
                if len(path) == 1:
                    return None  # the side as a whole
                found.update(schema.places.at(path[1]))
            found.update(schema.places.at(path[0]))
    except ExpressionError:
        return None
    return tuple(schema.names[place] for place in sorted(found))
