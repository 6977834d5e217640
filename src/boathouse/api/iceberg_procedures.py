"""The procedures of Iceberg by the names, arguments and results that they have in iceberg-spark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from boathouse import registry
from boathouse.api.procedures import Called, Procedure, Row, entries, known_options, number_of, total
from boathouse.api.table import Table
from boathouse.errors import UnsupportedFeatureError
from boathouse.ops.result import WriteResult
from boathouse.storage import join, same
from boathouse.table import features
from boathouse.table.location import At

_HOW: Final = (
    "max-concurrent-file-group-rewrites", "partial-progress.enabled", "partial-progress.max-commits",
    "partial-progress.max-failed-commits", "rewrite-job-order", "use-starting-sequence-number",
    "max-file-group-size-bytes",
)  # fmt: skip
"""Options of rewrites that say how the work is cut and scheduled."""
_KINDS: Final = ("data", "position deletes", "equality deletes", "manifest", "manifest list", "statistics")
_DELETED: Final = (
    "data_files", "position_delete_files", "equality_delete_files", "manifest_files", "manifest_lists",
    "statistics_files",
)  # fmt: skip
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
        total(table, done, "removed-delete-files"),
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
    yield tuple(total(table, done, name) for name in names)


def _compute_table_stats(called: Called) -> Iterator[Row]:
    table = called.table.refresh()
    asked = called.given.get("snapshot_id")
    if asked not in (None, table.version):
        raise UnsupportedFeatureError(
            f"statistics of the snapshot {asked} are not offered", advice=f"the current one is {table.version}"
        )
    table.compute_statistics(called.given.get("columns"))
    recorded = table._handle.snapshot.offers(features.ColumnStatistics)
    yield (None if recorded is None else recorded.file,)


def _rewrite_manifests(called: Called) -> Iterator[Row]:
    table, given = called.table, called.given
    done = table.rewrite_manifests(given.get("sort_by"), spec_id=given.get("spec_id"))
    yield total(table, done, "manifests-replaced"), total(table, done, "manifests-created")


def _removed_bytes(table: Table, done: WriteResult) -> int:
    """The size of the data files that the commits removed."""
    snapshot = table._handle.snapshot
    total = 0
    for entry in entries(table, done):
        if entry.version in done.versions and entry.parent is not None:
            sizes: list[dict[str, int]] = []
            for version in (entry.parent, entry.version):
                files = registry.load(snapshot.format).open(snapshot.context, At(version=version)).files()
                sizes.append(
                    {p: s for b in files for p, s in zip(*(b.column(c).to_pylist() for c in ("path", "size")))}
                )
            total += sum(size for path, size in sizes[0].items() if path not in sizes[1])
    return total


def _expire_snapshots(called: Called) -> Iterator[Row]:
    given = called.given
    if given.get("clean_expired_metadata"):
        raise UnsupportedFeatureError(
            "removing schemas and partition specs that no snapshot needs is not offered",
            advice="leave clean_expired_metadata out",
        )
    done = called.table.expire_snapshots(
        given.get("older_than"), retain_last=given.get("retain_last"), snapshot_ids=given.get("snapshot_ids", ())
    )
    yield tuple(done.kinds.get(kind, 0) for kind in _KINDS)


def _remove_orphan_files(called: Called) -> Iterator[Row]:
    given, table = called.given, called.table
    if "location" in given and not same(str(given["location"]), table.uri):
        raise UnsupportedFeatureError(f"only the table's own location, {table.uri}, is looked through")
    for name in ("file_list_view", "equal_schemes", "equal_authorities"):
        if name in given:
            raise UnsupportedFeatureError(
                f"{name} is not offered", advice="leave it out: schemes are compared as the same store has them"
            )
    if given.get("prefix_mismatch_mode", "error").lower() == "delete":
        raise UnsupportedFeatureError(
            "files of other stores are never removed", advice="leave prefix_mismatch_mode out"
        )
    done = table.remove_orphan_files(given.get("older_than"), dry_run=given.get("dry_run", False))
    for path in done.paths:
        yield (join(table.uri, path),)


PROCEDURES: Final = (
    Procedure(
        "expire_snapshots",
        "older_than timestamp, retain_last int, max_concurrent_deletes int, stream_results boolean, "
        "snapshot_ids array<bigint>, clean_expired_metadata boolean",
        ", ".join(f"deleted_{name}_count bigint" for name in _DELETED),
        _expire_snapshots,
    ),
    Procedure(
        "remove_orphan_files",
        "older_than timestamp, location string, dry_run boolean, max_concurrent_deletes int, file_list_view string, "
        "equal_schemes map<string,string>, equal_authorities map<string,string>, prefix_mismatch_mode string, "
        "prefix_listing boolean",
        "orphan_file_location string",
        _remove_orphan_files,
    ),
    Procedure(
        "compute_table_stats",
        "snapshot_id bigint, columns array<string>",
        "statistics_file string",
        _compute_table_stats,
    ),
    Procedure(
        "rewrite_data_files",
        "strategy string, sort_order string, options map<string,string>, where string",
        "rewritten_data_files_count int, added_data_files_count int, rewritten_bytes_count bigint, "
        "failed_data_files_count int, removed_delete_files_count int",
        _rewrite_data_files,
    ),
    Procedure(
        "rewrite_manifests",
        "use_caching boolean, spec_id int, sort_by array<string>",
        "rewritten_manifests_count int, added_manifests_count int",
        _rewrite_manifests,
    ),
    Procedure(
        "rewrite_position_delete_files",
        "options map<string,string>",
        "rewritten_delete_files_count int, added_delete_files_count int, rewritten_bytes_count bigint, "
        "added_bytes_count bigint",
        _rewrite_position_delete_files,
    ),
)
