"""What a report says of a table, gathered from its metadata alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse.api.detail import detail
from boathouse.ops.handle import Handle
from boathouse.report.column_facts import ColumnFacts, column_facts
from boathouse.table.findings import Finding
from boathouse.table.history import HistoryEntry
from boathouse.table.inspection import partitions_of
from boathouse.table.snapshot import Snapshot

COMMITS: Final = 500
"""So many of the newest commits are shown."""
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class FileFacts:
    """The data files: bytes, rows and deleted rows of each, -1 where it is not recorded."""

    sizes: Ints
    rows: Ints
    deleted: Ints

    def deleted_shares(self) -> npt.NDArray[np.float64]:
        """Of each file that records its rows and has some: the share that is deleted."""
        known = (self.rows > 0) & (self.deleted >= 0)
        return self.deleted[known] / self.rows[known]


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """One partition, and the sums over its files."""

    name: str
    files: int
    bytes: int
    rows: int | None


@dataclass(frozen=True, slots=True)
class Facts:
    """All that a report shows; `more_commits` if the history is longer than `commits`."""

    about: Mapping[str, Any]
    findings: tuple[Finding, ...]
    commits: tuple[HistoryEntry, ...]
    more_commits: bool
    files: FileFacts
    partitions: tuple[PartitionFacts, ...]
    columns: tuple[ColumnFacts, ...]


def gather(handle: Handle, findings: list[Finding]) -> Facts:
    """The facts of the version of the handle. Raises CorruptTableError, MissingFileError, StorageError."""
    snapshot = handle.snapshot
    commits = list(snapshot.history.entries(COMMITS + 1))
    files = list(snapshot.files())
    return Facts(
        detail(handle),
        tuple(findings),
        tuple(commits[:COMMITS]),
        len(commits) > COMMITS,
        FileFacts(*(_counts(files, name) for name in ("size", "rows", "deleted"))),
        tuple(sorted(_partitions(snapshot, files), key=lambda p: (-p.bytes, p.name))),
        column_facts(snapshot),
    )


def _counts(files: Sequence[pa.RecordBatch], name: str) -> Ints:
    parts = [batch.column(name).fill_null(-1).to_numpy() for batch in files]
    return np.concatenate([np.empty(0, np.int64), *parts])


def _partitions(snapshot: Snapshot, files: Sequence[pa.RecordBatch]) -> Iterator[PartitionFacts]:
    found = partitions_of(snapshot, files)
    if "partition" not in found.column_names:
        return
    for row in found.to_pylist():
        name = "/".join(f"{k}={'null' if v is None else v}" for k, v in row["partition"].items())
        rows, deleted = row["record_count"], row["position_delete_record_count"]
        left = None if rows is None or deleted is None else rows - deleted
        yield PartitionFacts(name, row["file_count"], row["total_data_file_size_in_bytes"] or 0, left)
