"""Put-if-absent for file-system tables, with a look back.

While a commit was prepared, others may have gone past its version and cleaned that version's file away
(`write.metadata.delete-after-commit.enabled`): then the put succeeds below the head, and the table never sees it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from boathouse.errors import BoathouseError
from boathouse.iceberg.documents import written_by
from boathouse.iceberg.metadata import TableMetadata
from boathouse.iceberg.paths import list_metadata, read_bytes, version_of
from boathouse.iceberg.snapshot import read_metadata
from boathouse.iceberg.summaries import WRITE_ID
from boathouse.storage import Stores, basename
from boathouse.table.commit import FileCommitter
from boathouse.table.format import Attempt, Published
from boathouse.table.location import Location


@dataclass(frozen=True, slots=True)
class FileSystemCommitter:
    """Commits `v<N>.metadata.json`, and makes sure that later versions followed it."""

    location: Location
    stores: Stores

    def publish(self, attempt: Attempt) -> Published:
        """`won` only if the versions above ours, should there be any, came out of ours."""
        outcome: Published = FileCommitter(self.stores).publish(attempt)
        if outcome != "won":
            return outcome
        try:
            followed = self._followed(attempt)
        except BoathouseError:
            return "unknown"
        if followed == "no":
            storage, key = self.stores.resolve(attempt.uri)
            storage.delete([key])
            return "lost"
        return "won" if followed == "yes" else "unknown"

    def _followed(self, attempt: Attempt) -> Literal["yes", "no", "unknown"]:
        ours = version_of(attempt.uri)
        above = [uri for n, uri in list_metadata(self.location.uri, self.stores).file_system if ours and n > ours]
        if not above:
            return "yes"
        mine = TableMetadata.parse(read_bytes(self.stores, attempt.uri), attempt.uri)
        later = [read_metadata(uri, self.stores) for uri in dict.fromkeys((above[0], above[-1]))]
        made = mine.snapshots.get(attempt.version, {}).get("summary") or {}
        if made.get(WRITE_ID) == written_by(mine.document):
            return "yes" if any(attempt.version in m.snapshots for m in later) else "no"
        # A commit without a snapshot: the file logged under our name is ours if it has our time.
        times = [
            e["timestamp-ms"] for m in later for e in _log(m) if basename(e["metadata-file"]) == basename(mine.uri)
        ]
        if not times:
            return "unknown"
        return "yes" if int(mine.document["last-updated-ms"]) in map(int, times) else "no"


def _log(metadata: TableMetadata) -> list[dict[str, Any]]:
    return metadata.document.get("metadata-log") or []
