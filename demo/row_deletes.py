"""Row deletes as other engines commit them to Iceberg tables, for the demo: the library reads them, and writes none.

Equality deletes are what Flink's upserts leave: values whose older rows are gone. Deletion vectors are what format
version 3 has instead of position deletes. Tables are on the local disk, and unpartitioned.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from boathouse.bits import system
from boathouse.bits.checksum import crc32_bytes
from boathouse.bits.roaring import Bitmap, serialize64
from boathouse.iceberg.deletes.vectors import MAGIC
from boathouse.iceberg.manifests import carried
from boathouse.iceberg.manifests import records as manifests
from boathouse.iceberg.manifests import writer as manifest_writer
from boathouse.iceberg.manifests.columns import TYPES, of_entries
from boathouse.iceberg.manifests.records import ADDED, DATA, DELETES, Row
from boathouse.iceberg.metadata import draft
from boathouse.iceberg.metadata.apply import apply
from boathouse.iceberg.metadata.document import Json, dump
from boathouse.iceberg.metadata.schemas import parse_schema
from boathouse.iceberg.metadata.updates import UpgradeFormatVersion
from boathouse.iceberg.metadata.versions import VERSIONS, FormatVersion
from boathouse.types import PartitionSpec

_UNPARTITIONED: Final = PartitionSpec(0, ())
_LOCAL: Final = "file://"
_PUFFIN: Final = b"PFA1"
_POSITION_ID: Final = 2147483645
"""The field id of `_pos`, which the specification gives as the field of a vector's blob."""


def upgrade(table: Path) -> None:
    """Format version 3, in which rows have ids: the next commit of rows or deletes assigns those of present rows."""
    head, document = _head(table)
    _publish(table, head, apply(document, UpgradeFormatVersion(max(VERSIONS))))


def delete_keys(table: Path, keys: pa.Table) -> int:
    """Deletes every row that has the values of a row of `keys`, by one equality delete file; the snapshot's id."""
    head, document = _head(table)
    current = next(s for s in document["schemas"] if s["schema-id"] == document["current-schema-id"])
    ids = {f.name: f.id for f in parse_schema(current).fields}
    fields = [f.with_metadata({"PARQUET:field_id": str(ids[f.name])}) for f in keys.schema]
    path = table / "data" / f"{system.current().uuid4()}-deletes.parquet"
    pq.write_table(keys.cast(pa.schema(fields)), path)
    entry = _entry(path, "PARQUET", 2, keys.num_rows, equality_ids=[ids[name] for name in keys.column_names])
    return _commit(table, head, document, [entry])


def delete_positions(table: Path, positions: Mapping[str, Sequence[int]]) -> int:
    """Deletes rows of data files by one Puffin file of deletion vectors; the snapshot's id. The table has format
    version 3, and the files have no vectors yet."""
    head, document = _head(table)
    path = table / "data" / f"{system.current().uuid4()}-deletes.puffin"
    blobs = {file: _blob(found) for file, found in positions.items()}
    data, offsets = _puffin(blobs, {file: len(set(found)) for file, found in positions.items()})
    path.write_bytes(data)
    entries = [
        _entry(
            path, "PUFFIN", 1, len(set(found)), referenced_data_file=file, content_offset=offsets[file],
            content_size_in_bytes=len(blobs[file]),
        )
        for file, found in positions.items()
    ]  # fmt: skip
    return _commit(table, head, document, entries)


def _blob(positions: Sequence[int]) -> bytes:
    checked = MAGIC + serialize64(Bitmap.of(positions))
    return len(checked).to_bytes(4, "big") + checked + crc32_bytes(checked)


def _puffin(blobs: Mapping[str, bytes], rows: Mapping[str, int]) -> tuple[bytes, dict[str, int]]:
    """A Puffin file of a vector for each data file, and the offset of each."""
    body, offsets, described = bytearray(_PUFFIN), {}, []
    for file, blob in blobs.items():
        offsets[file] = len(body)
        described.append({
            "type": "deletion-vector-v1", "fields": [_POSITION_ID], "snapshot-id": -1, "sequence-number": -1,
            "offset": len(body), "length": len(blob),
            "properties": {"referenced-data-file": file, "cardinality": str(rows[file])},
        })  # fmt: skip
        body += blob
    footer = json.dumps({"blobs": described}).encode()
    flags = bytes(4)
    body += _PUFFIN + footer + len(footer).to_bytes(4, "little") + flags + _PUFFIN
    return bytes(body), offsets


