"""Conditions as they are given to the public API: Spark SQL text, expressions, or Columns of PySpark."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias

from boathouse.errors import ExpressionError
from boathouse.expr.parse import parse
from boathouse.expr.tree import Expr

if TYPE_CHECKING:
    from pyspark.sql import Column

Condition: TypeAlias = "str | Expr | Column"
"""Spark SQL text, an expression (`bh.col("a") > 1`), or a Column of PySpark."""


def condition(where: Condition) -> Expr:
    """A condition as an expression. Raises ExpressionError."""
    if is_column(where):
        return parse(_column_text(where))
    return parse(where) if isinstance(where, str) else _expression(where)


def condition_text(where: Condition) -> str:
    """A condition as Spark SQL text, which is not parsed. Raises ExpressionError."""
    return sql_text(where) if is_sql(where) else str(_expression(where))


def is_column(value: object) -> bool:
    """Whether it is a Column of PySpark, classic or Connect; never imports pyspark."""
    return any(k.__module__.startswith("pyspark.sql") and k.__name__ == "Column" for k in type(value).__mro__)


def is_sql(value: object) -> bool:
    """Whether it can be an expression: text, an Expr or a Column."""
    return isinstance(value, str | Expr) or is_column(value)


def sql_text(value: Condition) -> str:
    """Such an expression as Spark SQL text. Raises UnsupportedFeatureError for a Column that has none."""
    return _column_text(value) if is_column(value) else str(value)


def _column_text(column: object) -> str:
    text: str = import_module("boathouse.engines.spark.columns").column_text(column)
    return text


def _expression(where: object) -> Expr:
    """`col("a") == 3` is False, and `!=` is True: neither may pass as a condition."""
    if isinstance(where, Expr):
        return where
    advice = "pass Spark SQL text such as 'id > 5', or an expression; expressions are compared by eq() and ne()"
    raise ExpressionError(f"{where!r} is not a condition", advice=advice)
