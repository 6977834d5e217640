"""Spark's filters as expressions of the library."""

from __future__ import annotations

from pyspark.sql import datasource as D

from boathouse.engines.spark.schema import compares_otherwise
from boathouse.errors import BoathouseError
from boathouse.expr.resolve import bind_predicate
from boathouse.expr.tree import Column, Comparison, ComparisonOp, Expr, In, IsNull, Literal, Not, walk
from boathouse.types import Schema

_COMPARISONS: dict[type[D.Filter], ComparisonOp] = {
    D.EqualTo: "=",
    D.EqualNullSafe: "<=>",
    D.GreaterThan: ">",
    D.GreaterThanOrEqual: ">=",
    D.LessThan: "<",
    D.LessThanOrEqual: "<=",
}


def expression(filter: D.Filter, schema: Schema) -> Expr | None:
    """The filter bound to the schema; None for one without an equivalent here, which then only Spark applies."""
    try:
        made = _unbound(filter)
        bound = None if made is None else bind_predicate(made, schema, None)
    except BoathouseError:
        return None
    tests_nulls = isinstance(filter, D.IsNull | D.IsNotNull)
    if bound is None or (not tests_nulls and _otherwise(bound)):
        return None
    return bound


def _otherwise(bound: Expr) -> bool:
    return any(isinstance(n, Column) and n.type is not None and compares_otherwise(n.type) for n in walk(bound))


def _unbound(filter: D.Filter) -> Expr | None:
    if isinstance(filter, D.Not):
        inner = _unbound(filter.child)
        return None if inner is None else Not(inner)
    path = getattr(filter, "attribute", None)
    if path is None:
        return None
    column = Column(tuple(path))
    if isinstance(filter, D.IsNull):
        return IsNull(column)
    if isinstance(filter, D.IsNotNull):
        return Not(IsNull(column))
    if isinstance(filter, D.In):
        return In(column, tuple(Literal.of(v) for v in filter.value))
    op = _COMPARISONS.get(type(filter))
    return None if op is None else Comparison(op, column, Literal.of(filter.value))
