"""Partition values: strings in the log, typed everywhere else (PROTOCOL.md, "Partition Value Serialization").

Null is JSON null, and an empty string is null for every type. Values are compared, never their strings: `1.0E20`
and `100000000000000000000` are the same double. A timestamp without a zone is read in UTC.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from boathouse import types as T
from boathouse.arrow.schema import to_arrow_type
from boathouse.arrow.vector import only_where
from boathouse.errors import CorruptTableError, UnsupportedFeatureError, UnsupportedTypeError

_DATE = re.compile(r"([+-]?\d{1,6})-(\d{1,2})-(\d{1,2})")
_TIMESTAMP = re.compile(
    _DATE.pattern + r"(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?)?\s*(Z|UTC|[+-]\d{1,2}(?::?\d\d){0,2})?"
)
_DAY_US = 86_400_000_000


def decode_column(strings: pa.Array, type: T.DataType, where: str) -> pa.Array:
    """Strings as values of `type`. Each distinct string is parsed once. Raises CorruptTableError."""
    if isinstance(type, T.StringType):
        return only_where(pc.not_equal(strings, ""), strings)
    coded = strings.dictionary_encode()
    values = [_parsed(text, type, where) for text in coded.dictionary.to_pylist()]
    return physical_array(values, type).take(coded.indices)


def readable(strings: pa.Array, type: T.DataType, where: str) -> tuple[pa.Array, pa.Array]:
    """Strings as values of `type`, null where a string is none; and where that is."""
    values: list[Any] = []
    odd: list[bool] = []
    for text in strings.to_pylist():
        try:
            values.append(_parsed(text, type, where))
            odd.append(False)
        except CorruptTableError:
            values.append(None)
            odd.append(True)
    return physical_array(values, type), pa.array(odd, pa.bool_())


@lru_cache(maxsize=1 << 16)
def _parsed(text: str | None, type: T.DataType, where: str) -> Any:
    """The same few strings recur in every batch of a large listing."""
    return parse(text, type, where)


def physical_array(values: list[Any], type: T.DataType) -> pa.Array:
    """An Arrow array of physical values: days and microseconds as integers."""
    target = to_arrow_type(type)
    if isinstance(type, T.DateType):
        return pa.array(values, pa.int32()).cast(target)
    if isinstance(type, T.TimestampType):
        return pa.array(values, pa.int64()).view(target)
    return pa.array(values, target)


def parse(text: str | None, type: T.DataType, where: str) -> Any:
    """One string as a physical value (dates are days, timestamps microseconds). Raises CorruptTableError."""
    if text is None or text == "":
        return None
    try:
        return _parser(type)(text)
    except (ValueError, InvalidOperation, OverflowError) as error:
        raise CorruptTableError(f"the partition value {text!r} is not a {type}", where=where) from error


def _parser(type: T.DataType) -> Callable[[str], Any]:
    match type:
        case T.StringType():
            return str
        case T.IntegerType(bits):
            return lambda text: _integer(text, bits)
        case T.FloatType():
            return parse_float
        case T.DecimalType(precision, scale):
            return lambda text: fit_decimal(Decimal(text.strip()), precision, scale)
        case T.BooleanType():
            return _boolean
        case T.BinaryType():
            return str.encode
        case T.DateType():
            return _date
        case T.TimestampType():
            return timestamp_us
        case T.NullType():
            return lambda text: None
    raise ValueError(f"{type} cannot partition a table")


def _integer(text: str, bits: int) -> int:
    value = int(text)
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise ValueError(text)
    return value


def parse_float(text: str) -> float:
    """A number in the spelling of Java, Rust or Python, including `Infinity` and `NaN`."""
    return float(text.strip().rstrip("fFdD") if text.strip().lower() not in ("inf", "-inf", "+inf") else text)


def fit_decimal(value: Decimal, precision: int, scale: int) -> Decimal:
    """The same number with exactly this scale. Raises ValueError if digits would be lost."""
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise ValueError(f"{value} is not a decimal")
    if not any(digits):
        return Decimal((sign, (0,), -scale))
    shift = exponent + scale
    if value.adjusted() >= precision - scale:
        raise ValueError(f"{value} has more than {precision} digits")
    if shift < -len(digits):
        raise ValueError(f"{value} has more than {scale} digits after the point")
    number = int("".join(map(str, digits)))
    if shift >= 0:
        number *= 10**shift
    else:
        number, rest = divmod(number, 10**-shift)
        if rest:
            raise ValueError(f"{value} has more than {scale} digits after the point")
    if number >= 10**precision:
        raise ValueError(f"{value} has more than {precision} digits")
    return Decimal((sign, tuple(map(int, str(number))), -scale))


def _boolean(text: str) -> bool:
    found = {"true": True, "false": False}.get(text.strip().lower())
    if found is None:
        raise ValueError(text)
    return found


def _date(text: str) -> int:
    match = _TIMESTAMP.fullmatch(text.strip())
    if match is None:
        raise ValueError(text)
    return days_of(int(match[1]), int(match[2]), int(match[3]))


def timestamp_us(text: str) -> int:
    """Microseconds since 1970 of `2020-01-31 10:00:00[.5]`, or of the ISO form with `T` and a zone; no zone is UTC."""
    match = _TIMESTAMP.fullmatch(text.strip())
    if match is None:
        raise ValueError(text)
    hour, minute, second = (int(match[i] or 0) for i in (4, 5, 6))
    if hour > 24 or minute > 59 or second > 59:
        raise ValueError(text)
    fraction = int((match[7] or "0").ljust(6, "0")[:6])
    seconds = hour * 3600 + minute * 60 + second - _offset(match[8])
    found = days_of(int(match[1]), int(match[2]), int(match[3])) * _DAY_US + seconds * 1_000_000 + fraction
    if not -(1 << 63) <= found < 1 << 63:
        raise ValueError(f"{text} is outside the range of timestamps")
    return found


def _offset(zone: str | None) -> int:
    if zone in (None, "Z", "UTC"):
        return 0
    assert zone is not None
    parts = [int(p) for p in re.findall(r"\d\d?", zone)] + [0, 0]
    return (parts[0] * 3600 + parts[1] * 60 + parts[2]) * (-1 if zone[0] == "-" else 1)


def days_of(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the proleptic Gregorian calendar, for any year."""
    # 400 years are 146,097 days: the year is moved into datetime's range. Raises ValueError for an invalid date.
    cycles, within = divmod(year - 1, 400)
    return dt.date(within + 1, month, day).toordinal() - 719_163 + cycles * 146_097


