"""Printing: aligned text for people, JSON for programs."""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import typer

from boathouse.api.text import human_bytes
from boathouse.api.text import inline as inline

_CELL = 60


def as_json(value: Any) -> None:
    """One JSON document on standard output. NaN and infinities, which JSON does not have, are strings."""
    text = json.dumps(_finite(value), default=_plain, ensure_ascii=False, indent=2 if sys.stdout.isatty() else None)
    typer.echo(text)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        names = {math.inf: "Infinity", -math.inf: "-Infinity"}
        return value if math.isfinite(value) else names.get(value, "NaN")
    if isinstance(value, Mapping):
        return {str(k): _finite(v) for k, v in value.items()}
    return [_finite(v) for v in value] if isinstance(value, list | tuple) else value


def _plain(value: Any) -> Any:
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, dt.timedelta):
        return value.total_seconds()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return sorted(value)
    return str(value)


def pairs(rows: Iterable[tuple[str, Any]]) -> None:
    """`name   value` lines; empty values are left out."""
    kept = [(name, value) for name, value in rows if value not in (None, "", [], {}, ())]
    width = max((len(name) for name, _ in kept), default=0)
    for name, value in kept:
        typer.echo(f"{name:<{width}}  {inline(value)}")


def table(header: Sequence[str], rows: Sequence[Sequence[Any]], right: Sequence[str] = ()) -> None:
    """Aligned columns; those named in `right` are right-aligned."""
    text = [[cell(c) for c in row] for row in rows]
    widths = [max([len(h), *(len(r[i]) for r in text)]) for i, h in enumerate(header)]
    for row in [list(header), *text]:
        cells = [c.rjust(w) if h in right else c.ljust(w) for c, w, h in zip(row, widths, header, strict=True)]
        typer.echo("  ".join(cells).rstrip())


def cell(value: Any) -> str:
    """A value as a cell: one line of at most 60 characters."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:g}"
    text = value.hex() if isinstance(value, bytes) else str(value)
    text = text.replace("\n", " ").replace("\r", " ")
    return text if len(text) <= _CELL else text[: _CELL - 3] + "..."


def size(value: int | None) -> str:
    return "" if value is None else human_bytes(value)


def number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"
