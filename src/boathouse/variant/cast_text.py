"""Scalars of a variant as Spark's strings, and times of day from strings."""

from __future__ import annotations

import re
import uuid
from typing import Any

from boathouse.bits.floats import format_float
from boathouse.expr.text import format_date, format_timestamp
from boathouse.variant.view import VariantView

_SPACE = "".join(map(chr, range(33)))
_TIME = re.compile(r"T?(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?)?(?:\s*([AaPp])[Mm])?", re.A)


def to_text(v: VariantView) -> str | None:
    """What CAST(scalar AS STRING) gives; None for bytes that are not UTF-8. A null is `null`."""
    kind: str = v.type
    found: Any = v.scalar
    match kind:
        case "string":
            return str(found)
        case "boolean" | "null":
            return {True: "true", False: "false", None: "null"}[found]
        case "float" | "double":
            return format_float(found, 32 if kind == "float" else 64)
        case "decimal4" | "decimal8" | "decimal16":
            return decimal_text(*found)
        case "date":
            return format_date(found)
        case "timestamp" | "timestamp_ntz":
            return format_timestamp(found)
        case "timestamp_nanos" | "timestamp_ntz_nanos":
            return nanos_text(found)
        case "time":
            # Day 0 begins at micros 0.
            return format_timestamp(found).partition(" ")[2]
        case "uuid":
            return str(uuid.UUID(bytes=found))
        case "binary":
            try:
                return bytes(found).decode()
            except UnicodeDecodeError:
                return None
    return str(found)


def decimal_text(unscaled: int, scale: int) -> str:
    """Plain digits without trailing zeros in the fraction."""
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    whole, fraction = digits[: len(digits) - scale], digits[len(digits) - scale :].rstrip("0")
    return ("-" if unscaled < 0 else "") + whole + ("." + fraction if fraction else "")


def nanos_text(nanos: int) -> str:
    """As a timestamp of microseconds is printed, with up to nine digits after the point."""
    seconds, rest = divmod(nanos, 1_000_000_000)
    text = format_timestamp(seconds * 1_000_000)
    return text + (f".{rest:09d}".rstrip("0") if rest else "")


def parse_time(text: str) -> int | None:
    """Microseconds since midnight of `12:34[:56[.123456]]`, digits beyond the sixth cut off; None if it is not a
    time."""
    m = _TIME.fullmatch(text.strip(_SPACE))
    if m is None:
        return None
    hour, minute, second = int(m[1]), int(m[2]), int(m[3] or 0)
    if m[5]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if m[5] in "Pp" else 0)
    if hour > 23 or minute > 59 or second > 59:
        return None
    return ((hour * 60 + minute) * 60 + second) * 1_000_000 + int(((m[4] or "") + "000000")[:6])
