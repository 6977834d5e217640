"""A variant as canonical JSON text: no spaces, one form for every type.

null, true, false; int8 to int64 as digits; decimals in full with the digits of their scale (`1.10`), never with an
exponent; float and double by the fewest digits that read back as the same number of that width, with an exponent
below 1e-4 and from 1e16 on, as Python's repr writes them (`1.5`, `1000.0`, `1e+16`, `1e-05`);
NaN and infinities refused, or as the strings "NaN", "Infinity", "-Infinity", or null, by choice.
date "2026-01-31"; time "12:34:56.000000"; timestamp "2026-01-31T12:34:56.000000Z"; timestamp_ntz the same without Z;
nanoseconds with nine digits; years beyond 0 to 9999 as ISO 8601 expands them ("+10000-01-01", "-0001-12-31").
binary as a string of base64 with padding, uuid as 36 characters in lower case. Strings escape `"`, `\\` and control
characters (`\\n` or `\\u0001`), and nothing else. Objects in the order of their names' UTF-8 bytes.
"""

from __future__ import annotations

import math
import uuid
from base64 import b64encode
from collections.abc import Callable
from json.encoder import encode_basestring
from typing import Any, Literal

import numpy as np

from boathouse.errors import EvaluationError, InvalidArgumentError
from boathouse.variant.decode import kind_at, read_scalar
from boathouse.variant.primitives import KINDS, STRING, Family, Kind
from boathouse.variant.view import VariantView
from boathouse.variant.walk import Event, walk

MAX_TEXT = 2**31 - 1
"""The most characters of a text: names are stored once and written each time, so that few bytes can become many."""
Special = Literal["refuse", "string", "null"]


def to_json(value: VariantView, *, special: Special = "refuse") -> str:
    """The canonical JSON text of a variant; `special` says how NaN and infinities are written.

    Raises EvaluationError for NaN and infinities if refused and for more than 2 GiB of text, MalformedVariant,
    UnsupportedFeatureError.
    """
    if special not in ("refuse", "string", "null"):
        raise InvalidArgumentError(f"special={special!r}", advice="choose refuse, string or null")
    data = value.buffer
    parts: list[str] = []
    closing: list[str] = []
    between = ""
    room = MAX_TEXT
    scalar, finished, named = Event.SCALAR, Event.END, Event.OBJECT
    for event, key, pos, end, _ in walk(data, *value.span, value.dictionary, by_name=True):
        if event is finished:
            parts.append(closing.pop())
            between = ","
            continue
        name = f"{encode_basestring(key)}:" if isinstance(key, str) else ""
        if event is scalar:
            part = f"{between}{name}{scalar_to_json(data, pos, end, special)}"
            between = ","
        else:
            part = f"{between}{name}{'{' if event is named else '['}"
            closing.append("}" if event is named else "]")
            between = ""
        parts.append(part)
        room -= len(part)
        if room < 0:
            raise EvaluationError(f"the JSON text has more than {MAX_TEXT:,} characters", advice="take parts by a path")
    return "".join(parts)


def scalar_to_json(data: bytes, pos: int, end: int, special: Special = "refuse") -> str:
    """The text of the scalar at `pos` that ends at `end`."""
    kind = kind_at(data, pos) or KINDS[STRING]
    return _WRITERS[kind.id](read_scalar(data, pos, end), special)


def float_text(number: float, narrow: bool, special: Special) -> str:
    """The shortest text that reads back as the double, or as the float if `narrow`; see `to_json` for `special`."""
    if math.isfinite(number):
        return repr(float(str(np.float32(number)))) if narrow else repr(number)
    name = "NaN" if number != number else "Infinity" if number > 0 else "-Infinity"
    if special == "refuse":
        raise EvaluationError(f"JSON has no {name}", advice='choose special="string" or special="null"')
    return f'"{name}"' if special == "string" else "null"


def decimal_text(unscaled: int, scale: int) -> str:
    """Plain digits, as many after the point as the scale says."""
    if not scale:
        return str(unscaled)
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    return f"{'-' if unscaled < 0 else ''}{digits[:-scale]}.{digits[-scale:]}"


def date_text(days: int) -> str:
    """The proleptic Gregorian date of a day since 1970-01-01, of any year."""
    eras, day = divmod(days + 719_468, 146_097)  # days since 0000-03-01, in eras of 400 years
    year = (day - day // 1_460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153  # from March on
    number = eras * 400 + year + (month > 9)
    sign = "" if 0 <= number <= 9_999 else "-" if number < 0 else "+"
    return f"{sign}{abs(number):04d}-{(month + 2) % 12 + 1:02d}-{day - (153 * month + 2) // 5 + 1:02d}"


def time_text(ticks: int, digits: int) -> str:
    """A time of day from its microseconds (6 digits) or nanoseconds (9)."""
    seconds, fraction = divmod(ticks, 10**digits)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{fraction:0{digits}d}"


def timestamp_text(ticks: int, digits: int, utc: bool) -> str:
    """An instant from its microseconds (6 digits) or nanoseconds (9) since 1970."""
    days, rest = divmod(ticks, 86_400 * 10**digits)
    return f"{date_text(days)}T{time_text(rest, digits)}{'Z' if utc else ''}"


def _writer(kind: Kind) -> Callable[[Any, Special], str]:
    match kind.family:
        case Family.NULL:
            return lambda none, special: "null"
        case Family.BOOLEAN:
            return lambda flag, special: "true" if flag else "false"
        case Family.INTEGER:
            return lambda number, special: str(number)
        case Family.FLOAT:
            return lambda number, special: float_text(number, kind.size == 4, special)
        case Family.DECIMAL:
            return lambda pair, special: decimal_text(*pair)
        case Family.DATE:
            return lambda days, special: f'"{date_text(days)}"'
        case Family.TIME:
            return lambda ticks, special: f'"{time_text(ticks, kind.digits)}"'
        case Family.TIMESTAMP:
            return lambda ticks, special: f'"{timestamp_text(ticks, kind.digits, kind.utc)}"'
        case Family.BINARY:
            return lambda raw, special: f'"{b64encode(raw).decode()}"'
        case Family.UUID:
            return lambda raw, special: f'"{uuid.UUID(bytes=raw)}"'
    return lambda text, special: encode_basestring(text)


_WRITERS = [_writer(kind) for kind in KINDS]
