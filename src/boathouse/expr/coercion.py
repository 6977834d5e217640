"""The type algebra of Spark's ANSI mode: common types, decimal arithmetic, what casts exist."""

from __future__ import annotations

from collections.abc import Iterable

from boathouse import types as T

MAX_PRECISION = 38
_INTEGER_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}


def is_numeric(type: T.DataType | None) -> bool:
    return isinstance(type, T.IntegerType | T.FloatType | T.DecimalType)


def bounded(precision: int, scale: int) -> T.DecimalType:
    """DecimalType.bounded: both cut at 38."""
    return T.DecimalType(min(precision, MAX_PRECISION), min(scale, MAX_PRECISION))


def adjusted(precision: int, scale: int) -> T.DecimalType:
    """DecimalType.adjustPrecisionScale: beyond 38 digits the scale gives way, down to 6."""
    if precision <= MAX_PRECISION:
        return T.DecimalType(precision, scale)
    whole = precision - scale
    return T.DecimalType(MAX_PRECISION, max(MAX_PRECISION - whole, min(scale, 6)))


def decimal_for(type: T.IntegerType) -> T.DecimalType:
    """The decimal that holds every integer of `type`."""
    return T.DecimalType(_INTEGER_DIGITS[type.bits], 0)


def computed(type: T.DataType | None) -> T.DataType | None:
    """The type that values of `type` are computed in: Spark has neither unsigned integers nor half floats."""
    match type:
        case T.IntegerType(64, False):
            return decimal_for(type)
        case T.IntegerType(bits, False):
            return T.IntegerType(2 * bits)
        case T.FloatType(16):
            return T.FLOAT
    return type


def wider_decimal(a: T.DecimalType, b: T.DecimalType) -> T.DecimalType:
    """The decimal that both fit; beyond 38 digits the integral digits are kept."""
    scale = max(a.scale, b.scale)
    whole = max(a.precision - a.scale, b.precision - b.scale)
    if whole + scale <= MAX_PRECISION:
        return T.DecimalType(whole + scale, scale)
    return T.DecimalType(MAX_PRECISION, max(0, MAX_PRECISION - whole))


def decimal_arithmetic(op: str, a: T.DecimalType, b: T.DecimalType) -> T.DecimalType:
    """The result type of `a op b`, after Spark's DecimalPrecision."""
    (p1, s1), (p2, s2) = (a.precision, a.scale), (b.precision, b.scale)
    match op:
        case "+" | "-":
            scale = max(s1, s2)
            return adjusted(max(p1 - s1, p2 - s2) + scale + 1, scale)
        case "*":
            return adjusted(p1 + p2 + 1, s1 + s2)
        case "/":
            scale = max(6, s1 + p2 + 1)
            return adjusted(p1 - s1 + s2 + scale, scale)
        case _:
            scale = max(s1, s2)
            return adjusted(min(p1 - s1, p2 - s2) + scale, scale)


def common(a: T.DataType, b: T.DataType) -> T.DataType | None:
    """The common type that both are cast to; None if there is none."""
    if a == b:
        return a
    match a, b:
        case (T.NullType(), other) | (other, T.NullType()):
            return other
        case (T.IntegerType(x, True), T.IntegerType(y, True)):
            return a if x > y else b
        case (T.FloatType(x), T.FloatType(y)):
            return a if x > y else b
        # An integer beside a FLOAT is compared as DOUBLE, so that no digit is lost.
        case (T.FloatType(), T.IntegerType()) | (T.IntegerType(), T.FloatType()):
            return T.DOUBLE
        case (T.FloatType(), T.DecimalType()) | (T.DecimalType(), T.FloatType()):
            return T.DOUBLE
        case (T.DecimalType(), T.DecimalType()):
            return wider_decimal(a, b)
        case (T.DecimalType(), T.IntegerType()):
            return wider_decimal(a, decimal_for(b))
        case (T.IntegerType(), T.DecimalType()):
            return wider_decimal(decimal_for(a), b)
        case (T.IntegerType(x, False), T.IntegerType(y, False)):
            return a if x > y else b
        case (T.IntegerType(signed=False), T.IntegerType()) | (T.IntegerType(), T.IntegerType(signed=False)):
            return common(computed(a) or a, computed(b) or b)
        case (T.StringType(), other) | (other, T.StringType()):
            return _with_string(other)
        case (T.TimestampType(u, m), T.TimestampType(v, n)):
            return T.TimestampType(u or v, "ns" if "ns" in (m, n) else "us")
        case (T.DateType(), T.TimestampType()):
            return b
        case (T.TimestampType(), T.DateType()):
            return a
        case (T.BinaryType() | T.FixedType() | T.UUIDType(), T.BinaryType() | T.FixedType() | T.UUIDType()):
            return T.BINARY
    return None