def civil_of(days: int) -> tuple[int, int, int]:
    """(year, month, day) of days since 1970-01-01, for any year."""
    cycles, within = divmod(days + 719_162, 146_097)
    date = dt.date.fromordinal(within + 1)
    return date.year + cycles * 400, date.month, date.day


def physical(value: Any, type: T.DataType) -> Any:
    """A Python value as its physical one: dates as days, timestamps as microseconds."""
    if isinstance(value, dt.datetime):
        utc = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
        return (utc - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
    if isinstance(value, dt.date):
        return value.toordinal() - 719_163
    return value


def text_of(value: Any, type: T.DataType) -> str | None:
    """A value of a partition column in the log's spelling; null and empty strings are None."""
    value = physical(value, type)
    if value is None:
        return None
    match type:
        case T.StringType():
            return value or None
        case T.BooleanType():
            return "true" if value else "false"
        case T.IntegerType():
            return str(int(value))
        case T.FloatType():
            return _float_text(float(value), type)
        case T.DecimalType(precision, scale):
            return format(fit_decimal(Decimal(value), precision, scale), "f")
        case T.DateType():
            return _date_text(value)
        case T.TimestampType(utc):
            days, rest = divmod(value, _DAY_US)
            text = f"{_date_text(days)}{'T' if utc else ' '}{clock_text(rest)}"
            return text + ("Z" if utc else "")
        case T.BinaryType():
            return _binary_text(bytes(value))
    raise UnsupportedTypeError(f"a column of type {type} cannot partition a Delta table")


def clock_text(micros: int) -> str:
    """`10:00:00.000001` of microseconds since midnight."""
    seconds, fraction = divmod(micros, 1_000_000)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{fraction:06d}"


def _date_text(days: int) -> str:
    year, month, day = civil_of(days)
    return f"{year:04d}-{month:02d}-{day:02d}"


def _float_text(value: float, type: T.FloatType) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if type.bits == 32:
        # The shortest string that reads back as the same 32 bits.
        return str(pa.array([value], pa.float32()).cast(pa.string())[0].as_py())
    return repr(value)


def _binary_text(value: bytes) -> str | None:
    try:
        return value.decode() or None
    except UnicodeDecodeError as error:
        raise UnsupportedFeatureError(
            f"the partition value {value!r} is not UTF-8: Delta stores binary partition values as strings",
            advice="partition by another column, or by its hexadecimal string",
        ) from error
