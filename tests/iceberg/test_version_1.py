"""Tables of format version 1: written by pyiceberg, and stripped to what the oldest writers left."""

import json
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import StaticTable
from pyiceberg.transforms import IdentityTransform

import boathouse as bh
from boathouse.errors import CorruptTableError

SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string()), ("x", pa.float64())])
OLD_NAMES = {
    "added_files_count": "added_data_files_count",
    "existing_files_count": "existing_data_files_count",
    "deleted_files_count": "deleted_data_files_count",
}


def rows(*ids):
    return pa.table({"id": list(ids), "city": [f"c{i % 3}" for i in ids], "x": [i / 2 for i in ids]}, schema=SCHEMA)


@pytest.fixture
def table(catalog: SqlCatalog):
    """Three appends, partitioned by city."""
    made = catalog.create_table("db.t", SCHEMA, properties={"format-version": "1"})
    with made.update_spec() as update:
        update.add_field("city", IdentityTransform(), "city")
    for ids in ((1, 2, 3), (4, 5), (6,)):
        made.append(rows(*ids))
    assert made.format_version == 1
    return made


def document(path):
    return json.loads(Path(path).read_text())


def file_of(uri):
    return Path(uri.removeprefix("file://"))


def ids(root, **at):
    return sorted(bh.open(str(root), **at).to_arrow().column("id").to_pylist())


def rewritten(root, change):
    """The table with its newest metadata document changed."""
    newest = max((root / "metadata").glob("*.metadata.json"))
    found = document(newest)
    change(found)
    newest.write_text(json.dumps(found))


@pytest.mark.spec("I-005", "I-025", "I-326")
@pytest.mark.feature("format version 1", format="iceberg")
def test_what_pyiceberg_writes(table, adopt):
    root = adopt(table)
    assert document(Path(root) / "metadata" / "v1.metadata.json")["format-version"] == 1
    t = bh.open(root)
    assert ids(root) == [1, 2, 3, 4, 5, 6]
    assert t.scan(where="city = 'c1' and x > 1").to_arrow().column("id").to_pylist() == [4]
    assert [ids(root, version=e.version) for e in t.history() if e.version][::-1] == [
        [1, 2, 3], [1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6],
    ]  # fmt: skip
    units = t.scan().plan().units
    assert set(units.column("sequence").to_pylist()) == {0}
    assert t.detail()["format-version"] == 1
    versions = [e.version for e in t.history() if e.version]
    assert sorted(t.changes(versions[1]).to_arrow().column("id").to_pylist()) == [4, 5, 6]


def _bare(document, numbered=False):
    """Only the fields of the first writers: `schema` and `partition-spec`, no ids of schemas, specs and fields."""
    (schema,) = (s for s in document["schemas"] if s["schema-id"] == document["current-schema-id"])
    spec = next(s for s in document["partition-specs"] if s["spec-id"] == document["default-spec-id"])
    document["schema"] = {"type": "struct", "fields": schema["fields"]}
    kept = ("name", "transform", "source-id", *(["field-id"] if numbered else []))
    document["partition-spec"] = [{k: f[k] for k in kept} for f in spec["fields"]]
    for name in (
        "schemas", "current-schema-id", "partition-specs", "default-spec-id", "last-partition-id", "sort-orders",
        "default-sort-order-id", "table-uuid", "last-sequence-number", "refs", "metadata-log", "statistics",
    ):  # fmt: skip
        document.pop(name, None)
    for snapshot in document["snapshots"]:
        snapshot.pop("schema-id", None)
        snapshot.pop("summary", None)
        snapshot.pop("sequence-number", None)


def _with_spec(root, id):
    """The manifests and lists as if the table had always had one spec, of this number."""
    for path in (root / "metadata").glob("*.avro"):
        with path.open("rb") as file:
            reader = fastavro.reader(file)
            schema, found = reader.writer_schema, list(reader)
            metadata = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
        metadata.pop("format-version", None)
        metadata.pop("schema-id", None)
        if "partition-spec-id" in metadata:
            metadata["partition-spec-id"] = str(id)
        for row in found:
            if "partition_spec_id" in row:
                row["partition_spec_id"] = id
        with path.open("wb") as file:
            fastavro.writer(file, schema, found, codec="deflate", metadata=metadata)


@pytest.mark.spec("I-314", "I-315", "I-326", "I-033")
@pytest.mark.parametrize("numbered", [False, True])
def test_only_what_version_1_requires(table, adopt, numbered):
    root = Path(adopt(table))
    _with_spec(root, 0)
    rewritten(root, lambda d: _bare(d, numbered))
    t = bh.open(str(root))
    assert ids(root) == [1, 2, 3, 4, 5, 6]
    assert t.scan(where="city = 'c0'").to_arrow().sort_by("id").column("id").to_pylist() == [3, 6]
    assert len(t.scan(where="city = 'c0'").files()) == 2, "files of other cities are not read"
    assert t.detail()["partition_by"] == ["city"]
    identity = t.detail()["identity"]
    assert identity and bh.open(str(root)).detail()["identity"] == identity


