"""Whether a metadata file that was put is part of the table's history.

While a commit is prepared, other writers may pass its version and delete that version's file
(`write.metadata.delete-after-commit.enabled`): then the put succeeds below the head, and the table never sees it.
"""

from __future__ import annotations

from typing import Any

from boathouse.iceberg.commit.summaries import WRITE_ID
from boathouse.iceberg.metadata.document import TableMetadata
from boathouse.iceberg.metadata.draft import written_by
from boathouse.iceberg.paths import decompressed, list_metadata, version_of
from boathouse.iceberg.snapshot import NO_SNAPSHOT, IcebergSnapshot, read_metadata
from boathouse.storage import basename
from boathouse.table.attempt import Attempt, Published


def includes(attempt: Attempt, head: IcebergSnapshot) -> Published | None:
    """`won` only if the versions above ours descend from ours; None while a listing does not show ours yet."""
    ours, newest = version_of(attempt.uri), version_of(head.token)
    if head.token == attempt.uri:
        return "won"
    if ours is None or newest is None:
        return "unknown"
    if newest <= ours:
        return None
    above = [(n, uri) for n, uri in list_metadata(head.context).file_system if n > ours]
    next_uri = min(above)[1] if above else head.token
    later = [head.metadata] if next_uri == head.token else [read_metadata(next_uri, head.stores), head.metadata]
    mine = TableMetadata.parse(decompressed(attempt.body, attempt.uri), attempt.uri)
    made = mine.snapshots.get(attempt.version or NO_SNAPSHOT, {}).get("summary") or {}
    if made.get(WRITE_ID) == written_by(mine.document):
        return "won" if any(attempt.version in m.snapshots for m in later) else "lost"
    # A commit without a snapshot: the file logged under our name is ours if it has our time.
    times = [
        int(e["timestamp-ms"]) for m in later for e in _log(m) if basename(e["metadata-file"]) == basename(attempt.uri)
    ]
    if not times:
        return "unknown"
    return "won" if int(mine.document["last-updated-ms"]) in times else "lost"


def _log(metadata: TableMetadata) -> list[dict[str, Any]]:
    return metadata.document.get("metadata-log") or []
