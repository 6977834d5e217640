"""What a report says of a table, gathered from its metadata alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse.api.detail import detail, files_table
from boathouse.ops.handle import Handle
from boathouse.report.column_facts import ColumnFacts, column_facts
from boathouse.table.findings import Finding
from boathouse.table.history import HistoryEntry

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
    files = files_table(handle)
    return Facts(
        detail(handle),
        tuple(findings),
        tuple(commits[:COMMITS]),
        len(commits) > COMMITS,
        FileFacts(*(_counts(files, name) for name in ("size", "rows", "deleted"))),
        tuple(sorted(_partitions(files), key=lambda p: (-p.bytes, p.name))),
        column_facts(snapshot),
    )


def _counts(files: pa.Table, name: str) -> Ints:
    found: Ints = files.column(name).fill_null(-1).combine_chunks().to_numpy().astype(np.int64)
    return found


def _partitions(files: pa.Table) -> Iterator[PartitionFacts]:
    if not files.num_rows or not files.schema.field("partition").type.num_fields:
        return
    found: dict[str, list[int]] = {}
    unknown = set()
    columns = (files.column(n).to_pylist() for n in ("partition", "size", "rows", "deleted"))
    for values, size, rows, deleted in zip(*columns, strict=True):
        name = "/".join(f"{k}={'null' if v is None else v}" for k, v in values.items())
        sums = found.setdefault(name, [0, 0, 0])
        sums[0] += 1
        sums[1] += size or 0
        if rows is None or deleted is None:
            unknown.add(name)
        else:
            sums[2] += rows - deleted
    for name, (count, bytes_, there) in found.items():
        yield PartitionFacts(name, count, bytes_, None if name in unknown else there)
