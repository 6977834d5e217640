"""The commits of a table as a list that shows itself as a table."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any, Final

import pyarrow as pa

from boathouse.api.text import iso
from boathouse.table.history import HistoryEntry

_COLUMNS: Final = ("version", "time", "operation", "engine", "message", "changed")
_SHOWN: Final = 50
_SCHEMA: Final = pa.schema(
    [
        ("version", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("operation", pa.string()),
        ("engine", pa.string()),
        ("message", pa.string()),
        ("write_id", pa.string()),
        ("parameters", pa.map_(pa.string(), pa.string())),
        ("metrics", pa.map_(pa.string(), pa.string())),
    ]
)


class History(list[HistoryEntry]):
    """Commits, newest first: a list of `HistoryEntry`, printed as a table.

    >>> t.history().to_arrow().column("operation").to_pylist()
    ['WRITE', 'CREATE TABLE']
    """

    def to_arrow(self) -> pa.Table:
        """One row a commit: `version`, `timestamp` (UTC), `operation`, `engine`, `message`, `write_id`, and
        `parameters` and `metrics` as maps of text."""
        rows = [
            {
                "version": e.version, "timestamp": e.timestamp_ms * 1000, "operation": e.operation, "engine": e.engine,
                "message": e.message, "write_id": e.write_id, "parameters": _texts(e.parameters),
                "metrics": _texts(e.metrics),
            }
            for e in self
        ]  # fmt: skip
        return pa.Table.from_pylist(rows, _SCHEMA)

    def to_pandas(self) -> Any:
        """As `to_arrow`, as a pandas DataFrame."""
        return self.to_arrow().to_pandas()

    def __repr__(self) -> str:
        rows = [_COLUMNS, *map(_cells, self[:_SHOWN])]
        widths = [max(len(row[i]) for row in rows) for i in range(len(_COLUMNS))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
        return "\n".join([*lines, *self._more()])

    def _repr_html_(self) -> str:
        head = "".join(f"<th style='text-align:left'>{name}</th>" for name in _COLUMNS)
        rows = (f"<td style='text-align:left'>{'</td><td>'.join(map(escape, _cells(e)))}</td>" for e in self[:_SHOWN])
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        return f"<table><tr>{head}</tr>{body}</table>" + "".join(f"<p>{line}</p>" for line in self._more())

    def _more(self) -> list[str]:
        return [f"... and {len(self) - _SHOWN:,} more"] if len(self) > _SHOWN else []


def _cells(e: HistoryEntry) -> tuple[str, ...]:
    changed = (
        f"{e.metrics[n]} {n.replace('_', ' ')}"
        for n in ("rows_added", "rows_updated", "rows_deleted")
        if e.metrics.get(n)
    )
    message = (e.message or "").replace("\n", " ")
    return str(e.version), iso(e.timestamp_ms), e.operation, e.engine or "", message[:60], ", ".join(changed)


def _texts(values: Mapping[str, Any]) -> list[tuple[str, str | None]]:
    return [(str(k), None if v is None else str(v)) for k, v in values.items()]
