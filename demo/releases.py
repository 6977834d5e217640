"""The demo's third chapter: a list of airports that follows its releases, by merges into one Delta table.

It runs in this process, without Spark; on Spark the same lines run there.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc

import boathouse as bh
from boathouse.api.text import human_bytes
from boathouse.ops.result import WriteResult
from demo.board import Board

PROPERTIES = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}
"""Merges mark rows instead of rewriting files, and record which rows they changed."""
_KEY = "target.icao = source.icao"
_NUMBERS = ("elevation", "lat", "lon")
_SLIP = "country = 'US'"


def read_release(path: Path) -> pa.Table:
    """One release; older ones lack the column `lid`."""
    types = dict.fromkeys(_NUMBERS, pa.float64())
    names = pc.read_csv(str(path), pc.ReadOptions(block_size=1 << 22)).column_names
    texts = {name: pa.string() for name in names if name not in types}
    return pc.read_csv(str(path), convert_options=pc.ConvertOptions(column_types={**types, **texts}))


def follow(uri: str, releases: Sequence[tuple[str, Path]], board: Board) -> dict[str, Any]:
    """Writes the first release, merges the others, and shows what it takes to keep such a table; returns the facts."""
    (first, path), *later = releases
    news = read_release(path)
    made = bh.write(news, uri, "delta", properties=PROPERTIES, message=f"release {first}")
    rows = [(first, made.rows_added, 0, 0, 0, "")]
    facts: dict[str, Any] = {"releases": {first: {"inserted": made.rows_added}}}
    table = bh.open(uri)
    for name, path in later:
        before = set(news.column_names)
        news = read_release(path)
        done = merge(table, news, name)
        added = ", ".join(sorted(set(news.column_names) - before))
        rows.append((name, done.rows_added, done.rows_updated, done.rows_deleted, done.files_removed, added))
        facts["releases"][name] = {"version": done.version, "inserted": done.rows_added,
                                   "updated": done.rows_updated, "deleted": done.rows_deleted,
                                   "files_rewritten": done.files_removed, "new_columns": added}  # fmt: skip
    header = ("release", "inserted", "updated", "deleted", "files_rewritten", "new_columns")
    board.table("A list of airports follows its releases, by merges (delta, in this process)", header, rows)
    assert table.version is not None
    facts["changes"] = _show_changes(table, later[-1][0], board)
    facts["maintenance"] = _maintain(table, board)
    facts["holds"] = same_rows(table.refresh().to_arrow(), news)
    return facts


def merge(table: bh.Table, news: pa.Table, name: str) -> WriteResult:
    """Rows that differ are updated, new ones inserted, those that the release no longer has deleted."""
    known = set(table.schema.names)
    differs = " OR ".join(f"NOT (target.`{c}` <=> source.`{c}`)" for c in news.column_names if c in known)
    unknown = " OR ".join(f"source.`{c}` IS NOT NULL" for c in news.column_names if c not in known)
    return (
        table.merge(news, _KEY, merge_schema=True)
        .when_matched_update_all(where=f"{differs} OR {unknown}" if unknown else differs)
        .when_not_matched_insert_all()
        .when_not_matched_by_source_delete()
        .execute(message=f"release {name}")
    )


def _show_changes(table: bh.Table, name: str, board: Board) -> dict[str, int]:
    """What the newest release changed, as its merge recorded it: the rows before and after each update."""
    columns = ["icao", "name", "city", "_change_type"]
    changed = table.changes(table.version).to_arrow()
    counts = {c["values"]: c["counts"] for c in changed.column("_change_type").value_counts().to_pylist()}
    renamed = _renamed(changed).select([*columns[:3], "_change_type"])
    board.table(
        f"Some airports that release {name} renamed, from the change feed", columns,
        [list(row.values()) for row in renamed.slice(0, 6).to_pylist()],
    )  # fmt: skip
    return counts


def _renamed(changed: pa.Table) -> pa.Table:
    """The images before and after updates that changed the name, side by side."""
    names: dict[str, dict[str, str]] = {}
    for row in changed.select(["icao", "name", "_change_type"]).to_pylist():
        names.setdefault(row["icao"], {})[row["_change_type"]] = row["name"]
    images = ("update_preimage", "update_postimage")
    found = [k for k, v in names.items() if all(i in v for i in images) and v[images[0]] != v[images[1]]]
    mask = [k in set(found) for k in changed.column("icao").to_pylist()]
    order = [("icao", "ascending"), ("_change_type", "descending")]
    return changed.filter(pa.array(mask, pa.bool_())).sort_by(order)


def _maintain(table: bh.Table, board: Board) -> dict[str, Any]:
    """A slip and its repair, then fewer files, then no files that nobody needs."""
    good, before = table.version, table.count()
    slip = table.delete(_SLIP, message="a slip")
    repaired = table.restore(version=good, message="undo the slip")
    small = table.detail()
    packed = table.optimize()
    swept = table.vacuum(0, enforce_retention_duration=False)
    rows = [
        ("delete, by mistake", f"{slip.rows_deleted:,} airports of {before:,} gone"),
        ("restore", f"version {good} again, as version {repaired.version}: {table.count():,} airports"),
        ("optimize", f"{small['files']} files with deleted rows become {packed.files_added}"),
        ("vacuum", f"{swept.files_removed} files that no version needs, {human_bytes(swept.bytes_removed)}"),
    ]
    board.table("Keeping it", ("operation", "what_it_did"), rows)
    return {
        "deleted_by_mistake": slip.rows_deleted,
        "restored_version": good,
        "files_before": small["files"],
        "files_after": packed.files_added,
        "vacuumed_files": swept.files_removed,
        "vacuumed_bytes": swept.bytes_removed,
    }


def same_rows(found: pa.Table, release: pa.Table) -> bool:
    """Whether the table has exactly the rows of the newest release."""
    order = [("icao", "ascending")]
    wanted = release.select(found.column_names)
    return bool(found.sort_by(order).cast(wanted.schema).equals(wanted.sort_by(order)))
