"""The procedures of Iceberg by the names, arguments and results that they have in iceberg-spark."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from boathouse.api.conditions import condition
from boathouse.api.engines import engine_for
from boathouse.api.partition_by import sort_fields
from boathouse.api.procedures.procedure import Called, Procedure, Row, known_options, number_of, total
from boathouse.errors import InvalidArgumentError, UnsupportedFeatureError
from boathouse.expr.tree import Expr
from boathouse.ops.files.compact import Choice, Compact
from boathouse.ops.files.sort_rows import SortedFiles
from boathouse.ops.files.zorder import ClusterRows
from boathouse.ops.options import WriteOptions
from boathouse.ops.write import Write
from boathouse.storage import basename, join, same
from boathouse.table import features

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
_CHOICE: Final = (
    "delete-file-threshold", "delete-ratio-threshold", "min-input-files", "rewrite-all", "target-file-size-bytes",
)  # fmt: skip
_PART: Final = re.compile(r"(?:`(?:[^`]|``)*`|\([^()]*\)|[^,`()])+")
_QUOTED: Final = re.compile(r"`((?:[^`]|``)*)`")
_ZORDER: Final = re.compile(r"\s*zorder\s*\((.*)\)\s*", re.IGNORECASE | re.DOTALL)


def _rewrite_data_files(called: Called) -> Iterator[Row]:
    table, given = called.table, called.given
    options = known_options(given.get("options", {}), _CHOICE, _HOW)
    where = None if "where" not in given else condition(given["where"])
    written = WriteOptions.of(None, None, None, False, number_of(options, "target-file-size-bytes"))
    write = _rewrite(given.get("strategy"), given.get("sort_order"), where, options)
    done = table._run(engine_for(None, called.spark), write, written, where is not None)
    removed = total(table, done, "removed-delete-files")
    yield done.files_removed, done.files_added, done.bytes_removed, 0, removed


def _rewrite(strategy: str | None, order: str | None, where: Expr | None, options: Mapping[str, str]) -> Write:
    """Which files are rewritten, and how: all that may have rows for which `where` is true."""
    named = (strategy or ("binpack" if order is None else "sort")).lower()
    if named == "binpack" and order is None:
        return Compact(where, choice=_choice(options), loosely=True)
    if named != "sort":
        raise InvalidArgumentError(
            f"the strategy is {strategy!r}" + ("" if order is None else ", and a sort order is given"),
            advice="pass strategy => 'binpack', or 'sort', with sort_order => 'a DESC, b' if not by the table's own",
        )
    for name in options:
        if name != "target-file-size-bytes" and not (name == "rewrite-all" and options[name].lower() == "true"):
            raise UnsupportedFeatureError(
                f"the option {name!r} is not offered where rows are sorted: all files are rewritten"
            )
    if order is None:
        return SortedFiles(None, where, loosely=True)
    found = _ZORDER.fullmatch(order)
    if found is not None:
        return ClusterRows(tuple(_parts(found[1])), where, loosely=True)
    texts = list(_parts(order))
    return SortedFiles(lambda schema: sort_fields(texts, schema), where, loosely=True)


def _choice(options: Mapping[str, str]) -> Choice:
    found = Choice(every=options.get("rewrite-all", "false").lower() == "true")
    least, deletes = number_of(options, "min-input-files"), number_of(options, "delete-file-threshold")
    share = number_of(options, "delete-ratio-threshold", float)
    if least is not None:
        found = replace(found, least=least)
    if share is not None:
        found = replace(found, deleted=share)
    return replace(found, deletes=deletes)


def _parts(text: str) -> Iterator[str]:
    """What commas divide outside of parentheses and quoted names; a name alone without its quotes."""
    for part in _PART.findall(text):
        if part.strip():
            yield _QUOTED.sub(lambda m: m[1].replace("``", "`"), part.strip())


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


def _rewrite_table_path(called: Called) -> Iterator[Row]:
    given, table = called.given, called.table
    head = basename(table._handle.snapshot.token)
    if "start_version" in given or given.get("end_version", head) != head or given.get("create_file_list") is False:
        raise UnsupportedFeatureError(
            "part of a history is not written for another place", advice=f"leave start_version out; the end is {head}"
        )
    done = table.rewrite_table_path(given["source_prefix"], given["target_prefix"], given.get("staging_location"))
    yield done.latest_version, done.file_list, done.manifests, done.delete_files


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
    Procedure(
        "rewrite_table_path",
        "source_prefix string NOT NULL, target_prefix string NOT NULL, start_version string, end_version string, "
        "staging_location string, create_file_list boolean",
        "latest_version string, file_list_location string, rewritten_manifest_file_paths_count int, "
        "rewritten_delete_file_paths_count int",
        _rewrite_table_path,
    ),
)
