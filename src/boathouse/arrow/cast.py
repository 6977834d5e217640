"""CAST over arrays with Spark's ANSI semantics; see `conform` for casting user data to a table's schema."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from boathouse import types as T
from boathouse.arrow.arithmetic import rescale
from boathouse.arrow.conform import conform
from boathouse.arrow.nested_cast import nested
from boathouse.arrow.schema import to_arrow_type
from boathouse.arrow.seconds import from_seconds, seconds
from boathouse.arrow.vector import Bools, build, either, floats, integers, nulls, per_distinct
from boathouse.bits.floats import format_float
from boathouse.bits.zones import Zone
from boathouse.errors import EvaluationError
from boathouse.expr import text
from boathouse.expr.coercion import is_numeric
from boathouse.expr.simplify import cast_literal
from boathouse.expr.tree import Literal
from boathouse.expr.zoned import zone_for
from boathouse.types.data_types import children

__all__ = ["cast", "conform"]

# Seconds since the epoch at the start of the years 1 and 10000: in between, Arrow prints as Spark does.
_YEAR_1 = -62_135_596_800
_YEAR_10000 = 253_402_300_800


def cast(array: pa.Array, source: T.DataType, to: T.DataType, safe: bool = False, zone: Zone | None = None) -> pa.Array:
    """CAST(array AS to); `safe` is TRY_CAST: null where CAST raises. `zone` is needed where `expr.zoned` says so.

    Raises EvaluationError on overflow and malformed strings.
    """
    arrow = to_arrow_type(to)
    if source == to:
        return array
    if isinstance(source, T.NullType):
        return pa.nulls(len(array), arrow)
    if children(to):
        return nested(array, source, to, lambda a, s, t: cast(a, s, t, safe, zone_for(s, t, zone)))
    if isinstance(source, T.StringType):
        return _from_text(array, to, safe, zone)
    if source == T.FloatType(16):
        array, source = array.cast(pa.float32()), T.FloatType(32)
    if zone is not None and isinstance(source, T.TimestampType) and source.utc:
        array, source = _clocks(array, source, zone), replace(source, utc=False)
        if source == to:
            return array
    if isinstance(source, T.TimestampType) and is_numeric(to):
        return cast(*seconds(array, source, to), to, safe)
    if isinstance(to, T.TimestampType) and is_numeric(source):
        return from_seconds(array, source, to, safe)
    match to:
        case T.StringType():
            return _to_text(array, source)
        case T.BooleanType():
            return pc.not_equal(array, pa.scalar(0, array.type))
        case T.IntegerType():
            return _to_integer(array, source, to, safe)
        case T.FloatType():
            return _to_float(array, source, to)
        case T.DecimalType():
            return _to_decimal(array, source, to, safe)
        case T.DateType():
            days, mask = integers(array)
            return build(days // (86_400 * _per_second(source)), mask, arrow)
        case T.TimestampType():
            return _to_timestamp(array, source, to, safe, zone)
        case T.BinaryType() if isinstance(source, T.FixedType | T.UUIDType | T.BinaryType):
            return array.cast(arrow)
        case T.FixedType() | T.UUIDType() if isinstance(source, T.FixedType | T.UUIDType | T.BinaryType):
            return _to_fixed(array, to, safe)
        case T.TimeType() | T.DurationType():
            return array.cast(arrow, safe=False)
    raise EvaluationError(f"{source} cannot be cast to {to}")


def _per_second(type: T.DataType) -> int:
    assert isinstance(type, T.TimestampType)
    return text.UNITS_PER_SECOND[type.unit]


def _checked(values: npt.NDArray[Any], mask: Bools | None, bad: Bools, to: T.DataType, safe: bool) -> pa.Array:
    """`values` as `to`; rows that are `bad` and not null raise, or become null if `safe`."""
    if mask is not None:
        bad = bad & ~mask
    if bad.any():
        if not safe:
            raise EvaluationError(f"{values[bad][0]} does not fit {to}")
        mask = either(mask, bad)
        values = np.where(bad, 0, values)
    return build(values, mask, to_arrow_type(to))


def _to_integer(array: pa.Array, source: T.DataType, to: T.IntegerType, safe: bool) -> pa.Array:
    low, high = to.low, to.high
    match source:
        case T.BooleanType():
            return array.cast(to_arrow_type(to))
        case T.IntegerType(bits, signed):
            if (signed == to.signed and bits <= to.bits) or (to.signed and bits < to.bits):
                return array.cast(to_arrow_type(to))
            if signed or bits < 64:
                whole, mask = integers(array)
                return _checked(whole, mask, (whole < low) | (whole > high), to, safe)
        case T.FloatType():
            numbers, mask = floats(array)
            cut = np.trunc(numbers.astype(np.float64))
            # 2**63 is a double and 2**63 - 1 is not: compare with the exclusive limit.
            bad = ~((cut >= float(low)) & (cut < 2.0 ** (to.bits - to.signed)))
            whole = np.where(bad, 0, cut).astype(np.int64 if to.signed else np.uint64)
            return _checked(whole, mask, bad, to, safe)

    def one(v: Any) -> int | None:
        whole = int(v)
        if low <= whole <= high:
            return whole
        if safe:
            return None
        raise EvaluationError(f"{v} does not fit {to}")

    return per_distinct(one, array, to_arrow_type(to))


def _to_float(array: pa.Array, source: T.DataType, to: T.FloatType) -> pa.Array:
    arrow = to_arrow_type(to)
    if isinstance(source, T.BooleanType):
        return array.cast(pa.int8()).cast(arrow)
    if isinstance(source, T.DecimalType):
        doubles = _decimal_to_double(array, source)
        return doubles if to.bits == 64 else doubles.cast(arrow, safe=False)
    return array.cast(arrow, safe=False)


def _decimal_to_double(array: pa.Array, source: T.DecimalType) -> pa.Array:
    """Correctly rounded, as Java's: Arrow multiplies by an inexact power of ten."""
    if source.precision <= 15 and source.scale <= 22:
        unscaled, mask = _unscaled(array)
        return build(unscaled / 10.0**source.scale, mask, pa.float64())
    return per_distinct(float, array, pa.float64())


