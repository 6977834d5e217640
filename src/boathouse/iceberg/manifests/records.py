"""Manifest lists and manifests: reading by field id, with inheritance (spec, "Manifests")."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from boathouse.avro import container as avro
from boathouse.errors import CorruptTableError, UnsupportedFeatureError
from boathouse.iceberg.manifests.kinds import ENTRY, LIST, check_content, check_entry, check_row, check_schema
from boathouse.iceberg.manifests.schemas import ENTRY_NAMES, LIST_NAMES, METRICS, avro_name
from boathouse.iceberg.manifests.values import Physical, from_avro
from boathouse.iceberg.metadata.encryption import ENCRYPTED
from boathouse.types import PartitionField, PartitionSpec

EXISTING: Final = 0
ADDED: Final = 1
DELETED: Final = 2
DATA: Final = 0
DELETES: Final = 1
POSITION_DELETES: Final = 1
EQUALITY_DELETES: Final = 2
ADVICE: Final = "restore the file from a copy; if the table's writer counts incorrectly, open it with verify=False"

Row = dict[str, Any]
Entry = dict[str, Any]
"""A decoded entry: status, snapshot_id, sequence_number, file_sequence_number, and data_file as raw values."""


@dataclass(frozen=True, slots=True)
class Summary:
    """A manifest list's summary of one partition field over a manifest's files; bounds in binary form."""

    contains_null: bool
    contains_nan: bool | None
    lower: bytes | None
    upper: bytes | None


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """A row of a manifest list, parsed and raw, so that it can be carried over to the next list unchanged."""

    path: str
    spec_id: int
    content: int
    sequence: int
    min_sequence: int
    snapshot_id: int
    partitions: tuple[Summary, ...] | None
    row: Row

    @property
    def empty(self) -> bool:
        """Whether the counts prove that nothing in it is live; a missing count proves nothing."""
        return self.row.get("added_files_count") == 0 and self.row.get("existing_files_count") == 0

    @property
    def live_files(self) -> int | None:
        added, existing = self.row.get("added_files_count"), self.row.get("existing_files_count")
        return None if added is None or existing is None else added + existing

    def check(self, live: int, uri: str) -> None:
        """Raises CorruptTableError for a manifest with fewer live entries than the manifest list counts."""
        expected = self.live_files
        if expected is not None and live < expected:
            raise CorruptTableError(
                f"the manifest has {live:,} live files, but the manifest list counts {expected:,}",
                where=uri,
                advice=ADVICE,
            )


def read_list(data: bytes, where: str) -> list[ManifestFile]:
    """The manifests that a snapshot lists. Raises CorruptTableError, UnsupportedFeatureError (encryption)."""
    container = avro.parse(data, where)
    writer = avro.by_ids(container.schema, LIST_NAMES, where)
    check_schema(writer, LIST, where)
    try:
        return [manifest_file(row, where) for block in avro.records(container, writer) for row in block]
    except KeyError as error:
        raise CorruptTableError(f"the manifest list lacks {error}", where=where) from None


def manifest_file(row: Row, where: str) -> ManifestFile:
    """A row of a manifest list as a manifest file."""
    if row.get("key_metadata"):
        raise UnsupportedFeatureError(ENCRYPTED, where=where)
    check_row(row, where)
    partitions = row.get("partitions")
    return ManifestFile(
        row["manifest_path"],
        row["partition_spec_id"],
        row.get("content") or DATA,
        row.get("sequence_number") or 0,
        row.get("min_sequence_number") or 0,
        row["added_snapshot_id"],
        None if partitions is None else tuple(_summary(p) for p in partitions),
        row,
    )


def described(data: bytes, path: str, where: str, snapshot_id: int) -> ManifestFile:
    """A manifest of a snapshot without a manifest list: its header names its spec, and its entries their snapshots."""
    text = avro.parse(data, where).text("partition-spec-id") or "0"
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise CorruptTableError(f"the manifest's header has partition-spec-id {text!r:.40}", where=where)
    row = {"manifest_path": path, "manifest_length": len(data), "partition_spec_id": int(text)}
    return manifest_file({**row, "added_snapshot_id": snapshot_id}, where)


def _summary(row: Row) -> Summary:
    return Summary(row["contains_null"], row.get("contains_nan"), row.get("lower_bound"), row.get("upper_bound"))


def read_entries(
    data: bytes, source: ManifestFile, where: str, live_only: bool = True, metrics: frozenset[str] = METRICS
) -> list[Entry]:
    """The entries of a manifest, with the values inherited from the manifest list.

    Metric maps that are not in `metrics` are skipped. Raises CorruptTableError.
    """
    container = avro.parse(data, where)
    check_content(container.text("content"), source.content, where)
    schema = avro.by_ids(container.schema, ENTRY_NAMES, where)
    check_schema(schema, ENTRY, where)
    found = [entry for block in avro.records(container, schema, METRICS - metrics) for entry in block]
    return inherited(found, source, where, live_only)


def inherited(entries: Iterable[Entry], source: ManifestFile, where: str, live_only: bool) -> list[Entry]:
    """The entries with the values inherited from the manifest list, checked. CorruptTableError."""
    found: list[Entry] = []
    try:
        for entry in entries:
            if live_only and entry["status"] == DELETED:
                continue
            inherit(entry, source, where)
            check_entry(entry, source.content, where)
            if entry["data_file"].get("key_metadata"):
                raise UnsupportedFeatureError(ENCRYPTED, where=entry["data_file"]["file_path"])
            found.append(entry)
    except KeyError as error:
        raise CorruptTableError(f"a manifest entry lacks {error}", where=where) from None
    return found


def inherit(entry: Entry, source: ManifestFile, where: str) -> None:
    """Null snapshot ids and sequence numbers are inherited from the manifest list; the latter for ADDED only."""
    if entry.get("snapshot_id") is None:
        entry["snapshot_id"] = source.snapshot_id
    for name in ("sequence_number", "file_sequence_number"):
        if entry.get(name) is None:
            # A manifest of version 1 has sequence number 0, and so have all its entries.
            if entry["status"] != ADDED and source.sequence != 0:
                path = entry["data_file"]["file_path"]
                raise CorruptTableError(f"the entry of {path} is not new but has no {name}", where=where)
            entry[name] = source.sequence


def map_of(data_file: Mapping[str, Any], name: str) -> Mapping[int, Any] | None:
    """A metric map of a data file; None if the file has none (unknown, not zero)."""
    found: Mapping[int, Any] | None = data_file.get(name)
    return found


def partition_values(data_file: Row, spec: PartitionSpec, where: str | None = None) -> dict[int, Physical]:
    """Partition values by field id, physical; those of an unknown transform as strings. Raises CorruptTableError."""
    row = data_file.get("partition") or {}
    return {f.id: _partition_value(row, f, where) for f in spec}


def _partition_value(row: Row, field: PartitionField, where: str | None) -> Physical:
    names = (f"f{field.recorded_id}", field.name, avro_name(field.name))
    name = next((n for n in names if n in row), None)
    if field.transform.name == "void":
        return None
    if field.transform.name == "unknown":
        value = None if name is None else row[name]
        return None if value is None else str(value)
    if name is None:
        raise CorruptTableError(f"a manifest entry lacks the value of partition field `{field.name}`", where=where)
    try:
        return from_avro(row[name], field.type)
    except ValueError as error:
        raise CorruptTableError(f"partition field `{field.name}` has a value that {error}", where=where) from None