def _entry(path: Path, format: str, content: int, rows: int, **more: Any) -> Row:
    """A manifest entry: its snapshot and sequence number are inherited."""
    known = {
        "content": content, "file_path": f"{_LOCAL}{path}", "file_format": format, "partition": {},
        "record_count": rows, "file_size_in_bytes": path.stat().st_size, **more,
    }  # fmt: skip
    return {
        "status": ADDED, "snapshot_id": None, "sequence_number": None, "file_sequence_number": None,
        "data_file": dict.fromkeys(TYPES) | known,
    }  # fmt: skip


def _head(table: Path) -> tuple[Path, Json]:
    """The newest metadata document, and its path."""
    found = (table / "metadata").glob("v*.metadata.json")
    head = max(found, key=lambda path: int(path.name[1:].partition(".")[0]))
    return head, json.loads(head.read_bytes())


def _publish(table: Path, head: Path, document: Json) -> None:
    """The document that follows the head; fails if there is one."""
    now = max(system.current().now_ms(), document["last-updated-ms"] + 1)
    before = {"metadata-file": f"{_LOCAL}{head}", "timestamp-ms": document["last-updated-ms"]}
    document = document | {"last-updated-ms": now, "metadata-log": [*document.get("metadata-log", ()), before]}
    document.pop(draft.OURS, None)
    number = int(head.name[1:].partition(".")[0]) + 1
    with (table / "metadata" / f"v{number}.metadata.json").open("xb") as file:
        file.write(dump(document))


def _commit(table: Path, head: Path, document: Json, entries: Sequence[Row]) -> int:
    """A snapshot that adds the delete files of these entries."""
    version, sequence = VERSIONS[document["format-version"]], document["last-sequence-number"] + 1
    parent = next(s for s in document["snapshots"] if s["snapshot-id"] == document["current-snapshot-id"])
    id = system.current().uuid4().int >> 65
    folder = table / "metadata"
    rows = [_manifest(folder, document, entries, sequence, id), *_carried(parent["manifest-list"], version)]
    snapshot: Json = {
        "snapshot-id": id, "parent-snapshot-id": parent["snapshot-id"], "sequence-number": sequence,
        "timestamp-ms": max(system.current().now_ms(), document["last-updated-ms"] + 1),
        "summary": {"operation": "delete"}, "schema-id": document["current-schema-id"],
    }  # fmt: skip
    if version.row_lineage:
        first = document["next-row-id"]
        snapshot |= {"first-row-id": first, "added-rows": _number(rows, first)}
    path = folder / f"snap-{id}.avro"
    keys = {"snapshot-id": str(id), "sequence-number": str(sequence)}
    path.write_bytes(manifest_writer.write_list(rows, keys, "deflate", version))
    made = draft.Draft(document)
    draft.add_snapshot(made, snapshot | {"manifest-list": f"{_LOCAL}{path}"}, None)
    _publish(table, head, made.document | {"last-updated-ms": document["last-updated-ms"]})
    return id


def _manifest(folder: Path, document: Json, entries: Sequence[Row], sequence: int, id: int) -> Row:
    """Writes the delete manifest; its row in the list."""
    current = next(s for s in document["schemas"] if s["schema-id"] == document["current-schema-id"])
    version = VERSIONS[document["format-version"]]
    data = manifest_writer.write(
        of_entries(entries, _UNPARTITIONED),
        _UNPARTITIONED,
        parse_schema(current),
        current["schema-id"],
        DELETES,
        "deflate",
        version,
    )
    path = folder / f"{system.current().uuid4()}-m0.avro"
    path.write_bytes(data)
    return manifest_writer.list_row(
        f"{_LOCAL}{path}", len(data), _UNPARTITIONED, of_entries(entries, _UNPARTITIONED), DELETES, sequence, id
    )


def _carried(uri: str, version: FormatVersion) -> list[Row]:
    """The rows of the parent's manifest list."""
    found = manifests.read_list(Path(uri.removeprefix(_LOCAL)).read_bytes(), uri)
    return [carried.row(m, dict, version) for m in found]


def _number(rows: Sequence[Row], next: int) -> int:
    """Gives the first row ids of data manifests that have none, as the first snapshot after an upgrade does; how many
    rows that are."""
    first = next
    for row in rows:
        if row["content"] == DATA and row.get("first_row_id") is None:
            row["first_row_id"] = next
            next += row["existing_rows_count"] + row["added_rows_count"]
    return next - first