def _unscaled(array: pa.Array) -> tuple[npt.NDArray[np.int64], Bools | None]:
    """The unscaled integers of a decimal128 array whose values fit 64 bits."""
    data = np.frombuffer(array.buffers()[1], np.int64, count=2 * len(array), offset=16 * array.offset)
    return data[::2], nulls(array)


def _to_decimal(array: pa.Array, source: T.DataType, to: T.DecimalType, safe: bool) -> pa.Array:
    if isinstance(source, T.BooleanType):
        array, source = array.cast(pa.int8()), T.IntegerType(8)
    if isinstance(source, T.IntegerType):
        digits = {8: 3, 16: 5, 32: 10, 64: 20}[source.bits]
        return rescale(array.cast(pa.decimal128(digits, 0)).cast(pa.decimal256(digits + to.scale, to.scale)), to, safe)
    if isinstance(source, T.DecimalType):
        return rescale(array.cast(pa.decimal256(source.precision, source.scale)), to, safe)

    def one(v: float) -> Decimal | None:
        # Spark uses the double's shortest string.
        out = text.fit_decimal(Decimal(repr(float(v))), to.precision, to.scale)
        if out is None and not safe:
            raise EvaluationError(f"{v} does not fit {to}")
        return out

    return per_distinct(one, array, to_arrow_type(to))


def _clocks(array: pa.Array, source: T.TimestampType, zone: Zone) -> pa.Array:
    """The wall clocks of instants in a zone."""
    arrow = to_arrow_type(replace(source, utc=False))
    if zone.utc:
        return array.view(arrow)
    units, mask = integers(array)
    return build(zone.to_local(units, _per_second(source)), mask, arrow)


