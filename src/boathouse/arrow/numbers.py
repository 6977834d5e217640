"""Rounding, powers and signs with Spark's semantics."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.arithmetic import rescale
from boathouse.arrow.schema import to_arrow_type
from boathouse.arrow.vector import Value, build, either, floats, per_distinct
from boathouse.bits.floats import to_float32
from boathouse.errors import EvaluationError
from boathouse.expr.text import WIDE, fit_decimal
from boathouse.types import DataType, DecimalType, FloatType, IntegerType


def whole(array: pa.Array, type: DataType, up: bool) -> pa.Array:
    """CEIL or FLOOR. A double beyond BIGINT is an overflow; NaN is 0, as in Java's conversion."""
    kernel = pc.ceil if up else pc.floor
    if pa.types.is_integer(array.type):
        return array.cast(pa.int64())
    if isinstance(type, DecimalType):
        wide = array.cast(pa.decimal256(min(array.type.precision + 1, 76), array.type.scale))
        return rescale(kernel(wide), type)
    values, mask = floats(kernel(array.cast(pa.float64())))
    bad = (values >= 2.0**63) | (values < -(2.0**63))
    if mask is not None:
        bad &= ~mask
    if bad.any():
        raise EvaluationError(f"{values[bad][0]} does not fit bigint")
    return build(np.where(np.isnan(values), 0, values).astype(np.int64), mask, pa.int64())


def round_(args: list[Value], type: DataType) -> Value:
    """ROUND half up at a constant number of digits; doubles are rounded by their shortest string, as in Spark."""
    array = args[0]
    arrow = to_arrow_type(type)
    if len(args) > 1 and not args[1].is_valid:
        return pa.nulls(len(array), arrow)
    digits = args[1].as_py() if len(args) > 1 else 0
    if isinstance(type, IntegerType):
        return array if digits >= 0 else per_distinct(lambda v: _round_int(v, digits, type), array, arrow)
    if isinstance(type, DecimalType):
        return per_distinct(lambda v: _round_decimal(v, digits, type), array, arrow)
    bits = type.bits if isinstance(type, FloatType) else 64
    return per_distinct(lambda v: _round_float(v, digits, bits), array, arrow)


def _at(value: Decimal, digits: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP, context=WIDE)


def _round_int(value: int, digits: int, type: IntegerType) -> int:
    out = int(_at(Decimal(value), digits)) if digits > -25 else 0
    if not type.low <= out <= type.high:
        raise EvaluationError(f"round({value}, {digits}) does not fit {type}")
    return out


def _round_decimal(value: Decimal, digits: int, type: DecimalType) -> Decimal:
    out = fit_decimal(_at(value, min(digits, type.scale if digits >= 0 else digits)), type.precision, type.scale)
    if out is None:
        raise EvaluationError(f"round({value}, {digits}) does not fit {type}")
    return out


def _round_float(value: float, digits: int, bits: int) -> float:
    if not math.isfinite(value):
        return value
    # Adding 0.0 makes -0.0 positive: a BigDecimal has no negative zero.
    text = repr(value) if bits == 64 else str(np.float32(value))
    exact = Decimal(text)
    _, _, exponent = exact.as_tuple()
    assert isinstance(exponent, int)
    if digits >= -exponent:
        return value + 0.0
    out = float(_at_wide(exact, digits)) + 0.0
    return to_float32(out) if bits == 32 else out


def _at_wide(value: Decimal, digits: int) -> Decimal:
    """Half up, without the limit of a decimal context:  doubles reach 10**308."""
    if value.adjusted() < -digits - 1:
        return Decimal(0)
    shifted = value.scaleb(digits, context=WIDE)
    return shifted.to_integral_value(ROUND_HALF_UP).scaleb(-digits, context=WIDE)


def sign(array: pa.Array) -> pa.Array:
    values, mask = floats(array)
    return build(np.where(values == 0, values, np.sign(values)), mask, pa.float64())


def power(base: pa.Array, exponent: pa.Array) -> pa.Array:
    """Java's Math.pow: 1 to the NaN is NaN, and so is 1 to the infinity."""
    (x, m), (y, n) = floats(base), floats(exponent)
    with np.errstate(all="ignore"):
        out = np.power(x, y)
    out = np.where((np.abs(x) == 1) & np.isinf(y), np.nan, out)
    out = np.where((x == 1) & np.isnan(y), np.nan, out)
    return build(out, either(m, n), pa.float64())
