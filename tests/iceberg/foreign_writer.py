"""Writes Iceberg tables' data files and row deletes as another engine would: manifests by fastavro with the fields of
format version 3, Puffin files by hand, Parquet by pyarrow. It shares no code with what it tests."""

import copy
import itertools
import json
import struct
import zlib
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pyroaring
from pyiceberg.table import StaticTable

import boathouse as bh

PATH_ID, POSITION_ID = 2147483546, 2147483545


def optional(name, type, id):
    return {"name": name, "type": ["null", type], "default": None, "field-id": id}


def required(name, type, id):
    return {"name": name, "type": type, "field-id": id}


def listed(type, id):
    return {"type": "array", "items": type, "element-id": id}


def pairs(key_id, value_id, value):
    fields = [required("key", "int", key_id), required("value", value, value_id)]
    record = {"type": "record", "name": f"k{key_id}_v{value_id}", "fields": fields}
    return {"type": "array", "logicalType": "map", "items": record}


def entry_schema(partition_fields):
    partition = [optional(f["name"], type, f["field-id"]) for f, type in partition_fields]
    file = [
        required("content", "int", 134), required("file_path", "string", 100), required("file_format", "string", 101),
        required("partition", {"type": "record", "name": "r102", "fields": partition}, 102),
        required("record_count", "long", 103), required("file_size_in_bytes", "long", 104),
        optional("null_value_counts", pairs(121, 122, "long"), 110),
        optional("value_counts", pairs(119, 120, "long"), 109),
        optional("lower_bounds", pairs(126, 127, "bytes"), 125),
        optional("upper_bounds", pairs(129, 130, "bytes"), 128),
        optional("equality_ids", listed("int", 136), 135), optional("first_row_id", "long", 142),
        optional("referenced_data_file", "string", 143), optional("content_offset", "long", 144),
        optional("content_size_in_bytes", "long", 145),
    ]  # fmt: skip
    fields = [
        required("status", "int", 0), optional("snapshot_id", "long", 1), optional("sequence_number", "long", 3),
        optional("file_sequence_number", "long", 4),
        required("data_file", {"type": "record", "name": "r2", "fields": file}, 2),
    ]  # fmt: skip
    return {"type": "record", "name": "manifest_entry", "fields": fields}


LIST = {
    "type": "record", "name": "manifest_file", "fields": [
        required("manifest_path", "string", 500), required("manifest_length", "long", 501),
        required("partition_spec_id", "int", 502), required("content", "int", 517),
        required("sequence_number", "long", 515), required("min_sequence_number", "long", 516),
        required("added_snapshot_id", "long", 503), required("added_files_count", "int", 504),
        required("existing_files_count", "int", 505), required("deleted_files_count", "int", 506),
        required("added_rows_count", "long", 512), required("existing_rows_count", "long", 513),
        required("deleted_rows_count", "long", 514)]}  # fmt: skip


def with_ids(table, ids):
    """The table with these Parquet field ids on its columns."""
    fields = [f.with_metadata({b"PARQUET:field_id": str(i).encode()}) for f, i in zip(table.schema, ids)]
    return table.cast(pa.schema(fields))


def bound(value):
    match value:
        case bool():
            return b"\x01" if value else b"\x00"
        case int():
            return struct.pack("<q", value)
        case float():
            return struct.pack("<d", value)
        case str():
            return value.encode()


def vector_blob(positions):
    """A blob `deletion-vector-v1`."""
    body = bytes.fromhex("d1d33964") + pyroaring.BitMap64(positions).serialize()
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def puffin(blobs):
    """A Puffin file of (referenced data file, blob, cardinality), and the offset of each blob."""
    data, offsets, described = b"PFA1", [], []
    for path, blob, count in blobs:
        offsets.append(len(data))
        described.append({
            "type": "deletion-vector-v1", "fields": [POSITION_ID], "snapshot-id": -1, "sequence-number": -1,
            "offset": len(data), "length": len(blob),
            "properties": {"referenced-data-file": path, "cardinality": str(count)}})  # fmt: skip
        data += blob
    payload = json.dumps({"blobs": described, "properties": {}}).encode()
    return data + b"PFA1" + payload + struct.pack("<iI", len(payload), 0) + b"PFA1", offsets


IDS = (1, 2, 3)
SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("x", pa.float64())])


def rows(*ids, p="a", x=None):
    return pa.table({"id": list(ids), "p": [p] * len(ids), "x": [float(i) if x is None else x for i in ids]}, SCHEMA)