def _to_timestamp(array: pa.Array, source: T.DataType, to: T.TimestampType, safe: bool, zone: Zone | None) -> pa.Array:
    target = text.UNITS_PER_SECOND[to.unit]
    if isinstance(source, T.DateType):
        days, mask = integers(array)
        # With a zone one day less: midnight may be up to a day from UTC's.
        limit = (2**63 - 1) // (86_400 * target) - (zone is not None)
        bad = (days > limit) | (days < -limit - (zone is None))
        days = np.where(bad, 0, days)
        return _checked(
            days * 86_400 * target if zone is None else zone.start_of_day(days, target), mask, bad, to, safe
        )
    assert isinstance(source, T.TimestampType)
    if zone is not None and to.utc and not source.utc:
        units, mask = integers(array)
        instants = zone.to_instant(units, _per_second(source))
        array, source = build(instants, mask, to_arrow_type(replace(source, utc=True))), replace(source, utc=True)
    have = text.UNITS_PER_SECOND[source.unit]
    if have == target:
        return array.view(to_arrow_type(to))
    units, mask = integers(array)
    if have > target:
        return build(units // (have // target), mask, to_arrow_type(to))
    factor = target // have
    limit = (2**63 - 1) // factor
    return _checked(units * factor, mask, (units > limit) | (units < -limit), to, safe)


def _from_text(array: pa.Array, to: T.DataType, safe: bool, zone: Zone | None) -> pa.Array:
    def one(word: str) -> object:
        literal = cast_literal(Literal(word, type=T.StringType()), to, zone)
        if literal is None:
            if safe:
                return None
            raise EvaluationError(f"{word!r} is not a valid {to}")
        return literal.value

    arrow = to_arrow_type(to)
    if isinstance(to, T.BinaryType):
        return array.cast(arrow)
    if isinstance(to, T.DateType):
        return per_distinct(one, array, pa.int32()).view(arrow)
    if isinstance(to, T.TimestampType | T.TimeType):
        return per_distinct(one, array, pa.int32() if pa.types.is_time32(arrow) else pa.int64()).view(arrow)
    return per_distinct(one, array, arrow)


def _to_text(array: pa.Array, source: T.DataType) -> pa.Array:
    string = pa.string()
    match source:
        case T.FloatType(bits):
            return per_distinct(lambda v: format_float(v, bits), array, string)
        case T.DecimalType(_, scale):
            if scale <= 6:
                # Arrow prints numbers with more than six decimal places with an exponent.
                return array.cast(string)
            return per_distinct(lambda v: text.format_decimal(v, scale), array, string)
        case T.DateType():
            return per_distinct(text.format_date, array.view(pa.int32()), string)
        case T.TimestampType(_, unit):
            units = text.UNITS_PER_SECOND[unit]
            if unit != "ns" and _in_four_digit_years(array, units):
                return _plain_timestamps(array)
            return per_distinct(lambda v: text.format_timestamp(v * 1_000_000 // units), array.view(pa.int64()), string)
        case T.UUIDType():
            return per_distinct(_uuid_text, array, string)
    return array.cast(string)


def _to_fixed(array: pa.Array, to: T.DataType, safe: bool) -> pa.Array:
    arrow = to_arrow_type(to)
    array = array.cast(pa.binary())
    other = pc.fill_null(pc.not_equal(pc.binary_length(array), arrow.byte_width), False)
    if pc.any(other).as_py():
        if not safe:
            raise EvaluationError(f"{array.filter(other)[0].as_py()!r} does not fit {to}")
        array = pc.if_else(other, pa.scalar(None, pa.binary()), array)
    return array.cast(arrow)


def _in_four_digit_years(array: pa.Array, units: int) -> bool:
    limits = pc.min_max(array.view(pa.int64())).as_py()
    return limits["min"] is None or (limits["min"] >= _YEAR_1 * units and limits["max"] < _YEAR_10000 * units)


def _plain_timestamps(array: pa.Array) -> pa.Array:
    printed = pc.strftime(array, format="%Y-%m-%d %H:%M:%S")
    return pc.replace_substring_regex(printed, pattern=r"\.0*$|(\.\d*[1-9])0*$", replacement=r"\1")


def _uuid_text(value: bytes) -> str:
    h = value.hex()
    return f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"
