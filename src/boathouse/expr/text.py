"""Spark's string forms of values, in plain Python: what a CAST from and to STRING accepts and prints.

The parsers return None where Spark's ANSI cast would fail. Dates are days, timestamps micros since the epoch;
wall clocks are micros, counted as if they were in UTC.
"""

from __future__ import annotations

import math
import re
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

from boathouse import types as T
from boathouse.bits.floats import format_float, to_float32
from boathouse.bits.zones import Zone, zone
from boathouse.errors import InvalidArgumentError
from boathouse.expr.identifiers import text_literal

DAY_US = 86_400_000_000
UNITS_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
WIDE = Context(prec=100, rounding=ROUND_HALF_UP)
# The characters that UTF8String.trimAll removes: every code point from NUL to space.
_SPACE = "".join(map(chr, range(33)))
_DATE = re.compile(r"([+-]?)(\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.S | re.A)
_TIMESTAMP = re.compile(
    r"([+-]?)(\d{4,6})(?:-(\d{1,2})(?:-(\d{1,2})"
    r"(?:[ T](\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?\s*([^\s\d:.].*)?)?)?)?)?)?",
    re.S | re.A,
)
_INTEGER = re.compile(r"[+-]?\d+", re.A)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.A)
_SPECIAL = {"nan": math.nan, "inf": math.inf, "infinity": math.inf}


def days_from_civil(year: int, month: int, day: int) -> int | None:
    """Days since the epoch of a proleptic Gregorian date; None if there is no such day."""
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not (1 <= month <= 12 and 1 <= day <= (31, 28 + leap, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month - 1]):
        return None
    y = year - (month <= 2)
    doy = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return 365 * y + y // 4 - y // 100 + y // 400 + doy - 719468


def civil_from_days(days: int) -> tuple[int, int, int]:
    """(year, month, day) of a day number, for any year."""
    z = days + 719468
    era, doe = divmod(z, 146097)
    yoe = (doe - doe // 1460 + doe // 36524 - doe // 146096) // 365
    doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
    mp = (5 * doy + 2) // 153
    month = mp + 3 if mp < 10 else mp - 9
    return yoe + era * 400 + (month <= 2), month, doy - (153 * mp + 2) // 5 + 1


def parse_date(text: str) -> int | None:
    m = _DATE.fullmatch(text.strip(_SPACE))
    if m is None:
        return None
    sign, year, month, day = m.groups()
    days = days_from_civil(int(sign + year), int(month or 1), int(day or 1))
    return days if days is not None and -(2**31) <= days < 2**31 else None


def parse_clock(text: str) -> tuple[int, str | None] | None:
    """(wall clock, the zone that the string names). Digits of the fraction beyond the sixth are cut off, as in
    Spark."""
    m = _TIMESTAMP.fullmatch(text.strip(_SPACE))
    if m is None:
        return None
    sign, year, month, day, hour, minute, second, fraction, named = m.groups()
    days = days_from_civil(int(sign + year), int(month or 1), int(day or 1))
    h, mi, s = int(hour or 0), int(minute or 0), int(second or 0)
    if days is None or h > 23 or mi > 59 or s > 59:
        return None
    us = days * DAY_US + ((h * 60 + mi) * 60 + s) * 1_000_000 + int(((fraction or "") + "000000")[:6])
    return (us, None if named is None else named.strip())


def parse_timestamp(text: str, local: Zone | None) -> int | None:
    """The instant of a string, in the zone that it names, else in `local` (None: a string without a zone is
    refused)."""
    found = parse_clock(text)
    if found is None:
        return None
    clock, named = found
    if named is not None:
        try:
            local = zone(named)
        except InvalidArgumentError:
            return None
    return None if local is None else _in_64_bits(local.instant(clock, 1_000_000))


def parse_timestamp_ntz(text: str) -> int | None:
    """The wall clock of a string; a zone that it names is dropped, as in Spark."""
    found = parse_clock(text)
    if found is None or (found[1] is not None and parse_timestamp(text, None) is None):
        return None
    return _in_64_bits(found[0])


def _in_64_bits(value: int) -> int | None:
    return value if -(2**63) <= value < 2**63 else None


def parse_boolean(text: str) -> bool | None:
    word = text.strip(_SPACE).lower()
    if word in ("t", "true", "y", "yes", "1"):
        return True
    return False if word in ("f", "false", "n", "no", "0") else None


def parse_integer(text: str, bits: int = 64) -> int | None:
    word = text.strip(_SPACE)
    if _INTEGER.fullmatch(word) is None:
        return None
    value = int(word)
    return value if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1) else None


