"""Human-readable sizes and times; needs neither Arrow nor a table."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any


def human_bytes(size: float) -> str:
    """`1.5 MiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def iso(ms: int) -> str:
    """UTC time with milliseconds."""
    return dt.datetime.fromtimestamp(ms / 1000, dt.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def inline(value: Any) -> str:
    """A value on one line: `a=1, b=2` for a dict, `a, b` for a list."""
    if isinstance(value, Mapping):
        return ", ".join(f"{k}={inline(v)}" for k, v in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(inline, value))
    return str(value)
