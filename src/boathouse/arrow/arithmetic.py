"""Arithmetic with ANSI errors: overflow and division by zero raise, decimals round half up."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.schema import to_arrow_type
from boathouse.arrow.vector import Value, as_array, build, either, floats, integers, per_row
from boathouse.errors import EvaluationError
from boathouse.expr.text import WIDE, fit_decimal
from boathouse.types import DataType, DecimalType, FloatType, IntegerType

_CHECKED: dict[str, Callable[[Value, Value], Value]] = {
    "+": pc.add_checked,
    "-": pc.subtract_checked,
    "*": pc.multiply_checked,
    "div": pc.divide_checked,
}
_FLOAT: dict[str, Callable[[Value, Value], Value]] = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}


def apply(op: str, a: Value, b: Value, result: DataType) -> Value:
    """`a op b`, one of them an array. Raises EvaluationError."""
    rows = len(a) if isinstance(a, pa.Array) else len(b)
    if isinstance(result, DecimalType):
        return _decimal(op, a, b, result, rows)
    if op in ("/", "%"):
        left, right = as_array(a, rows), as_array(b, rows)
        refuse_zero(left, right)
        return pc.divide(left, right) if op == "/" else remainder(left, right, result)
    if isinstance(result, FloatType):
        return _FLOAT[op](a, b)
    try:
        return _CHECKED[op](a, b)
    except pa.ArrowInvalid as error:
        zero = "divide by zero" in str(error)
        raise EvaluationError("division by zero" if zero else f"{result} overflow") from None


def refuse_zero(left: pa.Array, right: pa.Array) -> None:
    """Raises EvaluationError where a value is divided by zero, for floats too, as in Spark's ANSI mode."""
    zero = pc.equal(right, pa.scalar(0, right.type))
    if pc.any(pc.and_(zero, pc.is_valid(left))).as_py():
        raise EvaluationError("division by zero")


def remainder(left: pa.Array, right: pa.Array, type: DataType) -> pa.Array:
    """The remainder with the dividend's sign."""
    arrow = to_arrow_type(type)
    if isinstance(type, IntegerType):
        (x, m), (y, n) = integers(left), integers(right, 1)
        # numpy warns of a zero divisor even where the dividend is null.
        return build(np.fmod(x, y if m is None else np.where(m, 1, y)), either(m, n), arrow)
    (u, m), (v, n) = floats(left), floats(right, 1.0)
    with np.errstate(invalid="ignore"):
        return build(np.fmod(u, v), either(m, n), arrow)


def pmod(left: pa.Array, right: pa.Array, type: DataType) -> pa.Array:
    """`((left % right) + right) % right` where the remainder is negative."""
    refuse_zero(left, right)
    if isinstance(type, DecimalType):
        return per_row(_positive, [left, right], to_arrow_type(type))
    rest = remainder(left, right, type)
    fixed = remainder(pc.add(rest, right), right, type)
    return pc.if_else(pc.less(rest, pa.scalar(0, rest.type)), fixed, rest)


def _positive(x: Decimal, y: Decimal) -> Decimal:
    rest = WIDE.remainder(x, y)
    return WIDE.remainder(WIDE.add(rest, y), y) if rest < 0 else rest


def negate(a: pa.Array, type: DataType) -> pa.Array:
    if isinstance(type, IntegerType):
        try:
            return pc.negate_checked(a)
        except pa.ArrowInvalid:
            raise EvaluationError(f"{type} overflow") from None
    return pc.negate(a)


def absolute(a: pa.Array, type: DataType) -> pa.Array:
    if isinstance(type, IntegerType):
        try:
            return pc.abs_checked(a)
        except pa.ArrowInvalid:
            raise EvaluationError(f"{type} overflow") from None
    return pc.abs(a)


_EXACT: dict[str, Callable[[Decimal, Decimal], Decimal]] = {
    "+": WIDE.add,
    "-": WIDE.subtract,
    "*": WIDE.multiply,
    "/": WIDE.divide,
    "%": WIDE.remainder,
}


def _decimal(op: str, a: Value, b: Value, result: DecimalType, rows: int) -> pa.Array:
    left, right = as_array(a, rows), as_array(b, rows)
    if op in ("/", "%"):
        refuse_zero(left, right)
    if op == "/":
        quotient = _divide(left, right, result)
        if quotient is not None:
            return quotient
    elif op != "%" and (digits := _natural(op, left.type, right.type)) <= 76:
        # 128 bits are several times faster; the carry of rounding needs one more digit.
        wide = pa.decimal128 if digits < 38 else pa.decimal256
        x, y = (v.cast(wide(v.type.precision, v.type.scale)) for v in (left, right))
        return rescale(_FLOAT[op](x, y), result)
    return per_row(lambda x, y: _exactly(op, x, y, result), [left, right], to_arrow_type(result))


def _exactly(op: str, x: Decimal, y: Decimal, result: DecimalType) -> Decimal:
    out = fit_decimal(_EXACT[op](x, y), result.precision, result.scale)
    if out is None:
        raise EvaluationError(f"{x} {op} {y} does not fit {result}")
    return out


def _divide(left: pa.Array, right: pa.Array, result: DecimalType) -> pa.Array | None:
    """The quotient by Arrow's truncating division with one extra digit; None if that needs more than 76 digits."""
    (p1, s1), (p2, s2) = ((t.precision, t.scale) for t in (left.type, right.type))
    # Arrow's result has scale max(4, s1 + p2 - s2 + 1): the dividend's scale is raised until there is one extra digit.
    raised = max(result.scale - p2 + s2, s1)
    scale = max(4, raised + p2 - s2 + 1)
    if p1 - s1 + s2 + scale > 76 or p1 + raised - s1 > 76:
        return None
    dividend = left.cast(pa.decimal256(p1 + raised - s1, raised))
    return rescale(pc.divide(dividend, right.cast(pa.decimal256(p2, s2))), result)


def _natural(op: str, a: pa.DataType, b: pa.DataType) -> int:
    """The precision that Arrow gives the exact result."""
    if op == "*":
        return int(a.precision + b.precision + 1)
    return int(max(a.precision - a.scale, b.precision - b.scale) + max(a.scale, b.scale) + 1)


def rescale(a: pa.Array, to: DecimalType, safe: bool = False) -> pa.Array:
    """Decimals rounded half up to the scale of `to`; a value that does not fit raises, or is null if `safe`."""
    arrow = to_arrow_type(to)
    if a.type.scale > to.scale:
        # Room for the carry of 9.99 -> 10.0.
        wide = pa.decimal128 if a.type.precision < 38 else pa.decimal256
        a = a.cast(wide(min(a.type.precision + 1, 76), a.type.scale))
        a = pc.round(a, ndigits=to.scale, round_mode="half_towards_infinity")
    try:
        return a.cast(arrow)
    except pa.ArrowInvalid:
        if not safe:
            raise EvaluationError(f"a value does not fit {to}") from None
    return per_row(lambda v: fit_decimal(v, to.precision, to.scale), [a], arrow)
