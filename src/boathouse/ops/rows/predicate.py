"""Conditions of operations: bound by the library where it knows them, else left to the engine."""

from __future__ import annotations

from boathouse.errors import ExpressionError
from boathouse.expr.parse import parse
from boathouse.expr.resolve import bind_predicate
from boathouse.expr.tree import Expr
from boathouse.ops.write import Start


def bound_or_none(start: Start, sql: str) -> Expr | None:
    """The condition, bound to the snapshot's schema; None if only the engine evaluates it.

    Raises ExpressionError if the engine does not either.
    """
    try:
        return bind_predicate(parse(sql), start.snapshot.schema, start.zone)
    except ExpressionError:
        if start.engine.name == "local" or start.engine.covers([sql]):
            raise
        return None
