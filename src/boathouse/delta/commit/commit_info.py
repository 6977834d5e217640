"""The commitInfo action: the operation and its metrics as the reference implementation names them."""

from __future__ import annotations

from typing import Any, Final

from boathouse.bits import system
from boathouse.bits.library import LIBRARY, library_version
from boathouse.delta.commit.operations import named_operation
from boathouse.delta.snapshot import DeltaSnapshot
from boathouse.table.change import Change
from boathouse.table.edits import (
    AddChangeFiles,
    RestoreTo,
)

Action = dict[str, Any]
WRITE_ID: Final = "writeId"
"""The key of commitInfo with the id of the logical write, the same in all its attempts."""
METADATA: Final = "metadata"
_VACUUM: Final = {
    "VACUUM START": {"files": "numFilesToDelete", "bytes": "sizeOfDataToDelete"},
    "VACUUM END": {"files": "numDeletedFiles", "folders": "numVacuumedDirectories"},
}


def engine_info() -> str:
    """Our engine name in commitInfo."""
    return f"{LIBRARY}/{library_version()}"


def commit_info(
    change: Change, newest: DeltaSnapshot | None, now: int, added: list[Action], removed: list[Action]
) -> Action:
    """The action for this commit, which adds and removes these files."""
    operation, parameters = named_operation(change, newest)
    snapshot_isolation = change.isolation == "snapshot" or not change.data_change
    info: Action = {
        "timestamp": now,
        "operation": operation,
        "operationParameters": parameters,
        "isolationLevel": "SnapshotIsolation" if snapshot_isolation else "Serializable",
        "isBlindAppend": bool(added) and change.added is not None and not removed and change.reads.blind,
        "operationMetrics": _metrics(change, operation, added, removed),
        "engineInfo": engine_info(),
        "txnId": str(system.current().uuid4()),
        WRITE_ID: change.write_id,
    }
    if newest is not None:
        info["readVersion"] = change.planned.version if change.planned else newest.version
    if change.message is not None:
        info["userMetadata"] = change.message
    if change.metadata:
        info[METADATA] = dict(change.metadata)
    return info


def _metrics(change: Change, operation: str, added: list[Action], removed: list[Action]) -> Action:
    new = change.added
    rows = sum(new.column("rows").to_pylist()) if new is not None else 0
    adds, removes = [a["add"] for a in added], [r["remove"] for r in removed]
    marked = {a["path"] for a in adds if "deletionVector" in a}
    files = [a for a in adds if a["path"] not in marked]
    gone = sum(r["path"] not in marked for r in removes)
    metrics: dict[str, int] = {}
    if operation in ("DELETE", "UPDATE", "MERGE"):
        metrics = _row_metrics(change, operation, len(files), gone) | _vector_metrics(operation, marked, removes)
        metrics["numAddedChangeFiles"] = sum(e.outcomes.num_rows for e in change.all(AddChangeFiles))
    elif (restored := change.edit(RestoreTo)) is not None:
        metrics = _restore_metrics(restored, adds, removes)
    elif operation.startswith("VACUUM"):
        return {_VACUUM[operation][k]: str(v) for k, v in change.metrics.items() if k in _VACUUM[operation]}
    elif operation == "CONVERT":
        return {"numConvertedFiles": str(len(files))}
    elif operation == "CLONE":
        copied = {"numRemovedFiles": 0, "numCopiedFiles": 0, "removedFilesSize": 0, "copiedFilesSize": 0}
        metrics = {"sourceTableSize": sum(a["size"] or 0 for a in adds), "sourceNumOfFiles": len(adds), **copied}
    elif operation in ("OPTIMIZE", "REORG"):
        metrics = _optimize_metrics([a["size"] for a in files], removes)
    elif added or removed:
        metrics = {"numFiles": len(files), "numOutputRows": rows, "numOutputBytes": sum(a["size"] for a in files)}
        if removed:
            metrics["numRemovedFiles"] = gone
    return {k: str(v) for k, v in {**metrics, **change.metrics}.items()}


def _restore_metrics(restored: RestoreTo, adds: list[Action], removes: list[Action]) -> dict[str, int]:
    return {
        "tableSizeAfterRestore": restored.size,
        "numOfFilesAfterRestore": restored.files,
        "numRemovedFiles": len(removes),
        "numRestoredFiles": len(adds),
        "removedFilesSize": sum(r["size"] or 0 for r in removes),
        "restoredFilesSize": sum(a["size"] for a in adds),
    }


def _row_metrics(change: Change, operation: str, added: int, removed: int) -> dict[str, int]:
    rows = {kind: change.metrics.get(f"rows_{kind}", 0) for kind in ("added", "updated", "deleted", "copied")}
    if operation == "MERGE":
        return {
            "numTargetRowsInserted": rows["added"],
            "numTargetRowsUpdated": rows["updated"],
            "numTargetRowsDeleted": rows["deleted"],
            "numTargetRowsCopied": rows["copied"],
            "numOutputRows": rows["added"] + rows["updated"] + rows["copied"],
            "numTargetFilesAdded": added,
            "numTargetFilesRemoved": removed,
        }
    kind = "deleted" if operation == "DELETE" else "updated"
    return {
        "numAddedFiles": added,
        "numRemovedFiles": removed,
        f"num{kind.title()}Rows": rows[kind],
        "numCopiedRows": rows["copied"],
    }


def _vector_metrics(operation: str, marked: set[str], removes: list[Action]) -> dict[str, int]:
    """A vector that replaces another counts as added and as removed."""
    before = {r["path"] for r in removes if "deletionVector" in r}
    name = "numTargetDeletionVectors" if operation == "MERGE" else "numDeletionVectors"
    return {f"{name}Added": len(marked), f"{name}Removed": len(before), f"{name}Updated": len(before & marked)}


def _optimize_metrics(added: list[int], removed: list[Action]) -> dict[str, int]:
    metrics = {
        "numRemovedFiles": len(removed),
        "numRemovedBytes": sum(r["size"] or 0 for r in removed),
        "numAddedFiles": len(added),
        "numAddedBytes": sum(added),
        "numDeletionVectorsRemoved": sum("deletionVector" in r for r in removed),
    }
    if added:
        sizes = sorted(added)
        parts = {"minFileSize": 0, "p25FileSize": 1, "p50FileSize": 2, "p75FileSize": 3, "maxFileSize": 4}
        metrics |= {name: sizes[(len(sizes) - 1) * quarter // 4] for name, quarter in parts.items()}
    return metrics
