"""Conditions that are expressions of polars: comparisons, tests and their combinations, which mean the same here."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa

from boathouse.errors import UnsupportedFeatureError
from boathouse.expr.tree import And, Column, Comparison, ComparisonOp, Expr, Function, In, IsNull, Literal, Not, Or, lit
from boathouse.types import DOUBLE, FLOAT

EPOCH = dt.datetime(1970, 1, 1)
_BINARY: dict[str, Callable[[Expr, Expr], Expr]] = {
    "Eq": lambda a, b: Comparison("=", a, b),
    "NotEq": lambda a, b: Comparison("!=", a, b),
    "Lt": lambda a, b: Comparison("<", a, b),
    "LtEq": lambda a, b: Comparison("<=", a, b),
    "Gt": lambda a, b: Comparison(">", a, b),
    "GtEq": lambda a, b: Comparison(">=", a, b),
    "EqValidity": lambda a, b: Comparison("<=>", a, b),
    "And": lambda a, b: And((a, b)),
    "LogicalAnd": lambda a, b: And((a, b)),
    "Or": lambda a, b: Or((a, b)),
    "LogicalOr": lambda a, b: Or((a, b)),
}
_TESTS: dict[str, Callable[[Expr], Expr]] = {
    "IsNull": IsNull,
    "IsNotNull": lambda a: Not(IsNull(a)),
    "Not": Not,
    "IsNan": lambda a: Function("isnan", (a,)),
}
_TEXT = {"StartsWith": "startswith", "EndsWith": "endswith"}
_WITHIN: dict[str, tuple[ComparisonOp, ComparisonOp]] = {
    "Both": (">=", "<="),
    "Left": (">=", "<"),
    "Right": (">", "<="),
    "None": (">", "<"),
}
_PARTS = {"Nanoseconds": 1000, "Microseconds": 1, "Milliseconds": 1}


def from_polars_expression(given: Any) -> Expr:
    """The same as an expression of ours. Raises UnsupportedFeatureError for what has no counterpart."""
    try:
        return _read(_tree(given))
    except (UnsupportedFeatureError, KeyError, TypeError, ValueError, OverflowError, pa.ArrowException) as error:
        raise UnsupportedFeatureError(
            f"this polars expression cannot be a condition here: {given}: {error}",
            advice="say it as Spark SQL text, for example where=\"city LIKE 'B%'\"",
        ) from error


def parts_from_polars(given: Any) -> list[Expr]:
    """Those of the conditions that all rows must satisfy that have a counterpart: a condition that is no stricter."""
    found: list[Expr] = []
    for part in _all_of(_tree(given)):
        try:
            found.append(_read(part))
        except (UnsupportedFeatureError, KeyError, TypeError, ValueError, OverflowError, pa.ArrowException):
            continue
    return found


def _tree(given: Any) -> Any:
    return json.loads(given.meta.serialize(format="json"))


def _all_of(tree: Any) -> Iterator[Any]:
    match tree:
        case {"BinaryExpr": {"op": "And" | "LogicalAnd", "left": left, "right": right}}:
            yield from _all_of(left)
            yield from _all_of(right)
        case _:
            yield tree


def _read(tree: Any) -> Expr:
    match tree:
        case {"Column": str() as name}:
            return Column((name,))
        case {"Literal": {"Dyn": {"Int": int() as value}}}:
            return lit(value)
        case {"Literal": {"Dyn": {"Float": int() | float() as value}}}:
            return Literal(float(value), type=DOUBLE)
        case {"Literal": {"Dyn": {"Str": str() as value}}}:
            return lit(value)
        case {"Literal": {"Scalar": dict() as value}}:
            return lit(_constant(*next(iter(value.items()))))
        case {"BinaryExpr": {"left": left, "op": str() as op, "right": right}}:
            return _BINARY[op](_read(left), _read(right))
        case {"Function": {"input": [*args], "function": function}}:
            return _function(function, args)
    raise UnsupportedFeatureError(f"{str(tree)[:80]} has no counterpart")


def _function(function: Any, args: list[Any]) -> Expr:
    match function, args:
        case {"Boolean": str() as name}, [arg] if name in _TESTS:
            return _TESTS[name](_read(arg))
        case {"Boolean": {"IsIn": {"nulls_equal": False}}}, [arg, {"Literal": {"Scalar": {"List": [*data]}}}]:
            values = pa.ipc.open_stream(bytes(data)).read_all().column(0).to_pylist()
            if None in values or not values:
                raise UnsupportedFeatureError("is_in of no values, or of null, has no counterpart")
            return In(_read(arg), tuple(map(lit, values)))
        case {"Boolean": {"IsBetween": {"closed": closed}}}, [arg, low, high]:
            above, below = _WITHIN[closed]
            value = _read(arg)
            return And((Comparison(above, value, _read(low)), Comparison(below, value, _read(high))))
        case {"StringExpr": str() as name}, [arg, text] if name in _TEXT:
            return Function(_TEXT[name], (_read(arg), _read(text)))
        case {"StringExpr": {"Contains": {"literal": True}}}, [arg, text]:
            return Function("contains", (_read(arg), _read(text)))
        case {"StructExpr": {"FieldByName": str() as name}}, [arg]:
            struct = _read(arg)
            if isinstance(struct, Column):
                return Column((*struct.path, name))
    raise UnsupportedFeatureError(f"{str(function)[:80]} has no counterpart")


def _constant(kind: str, value: Any) -> Any:
    match kind, value:
        case ("Null", _):
            return None
        case ("Boolean" | "String", _) | ("Int8" | "Int16" | "Int32" | "Int64" | "UInt8" | "UInt16" | "UInt32", int()):
            return value
        case ("Float64", int() | float()):
            return Literal(float(value), type=DOUBLE)
        case ("Float32", int() | float()):
            return Literal(float(value), type=FLOAT)
        case ("Binary", [*data]):
            return bytes(data)
        case ("Date", int()):
            return (EPOCH + dt.timedelta(value)).date()
        case ("Decimal", [int() as unscaled, _, int() as scale]):
            return Decimal(unscaled).scaleb(-scale)
        case ("Datetime", [int() as count, str() as unit, zone]) if count % _PARTS[unit] == 0:
            micros = count * 1000 if unit == "Milliseconds" else count // _PARTS[unit]
            moment = EPOCH + dt.timedelta(microseconds=micros)
            return moment if zone is None else moment.replace(tzinfo=dt.UTC)
    raise UnsupportedFeatureError(f"a constant of type {kind} has no counterpart")
