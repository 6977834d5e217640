"""Verifies what a commit is about to publish, with our own reader, before it is visible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from boathouse.errors import CorruptTableError
from boathouse.iceberg import validate
from boathouse.iceberg.carried import counts
from boathouse.iceberg.manifests import Entry, Row, manifest_file, partition_values, read_entries, read_list
from boathouse.iceberg.metadata import TableMetadata
from boathouse.types import PartitionSpec

_SAME = ("manifest_length", "partition_spec_id", "content", "sequence_number", "min_sequence_number")


def check_manifest(data: bytes, row: Row, meant: Sequence[Entry], spec: PartitionSpec) -> None:
    """Raises CorruptTableError unless the manifest contains the intended entries, as counted in its row."""
    where = row["manifest_path"]
    found = read_entries(data, manifest_file(row, where), where, live_only=False)
    if len(found) != len(meant) or any(row[name] != count for name, count in counts(found).items()):
        raise _held_back(f"the manifest contains {len(found)} entries instead of {len(meant)}", where)
    for mine, entry in zip(found, meant):
        file, wanted = mine["data_file"], entry["data_file"]
        changed = [
            name
            for name, value in wanted.items()
            if name != "partition" and (value or None) != (file.get(name) or None)
        ]
        if not _equal(partition_values(file, spec), partition_values(wanted, spec)):
            changed.append("partition")
        if changed or mine["status"] != entry["status"]:
            raise _held_back(f"the entry of {wanted['file_path']} reads back with another {changed or 'status'}", where)
        if not 0 <= mine["file_sequence_number"] <= row["sequence_number"]:
            raise _held_back(f"the entry of {wanted['file_path']} comes from a later commit", where)


def _equal(a: object, b: object) -> bool:
    # Compared as strings, since NaN does not equal itself and the two zeros are equal.
    return repr(a) == repr(b)


def check_list(data: bytes, meant: Sequence[Row], where: str) -> None:
    """Raises CorruptTableError unless the manifest list contains the intended rows."""
    found = read_list(data, where)
    paths = [m.path for m in found]
    if paths != [r["manifest_path"] for r in meant] or len(set(paths)) < len(paths):
        raise _held_back("the manifest list does not contain exactly the intended manifests", where)
    for mine, row in zip(found, meant):
        changed = [name for name in _SAME if mine.row[name] != row[name]]
        if changed:
            raise _held_back(f"the row of {mine.path} reads back with another {', '.join(changed)}", where)


def check_metadata(body: bytes, uri: str, before: TableMetadata | None, snapshot: dict[str, Any] | None) -> None:
    """Raises CorruptTableError unless the document can be opened, by us and by the rules of Java's parser."""
    known = None if before is None else before.document
    try:
        found = TableMetadata.parse(body, uri)
        validate.check(found.document, uri, known)
        validate.check_settled(found.document, uri, known)
    except CorruptTableError as error:
        raise _held_back(error.message, uri, error.advice) from None
    if snapshot is not None and found.snapshots.get(snapshot["snapshot-id"]) != snapshot:
        raise _held_back("the new snapshot reads back differently", uri)


def _held_back(what: str, where: str, advice: str | None = None) -> CorruptTableError:
    default = CorruptTableError.general
    return CorruptTableError(
        f"nothing was committed, as the table could not be read afterwards: {what}",
        where=where,
        advice="report this with the table's metadata" if advice in (None, default) else advice,
    )
