"""The metadata tables that the metadata document alone answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from boathouse.errors import CorruptTableError
from boathouse.iceberg.inspect.columns import TEXTS, TIME, required
from boathouse.iceberg.metadata.document import TableMetadata, logged_files
from boathouse.iceberg.paths import Paths
from boathouse.storage import relative

SNAPSHOTS: Final = pa.schema(
    [
        required("committed_at", TIME),
        required("snapshot_id", pa.int64()),
        pa.field("parent_id", pa.int64()),
        pa.field("operation", pa.string()),
        pa.field("manifest_list", pa.string()),
        pa.field("summary", TEXTS),
    ]
)
HISTORY: Final = pa.schema(
    [
        required("made_current_at", TIME),
        required("snapshot_id", pa.int64()),
        pa.field("parent_id", pa.int64()),
        required("is_current_ancestor", pa.bool_()),
    ]
)
REFS: Final = pa.schema(
    [
        required("name", pa.string()),
        required("type", pa.string()),
        required("snapshot_id", pa.int64()),
        pa.field("max_reference_age_in_ms", pa.int64()),
        pa.field("min_snapshots_to_keep", pa.int32()),
        pa.field("max_snapshot_age_in_ms", pa.int64()),
    ]
)
METADATA_LOG: Final = pa.schema(
    [
        required("timestamp", TIME),
        required("file", pa.string()),
        pa.field("latest_snapshot_id", pa.int64()),
        pa.field("latest_schema_id", pa.int32()),
        pa.field("latest_sequence_number", pa.int64()),
    ]
)


def signed(id: int | None) -> int | None:
    """A snapshot id as 64 bits with a sign; some writers use all 64 without one."""
    return id if id is None or id < 1 << 63 else id - (1 << 64)


def _setting(ref: Mapping[str, Any], name: str, bits: int, where: str) -> int | None:
    found = ref.get(name)
    if found is None or (type(found) is int and abs(found) < 1 << (bits - 1)):
        return found
    raise CorruptTableError(f"a ref has {name} {found!r:.80}", where=where)


def snapshots(metadata: TableMetadata) -> pa.Table:
    """Every snapshot of the document."""
    return pa.Table.from_pylist([_snapshot(s) for s in metadata.snapshots.values()], SNAPSHOTS)


def _snapshot(document: Mapping[str, Any]) -> dict[str, Any]:
    recorded = document.get("summary")
    summary = None if recorded is None else {str(k): str(v) for k, v in recorded.items()}
    operation = None if summary is None else summary.pop("operation", None)
    return {
        "committed_at": int(document["timestamp-ms"]) * 1000,
        "snapshot_id": signed(int(document["snapshot-id"])),
        "parent_id": signed(document.get("parent-snapshot-id")),
        "operation": operation,
        "manifest_list": document.get("manifest-list"),
        "summary": None if summary is None else list(summary.items()),
    }


def history(metadata: TableMetadata) -> pa.Table:
    """The snapshot log: which snapshot was made the current one, and when."""
    current = {int(s["snapshot-id"]) for s in metadata.ancestors(metadata.current_snapshot_id)}
    rows = [
        {
            "made_current_at": time * 1000,
            "snapshot_id": signed(id),
            "parent_id": signed(metadata.snapshots.get(id, {}).get("parent-snapshot-id")),
            "is_current_ancestor": id in current,
        }
        for time, id in _log(metadata)
    ]
    return pa.Table.from_pylist(rows, HISTORY)


def _log(metadata: TableMetadata) -> list[tuple[int, int]]:
    return [(int(e["timestamp-ms"]), int(e["snapshot-id"])) for e in metadata.document.get("snapshot-log") or []]


def refs(metadata: TableMetadata) -> pa.Table:
    """Branches and tags."""
    rows = [
        {
            "name": name,
            "type": str(ref.get("type") or "branch").upper(),
            "snapshot_id": signed(int(ref["snapshot-id"])),
            "max_reference_age_in_ms": _setting(ref, "max-ref-age-ms", 64, metadata.uri),
            "min_snapshots_to_keep": _setting(ref, "min-snapshots-to-keep", 32, metadata.uri),
            "max_snapshot_age_in_ms": _setting(ref, "max-snapshot-age-ms", 64, metadata.uri),
        }
        for name, ref in metadata.refs.items()
    ]
    return pa.Table.from_pylist(rows, REFS)


def metadata_log_entries(metadata: TableMetadata, paths: Paths) -> pa.Table:
    """The metadata files that the document records, and the document's own, with the snapshot that was current. Its own
    path is spelled as the table's location is, by which the reference found it."""
    rows = []
    log = _log(metadata)
    for file, time in logged_files(metadata):
        below = relative(file, paths.root) if file == metadata.uri and not paths.moved else None
        file = file if below is None else f"{metadata.location.rstrip('/')}/{below}"
        # The last entry that is old enough, as the reference looks it up; clocks may have gone back.
        latest = next((id for when, id in reversed(log) if when <= time), None)
        snapshot = {} if latest is None else metadata.snapshots.get(latest, {})
        rows.append(
            {
                "timestamp": time * 1000,
                "file": file,
                "latest_snapshot_id": signed(latest),
                "latest_schema_id": None if snapshot.get("schema-id") is None else int(snapshot["schema-id"]),
                "latest_sequence_number": (snapshot.get("sequence-number") or 0) if snapshot else None,
            }
        )
    return pa.Table.from_pylist(rows, METADATA_LOG)
