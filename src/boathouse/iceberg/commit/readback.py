"""Verifies what a commit is about to publish, with our own reader, before it is visible."""

from __future__ import annotations

from collections.abc import Sequence

from boathouse.errors import CorruptTableError
from boathouse.iceberg.manifests.records import Row, read_list
from boathouse.iceberg.metadata import rules
from boathouse.iceberg.metadata.document import Json, TableMetadata, as_read
from boathouse.iceberg.metadata.updates import AddSnapshot, MetadataUpdate
from boathouse.table.attempt import held_back

_SAME = ("manifest_length", "partition_spec_id", "content", "sequence_number", "min_sequence_number", "first_row_id")
_UNNUMBERED = "sequence-number"
"""Version 1 does not store it."""


def check_list(data: bytes, meant: Sequence[Row], where: str) -> None:
    """Raises CorruptTableError unless the manifest list contains the intended rows."""
    found = read_list(data, where)
    paths = [m.path for m in found]
    if paths != [r["manifest_path"] for r in meant] or len(set(paths)) < len(paths):
        raise held_back("the manifest list does not contain exactly the intended manifests", where)
    for mine, row in zip(found, meant):
        changed = [name for name in _SAME if name in mine.row and mine.row[name] != row.get(name)]
        if changed:
            raise held_back(f"the row of {mine.path} reads back with another {', '.join(changed)}", where)


def check_metadata(
    document: Json, uri: str, before: TableMetadata | None, updates: Sequence[MetadataUpdate]
) -> TableMetadata:
    """The document as it will be read, from a file or from a catalog. Raises CorruptTableError unless it can be opened,
    by us and by the rules of Java's parser, and has the snapshots that the commit adds."""
    known = None if before is None else before.document
    try:
        found = TableMetadata.of(as_read(document, known or {}), uri, known=before)
        rules.check(found.document, uri, known)
        rules.check_settled(found.document, uri, known)
    except CorruptTableError as error:
        raise held_back(error.message, uri, error.advice) from None
    for update in updates:
        if isinstance(update, AddSnapshot):
            meant = {_UNNUMBERED: 0, **update.snapshot}
            if found.snapshots.get(update.snapshot["snapshot-id"]) != meant:
                raise held_back("the new snapshot reads back differently", uri)
    return found
