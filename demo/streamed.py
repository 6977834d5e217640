"""The demo's second chapter: an Iceberg table as a streaming engine keeps it, read with all its row deletes.

A release of the airports replaces the one before as an upsert of Flink does: the keys of old rows in an equality delete
file, then new rows. After an upgrade to format version 3 more rows go, by deletion vectors.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import boathouse as bh
from demo import row_deletes
from demo.board import Board
from demo.data import Data
from demo.releases import read_release, same_rows

_KEY = "icao"
_COUNTRY = "DE"
_GONE = f"country = '{_COUNTRY}'"
_SHOWN = ("content", "file_format", "record_count", "equality_ids", "content_size_in_bytes")


def keep(uri: str, data: Data, board: Board, spark: Any = None) -> dict[str, Any]:
    """Makes the table, and shows what it is read as, in this process and on Spark; returns the facts."""
    (first, before), (second, after) = data.airports[-2:]
    old, new = read_release(before), read_release(after)
    stale, news = difference(old, new)
    folder = Path(uri)
    bh.write(old, uri, "iceberg", message=f"release {first}")
    table = bh.open(uri)
    steps = [("written", f"release {first}", table.count())]
    row_deletes.delete_keys(folder, stale)
    steps.append(("equality", f"equality deletes of {stale.num_rows:,} keys", table.refresh().count()))
    table.append(news, message=f"release {second}")
    steps.append(("appended", f"{news.num_rows:,} new rows, which makes it release {second}", table.count()))
    followed = same_rows(table.to_arrow(), new)
    row_deletes.upgrade(folder)
    row_deletes.delete_positions(folder, _positions(table.refresh()))
    steps.append(("vectors", f"upgrade to version 3, deletion vectors for {_GONE}", table.refresh().count()))
    board.table(
        "An Iceberg table with row deletes of other engines: a streaming upsert, then deletion vectors",
        ("after", "rows"), [step[1:] for step in steps],
    )  # fmt: skip
    left = new.filter(pc.not_equal(new.column("country"), _COUNTRY))
    both = {"in process": bh.open(uri).to_arrow()}
    if spark is not None:
        both["on Spark"] = bh.open(uri).to_spark(spark).toArrow()
    facts = {"rows": {name: rows for name, _, rows in steps}, **_show(table, both, board, spark)}
    return facts | {"holds": followed and all(same_rows(found, left) for found in both.values())}


def difference(old: pa.Table, new: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The keys of old rows that are not the same in the new release, and the rows that take their place."""
    before = {row[_KEY]: row for row in old.to_pylist()}
    rows = new.to_pylist()
    after = {row[_KEY]: row for row in rows}
    stale = [key for key, row in before.items() if after.get(key) != row]
    return pa.table({_KEY: stale}, pa.schema([old.schema.field(_KEY)])), new.filter(
        pa.array([before.get(row[_KEY]) != row for row in rows], pa.bool_())
    )


def _positions(table: bh.Table) -> dict[str, list[int]]:
    """Where the rows are that shall go, by data file."""
    found = table.scan(columns=["_file", "_pos"], where=_GONE).to_arrow()
    places: dict[str, list[int]] = {}
    for row in found.to_pylist():
        places.setdefault(row["_file"], []).append(row["_pos"])
    return places


def _show(table: bh.Table, both: Mapping[str, pa.Table], board: Board, spark: Any) -> dict[str, Any]:
    """The table's delete files, what was read, and what a scan says of itself; the facts of them."""
    files = table.inspect.delete_files().select(list(_SHOWN)).to_pylist()
    kinds = {1: "positions", 2: "equality"}
    rows = [[kinds[f["content"]], *(_text(f[name]) for name in _SHOWN[1:])] for f in files]
    board.table("Its delete files, as t.inspect.delete_files() has them", _SHOWN, rows)
    seen = {name: _seen(found) for name, found in both.items()}
    said = " and ".join(f"{name} {found.num_rows:,} rows, {seen[name]} with {_GONE}" for name, found in both.items())
    board.say(f"\nThere are {said}. What a scan says of itself:")
    explained = bh.open(table.uri, spark=spark).scan(columns=["name"], where="country = 'NO'").explain()
    board.say(str(explained))
    return {"delete_files": files, "read": {name: found.num_rows for name, found in both.items()},
            "deleted_rows_read": seen, "explained": explained.to_dict()}  # fmt: skip


def _seen(found: pa.Table) -> int:
    """How many of the rows that the vectors delete are there all the same."""
    return pc.sum(pc.equal(found.column("country"), _COUNTRY)).as_py() or 0


def _text(value: Any) -> str:
    return "" if value is None else str(value)
