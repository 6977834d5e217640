"""The history of a table: its commits as far as they are retained, and the writes and applications that made them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from boathouse.table.location import Version


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One commit, newest first in a history.

    `version` is that of the rows after the commit, which `open(version=...)` opens. With `metadata_only` the commit did
    not make it: an Iceberg commit of metadata alone leaves the version that was current, 0 before the first. `commit`
    is its `CommitId.token`, None where the table no longer records it (Iceberg keeps the names of the last metadata
    files only). `parent` is the version that it followed, whether that is retained or not; None for the table's first.
    `data_change` is false if the commit is known to leave every row as it was. `native` is what the format records of
    the commit under its own names.
    """

    version: Version
    commit: str | None
    timestamp_ms: int
    operation: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)
    engine: str | None = None
    write_id: str | None = None
    message: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    parent: Version | None = None
    data_change: bool = True
    native: Mapping[str, Any] = field(default_factory=dict, repr=False)
    metadata_only: bool = False


class History(Protocol):
    """The history up to a snapshot."""

    def entries(self, limit: int | None = None) -> Iterator[HistoryEntry]:
        """Commits up to the snapshot, newest first, as far as they are retained."""

    def find_write(self, write_id: str) -> Version | None:
        """The version of the table once it had the commit with this write id, or None; searches everything that is
        retained, later commits too. Raises CommitUnknownError if that does not tell whether the version is part of the
        table."""

    def app_version(self, app: str) -> int | None:
        """The newest version that this application recorded with a write (`Change.txn`) up to the snapshot, or None."""
