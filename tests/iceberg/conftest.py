"""Tables of this library seen by foreign eyes, and by their bytes."""

import gzip
import json
import sys
from pathlib import Path

import pytest

import boathouse as bh

HERE = str(Path(__file__).parent)
if HERE not in sys.path:
    sys.path.insert(0, HERE)


class Seen:
    """A table on the local disk: its metadata documents, Avro files and pyiceberg's view of it."""

    def __init__(self, root):
        self.root = Path(root)

    def files(self, pattern="*.metadata.json"):
        return sorted((self.root / "metadata").glob(pattern), key=lambda p: (len(p.name), p.name))

    def head(self):
        numbered = [(int(p.name[1:].split(".")[0]), p) for p in self.files("v*.metadata.json")]
        return max(numbered)[1]

    def document(self, path=None):
        data = (path or self.head()).read_bytes()
        return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)

    def snapshot(self):
        document = self.document()
        return next(s for s in document["snapshots"] if s["snapshot-id"] == document["current-snapshot-id"])

    def avro(self, uri):
        """(records, key-value metadata with the schema parsed) of an Avro file, by fastavro."""
        import fastavro

        with open(uri.removeprefix("file://"), "rb") as f:
            reader = fastavro.reader(f)
            return list(reader), {**reader.metadata, "avro.schema": json.loads(reader.metadata["avro.schema"])}

    def manifests(self, snapshot=None):
        return self.avro((snapshot or self.snapshot())["manifest-list"])[0]

    def entries(self, manifest):
        return self.avro(manifest["manifest_path"])[0]

    def live(self):
        """Data file records of the current snapshot that are not deleted."""
        return [
            e["data_file"] for m in self.manifests() if m["content"] == 0 for e in self.entries(m) if e["status"] != 2
        ]

    def pyiceberg(self):
        from pyiceberg.table import StaticTable

        return StaticTable.from_metadata(f"file://{self.head()}")

    def rows(self):
        return self.pyiceberg().scan().to_arrow()


@pytest.fixture
def seen():
    return Seen


@pytest.fixture
def make(tmp_path):
    """make(data, **options) -> (our table with these rows, Seen)."""

    def make(data, name="t", append=True, **options):
        root = tmp_path / name
        table = bh.create(str(root), data.schema, format="iceberg", **options)
        if append:
            table.append(data)
        return table, Seen(root)

    return make


@pytest.fixture
def catalog(tmp_path):
    sql = pytest.importorskip("pyiceberg.catalog.sql")
    made = sql.SqlCatalog("t", uri="sqlite:///:memory:", warehouse=f"file://{tmp_path}/wh")
    made.create_namespace("db")
    return made


@pytest.fixture
def adopt():
    """Turns a table of pyiceberg's into a file-system table that we may write: its metadata under the name v1."""

    def adopt(table):
        root = table.location().removeprefix("file://")
        newest = Path(table.metadata_location.removeprefix("file://"))
        (newest.parent / "v1.metadata.json").write_bytes(newest.read_bytes())
        for old in newest.parent.glob("0*.metadata.json"):
            old.unlink()
        return root

    return adopt


@pytest.fixture
def position_deletes():
    """position_deletes(eyes, table of file_path and pos, partition by field id): the table gets a delete file, as
    another engine would add it, in a new snapshot."""
    import pyarrow.parquet as pq

    from boathouse.iceberg.manifests import records as manifests
    from boathouse.iceberg.manifests import writer as manifest_writer
    from boathouse.iceberg.manifests.columns import of_entries
    from boathouse.iceberg.metadata.document import TableMetadata, dump
    from boathouse.iceberg.metadata.draft import add_snapshot, begun, finished

    def add(eyes, rows, partition=None, content=1, spec=0):
        head = eyes.head()
        metadata = TableMetadata.parse(head.read_bytes(), f"file://{head}")
        document, number = metadata.document, metadata.last_sequence_number + 1
        path = eyes.root / "data" / f"deletes-{number}.parquet"
        pq.write_table(rows, path)
        entry = {
            "status": 1, "snapshot_id": None, "sequence_number": None, "file_sequence_number": None, "data_file": {
                "content": content, "file_path": f"file://{path}", "file_format": "PARQUET",
                "partition": {f"f{id}": value for id, value in (partition or {}).items()},
                "record_count": rows.num_rows, "file_size_in_bytes": path.stat().st_size, "column_sizes": None,
                "value_counts": None, "null_value_counts": None, "nan_value_counts": None, "lower_bounds": None,
                "upper_bounds": None, "key_metadata": None, "split_offsets": None,
                "equality_ids": [1] if content == 2 else None, "sort_order_id": None}}  # fmt: skip
        spec, folder = metadata.partitioning.spec(spec), f"file://{eyes.root}/metadata"
        data = manifest_writer.write(of_entries([entry], spec), spec, metadata.schema, 0, 1, "null")
        (eyes.root / "metadata" / f"d{number}.avro").write_bytes(data)
        row = manifest_writer.list_row(
            f"{folder}/d{number}.avro", len(data), spec, of_entries([entry], spec), 1, number, number
        )
        old = eyes.snapshot()["manifest-list"].removeprefix("file://")
        rows = [m.row for m in manifests.read_list(Path(old).read_bytes(), old)] + [row]
        (eyes.root / "metadata" / f"l{number}.avro").write_bytes(manifest_writer.write_list(rows, {}, "null"))
        draft = begun(metadata, document["last-updated-ms"] + 1)
        add_snapshot(draft, {
            "snapshot-id": number, "parent-snapshot-id": document["current-snapshot-id"], "sequence-number": number,
            "timestamp-ms": document["last-updated-ms"] + 1, "schema-id": 0,
            "summary": {"operation": "delete"}, "manifest-list": f"{folder}/l{number}.avro"}, None)  # fmt: skip
        name = int(head.name[1:].split(".")[0]) + 1
        (eyes.root / "metadata" / f"v{name}.metadata.json").write_bytes(dump(finished(draft.document, metadata, "x")))

    return add


@pytest.fixture
def new(tmp_path):
    """new(schema, partition_by) -> the writer of a new table."""

    from foreign_writer import SCHEMA, Foreign

    def new(schema=SCHEMA, **options):
        root = tmp_path / "t"
        bh.create(str(root), schema, format="iceberg", **options)
        return Foreign(root)

    return new
