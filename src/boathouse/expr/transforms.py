"""Iceberg's partition transforms of one physical value (spec, "Partition Transforms"); arrays: arrow.transforms."""

from __future__ import annotations

from decimal import Decimal

from boathouse import types as T
from boathouse.bits.murmur3 import decimal_bytes, hash_long, hash_one
from boathouse.errors import UnsupportedFeatureError
from boathouse.expr.text import UNITS_PER_SECOND, WIDE, civil_from_days
from boathouse.types.partitioning import BUCKETABLE, TRUNCATABLE


def check(transform: T.Transform, source: T.DataType) -> None:
    """Raises UnsupportedFeatureError if `transform` is not defined for columns of type `source`."""
    fine = {
        "identity": True,
        "void": True,
        "bucket": isinstance(source, BUCKETABLE),
        "truncate": isinstance(source, TRUNCATABLE),
        "year": isinstance(source, T.DateType | T.TimestampType),
        "month": isinstance(source, T.DateType | T.TimestampType),
        "day": isinstance(source, T.DateType | T.TimestampType),
        "hour": isinstance(source, T.TimestampType),
    }
    if transform.name == "unknown":
        raise UnsupportedFeatureError(f"unknown partition transform {transform}", advice="write with a known spec")
    if not fine[transform.name]:
        raise UnsupportedFeatureError(f"{transform} of {source} is not defined", advice="partition by another column")
    if transform.name in ("bucket", "truncate") and (transform.parameter is None or transform.parameter <= 0):
        raise UnsupportedFeatureError(f"{transform.name} needs a positive number, not {transform.parameter}")


def apply(transform: T.Transform, source: T.DataType, value: object) -> object:
    """The partition value of a physical `value` (as in expr.tree.Literal); null of null."""
    check(transform, source)
    if value is None or transform.name == "void":
        return None
    match transform.name:
        case "bucket":
            assert transform.parameter is not None
            return (hash_value(source, value) & 0x7FFFFFFF) % transform.parameter
        case "truncate":
            assert transform.parameter is not None
            return truncate(value, transform.parameter)
        case "identity":
            return value
    assert isinstance(value, int)
    return _time(transform.name, source, value)


def hash_value(source: T.DataType, value: object) -> int:
    """The 32-bit hash of Appendix B."""
    match value:
        case int():
            if isinstance(source, T.TimestampType | T.TimeType):
                value = value * 1_000_000 // UNITS_PER_SECOND[source.unit]
            return hash_long(value)
        case Decimal():
            assert isinstance(source, T.DecimalType)
            return hash_one(decimal_bytes(unscaled(value, source.scale)))
        case str():
            return hash_one(value.encode())
    assert isinstance(value, bytes)
    return hash_one(value)


def unscaled(value: Decimal, scale: int) -> int:
    return int(value.scaleb(scale, context=WIDE))


def truncate(value: object, width: int) -> object:
    """Down to a multiple of `width` (of the unscaled value for decimals), or to `width` code points or bytes."""
    match value:
        case int():
            return value - value % width
        case Decimal():
            exponent = value.as_tuple().exponent
            assert isinstance(exponent, int)
            whole = unscaled(value, -exponent)
            return Decimal(whole - whole % width).scaleb(exponent, context=WIDE)
    assert isinstance(value, str | bytes)
    return value[:width]


def _time(name: str, source: T.DataType, value: int) -> int:
    """Whole years, months, days or hours since 1970, floored."""
    if isinstance(source, T.DateType):
        days = value
    else:
        assert isinstance(source, T.TimestampType)
        seconds = value // UNITS_PER_SECOND[source.unit]
        if name == "hour":
            return seconds // 3600
        days = seconds // 86_400
    if name == "day":
        return days
    year, month, _ = civil_from_days(days)
    return year - 1970 if name == "year" else (year - 1970) * 12 + month - 1
