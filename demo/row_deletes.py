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

from boathouse.bits import entropy
from boathouse.bits.checksum import crc32_bytes
from boathouse.bits.roaring import Bitmap, serialize64
from boathouse.iceberg import avro, carried, documents, manifests
from boathouse.iceberg.deletion_vectors import MAGIC
from boathouse.iceberg.manifest_schemas import MANIFEST_LIST_FIELDS, data_file_fields, manifest
from boathouse.iceberg.manifests import ADDED, DATA, DELETES, Row
from boathouse.iceberg.metadata import Json, dump
from boathouse.iceberg.schemas import parse_schema
from boathouse.types import PartitionSpec

_UNPARTITIONED: Final = PartitionSpec(0, ())
_LOCAL: Final = "file://"
_PUFFIN: Final = b"PFA1"
_POSITION_ID: Final = 2147483645
"""The field id of `_pos`, which the specification gives as the field of a vector's blob."""
_PLACE: Final = (("content_offset", 144), ("content_size_in_bytes", 145))


def upgrade(table: Path) -> None:
    """Format version 3, in which rows have ids: the next commit of rows or deletes assigns those of present rows."""
    head, document = _head(table)
    _publish(table, head, document | {"format-version": 3, "next-row-id": 0})


def delete_keys(table: Path, keys: pa.Table) -> int:
    """Deletes every row that has the values of a row of `keys`, by one equality delete file; the snapshot's id."""
    head, document = _head(table)
    current = next(s for s in document["schemas"] if s["schema-id"] == document["current-schema-id"])
    ids = {f.name: f.id for f in parse_schema(current).fields}
    fields = [f.with_metadata({"PARQUET:field_id": str(ids[f.name])}) for f in keys.schema]
    path = table / "data" / f"{entropy.current().uuid4()}-deletes.parquet"
    pq.write_table(keys.cast(pa.schema(fields)), path)
    entry = _entry(path, "PARQUET", 2, keys.num_rows, equality_ids=[ids[name] for name in keys.column_names])
    return _commit(table, head, document, [entry])


def delete_positions(table: Path, positions: Mapping[str, Sequence[int]]) -> int:
    """Deletes rows of data files by one Puffin file of deletion vectors; the snapshot's id. The table has format
    version 3, and the files have no vectors yet."""
    head, document = _head(table)
    path = table / "data" / f"{entropy.current().uuid4()}-deletes.puffin"
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
    names = [name for name, _ in data_file_fields()] + [name for name, _ in _PLACE]
    known = {
        "content": content, "file_path": f"{_LOCAL}{path}", "file_format": format, "partition": {},
        "record_count": rows, "file_size_in_bytes": path.stat().st_size, **more,
    }  # fmt: skip
    return {
        "status": ADDED, "snapshot_id": None, "sequence_number": None, "file_sequence_number": None,
        "data_file": dict.fromkeys(names) | known,
    }  # fmt: skip


def _head(table: Path) -> tuple[Path, Json]:
    """The newest metadata document, and its path."""
    found = (table / "metadata").glob("v*.metadata.json")
    head = max(found, key=lambda path: int(path.name[1:].partition(".")[0]))
    return head, json.loads(head.read_bytes())


def _publish(table: Path, head: Path, document: Json) -> None:
    """The document that follows the head; fails if there is one."""
    now = max(entropy.current().now_ms(), document["last-updated-ms"] + 1)
    before = {"metadata-file": f"{_LOCAL}{head}", "timestamp-ms": document["last-updated-ms"]}
    document = document | {"last-updated-ms": now, "metadata-log": [*document.get("metadata-log", ()), before]}
    document.pop(documents.OURS, None)
    number = int(head.name[1:].partition(".")[0]) + 1
    with (table / "metadata" / f"v{number}.metadata.json").open("xb") as file:
        file.write(dump(document))


def _commit(table: Path, head: Path, document: Json, entries: Sequence[Row]) -> int:
    """A snapshot that adds the delete files of these entries."""
    version, sequence = document["format-version"], document["last-sequence-number"] + 1
    parent = next(s for s in document["snapshots"] if s["snapshot-id"] == document["current-snapshot-id"])
    id = entropy.current().uuid4().int >> 65
    folder = table / "metadata"
    rows = [_manifest(folder, document, entries, sequence, id), *_carried(parent["manifest-list"])]
    snapshot: Json = {
        "snapshot-id": id, "parent-snapshot-id": parent["snapshot-id"], "sequence-number": sequence,
        "timestamp-ms": max(entropy.current().now_ms(), document["last-updated-ms"] + 1),
        "summary": {"operation": "delete"}, "schema-id": document["current-schema-id"],
    }  # fmt: skip
    if version == 3:
        numbered = _number(rows, document["next-row-id"])
        snapshot |= {"first-row-id": document["next-row-id"], "added-rows": numbered}
        document = document | {"next-row-id": document["next-row-id"] + numbered}
    path = folder / f"snap-{id}.avro"
    path.write_bytes(_list(rows, version, id, sequence))
    documents.add_snapshot(document, snapshot | {"manifest-list": f"{_LOCAL}{path}"}, None)
    _publish(table, head, document)
    return id


def _manifest(folder: Path, document: Json, entries: Sequence[Row], sequence: int, id: int) -> Row:
    """Writes the delete manifest; its row in the list."""
    schema = manifest(_UNPARTITIONED)
    data_file = next(f["type"] for f in schema["fields"] if f["name"] == "data_file")
    data_file["fields"] += [_optional(name, field_id) for name, field_id in _PLACE]
    current = next(s for s in document["schemas"] if s["schema-id"] == document["current-schema-id"])
    known = {
        "schema": json.dumps(current), "schema-id": str(current["schema-id"]), "partition-spec": "[]",
        "partition-spec-id": "0", "format-version": str(document["format-version"]), "content": "deletes",
    }  # fmt: skip
    path = folder / f"{entropy.current().uuid4()}-m0.avro"
    path.write_bytes(avro.write(schema, entries, known, "deflate"))
    size = path.stat().st_size
    return manifests.list_row(f"{_LOCAL}{path}", size, _UNPARTITIONED, entries, DELETES, sequence, id)


def _carried(uri: str) -> list[Row]:
    """The rows of the parent's manifest list."""
    found = manifests.read_list(Path(uri.removeprefix(_LOCAL)).read_bytes(), uri)
    return [carried.row(m, tuple) | {"first_row_id": m.row.get("first_row_id")} for m in found]


def _number(rows: Sequence[Row], next: int) -> int:
    """Gives the first row ids of data manifests that have none, as the first snapshot after an upgrade does; how many
    rows that are."""
    first = next
    for row in rows:
        if row["content"] == DATA and row["first_row_id"] is None:
            row["first_row_id"] = next
            next += row["existing_rows_count"] + row["added_rows_count"]
    return next - first


def _list(rows: Sequence[Row], version: int, id: int, sequence: int) -> bytes:
    more = [_optional("first_row_id", 520)] if version == 3 else []
    schema = {"type": "record", "name": "manifest_file", "fields": [*MANIFEST_LIST_FIELDS, *more]}
    known = {"format-version": str(version), "snapshot-id": str(id), "sequence-number": str(sequence)}
    return avro.write(schema, [dict.fromkeys(["first_row_id"]) | row for row in rows], known, "deflate")


def _optional(name: str, id: int) -> dict[str, Any]:
    return {"name": name, "type": ["null", "long"], "default": None, "field-id": id}
