"""Operations on Spark with the results of Delta's commands: DataFrames instead of `WriteResult`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from boathouse.api.delta_frames import history_frame, optimize_frame, paths_frame, restore_frame
from boathouse.api.table import Table
from boathouse.ops.result import WriteResult
from boathouse.storage import join

_CHECK: Final = "spark.databricks.delta.retentionDurationCheck.enabled"


def history(spark: Any, table: Table, limit: int | None) -> Any:
    return history_frame(spark, table.refresh().history(limit))


def optimize(spark: Any, table: Table, where: str | None, zorder_by: Sequence[str] | None = None) -> Any:
    """One row: the path, and figures."""
    before = table.refresh().detail()["files"]
    return _figures(spark, table, table.optimize(where, zorder_by=zorder_by), before)


def purge(spark: Any, table: Table, where: str | None) -> Any:
    """One row: the path, and figures."""
    before = table.refresh().detail()["files"]
    return _figures(spark, table, table.purge(where), before)


def _figures(spark: Any, table: Table, result: WriteResult, before: int) -> Any:
    entries = table.history(len(result.versions)) if result.versions else []
    return optimize_frame(spark, table.uri, result, entries, before)


def restored(spark: Any, table: Table, result: WriteResult) -> Any:
    """The figures of a restore that has just been made."""
    entry = table.history(1)[0] if result.commit is not None else None
    detail = table.detail()
    return restore_frame(spark, entry, detail["files"], detail["bytes"])


def vacuum(spark: Any, table: Table, hours: float | None = None, mode: Any = "full", dry_run: bool = False) -> Any:
    """The files that a dry run would remove, else the path of the table. A retention below the table's needs the
    setting `spark.databricks.delta.retentionDurationCheck.enabled=false`, as in delta-spark."""
    enforce = str(spark.conf.get(_CHECK, "true")).lower() == "true"
    result = table.vacuum(hours, mode=mode, enforce_retention_duration=enforce, dry_run=dry_run)
    found = (path if "://" in path else join(table.uri, path) for path in result.paths)
    paths = list(found) if dry_run else [table.uri]
    return paths_frame(spark, paths)
