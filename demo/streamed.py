"""The demo's second chapter: an Iceberg table as streams keep it, with row deletes of every kind, and a branch.

A release of the airports takes the place of the one before as an upsert that reads nothing: new rows, and a file of
their keys (equality deletes). After an upgrade to format version 3 the airports that left the list go by deletion
vectors, and the keys become vectors too. What is not decided yet happens on a branch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import boathouse as bh
from demo.board import Board
from demo.data import Data
from demo.releases import read_release, same_rows

BRANCH = "audit"
COUNTRY = "DE"
_KEY = "icao"
_SAME = f"target.{_KEY} = source.{_KEY}"
_GONE = f"country = '{COUNTRY}'"
_VECTORS = {
    "format-version": "3", "write.delete.mode": "merge-on-read", "write.update.mode": "merge-on-read",
    "write.merge.mode": "merge-on-read",
}  # fmt: skip
"""What `profile="modern"` sets in new tables."""
_SHOWN = ("content", "file_format", "record_count", "referenced_data_file", "content_size_in_bytes")
_NAME_END = 20


def keep(uri: str, data: Data, board: Board, spark: Any = None) -> dict[str, Any]:
    """Makes the table, and shows what its branches are read as, in this process and on Spark; returns the facts."""
    (first, before), (second, after) = data.airports[-2:]
    old, new = read_release(before), read_release(after)
    news = changed(old, new)
    bh.write(old, uri, "iceberg", message=f"release {first}")
    steps, kept = [], []
    for name, text in _steps(uri, first, second, news, new):
        steps.append((name, text, bh.open(uri).count()))
        kept.append(bh.open(uri).inspect.delete_files().num_rows)
    board.table(
        "An Iceberg table that a stream keeps: keys of replaced rows, then deletion vectors, then a branch",
        ("after", "rows", "delete_files"),
        [(text, rows, files) for (_, text, rows), files in zip(steps, kept, strict=True)],
    )
    left = {"main": new, BRANCH: new.filter(pc.not_equal(new.column("country"), COUNTRY))}
    found = {ref: _read(uri, ref, spark) for ref in left}
    facts = {
        "rows": {name: rows for name, _, rows in steps},
        "delete_files": {name: files for (name, _, _), files in zip(steps, kept, strict=True)},
        **_show(uri, found, board),
    }
    return facts | {"holds": all(same_rows(rows, left[ref]) for ref, read in found.items() for rows in read.values())}


def _steps(uri: str, first: str, second: str, news: pa.Table, new: pa.Table) -> Iterator[tuple[str, str]]:
    """Each step of the chapter, once it is done: its name, and what it did."""
    table = bh.open(uri)
    yield "written", f"release {first}"
    table.upsert(news, on=_KEY, deletes="equality", message=f"release {second}")
    yield "upserted", f"upsert of {news.num_rows:,} rows, which reads nothing"
    table.set_properties(_VECTORS)
    lost = table.merge(new, _SAME).when_not_matched_by_source_delete().execute().rows_deleted or 0
    yield "deleted", f"version 3: {lost:,} airports that left the list, by vectors"
    table.rewrite_deletes()
    yield "rewritten", "the keys become vectors; no data file is written"
    table.refs.create_branch(BRANCH)
    gone = bh.open(uri, ref=BRANCH).delete(_GONE).rows_deleted or 0
    yield BRANCH, f"{gone:,} airports with {_GONE} go on the branch {BRANCH}"


def changed(old: pa.Table, new: pa.Table) -> pa.Table:
    """The rows of the new release that are not the same in the old one."""
    before = {row[_KEY]: row for row in old.to_pylist()}
    return new.filter(pa.array([before.get(row[_KEY]) != row for row in new.to_pylist()], pa.bool_()))


def _read(uri: str, ref: str, spark: Any) -> dict[str, pa.Table]:
    """The rows of a branch, in this process and on Spark."""
    found = {"in process": bh.open(uri, ref=ref).to_arrow()}
    if spark is not None:
        found["on Spark"] = bh.open(uri, ref=ref).to_spark(spark).toArrow()
    return found


def _show(uri: str, found: Mapping[str, Mapping[str, pa.Table]], board: Board) -> dict[str, Any]:
    """The delete files of the branch, what was read, and what a scan says of itself; the facts of them."""
    branch = bh.open(uri, ref=BRANCH)
    files = branch.inspect.delete_files().select(list(_SHOWN)).to_pylist()
    rows = [["positions" if f["content"] == 1 else "equality", *(_text(f[name]) for name in _SHOWN[1:])] for f in files]
    board.table(f"Delete files of the branch {BRANCH}, from inspect.delete_files()", _SHOWN, rows)
    explained = branch.scan(columns=["name"], where="country = 'NO'").explain()
    read = {ref: {way: rows.num_rows for way, rows in read.items()} for ref, read in found.items()}
    board.say("\n" + "; ".join(
        f"{ref}: " + ", ".join(f"{rows:,} rows {way}" for way, rows in ways.items()) for ref, ways in read.items()
    ))  # fmt: skip
    board.say(f"What a scan says of itself:\n{explained}")
    return {"vectors": files, "read": read, "explained": explained.to_dict()}


def _text(value: Any) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= _NAME_END else f"...{text[-_NAME_END:]}"
