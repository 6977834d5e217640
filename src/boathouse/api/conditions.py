"""Conditions as they are given to the public API: Spark SQL text, expressions of ours, PySpark, Arrow, polars."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

from boathouse.errors import ExpressionError
from boathouse.expr.parse import parse
from boathouse.expr.tree import Expr
from boathouse.types import Schema

if TYPE_CHECKING:
    import polars
    import pyarrow.compute
    from pyspark.sql import Column

Condition: TypeAlias = "str | Expr | Column | pyarrow.compute.Expression | polars.Expr"
"""Spark SQL text, an expression (`bh.col("a") > 1`), a Column of PySpark, or an expression of Arrow or polars."""


def condition(where: Condition, schema: Schema | None = None) -> Expr:
    """A condition on rows of `schema` as an expression. Raises ExpressionError, and UnsupportedFeatureError for an
    expression of another library that has no counterpart."""
    if is_column(where):
        return parse(_column_text(where))
    return parse(where) if isinstance(where, str) else _expression(where, schema)


def condition_text(where: Condition, schema: Schema | None = None) -> str:
    """A condition as Spark SQL text, which is not parsed. Raises as `condition`."""
    return sql_text(where) if is_sql(where) else str(_expression(where, schema))


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


def _expression(where: object, schema: Schema | None) -> Expr:
    """`col("a") == 3` is False, and `!=` is True: neither may pass as a condition."""
    if isinstance(where, Expr):
        return where
    if is_arrow_expression(where) and schema is not None:
        return _module("arrow_conditions").from_arrow_expression(where, schema)
    if is_polars_expression(where) and schema is not None:
        return _module("polars_conditions").from_polars_expression(where)
    advice = "pass Spark SQL text such as 'id > 5', or an expression; expressions are compared by eq() and ne()"
    raise ExpressionError(f"{where!r} is not a condition", advice=advice)


def is_arrow_expression(value: object) -> bool:
    """Whether it is an expression of Arrow."""
    return type(value).__module__.startswith("pyarrow.") and type(value).__name__ == "Expression"


def is_polars_expression(value: object) -> bool:
    """Whether it is an expression of polars; never imports polars."""
    return any(k.__module__.startswith("polars.") and k.__name__ == "Expr" for k in type(value).__mro__)


def _module(name: str) -> Any:
    """What few need, found when it is."""
    return import_module(f"boathouse.api.{name}")
