"""Conditions as they are given to the public API: Spark SQL text, or expressions."""

from __future__ import annotations

from boathouse.errors import ExpressionError
from boathouse.expr.parse import parse
from boathouse.expr.tree import Expr


def condition(where: str | Expr) -> Expr:
    """A condition as an expression. Raises ExpressionError."""
    return parse(where) if isinstance(where, str) else _expression(where)


def condition_text(where: str | Expr) -> str:
    """A condition as Spark SQL text, which is not parsed. Raises ExpressionError."""
    return where if isinstance(where, str) else str(_expression(where))


def _expression(where: object) -> Expr:
    """`col("a") == 3` is False, and `!=` is True: neither may pass as a condition."""
    if isinstance(where, Expr):
        return where
    advice = "pass Spark SQL text such as 'id > 5', or an expression; expressions are compared by eq() and ne()"
    raise ExpressionError(f"{where!r} is not a condition", advice=advice)