@pytest.mark.spec("I-176")
def test_manifests_that_the_snapshot_names_itself(table, adopt):
    root = Path(adopt(table))

    def embed(document):
        for snapshot in document["snapshots"]:
            path = file_of(snapshot.pop("manifest-list"))
            with path.open("rb") as file:
                snapshot["manifests"] = [row["manifest_path"] for row in fastavro.reader(file)]
            path.unlink()

    rewritten(root, embed)
    t = bh.open(str(root))
    assert ids(root) == [1, 2, 3, 4, 5, 6]
    assert t.scan(where="id = 5").to_arrow().num_rows == 1
    oldest = [e.version for e in t.history() if e.version][-1]
    assert ids(root, version=oldest) == [1, 2, 3]
    assert t.detail()["files"] == 6


def test_a_snapshot_without_any_manifest_is_refused(table, adopt):
    root = Path(adopt(table))

    def strip(document):
        for snapshot in document["snapshots"]:
            del snapshot["manifest-list"]

    rewritten(root, strip)
    with pytest.raises(CorruptTableError, match="neither a manifest list nor manifests"):
        ids(root)


@pytest.mark.spec("I-192")
def test_older_names_of_counts(table, adopt):
    root = Path(adopt(table))
    for path in (root / "metadata").glob("snap-*.avro"):
        with path.open("rb") as file:
            reader = fastavro.reader(file)
            schema, found = reader.writer_schema, list(reader)
            metadata = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
        for field in schema["fields"]:
            field["name"] = OLD_NAMES.get(field["name"], field["name"])
        found = [{OLD_NAMES.get(k, k): v for k, v in row.items()} for row in found]
        schema = {k: v for k, v in schema.items() if not k.startswith("__")}
        with path.open("wb") as file:
            fastavro.writer(file, schema, found, metadata=metadata)
    assert ids(root) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("missing", ["schema", "partition-spec", "location", "last-column-id"])
def test_what_every_version_needs(table, adopt, missing):
    root = Path(adopt(table))

    def strip(document):
        _bare(document)
        del document[missing]

    rewritten(root, strip)
    with pytest.raises(CorruptTableError, match="lacks"):
        bh.open(str(root))


def test_our_commits_onto_a_table_of_pyiceberg(table, adopt):
    root = adopt(table)
    t = bh.open(root)
    t.append(rows(9, 10))
    t.delete("id = 1")
    t.set_properties({"a": "b"})
    assert ids(root) == [2, 3, 4, 5, 6, 9, 10]
    newest = max((Path(root) / "metadata").glob("v*.metadata.json"))
    seen = StaticTable.from_metadata(f"file://{newest}")
    assert seen.format_version == 1
    assert sorted(seen.scan().to_arrow().column("id").to_pylist()) == [2, 3, 4, 5, 6, 9, 10]


@pytest.mark.spec("I-003", "I-329")
def test_an_upgraded_table_keeps_its_manifests(table, adopt):
    """Version 2 names manifests of version 1: they are read, and not written again where nothing in them changes."""
    with table.transaction() as transaction:
        transaction.upgrade_table_version(2)
    root = adopt(table)
    old = {p.name: p.read_bytes() for p in (Path(root) / "metadata").glob("*.avro")}
    assert ids(root) == [1, 2, 3, 4, 5, 6]
    t = bh.open(root)
    t.append(rows(7, 8))
    t.delete("id = 5")
    assert ids(root) == [1, 2, 3, 4, 6, 7, 8]
    newest = bh.open(root)._handle.snapshot
    named = {m.path.rsplit("/", 1)[-1] for m in newest.listing.manifest_files}
    assert len(named & old.keys()) == 2, "only the manifest with the deleted row's file is written again"
    assert all((Path(root) / "metadata" / name).read_bytes() == data for name, data in old.items())
    assert t.optimize().files_removed > 0
    assert ids(root) == [1, 2, 3, 4, 6, 7, 8]


def test_the_reference_reads_what_we_wrote_on(table, adopt):
    from pyiceberg.table import StaticTable

    with table.transaction() as transaction:
        transaction.upgrade_table_version(2)
    root = adopt(table)
    bh.open(root).append(rows(7))
    bh.open(root).delete("id = 2")
    newest = max((Path(root) / "metadata").glob("v*.metadata.json"), key=lambda p: int(p.name[1:].split(".")[0]))
    theirs = StaticTable.from_metadata(str(newest)).scan().to_arrow()
    assert sorted(theirs.column("id").to_pylist()) == ids(root) == [1, 3, 4, 5, 6, 7]


def test_specs_of_the_table_and_of_files(catalog, adopt):
    """A field that is dropped becomes void, and its files keep their values."""
    made = catalog.create_table(
        "db.v",
        SCHEMA,
        properties={"format-version": "1"},
    )
    with made.update_spec() as update:
        update.add_field("city", IdentityTransform(), "city")
    made.append(rows(1, 2, 3))
    with made.update_spec() as update:
        update.remove_field("city")
    made.append(rows(4, 5))
    root = adopt(made)
    assert ids(root) == [1, 2, 3, 4, 5]
    assert bh.open(root).scan(where="city = 'c1'").to_arrow().sort_by("id").column("id").to_pylist() == [1, 4]