def _with_string(other: T.DataType) -> T.DataType | None:
    """A string beside another type is cast to that type; beside integers to BIGINT, beside fractional types to DOUBLE.

    BIGINT does not hold every uint64, and DOUBLE does not distinguish them: a string beside uint64 is cast to uint64.
    """
    if isinstance(other, T.IntegerType):
        return other if (other.bits, other.signed) == (64, False) else T.INT64
    if isinstance(other, T.FloatType | T.DecimalType):
        return T.DOUBLE
    return (
        other if isinstance(other, T.BooleanType | T.DateType | T.TimestampType | T.BinaryType | T.UUIDType) else None
    )


def common_of(types: Iterable[T.DataType]) -> T.DataType | None:
    """The common type of all, as CASE, COALESCE, IN and GREATEST need it. Strings come last, as in Spark."""
    ordered = sorted(types, key=lambda t: isinstance(t, T.StringType))
    out: T.DataType | None = T.NULL
    for t in ordered:
        out = common(out, t) if out is not None else None
    return out


def can_cast(a: T.DataType, b: T.DataType) -> bool:
    """Whether CAST(a AS b) exists: Spark's ANSI table, without intervals; fields of structs are found by name."""
    if a == b or isinstance(a, T.NullType):
        return True
    match a, b:
        case (T.StringType(), _):
            return isinstance(
                b,
                T.BooleanType
                | T.IntegerType
                | T.FloatType
                | T.DecimalType
                | T.BinaryType
                | T.DateType
                | T.TimeType
                | T.TimestampType
                | T.UUIDType,
            )
        case (_, T.StringType()):
            scalar = (
                T.BooleanType
                | T.IntegerType
                | T.FloatType
                | T.DecimalType
                | T.BinaryType
                | T.DateType
                | T.TimestampType
            )
            return isinstance(a, scalar | T.UUIDType)
        case (T.TimestampType(utc=True), T.IntegerType() | T.FloatType() | T.DecimalType()):
            return True
        case (T.IntegerType() | T.FloatType() | T.DecimalType(), T.TimestampType(utc=True)):
            return True
        case (T.BooleanType(), _):
            return is_numeric(b)
        case (T.IntegerType() | T.FloatType() | T.DecimalType(), _):
            return is_numeric(b) or isinstance(b, T.BooleanType)
        case (T.DateType(), T.TimestampType()) | (T.TimestampType(), T.DateType() | T.TimestampType()):
            return True
        case (T.FixedType() | T.UUIDType(), T.BinaryType()):
            return True
        case (T.BinaryType() | T.FixedType() | T.UUIDType(), T.FixedType() | T.UUIDType()):
            return True
        case (T.TimeType(), T.TimeType()) | (T.DurationType(), T.DurationType()):
            return True
        case (T.ListType(x) | T.FixedSizeListType(x, _), T.ListType(y) | T.FixedSizeListType(y, _)):
            return can_cast(x.type, y.type)
        case (T.MapType(k, v), T.MapType(to_k, to_v)):
            return can_cast(k.type, to_k.type) and can_cast(v.type, to_v.type)
        case (T.StructType(given), T.StructType(fields)):
            known = ((f, b.places.at(f.name)) for f in given)
            return all(len(at) == 1 and can_cast(f.type, fields[at[0]].type) for f, at in known)
    return False
