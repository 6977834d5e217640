"""Comparisons with Spark's semantics where Arrow's differ: NaN equals NaN and is the greatest, -0.0 equals 0.0.

Strings and binaries are compared by unsigned bytes and timestamps as instants in both, so they take one kernel.
Arguments are arrays or scalars of one Arrow type; results have Arrow's nulls.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.vector import Value

_PLAIN: dict[str, Callable[[Value, Value], Value]] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def compare(op: str, a: Value, b: Value) -> Value:
    """`a op b` for =, !=, <, <=, >, >= (null where either is null) and <=> (never null)."""
    if op == "<=>":
        return _null_safe_equal(a, b)
    if pa.types.is_null(a.type):
        # Arrow cannot compare nulls of the null type.
        a, b = (x.cast(pa.bool_()) for x in (a, b))
    if not pa.types.is_floating(a.type):
        return _PLAIN[op](a, b)
    if isinstance(b, pa.Scalar):
        return _float_with_scalar(op, a, b)
    if isinstance(a, pa.Scalar):
        flipped = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(op, op)
        return _float_with_scalar(flipped, b, a)
    return _floats(op, a, b)


def _float_with_scalar(op: str, a: Value, b: pa.Scalar) -> Value:
    if not b.is_valid or not math.isnan(b.as_py()):
        # `NaN > b` is true but false in Arrow, so the complement is computed.
        if op == ">":
            return pc.invert(pc.less_equal(a, b))
        if op == ">=":
            return pc.invert(pc.less(a, b))
        return _PLAIN[op](a, b)
    nan = pc.is_nan(a)
    if op in ("=", ">="):
        return nan
    if op in ("!=", "<"):
        return pc.invert(nan)
    always = pc.or_(nan, pc.invert(nan))
    return always if op == "<=" else pc.invert(always)


def _floats(op: str, a: Value, b: Value) -> Value:
    match op:
        case "=":
            return pc.or_(pc.equal(a, b), pc.and_(pc.is_nan(a), pc.is_nan(b)))
        case "!=":
            return pc.invert(_floats("=", a, b))
        case "<":
            return pc.or_(pc.less(a, b), pc.and_(pc.is_nan(b), pc.invert(pc.is_nan(a))))
        case "<=":
            return pc.or_(pc.less_equal(a, b), pc.is_nan(b))
        case ">":
            return _floats("<", b, a)
        case _:
            return _floats("<=", b, a)


def _null_safe_equal(a: Value, b: Value) -> Value:
    equal = pc.fill_null(compare("=", a, b), False)
    if isinstance(b, pa.Scalar) and b.is_valid:
        return equal
    return pc.or_(equal, pc.and_(pc.is_null(a), pc.is_null(b)))


def is_in(a: Value, options: pa.Array, has_null: bool) -> Value:
    """`a IN (options)`; `options` contain no null, `has_null` says that the list did."""
    if pa.types.is_floating(a.type):
        # Hashing distinguishes -0.0 from 0.0; adding 0.0 makes them equal.
        a, options = (pc.add(x, pa.scalar(0.0, x.type)) for x in (a, options))
    found = pc.is_in(a, value_set=options)
    # A null is "not in" for Arrow and null for SQL; so is a miss if the list contains a null.
    unknown = pc.invert(found) if has_null else pc.is_null(a)
    return pc.if_else(unknown, pa.scalar(None, pa.bool_()), found)


def extreme(values: Sequence[Value], greatest: bool) -> Value:
    """GREATEST or LEAST: nulls skipped, NaN the greatest. Arrays of one type."""
    out = values[0]
    for v in values[1:]:
        wins = compare(">" if greatest else "<", v, out)
        take = pc.or_kleene(pc.is_null(out), pc.and_(pc.is_valid(v), pc.fill_null(wins, False)))
        out = pc.if_else(take, v, out)
    return out
