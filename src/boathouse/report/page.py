"""The page: one HTML document without scripts, and without anything from elsewhere."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any, Final
from xml.etree.ElementTree import Element, SubElement, tostring

from boathouse import __version__
from boathouse.api.text import human_bytes, inline, iso
from boathouse.bits.system import current
from boathouse.ops.handle import Handle
from boathouse.report.advice import advice
from boathouse.report.facts import Facts, gather
from boathouse.report.pictures import share_histogram, size_histogram, timeline
from boathouse.table.findings import Finding

PARTITIONS: Final = 40
LISTED: Final = 60
"""So many partitions, and so many commits, are in the tables of the page."""
_TEXT: Final = 48
_SHOWN: Final = frozenset({
    "format", "location", "version", "timestamp", "ref", "rows", "bytes", "files", "deleted_rows", "small_files",
    "columns", "properties",
})  # fmt: skip
"""Of `detail`, what has a place of its own."""


def write(handle: Handle, findings: list[Finding]) -> str:
    """The report of the version of the handle, with what its examination found, as HTML.

    Raises CorruptTableError, MissingFileError, StorageError.
    """
    facts = gather(handle, findings)
    page = Element("html", lang="en")
    head = SubElement(page, "head")
    SubElement(head, "meta", charset="utf-8")
    SubElement(head, "meta", name="viewport", content="width=device-width, initial-scale=1")
    _add(head, "title", f"{facts.about['format']} table {facts.about['location']}")
    _add(head, "style", files("boathouse.report").joinpath("style.css").read_text("utf-8"))
    body = SubElement(page, "body")
    for part in (_title, _findings, _history, _files, _partitions, _columns, _more):
        part(body, facts)
    made = iso(current().now_ms())
    _add(body, "footer", f"Made by boathouse {__version__}, {made}, from the table's metadata alone.")
    return "<!DOCTYPE html>\n" + tostring(page, "unicode", method="html") + "\n"


def _title(body: Element, facts: Facts) -> None:
    about = facts.about
    _add(body, "h1", str(about["location"]))
    at = f"{about['format']} table, version {about['version']} of {about['timestamp']}"
    _add(body, "p", at + (f", {about['ref']}" if about["ref"] else ""), "soft")
    rows, deleted, count = about["rows"], about["deleted_rows"], about["files"]
    tiles = [
        (_number(rows), "rows"),
        (human_bytes(about["bytes"]), "in data files"),
        (_number(count), "file" if count == 1 else "files"),
        (human_bytes(about["bytes"] / count) if count else "-", "a file"),
        (_number(deleted), "deleted rows in files"),
        (_number(len(about["columns"])), "columns"),
    ]
    grid = _add(body, "div", kind="tiles")
    for value, name in tiles:
        tile = _add(grid, "div", kind="tile")
        _add(tile, "b", value)
        _add(tile, "span", name, "soft")


def _findings(body: Element, facts: Facts) -> None:
    _add(body, "h2", "What was found")
    worst = {"damage": 0, "hazard": 1, "hint": 2}
    found = sorted((*facts.findings, *advice(facts)), key=lambda f: worst[f.severity])
    if not found:
        _add(_add(body, "div", kind="finding none"), "p", "Nothing is wrong with the table, or makes it slow.")
    for f in found:
        box = _add(body, "div", kind=f"finding {f.severity}")
        _add(box, "p", f"{f.severity}: {f.message}")
        if f.where is not None:
            _add(_add(box, "p", "in ", "soft"), "code", f.where)
        if f.advice is not None:
            _add(box, "p", f.advice)
        if f.repair is not None:
            _add(_add(box, "p"), "code", f"boathouse {f.repair} {facts.about['location']}")
        _add(box, "p", f.code, "soft")


def _history(body: Element, facts: Facts) -> None:
    if not facts.commits:
        return
    _add(body, "h2", "History")
    more = f"The newest {len(facts.commits):,} commits." if facts.more_commits else f"{len(facts.commits):,} commits."
    _add(body, "p", more, "soft")
    body.append(timeline(facts.commits))
    rows = [
        (str(c.version), iso(c.timestamp_ms), c.operation, c.engine or "", c.message or "", _pairs(c.metrics))
        for c in facts.commits[:LISTED]
    ]
    details = _add(body, "details")
    _add(details, "summary", f"The newest {len(rows):,} as a table")
    _table(details, ("version", "time", "operation", "engine", "message", "metrics"), rows, right=(0,))


def _files(body: Element, facts: Facts) -> None:
    found = facts.files
    if not (found.sizes >= 0).any():
        return
    _add(body, "h2", "Files")
    body.append(size_histogram(found.sizes))
    shares = found.deleted_shares()
    if shares.any():
        _add(body, "h2", "Deleted rows")
        some = int((shares > 0).sum())
        _add(body, "p", f"{some:,} of {len(shares):,} files have deleted rows, which are read and left out.", "soft")
        body.append(share_histogram(shares[shares > 0].tolist(), "of the files with deleted rows: the share deleted"))


def _partitions(body: Element, facts: Facts) -> None:
    if not facts.partitions:
        return
    _add(body, "h2", "Partitions")
    by, count = ", ".join(facts.about["partition_by"]), len(facts.partitions)
    shown = f"; the largest {PARTITIONS}" if count > PARTITIONS else ""
    _add(body, "p", f"{count:,} by {by or 'an earlier specification'}{shown}.", "soft")
    largest = max(facts.partitions[0].bytes, 1)
    rows = []
    for p in facts.partitions[:PARTITIONS]:
        share = (human_bytes(p.bytes), p.bytes / largest)
        rows.append((p.name, _number(p.files), _number(p.rows), human_bytes(p.bytes / p.files), share))
    _table(body, ("partition", "files", "rows", "bytes a file", "bytes"), rows, right=(1, 2, 3))


def _columns(body: Element, facts: Facts) -> None:
    if not facts.columns:
        return
    _add(body, "h2", "Columns")
    text = (
        "Bounds: the share of the files that record them. Read: the share of the files that a condition "
        "column = value has to read, by these bounds; the smaller, the better."
    )
    _add(body, "p", text, "soft")
    rows = [
        (
            c.name, c.type + ("" if c.nullable else " not null"), _share(c.covered), _share(c.read), _number(c.nulls),
            _value(c.lower), _value(c.upper),
        )
        for c in facts.columns
    ]  # fmt: skip
    _table(body, ("column", "type", "bounds", "read", "nulls", "least", "greatest"), rows, right=(4,))
    simple, every = {c.name.split(".")[0] for c in facts.columns}, facts.about["columns"]
    others = [f"{c['name']} {c['type']}" for c in every if c["name"] not in simple]
    if others:
        _add(body, "p", "Without statistics here: " + _cut("; ".join(others), 1000), "soft")


def _more(body: Element, facts: Facts) -> None:
    settings = [(k, v) for k, v in sorted(facts.about["properties"].items())]
    rest = [(k.replace("_", " "), v) for k, v in facts.about.items() if k not in _SHOWN and v not in (None, "", [], {})]
    for name, rows in (("Properties", settings), ("More", rest)):
        if rows:
            _add(body, "h2", name)
            _table(body, ("name", "value"), [(str(k), _cut(inline(v), 400)) for k, v in rows])


Cell = str | tuple[str, float]
"""Text, or text above a bar of this length."""


def _table(parent: Element, header: Sequence[str], rows: Iterable[Sequence[Cell]], right: Sequence[int] = ()) -> None:
    table = _add(_add(parent, "div", kind="scroll"), "table")
    line = _add(_add(table, "thead"), "tr")
    for i, name in enumerate(header):
        _add(line, "th", name, "number" if i in right else None)
    below = _add(table, "tbody")
    for row in rows:
        line = _add(below, "tr")
        for i, cell in enumerate(row):
            if isinstance(cell, str):
                _add(line, "td", cell, "number" if i in right else None)
            else:
                _add(line, "td", cell[0], "share").set("style", f"--p: {100 * cell[1]:.1f}%")


def _add(parent: Element, tag: str, text: str | None = None, kind: str | None = None) -> Element:
    made = SubElement(parent, tag, {} if kind is None else {"class": kind})
    made.text = None if text is None else _plain(text)
    return made


def _plain(text: str) -> str:
    """Control characters and halves of surrogate pairs, which HTML cannot hold, as the replacement character."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


def _number(value: int | None) -> str:
    return "unknown" if value is None else f"{value:,}"


def _share(value: float | None) -> Cell:
    return "" if value is None else (f"{value:.0%}", value)


def _value(value: Any) -> str:
    """A bound as short text."""
    if value is None:
        return ""
    if isinstance(value, bytes):
        return _cut(value.hex())
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat()
    return _cut(f"{value:g}" if isinstance(value, float) else str(value))


def _cut(text: str, length: int = _TEXT) -> str:
    return text if len(text) <= length else text[: length - 3] + "..."


def _pairs(found: Mapping[str, Any]) -> str:
    return _cut(", ".join(f"{k}={inline(v)}" for k, v in found.items()), 300)