class Foreign:
    """A table on the local disk, whose next metadata documents this class writes."""

    def __init__(self, root):
        self.root = Path(root)
        self._names = itertools.count()

    @property
    def head(self):
        found = (self.root / "metadata").glob("v*.metadata.json")
        return max(found, key=lambda p: int(p.name[1:].split(".")[0]))

    @property
    def document(self):
        return json.loads(self.head.read_bytes())

    def edit(self, change):
        """The next metadata document: `change` edits the present one."""
        document, number = self.document, int(self.head.name[1:].split(".")[0])
        change(document)
        document["last-updated-ms"] += 1
        (self.root / "metadata" / f"v{number + 1}.metadata.json").write_text(json.dumps(document))

    def upgrade(self):
        """Format version 3, which has deletion vectors."""
        self.edit(lambda d: d.update({"format-version": 3, "next-row-id": 0}))
        return self

    def live(self):
        """Paths of the live data files of the current snapshot, in the order of the manifests."""
        document = self.document
        current = [s for s in document["snapshots"] if s["snapshot-id"] == document.get("current-snapshot-id")]
        found = []
        for row in self._avro(current[0]["manifest-list"]) if current else ():
            if row["content"] == 0:
                entries = self._avro(row["manifest_path"])
                found += [e["data_file"]["file_path"] for e in entries if e["status"] != 2]
        return found

    def _avro(self, uri):
        with open(uri.removeprefix("file://"), "rb") as f:
            return list(fastavro.reader(f))

    def _file(self, suffix):
        (self.root / "data").mkdir(exist_ok=True)
        return self.root / "data" / f"foreign-{len(self.document['snapshots'])}-{next(self._names)}.{suffix}"

    def parquet(self, table, ids, content, partition=None, **more):
        """A Parquet file's entry; `ids` are the columns' field ids."""
        path = self._file("parquet")
        pq.write_table(table if ids is None else with_ids(table, ids), path)
        return self.entry(path, "PARQUET", content, table.num_rows, partition, **more)

    def entry(self, path, format, content, rows, partition=None, **more):
        file = {"content": content, "file_path": f"file://{path}", "file_format": format, "partition": partition or {},
                "record_count": rows, "file_size_in_bytes": Path(path).stat().st_size, **more}  # fmt: skip
        return {"status": 1, "data_file": file}

    def data(self, table, ids, partition=None, bounds=False):
        more = {}
        if bounds:
            more["value_counts"] = [{"key": i, "value": table.num_rows} for i in ids]
            nulls = [(i, table.column(n).null_count) for i, n in enumerate(table.column_names)]
            more["null_value_counts"] = [{"key": ids[i], "value": n} for i, n in nulls]
            values = {i: [v for v in c.to_pylist() if v is not None and v == v] for i, c in zip(ids, table.columns)}
            for name, edge in (("lower_bounds", min), ("upper_bounds", max)):
                more[name] = [{"key": i, "value": bound(edge(v))} for i, v in values.items() if v]
        return self.parquet(table, ids, 0, partition, **more)

    def positions(self, found, partition=None, **more):
        """A position delete file of (data path, position)."""
        found = sorted(found)
        table = pa.table({"file_path": [p for p, _ in found], "pos": pa.array([n for _, n in found], pa.int64())})
        return self.parquet(table, (PATH_ID, POSITION_ID), 1, partition, **more)

    def equality(self, table, ids, keys=None, partition=None, **more):
        """An equality delete file of the columns `ids`, of which `keys` decide (all, if not given)."""
        return self.parquet(table, ids, 2, partition, equality_ids=list(keys or ids), **more)

    def vectors(self, found, partition=None):
        """The entries of deletion vectors in one Puffin file: {data path: positions}."""
        blobs = [(path, vector_blob(positions), len(set(positions))) for path, positions in found.items()]
        data, offsets = puffin(blobs)
        path = self._file("puffin")
        path.write_bytes(data)
        return [
            self.entry(path, "PUFFIN", 1, count, partition, referenced_data_file=data_file, content_offset=offset,
                       content_size_in_bytes=len(blob))
            for (data_file, blob, count), offset in zip(blobs, offsets)
        ]  # fmt: skip

    def commit(self, *entries, spec=0, drop=lambda file: False, schema=None):
        """A snapshot with these entries. Existing delete files for which `drop` is true are removed, as an engine does
        that replaces a vector."""
        document = self.document
        sequence = document["last-sequence-number"] + 1
        id = sequence * 1000
        rows = self._kept(document, drop, sequence)
        for content in (0, 1):
            mine = [e for e in entries if (e["data_file"]["content"] > 0) == content]
            if mine:
                rows.append(self._manifest(document, mine, content, spec, sequence, id))
        path = self.root / "metadata" / f"foreign-list-{sequence}.avro"
        with open(path, "wb") as f:
            fastavro.writer(f, LIST, rows)
        parent = document.get("current-snapshot-id")
        schema_id = document["current-schema-id"] if schema is None else schema
        snapshot = {"snapshot-id": id, "sequence-number": sequence, "timestamp-ms": document["last-updated-ms"] + 1,
                    "summary": {"operation": "overwrite"}, "manifest-list": f"file://{path}",
                    "schema-id": schema_id}  # fmt: skip
        if parent not in (None, -1):
            snapshot["parent-snapshot-id"] = parent
        if document["format-version"] == 3:
            snapshot |= {"first-row-id": document["next-row-id"], "added-rows": 0}

        def change(found):
            found["snapshots"] = [*found["snapshots"], snapshot]
            found["current-snapshot-id"], found["last-sequence-number"] = id, sequence
            found.setdefault("refs", {})["main"] = {"snapshot-id": id, "type": "branch"}
            log = {"snapshot-id": id, "timestamp-ms": snapshot["timestamp-ms"]}
            found["snapshot-log"] = [*found.get("snapshot-log", []), log]

        self.edit(change)
        return id

    def _kept(self, document, drop, sequence):
        current = [s for s in document["snapshots"] if s["snapshot-id"] == document.get("current-snapshot-id")]
        rows = []
        for row in self._avro(current[0]["manifest-list"]) if current else ():
            row = {f["name"]: row[f["name"]] for f in LIST["fields"]}
            entries = self._avro(row["manifest_path"]) if row["content"] else []
            if not any(drop(e["data_file"]) for e in entries):
                rows.append(row)
                continue
            kept = []
            for e in entries:
                if e["status"] != 2 and not drop(e["data_file"]):
                    known = e["sequence_number"] if e["sequence_number"] is not None else row["sequence_number"]
                    numbers = {"sequence_number": known, "file_sequence_number": known}
                    kept.append({**copy.deepcopy(e), "status": 0, "snapshot_id": row["added_snapshot_id"], **numbers})
            if kept:
                rows.append(
                    self._manifest(document, kept, 1, row["partition_spec_id"], sequence, row["added_snapshot_id"])
                )
        return rows

    def _manifest(self, document, entries, content, spec_id, sequence, snapshot_id):
        spec = next(s for s in document["partition-specs"] if s["spec-id"] == spec_id)
        schema = next(s for s in document["schemas"] if s["schema-id"] == document["current-schema-id"])
        types = {f["id"]: f["type"] for f in schema["fields"]}
        kinds = [(f, self._avro_type(f, types)) for f in spec["fields"]]
        path = self.root / "metadata" / f"foreign-{sequence}-{next(self._names)}.avro"
        header = {
            "schema": json.dumps(schema), "schema-id": str(schema["schema-id"]), "format-version": "2",
            "partition-spec": json.dumps(spec["fields"]), "partition-spec-id": str(spec_id),
            "content": "deletes" if content else "data"}  # fmt: skip
        with open(path, "wb") as f:
            fastavro.writer(f, entry_schema(kinds), entries, metadata=header)
        added = [e for e in entries if e["status"] == 1]
        old = [e for e in entries if e["status"] == 0]
        least = min([sequence, *(e["sequence_number"] for e in entries if e.get("sequence_number") is not None)])
        return {
            "manifest_path": f"file://{path}", "manifest_length": path.stat().st_size, "partition_spec_id": spec_id,
            "content": content, "sequence_number": sequence, "min_sequence_number": least,
            "added_snapshot_id": snapshot_id, "added_files_count": len(added), "existing_files_count": len(old),
            "deleted_files_count": 0, "added_rows_count": sum(e["data_file"]["record_count"] for e in added),
            "existing_rows_count": sum(e["data_file"]["record_count"] for e in old),
            "deleted_rows_count": 0}  # fmt: skip

    def _avro_type(self, field, types):
        if field["transform"].startswith("bucket"):
            return "int"
        return {"string": "string", "int": "int", "long": "long", "double": "double"}.get(
            types.get(field["source-id"]), "string"
        )


def ids_of(where):
    """The ids that we read."""
    return sorted(bh.open(str(where)).scan(["id"]).to_arrow()["id"].to_pylist())


def theirs(foreign):
    """The ids that pyiceberg reads."""
    table = StaticTable.from_metadata(f"file://{foreign.head}")
    return sorted(table.scan(selected_fields=("id",)).to_arrow()["id"].to_pylist())


def current(foreign):
    """The current snapshot."""
    document = foreign.document
    return next(s for s in document["snapshots"] if s["snapshot-id"] == document["current-snapshot-id"])
