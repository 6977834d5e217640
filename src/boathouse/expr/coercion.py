"""The type algebra of Spark's ANSI mode: common types, decimal arithmetic, what casts exist."""

from __future__ import annotations

from collections.abc import Iterable

from boathouse.types import (
    BINARY,
    DOUBLE,
    FLOAT,
    INT64,
    NULL,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DurationType,
    FixedSizeListType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    MapType,
    NullType,
    StringType,
    StructType,
    TimestampType,
    TimeType,
    UUIDType,
)

MAX_PRECISION = 38
_INTEGER_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}


def is_numeric(type: DataType | None) -> bool:
    return isinstance(type, IntegerType | FloatType | DecimalType)


def bounded(precision: int, scale: int) -> DecimalType:
    """DecimalType.bounded: both cut at 38."""
    return DecimalType(min(precision, MAX_PRECISION), min(scale, MAX_PRECISION))


def adjusted(precision: int, scale: int) -> DecimalType:
    """DecimalType.adjustPrecisionScale: beyond 38 digits the scale gives way, down to 6."""
    if precision <= MAX_PRECISION:
        return DecimalType(precision, scale)
    whole = precision - scale
    return DecimalType(MAX_PRECISION, max(MAX_PRECISION - whole, min(scale, 6)))


def decimal_for(type: IntegerType) -> DecimalType:
    """The decimal that holds every integer of `type`."""
    return DecimalType(_INTEGER_DIGITS[type.bits], 0)


def computed(type: DataType | None) -> DataType | None:
    """The type that values of `type` are computed in: Spark has neither unsigned integers nor half floats."""
    match type:
        case IntegerType(64, False):
            return decimal_for(type)
        case IntegerType(bits, False):
            return IntegerType(2 * bits)
        case FloatType(16):
            return FLOAT
    return type


def wider_decimal(a: DecimalType, b: DecimalType) -> DecimalType:
    """The decimal that both fit; beyond 38 digits the integral digits are kept."""
    scale = max(a.scale, b.scale)
    whole = max(a.precision - a.scale, b.precision - b.scale)
    if whole + scale <= MAX_PRECISION:
        return DecimalType(whole + scale, scale)
    return DecimalType(MAX_PRECISION, max(0, MAX_PRECISION - whole))


def decimal_arithmetic(op: str, a: DecimalType, b: DecimalType) -> DecimalType:
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


def common(a: DataType, b: DataType) -> DataType | None:
    """The common type that both are cast to; None if there is none."""
    if a == b:
        return a
    match a, b:
        case (NullType(), other) | (other, NullType()):
            return other
        case (IntegerType(x, True), IntegerType(y, True)):
            return a if x > y else b
        case (FloatType(x), FloatType(y)):
            return a if x > y else b
        # An integer beside a FLOAT is compared as DOUBLE, so that no digit is lost.
        case (FloatType(), IntegerType()) | (IntegerType(), FloatType()):
            return DOUBLE
        case (FloatType(), DecimalType()) | (DecimalType(), FloatType()):
            return DOUBLE
        case (DecimalType(), DecimalType()):
            return wider_decimal(a, b)
        case (DecimalType(), IntegerType()):
            return wider_decimal(a, decimal_for(b))
        case (IntegerType(), DecimalType()):
            return wider_decimal(decimal_for(a), b)
        case (IntegerType(x, False), IntegerType(y, False)):
            return a if x > y else b
        case (IntegerType(signed=False), IntegerType()) | (IntegerType(), IntegerType(signed=False)):
            return common(computed(a) or a, computed(b) or b)
        case (StringType(), other) | (other, StringType()):
            return _with_string(other)
        case (TimestampType(u, m), TimestampType(v, n)):
            return TimestampType(u or v, "ns" if "ns" in (m, n) else "us")
        case (DateType(), TimestampType()):
            return b
        case (TimestampType(), DateType()):
            return a
        case (BinaryType() | FixedType() | UUIDType(), BinaryType() | FixedType() | UUIDType()):
            return BINARY
    return None


def _with_string(other: DataType) -> DataType | None:
    """A string beside another type is cast to that type; beside integers to BIGINT, beside fractional types to DOUBLE.

    BIGINT does not hold every uint64, and DOUBLE does not distinguish them: a string beside uint64 is cast to uint64.
    """
    if isinstance(other, IntegerType):
        return other if (other.bits, other.signed) == (64, False) else INT64
    if isinstance(other, FloatType | DecimalType):
        return DOUBLE
    return other if isinstance(other, BooleanType | DateType | TimestampType | BinaryType | UUIDType) else None


def common_of(types: Iterable[DataType]) -> DataType | None:
    """The common type of all, as CASE, COALESCE, IN and GREATEST need it. Strings come last, as in Spark."""
    ordered = sorted(types, key=lambda t: isinstance(t, StringType))
    out: DataType | None = NULL
    for t in ordered:
        out = common(out, t) if out is not None else None
    return out


def can_cast(a: DataType, b: DataType) -> bool:
    """Whether CAST(a AS b) exists: Spark's ANSI table, without intervals; fields of structs are found by name."""
    if a == b or isinstance(a, NullType):
        return True
    match a, b:
        case (StringType(), _):
            return isinstance(
                b,
                BooleanType
                | IntegerType
                | FloatType
                | DecimalType
                | BinaryType
                | DateType
                | TimeType
                | TimestampType
                | UUIDType,
            )
        case (_, StringType()):
            scalar = BooleanType | IntegerType | FloatType | DecimalType | BinaryType | DateType | TimestampType
            return isinstance(a, scalar | UUIDType)
        case (TimestampType(utc=True), IntegerType() | FloatType() | DecimalType()):
            return True
        case (IntegerType() | FloatType() | DecimalType(), TimestampType(utc=True)):
            return True
        case (BooleanType(), _):
            return is_numeric(b)
        case (IntegerType() | FloatType() | DecimalType(), _):
            return is_numeric(b) or isinstance(b, BooleanType)
        case (DateType(), TimestampType()) | (TimestampType(), DateType() | TimestampType()):
            return True
        case (FixedType() | UUIDType(), BinaryType()):
            return True
        case (BinaryType() | FixedType() | UUIDType(), FixedType() | UUIDType()):
            return True
        case (TimeType(), TimeType()) | (DurationType(), DurationType()):
            return True
        case (ListType(x) | FixedSizeListType(x, _), ListType(y) | FixedSizeListType(y, _)):
            return can_cast(x.type, y.type)
        case (MapType(k, v), MapType(to_k, to_v)):
            return can_cast(k.type, to_k.type) and can_cast(v.type, to_v.type)
        case (StructType(given), StructType(fields)):
            known = ((f, b.places.at(f.name)) for f in given)
            return all(len(at) == 1 and can_cast(f.type, fields[at[0]].type) for f, at in known)
    return False
