"""The procedures of Iceberg by the names, arguments and results that they have in iceberg-spark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from boathouse import registry
from boathouse.api.procedures import Called, Procedure, Row, known_options, number_of
from boathouse.api.table import Table
from boathouse.errors import UnsupportedFeatureError
from boathouse.ops.result import WriteResult
from boathouse.table.location import At

_HOW: Final = (
    "max-concurrent-file-group-rewrites", "partial-progress.enabled", "partial-progress.max-commits",
    "partial-progress.max-failed-commits", "rewrite-job-order", "use-starting-sequence-number",
    "max-file-group-size-bytes",
)  # fmt: skip
"""Options of rewrites that say how the work is cut and scheduled."""
_ZORDER: Final = re.compile(r"\s*zorder\s*\((.*)\)\s*", re.IGNORECASE | re.DOTALL)


def _rewrite_data_files(called: Called) -> Iterator[Row]:
    given = called.given
    options = known_options(given.get("options", {}), ("target-file-size-bytes",), _HOW)
    order = given.get("sort_order")
    columns = None if order is None else _zorder(order)
    if given.get("strategy", "binpack").lower() == "sort" and columns is None:
        raise UnsupportedFeatureError(
            "sorting by the table's own order is not offered", advice="pass sort_order => 'zorder(a, b)'"
        )
    table = called.table
    done = table.optimize(
        given.get("where"), zorder_by=columns, target_file_bytes=number_of(options, "target-file-size-bytes")
    )
    yield (
        done.files_removed,
        done.files_added,
        _removed_bytes(table, done),
        0,
        _total(table, done, "removed-delete-files"),
    )


def _zorder(order: str) -> list[str]:
    found = _ZORDER.fullmatch(order)
    if found is None:
        raise UnsupportedFeatureError(
            f"the sort order {order!r} is not offered", advice="pass sort_order => 'zorder(a, b)'"
        )
    return [name.strip().strip("`") for name in found[1].split(",")]


def _rewrite_position_delete_files(called: Called) -> Iterator[Row]:
    known_options(called.given.get("options", {}), (), (*_HOW, "rewrite-all", "min-input-files"))
    table = called.table
    done = table.rewrite_deletes()
    names = ("removed-delete-files", "added-delete-files", "removed-files-size", "added-files-size")
    yield tuple(_total(table, done, name) for name in names)


def _total(table: Table, done: WriteResult, name: str) -> int:
    """The sum of a figure of the summaries of the commits that an operation has just made."""
    made = frozenset(done.versions)
    return sum(int(e.metrics.get(name, 0)) for e in _entries(table, done) if e.version in made)


def _entries(table: Table, done: WriteResult) -> Any:
    """The commits from the first to the last of an operation; others may be between them."""
    left = set(done.versions)
    for entry in table.refresh().history() if left else ():
        if not entry.metadata_only:
            yield entry
            left.discard(entry.version)
        if not left:
            return


def _removed_bytes(table: Table, done: WriteResult) -> int:
    """The size of the data files that the commits removed."""
    snapshot = table._handle.snapshot
    total = 0
    for entry in _entries(table, done):
        if entry.version in done.versions and entry.parent is not None:
            sizes: list[dict[str, int]] = []
            for version in (entry.parent, entry.version):
                files = registry.load(snapshot.format).open(snapshot.context, At(version=version)).files()
                sizes.append(
                    {p: s for b in files for p, s in zip(*(b.column(c).to_pylist() for c in ("path", "size")))}
                )
            total += sum(size for path, size in sizes[0].items() if path not in sizes[1])
    return total


PROCEDURES: Final = (
    Procedure(
        "rewrite_data_files",
        "strategy string, sort_order string, options map<string,string>, where string",
        "rewritten_data_files_count int, added_data_files_count int, rewritten_bytes_count bigint, "
        "failed_data_files_count int, removed_delete_files_count int",
        _rewrite_data_files,
    ),
    Procedure(
        "rewrite_position_delete_files",
        "options map<string,string>",
        "rewritten_delete_files_count int, added_delete_files_count int, rewritten_bytes_count bigint, "
        "added_bytes_count bigint",
        _rewrite_position_delete_files,
    ),
)
