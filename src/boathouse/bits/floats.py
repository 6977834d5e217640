"""Floating-point numbers as Java spells them, and so Spark and Iceberg."""

from __future__ import annotations

import math
import struct
from decimal import Decimal


def to_float32(value: float) -> float:
    """The nearest number of 32 bits; infinity beyond them."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def format_float(value: float, bits: int = 64) -> str:
    """Java's Double.toString (Float.toString): the shortest digits that read back as the value, `1.0E10` outside
    [1e-3, 1e7)."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if math.copysign(1.0, value) < 0 else "0.0"
    if bits == 64 and 1e-3 <= abs(value) < 1e7:
        return repr(value)
    digits, exponent = _shortest(abs(value), bits)
    sign = "-" if value < 0 else ""
    if -3 <= exponent < 7:
        if exponent < 0:
            return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
        whole = digits[: exponent + 1].ljust(exponent + 1, "0")
        return f"{sign}{whole}.{digits[exponent + 1 :] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _shortest(value: float, bits: int) -> tuple[str, int]:
    """(significant digits, decimal exponent of the first)."""
    text = repr(value)
    if bits == 32:
        text = next((t for n in range(1, 10) if to_float32(float(t := f"{value:.{n - 1}e}")) == value), text)
    _, digits, exponent = Decimal(text).as_tuple()
    assert isinstance(exponent, int)
    word = "".join(map(str, digits))
    return word.rstrip("0") or "0", exponent + len(word) - 1
