"""Verifies what a commit is about to publish, with our own reader, before it is visible."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from boathouse.arrow.longs import longs
from boathouse.errors import CorruptTableError
from boathouse.iceberg.manifests.columns import TYPES, partition_column, plain
from boathouse.iceberg.manifests.entries import FILE, Entries
from boathouse.iceberg.manifests.records import DATA, Row, manifest_file, read_list
from boathouse.iceberg.manifests.writer import counts
from boathouse.iceberg.metadata import rules
from boathouse.iceberg.metadata.document import Json, TableMetadata, as_read
from boathouse.iceberg.metadata.updates import AddSnapshot, MetadataUpdate
from boathouse.table.attempt import held_back
from boathouse.types import PartitionSpec

_SAME = ("manifest_length", "partition_spec_id", "content", "sequence_number", "min_sequence_number", "first_row_id")
_OF_VECTORS = ("referenced_data_file", "content_offset", "content_size_in_bytes")
_UNNUMBERED = "sequence-number"
"""Version 1 does not store it."""


def check_manifest(data: bytes, row: Row, meant: pa.Table, spec: PartitionSpec) -> None:
    """Raises CorruptTableError unless the manifest contains the intended entries, as counted in its row."""
    where = row["manifest_path"]
    found = Entries.read(data, manifest_file(row, where), where).files(live_only=False)
    if len(found) != meant.num_rows or any(row[name] != count for name, count in counts(meant).items()):
        raise held_back(f"the manifest contains {len(found)} entries instead of {meant.num_rows}", where)
    numbers = {"record_count": found.rows, "file_size_in_bytes": found.sizes}
    mine = {
        "status": longs(found.columns.longs(("status",))[0]).cast(pa.int32()),
        "file_path": found.paths(),
        **{name: longs(values) for name, values in numbers.items()},
        **{partition_column(f): found.partition_array(f) for f in spec},
    }
    if row["content"] != DATA:
        columns = found.whole().columns
        mine |= {name: plain(columns, (FILE, name), TYPES[name]) for name in _OF_VECTORS}
    changed = [n for n, array in mine.items() if not _equal(array, meant.column(n).combine_chunks())]
    if changed:
        raise held_back(f"the entries read back with another {', '.join(changed)}", where)
    if len(found) and not 0 <= found.file_sequence.min() <= found.file_sequence.max() <= row["sequence_number"]:
        raise held_back("an entry comes from a later commit", where)


def _equal(a: pa.Array, b: pa.Array) -> bool:
    if pa.types.is_floating(a.type):
        # NaN does not equal itself, and the two zeros are equal: bits are compared.
        bits = pa.int32() if a.type.bit_width == 32 else pa.int64()
        a, b = a.view(bits), b.view(bits)
    return bool(a.equals(b))


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
