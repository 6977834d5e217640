"""Snapshot summaries: metrics of a commit, running totals, and this library's own keys (spec, Appendix F)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.bits.library import library_version
from boathouse.bits.text import json_value
from boathouse.errors import CorruptTableError, InvalidArgumentError
from boathouse.iceberg.manifests.columns import PUFFIN, tuples
from boathouse.iceberg.manifests.records import EQUALITY_DELETES
from boathouse.iceberg.manifests.totals import number
from boathouse.table.change import Change
from boathouse.table.edits import CherryPick
from boathouse.types import PartitionSpec

WRITE_ID: Final = "boathouse.write-id"
MESSAGE: Final = "boathouse.message"
OPERATION: Final = "boathouse.operation"
PARAMETERS: Final = "boathouse.parameters"
METRICS: Final = "boathouse.metrics"
REPLACES_PARTITIONS: Final = "replace-partitions"
APP: Final = "boathouse.txn-app"
APP_VERSION: Final = "boathouse.txn-version"
METADATA_EDIT: Final = "metadata"
_COUNTED = (
    "data-files", "delete-files", "records", "files-size", "position-deletes", "equality-deletes",
    "position-delete-files", "equality-delete-files", "dvs",
)  # fmt: skip
_KNOWN = frozenset(
    ["operation", "engine-name", "engine-version", "changed-partition-count"]
    + ["manifests-created", "manifests-kept", "manifests-replaced", "entries-processed"]
    + [f"{how}-{what}" for how in ("added", "deleted", "removed", "total") for what in _COUNTED]
)
_TOTALS = {
    "total-records": ("added-records", "deleted-records"),
    "total-files-size": ("added-files-size", "removed-files-size"),
    "total-data-files": ("added-data-files", "deleted-data-files"),
    "total-delete-files": ("added-delete-files", "removed-delete-files"),
    "total-position-deletes": ("added-position-deletes", "removed-position-deletes"),
    "total-equality-deletes": ("added-equality-deletes", "removed-equality-deletes"),
}


def _sum(entries: pa.Table, name: str) -> int:
    return pc.sum(entries.column(name)).as_py() or 0


def _vectors(entries: pa.Table) -> pa.ChunkedArray:
    return pc.equal(pc.utf8_upper(entries.column("file_format")), PUFFIN)


def _sizes(entries: pa.Table) -> int:
    """The bytes of the files; of vectors, several of which share one, their own."""
    of_vectors = pc.and_(_vectors(entries), pc.is_valid(entries.column("content_size_in_bytes")))
    sizes = pc.if_else(of_vectors, entries.column("content_size_in_bytes"), entries.column("file_size_in_bytes"))
    return pc.sum(sizes).as_py() or 0


@dataclass(slots=True)
class Tallies:
    """Counts by summary key, and the partitions that a commit touches."""

    counts: dict[str, int] = field(default_factory=dict)
    partitions: set[object] = field(default_factory=set)

    def add(self, key: str, number: int) -> None:
        self.counts[key] = self.counts.get(key, 0) + number

    def added(self, entries: pa.Table, spec: PartitionSpec) -> None:
        """New data files or delete files."""
        self._count(entries, spec, "added", "added")

    def removed(self, entries: pa.Table, spec: PartitionSpec) -> None:
        """Removed data files or delete files."""
        self._count(entries, spec, "removed", "deleted")

    def _count(self, entries: pa.Table, spec: PartitionSpec, how: str, how_data: str) -> None:
        self.add(f"{how}-files-size", _sizes(entries))
        for content in entries.column("content").unique().to_pylist():
            of = entries.filter(pc.equal(entries.column("content"), content))
            if not content:
                self.add(f"{how_data}-data-files", of.num_rows)
                self.add(f"{how_data}-records", _sum(of, "record_count"))
            else:
                kind = "equality" if content == EQUALITY_DELETES else "position"
                vectors = pc.sum(_vectors(of)).as_py()
                self.add(f"{how}-delete-files", of.num_rows)
                if vectors:
                    self.add(f"{how}-dvs", vectors)
                if of.num_rows > vectors:
                    self.add(f"{how}-{kind}-delete-files", of.num_rows - vectors)
                self.add(f"{how}-{kind}-deletes", _sum(of, "record_count"))
        self._touch(entries, spec)

    def _touch(self, entries: pa.Table, spec: PartitionSpec) -> None:
        self.partitions.update((spec.id, values) for values in tuples(entries, spec))

    @property
    def operation(self) -> str:
        """append, delete or overwrite, depending on the changes."""
        removes = any(k.startswith(("deleted-", "removed-")) or k == "added-delete-files" for k in self.counts)
        adds = "added-data-files" in self.counts
        return "overwrite" if adds and removes else "delete" if removes else "append"


def summary(change: Change, tallies: Tallies, parent: Mapping[str, Any] | None) -> dict[str, str]:
    """The summary of the snapshot for `change`; `parent` is the previous snapshot."""
    same_rows = change.operation == "replace" or not change.data_change
    found = {"operation": "replace" if same_rows else tallies.operation, **described(change)}
    if change.parameters.get("partitions") == "dynamic":
        found[REPLACES_PARTITIONS] = "true"
    for edit in change.all(CherryPick):
        found.update(edit.notes)
    counts = {**tallies.counts, "changed-partition-count": len(tallies.partitions)}
    found.update({k: str(v) for k, v in counts.items()})
    found.update({k: str(v) for k, v in _totals(tallies.counts, parent).items()})
    return found


def described(change: Change) -> dict[str, str]:
    """What a commit records of its change beside its rows."""
    found: dict[str, str] = {}
    for key, value in change.metadata.items():
        if key in _KNOWN or key.startswith("boathouse."):
            raise InvalidArgumentError(f"metadata key {key!r} has a meaning of its own in Iceberg snapshots")
        found[key] = str(value)
    found["engine-name"] = "boathouse"
    found["engine-version"] = library_version()
    found[WRITE_ID] = change.write_id
    found[OPERATION] = change.operation
    if change.message is not None:
        found[MESSAGE] = change.message
    if change.parameters:
        found[PARAMETERS] = json.dumps(dict(change.parameters))
    if change.metrics:
        found[METRICS] = json.dumps(dict(change.metrics))
    if change.txn is not None:
        found[APP], found[APP_VERSION] = change.txn[0], str(change.txn[1])
    return found


def _totals(counts: Mapping[str, int], parent: Mapping[str, Any] | None) -> dict[str, int]:
    """Running totals; one that is missing in the parent stays unknown."""
    before = None if parent is None else parent.get("summary") or {}
    found = {}
    for total, (plus, minus) in _TOTALS.items():
        base = 0 if before is None else number(before.get(total))
        if base is not None:
            found[total] = base + counts.get(plus, 0) - counts.get(minus, 0)
    return found


def user_metadata(summary: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of a user or another engine in a summary, beyond counts and our own keys."""
    return {k: v for k, v in summary.items() if k not in _KNOWN and not k.startswith("boathouse.")}


def counts_of(summary: Mapping[str, Any], where: str | None = None) -> dict[str, int]:
    """The numbers of a summary."""
    named = {k: n for k, v in summary.items() if k in _KNOWN and (n := number(v)) is not None}
    return {**named, **own_json(summary, METRICS, where)}


def own_json(summary: Mapping[str, Any], key: str, where: str | None) -> dict[str, Any]:
    """The value that this library recorded under one of its keys; empty if none. Raises CorruptTableError."""
    if key not in summary:
        return {}
    found = json_value(summary[key], where, f"`{key}` in a snapshot's summary")
    if not isinstance(found, dict):
        raise CorruptTableError(f"`{key}` in a snapshot's summary is not a JSON object", where=where)
    return found
