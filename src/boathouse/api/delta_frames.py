"""What operations did, and what a table is, as Spark DataFrames whose columns are those of Delta's own commands."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from boathouse.ops.result import WriteResult
from boathouse.table.history import HistoryEntry

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
HISTORY: Final = (
    "version bigint, timestamp timestamp, userId string, userName string, operation string, "
    "operationParameters map<string,string>, job struct<jobId:string,jobName:string,jobRunId:string,runId:string,"
    "jobOwnerId:string,triggerType:string>, notebook struct<notebookId:string>, clusterId string, readVersion bigint, "
    "isolationLevel string, isBlindAppend boolean, operationMetrics map<string,string>, userMetadata string, "
    "engineInfo string"
)
DETAIL: Final = (
    "format string, id string, name string, description string, location string, createdAt timestamp, "
    "lastModified timestamp, partitionColumns array<string>, clusteringColumns array<string>, numFiles bigint, "
    "sizeInBytes bigint, properties map<string,string>, minReaderVersion int, minWriterVersion int, "
    "tableFeatures array<string>"
)
_FILES: Final = "struct<min:bigint,max:bigint,avg:double,totalFiles:bigint,totalSize:bigint>"
_CUBES: Final = "struct<num:bigint,size:bigint>"
_ZCUBES: Final = "struct<numFiles:bigint,size:bigint>"
OPTIMIZE: Final = (
    f"path string, metrics struct<numFilesAdded:bigint,numFilesRemoved:bigint,filesAdded:{_FILES},"
    f"filesRemoved:{_FILES},partitionsOptimized:bigint,zOrderStats:struct<strategyName:string,"
    f"inputCubeFiles:{_CUBES},inputOtherFiles:{_CUBES},inputNumCubes:bigint,mergedFiles:{_CUBES},"
    f"numOutputCubes:bigint,mergedNumCubes:bigint>,clusteringStats:struct<inputZCubeFiles:{_ZCUBES},"
    f"inputOtherFiles:{_ZCUBES},inputNumZCubes:bigint,mergedFiles:{_ZCUBES},numOutputZCubes:bigint>,numBins:bigint,"
    "numBatches:bigint,totalConsideredFiles:bigint,totalFilesSkipped:bigint,preserveInsertionOrder:boolean,"
    "numFilesSkippedToReduceWriteAmplification:bigint,numBytesSkippedToReduceWriteAmplification:bigint,"
    "startTimeMs:bigint,endTimeMs:bigint,totalClusterParallelism:bigint,totalScheduledTasks:bigint,"
    "autoCompactParallelismStats:struct<maxClusterActiveParallelism:bigint,minClusterActiveParallelism:bigint,"
    "maxSessionActiveParallelism:bigint,minSessionActiveParallelism:bigint>,"
    "deletionVectorStats:struct<numDeletionVectorsRemoved:bigint,numDeletionVectorRowsRemoved:bigint>,"
    "numTableColumns:bigint,numTableColumnsWithStats:bigint>"
)
RESTORE: Final = (
    "table_size_after_restore bigint, num_of_files_after_restore bigint, num_removed_files bigint, "
    "num_restored_files bigint, removed_files_size bigint, restored_files_size bigint"
)
CLONE: Final = (
    "source_table_size bigint, source_num_of_files bigint, num_removed_files bigint, num_copied_files bigint, "
    "removed_files_size bigint, copied_files_size bigint"
)
_ROWS: Final = {"updated": "rows_updated", "deleted": "rows_deleted", "inserted": "rows_added"}


def history_frame(spark: Any, entries: Iterable[HistoryEntry]) -> Any:
    """DESCRIBE HISTORY, newest first. What a format does not record is null."""
    rows = []
    for e in entries:
        native = e.native
        rows.append((
            e.version, _time(e.timestamp_ms), native.get("userId"), native.get("userName"), e.operation,
            _strings(e.parameters), None, None, native.get("clusterId"), native.get("readVersion"),
            native.get("isolationLevel"), native.get("isBlindAppend"), _strings(e.metrics), e.message, e.engine,
        ))  # fmt: skip
    return spark.createDataFrame(rows, HISTORY)


def detail_frame(spark: Any, detail: Mapping[str, Any], name: str | None = None) -> Any:
    """DESCRIBE DETAIL, from the values of `Table.detail`, of a table that is known by `name`. What a format does not
    have is null."""
    created = detail.get("createdTime")
    row = (
        detail["format"], detail.get("id", detail["identity"]), name or detail.get("name"),
        detail.get("description"),
        detail["location"], None if created is None else _time(created),
        dt.datetime.fromisoformat(detail["timestamp"]), detail["partition_by"], detail.get("clusteringColumns", []),
        detail["files"], detail["bytes"], detail["properties"], detail.get("minReaderVersion"),
        detail.get("minWriterVersion"), detail.get("features"),
    )  # fmt: skip
    return spark.createDataFrame([row], DETAIL)


def counts_frame(spark: Any, result: WriteResult, *kinds: str) -> Any:
    """`num_affected_rows`, and a column for each of the kinds updated, deleted, inserted."""
    counts = {kind: getattr(result, name) for kind, name in _ROWS.items()}
    names = ["num_affected_rows", *(f"num_{kind}_rows" for kind in kinds)]
    schema = ", ".join(f"{name} bigint" for name in names)
    return spark.createDataFrame([(sum(counts.values()), *(counts[kind] for kind in kinds))], schema)


def optimize_frame(spark: Any, path: str, result: WriteResult, entries: Sequence[HistoryEntry], before: int) -> Any:
    """The result of OPTIMIZE, what is not known null; `entries` are its commits, `before` the files that there were."""
    metrics = [e.metrics for e in entries]
    removed = sum(m.get("numRemovedBytes", 0) for m in metrics)
    least, most = ([m[name] for m in metrics if name in m] for name in ("minFileSize", "maxFileSize"))
    end = max((e.timestamp_ms for e in entries), default=0)
    figures = {
        "numFilesAdded": result.files_added,
        "numFilesRemoved": result.files_removed,
        "filesAdded": _sizes(result.files_added, result.bytes_added, least, most),
        "filesRemoved": _sizes(result.files_removed, removed),
        "numBatches": len(result.versions),
        "totalConsideredFiles": before,
        "totalFilesSkipped": before - result.files_removed,
        "preserveInsertionOrder": True,
        "startTimeMs": end - round(result.seconds * 1000),
        "endTimeMs": end,
    }
    return spark.createDataFrame([{"path": path, "metrics": figures}], OPTIMIZE)


def restore_frame(spark: Any, entry: HistoryEntry | None, files: int, size: int) -> Any:
    """The result of RESTORE: from its commit (None: there was nothing to do), and the size of the table after it."""
    metrics = {} if entry is None else entry.metrics
    names = ("numRemovedFiles", "numRestoredFiles", "removedFilesSize", "restoredFilesSize")
    return spark.createDataFrame([(size, files, *(int(metrics.get(name, 0)) for name in names))], RESTORE)


def clone_frame(spark: Any, result: WriteResult, files: int, size: int) -> Any:
    """The result of CLONE, from the size of its source: a shallow clone copies no file."""
    row = (size, files, result.files_removed, 0, result.bytes_removed, 0)
    return spark.createDataFrame([row], CLONE)


def paths_frame(spark: Any, paths: Iterable[str]) -> Any:
    """One column `path`, as of VACUUM."""
    return spark.createDataFrame([(path,) for path in paths], "path string")


def _sizes(files: int, size: int, smallest: Iterable[int] = (), largest: Iterable[int] = ()) -> tuple[Any, ...]:
    least, most = min(smallest, default=None), max(largest, default=None)
    return (least, most, size / files if files else 0.0, files, size)


def _time(ms: int) -> dt.datetime:
    return _EPOCH + dt.timedelta(milliseconds=ms)


def _strings(values: Mapping[str, Any]) -> dict[str, str | None]:
    return {k: v if v is None or isinstance(v, str) else json.dumps(v) for k, v in values.items()}