def parse_float(text: str, bits: int = 64) -> float | None:
    word = text.strip(_SPACE)
    plain = word[:-1] if word[-1:] in ("d", "D", "f", "F") and word[-2:-1].isdigit() | (word[-2:-1] == ".") else word
    if _NUMBER.fullmatch(plain):
        value = float(plain)
    else:
        sign = -1.0 if word[:1] == "-" else 1.0
        name = word[1:].lower() if word[:1] in ("+", "-") else word.lower()
        if name not in _SPECIAL or (name == "nan" and len(word) != 3):
            return None
        value = sign * _SPECIAL[name]
    return to_float32(value) if bits == 32 else value


def parse_decimal(text: str, precision: int, scale: int) -> Decimal | None:
    word = text.strip(_SPACE)
    if _NUMBER.fullmatch(word) is None:
        return None
    try:
        return fit_decimal(Decimal(word), precision, scale)
    except InvalidOperation:
        return None


def fit_decimal(value: Decimal, precision: int, scale: int) -> Decimal | None:
    """`value` rounded half up to `scale`; None if it does not fit `precision`."""
    if not value.is_finite() or value.adjusted() > 80:
        return None
    out = value.quantize(Decimal(1).scaleb(-scale), context=WIDE)
    if not out:
        return out.copy_abs()  # a BigDecimal has no negative zero
    return out if abs(int(out.scaleb(scale, context=WIDE))) < 10**precision else None


def format_date(days: int) -> str:
    y, m, d = civil_from_days(days)
    return f"{_year(y)}-{m:02d}-{d:02d}"


def format_timestamp(us: int) -> str:
    """`yyyy-MM-dd HH:mm:ss[.ffffff]` of a wall clock, without trailing zeros in the fraction."""
    days, rest = divmod(us, DAY_US)
    seconds, micros = divmod(rest, 1_000_000)
    text = f"{format_date(days)} {seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return text + (f".{micros:06d}".rstrip("0") if micros else "")


def _year(y: int) -> str:
    return f"{y:04d}" if 0 <= y <= 9999 else f"+{y}" if y > 0 else f"-{-y:04d}"


def format_decimal(value: Decimal, scale: int) -> str:
    """Plain digits with exactly `scale` of them after the point: never an exponent."""
    return format(value.quantize(Decimal(1).scaleb(-scale), context=WIDE), "f")


_TIME = re.compile(r"(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?", re.A)


def parse_time(word: str, unit: str) -> int | None:
    """A time of day in units since midnight: `12:30`, `12:30:00.5`; digits beyond the unit are cut."""
    found = _TIME.fullmatch(word.strip(_SPACE))
    if found is None:
        return None
    hour, minute, second = (int(found[i] or 0) for i in (1, 2, 3))
    if hour > 23 or minute > 59 or second > 59:
        return None
    per = UNITS_PER_SECOND[unit]
    return (hour * 3600 + minute * 60 + second) * per + int((found[4] or "").ljust(9, "0")) * per // 1_000_000_000


def sql_literal(value: object, type: T.DataType | None) -> str:
    """`value` as a Spark SQL literal that parses back to the same value and type."""
    if value is None:
        return "NULL" if type is None or isinstance(type, T.NullType) else f"CAST(NULL AS {str(type).upper()})"
    match type:
        case T.DateType():
            return f"DATE'{format_date(_int(value))}'"
        case T.TimestampType(utc, unit):
            us = _int(value) * 1_000_000 // UNITS_PER_SECOND[unit]
            return f"TIMESTAMP{'' if utc else '_NTZ'}'{format_timestamp(us)}{'Z' if utc else ''}'"
        case T.IntegerType(bits=8):
            return f"{value}Y"
        case T.IntegerType(bits=16):
            return f"{value}S"
        case T.IntegerType(bits=64):
            return f"{value}L"
        case T.FloatType(bits):
            return _float_literal(float(value), bits)  # type: ignore[arg-type]
        case T.DecimalType(precision, scale):
            assert isinstance(value, Decimal)
            return f"CAST('{format_decimal(value, scale)}' AS DECIMAL({precision},{scale}))"
        case T.BinaryType() | T.FixedType() | T.UUIDType():
            assert isinstance(value, bytes)
            return f"X'{value.hex().upper()}'"
        case T.BooleanType() | T.StringType() | _:
            return str(value).lower() if isinstance(value, bool) else _text_literal(value)


def _int(value: object) -> int:
    assert isinstance(value, int)
    return value


def _text_literal(value: object) -> str:
    return text_literal(value) if isinstance(value, str) else str(value)


def _float_literal(value: float, bits: int) -> str:
    text = format_float(value, bits)
    if math.isfinite(value) and bits == 64:
        return f"{text}D"
    return f"CAST('{text}' AS {'DOUBLE' if bits == 64 else 'FLOAT'})"
