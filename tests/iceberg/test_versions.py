"""Tables of each format version: created, written, upgraded, in folders and in a SQL catalog, and read by pyiceberg."""

import copy
import json
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

import boathouse as bh
from boathouse.errors import InvalidArgumentError, UnsupportedFeatureError
from boathouse.storage.local import LocalStorage

SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string()), ("x", pa.float64())])
VERSIONS = ("1", "2", "3")


def rows(*ids, x=None):
    return pa.table({"id": list(ids), "city": [f"c{i % 3}" for i in ids], "x": [x or i / 2 for i in ids]}, SCHEMA)


@pytest.fixture(params=VERSIONS)
def version(request):
    return request.param


@pytest.fixture
def root(tmp_path):
    return tmp_path / "t"


def create(root, version, **properties):
    return bh.create(
        str(root), SCHEMA, format="iceberg", partition_by=["bucket(2, id)"],
        properties={"format-version": version, **properties},
    )  # fmt: skip


def head(root):
    return max((root / "metadata").glob("v*.metadata.json"), key=lambda p: int(p.name[1:].split(".")[0]))


def document(root):
    return json.loads(head(root).read_bytes())


def avro(uri):
    with open(uri.removeprefix("file://"), "rb") as f:
        found = fastavro.reader(f)
        return list(found), found.writer_schema, found.metadata


def manifests(root):
    """The rows of the newest manifest list, and their manifests: records, schema, metadata."""
    found = document(root)
    current = next(s for s in found["snapshots"] if s["snapshot-id"] == found["current-snapshot-id"])
    return [(row, avro(row["manifest_path"])) for row in avro(current["manifest-list"])[0]]


def edited(root, change):
    """The next metadata document, as another writer leaves it."""
    number, found = int(head(root).name[1:].split(".")[0]), document(root)
    change(found)
    found["last-updated-ms"] += 1
    (root / "metadata" / f"v{number + 1}.metadata.json").write_text(json.dumps(found))


def theirs(root):
    return StaticTable.from_metadata(f"file://{head(root)}")


def ids(table):
    return sorted(table.to_arrow().column("id").to_pylist())


def names(schema):
    """The names of all fields of an Avro schema."""
    if isinstance(schema, list):
        return {n for s in schema for n in names(s)}
    if not isinstance(schema, dict):
        return set()
    inner = {n for f in schema.get("fields", ()) for n in {f["name"]} | names(f["type"])}
    return inner | names(schema.get("items")) | (names(schema["type"]) if isinstance(schema["type"], dict) else set())


@pytest.mark.spec("I-001")
@pytest.mark.feature("format version 1", "format version 2", "format version 3", format="iceberg")
def test_every_operation_on_every_version(root, version):
    t = create(root, version)
    assert document(root)["format-version"] == int(version) and "format-version" not in document(root)["properties"]
    t.append(rows(1, 2, 3, 4))
    t.append(rows(5, 6))
    t.update({"x": "x + 10"}, "id = 2")
    t.delete("id = 3")
    t.merge(
        rows(6, 7, x=9.5), "source.id = target.id"
    ).when_matched_update_all().when_not_matched_insert_all().execute()
    t.optimize()
    t.add_column("note", "string")
    t.append(rows(8))
    expected = {"id": [1, 2, 4, 5, 6, 7, 8], "x": [0.5, 11.0, 2.0, 2.5, 9.5, 9.5, 4.0]}
    for found in (bh.open(str(root)).to_arrow(), theirs(root).scan().to_arrow()):
        assert found.sort_by("id").select(["id", "x"]).to_pydict() == expected
    assert theirs(root).format_version == int(version)
    made = {int(m["format-version"]) for _, (_, _, m) in manifests(root)}
    assert made == {int(version)}
    t.overwrite(rows(9), where="id > 5")
    assert ids(bh.open(str(root))) == [1, 2, 4, 5, 9]


def test_what_is_not_said_is_version_2_and_modern_is_3(tmp_path):
    bh.create(str(tmp_path / "a"), SCHEMA, format="iceberg")
    assert document(tmp_path / "a")["format-version"] == 2
    bh.create(str(tmp_path / "b"), SCHEMA, format="iceberg", profile="modern").append(rows(1))
    assert document(tmp_path / "b")["format-version"] == 3 and ids(theirs_rows(tmp_path / "b")) == [1]
    bh.create(str(tmp_path / "c"), SCHEMA, format="iceberg", profile="modern", properties={"format-version": "2"})
    assert document(tmp_path / "c")["format-version"] == 2


def theirs_rows(root):
    return theirs(root).scan()


@pytest.mark.spec("I-031", "I-325")
def test_the_eight_rules_of_version_1(root):
    t = create(root, "1")
    t.append(rows(1, 2, 3))
    t.append(rows(4))
    t.delete("id = 2")
    found = document(root)
    assert "last-sequence-number" not in found
    assert all("sequence-number" not in s for s in found["snapshots"]) and len(found["snapshots"]) == 3
    # The names of its first readers are there too.
    assert [f["name"] for f in found["schema"]["fields"]] == ["id", "city", "x"]
    assert [f["transform"] for f in found["partition-spec"]] == ["bucket[2]"]
    for snapshot in found["snapshots"]:
        listed, schema, metadata = avro(snapshot["manifest-list"])
        assert not names(schema) & {"sequence_number", "min_sequence_number", "content", "first_row_id"}
        assert metadata["format-version"] == "1" and "sequence-number" not in metadata
        for row in listed:
            entries, schema, metadata = avro(row["manifest_path"])
            assert metadata["format-version"] == "1" and "content" not in metadata
            assert not names(schema) & {
                "sequence_number", "file_sequence_number", "content", "equality_ids", "referenced_data_file",
                "content_offset", "content_size_in_bytes", "first_row_id",
            }  # fmt: skip
            assert all(e["snapshot_id"] is not None and e["data_file"]["block_size_in_bytes"] > 0 for e in entries)


def test_snapshots_of_version_1_that_name_their_manifests(root):
    t = create(root, "1")
    t.append(rows(1, 2))
    t.append(rows(3))

    def embedded(found):
        for snapshot in found["snapshots"]:
            snapshot["manifests"] = [row["manifest_path"] for row in avro(snapshot.pop("manifest-list"))[0]]

    edited(root, embedded)
    t = bh.open(str(root))
    t.append(rows(4))
    t.delete("id = 1")
    # pyiceberg does not open such a table.
    assert ids(bh.open(str(root))) == [2, 3, 4]
    before = [s for s in document(root)["snapshots"] if "manifests" in s]
    assert len(before) == 2 and all("manifest-list" not in s for s in before)
    assert all(row["existing_rows_count"] is not None for row, _ in manifests(root))
    t.set_properties({"format-version": "2"})
    t.append(rows(5))
    assert ids(bh.open(str(root))) == [2, 3, 4, 5]


@pytest.mark.spec("I-003")
@pytest.mark.parametrize(("before", "after"), [("1", "2"), ("2", "3"), ("1", "3")])
def test_an_upgrade_is_metadata_alone(root, before, after):
    t = create(root, before, a="b")
    for i in range(3):
        t.append(rows(i))
    files = {p: p.read_bytes() for p in root.rglob("*") if p.suffix in (".avro", ".parquet")}
    version = t.version
    t.set_properties({"format-version": after, "c": "d"})
    assert t.version == version
    found = document(root)
    assert found["format-version"] == int(after) and found["properties"] == {"a": "b", "c": "d"}
    assert ("next-row-id" in found) == (after == "3") and not found.keys() & {"schema", "partition-spec"}
    assert {p for p in root.rglob("*") if p.suffix in (".avro", ".parquet")} == files.keys()
    t = bh.open(str(root))
    t.append(rows(7))
    t.delete("id = 1")
    assert all(p.read_bytes() == data for p, data in files.items() if p.exists())
    assert ids(t) == [0, 2, 7] == ids(theirs_rows(root))
    kept = {row["manifest_path"].removeprefix("file://") for row, _ in manifests(root)} & {str(p) for p in files}
    assert len(kept) == 2
    version = t.version
    t.set_properties({"format-version": after})
    assert t.version == version and document(root)["format-version"] == int(after)


@pytest.mark.spec("I-004")
def test_what_is_refused(root):
    t = create(root, "3")
    t.append(rows(1))
    before = {p: p.read_bytes() for p in root.rglob("*") if p.is_file()}
    for asked, error, message in (
        ("2", UnsupportedFeatureError, "cannot be lowered"),
        ("1", UnsupportedFeatureError, "cannot be lowered"),
        ("4", UnsupportedFeatureError, "format version 4 is not offered"),
        ("three", InvalidArgumentError, "'three'"),
        (None, InvalidArgumentError, "None"),
    ):
        with pytest.raises(error, match=message):
            t.set_properties({"format-version": asked})
    assert {p: p.read_bytes() for p in root.rglob("*") if p.is_file()} == before
    for asked, error in (("4", UnsupportedFeatureError), ("0", UnsupportedFeatureError), ("v2", InvalidArgumentError)):
        with pytest.raises(error):
            create(root.parent / "u", asked)
    assert not (root.parent / "u").exists()


UNKNOWN = {"x-theirs": {"deep": [1, None]}}


def test_unknown_fields_survive_every_commit(root, version):
    t = create(root, version)
    t.append(rows(1, 2))

    def marked(found):
        for one in (found, found["schemas"][0], found["schemas"][0]["fields"][0], found["snapshots"][0]):
            one.update(copy.deepcopy(UNKNOWN))

    edited(root, marked)
    t = bh.open(str(root))
    t.append(rows(3))
    t.delete("id = 1")
    t.set_properties({"a": "b"})
    t.add_column("note", "string")
    t.rename_column("note", "remark")
    if version != "3":
        t.set_properties({"format-version": "3"})
    t.append(rows(4))
    found = document(root)
    current = next(s for s in found["schemas"] if s["schema-id"] == found["current-schema-id"])
    for one in (found, found["schemas"][0], current, current["fields"][0], found["snapshots"][0]):
        assert one["x-theirs"] == UNKNOWN["x-theirs"]
    assert ids(t) == [2, 3, 4]


def test_a_lost_race_writes_manifests_of_its_own_snapshot(root, version, monkeypatch):
    """In version 1 entries name the snapshot that added them, so manifests of another attempt's do not fit."""
    create(root, version)
    t, real, raced = bh.open(str(root)), LocalStorage.put, []

    def put(self, key, data, *mode):
        if key.endswith("v2.metadata.json") and not raced:
            raced.append(key)
            bh.open(str(root)).append(rows(1))
        return real(self, key, data, *mode)

    monkeypatch.setattr(LocalStorage, "put", put)
    done = t.append(rows(2, 4))
    assert raced and done.retries == 1 and ids(bh.open(str(root))) == [1, 2, 4]
    added = [e for row, (entries, _, _) in manifests(root) for e in entries if row["added_snapshot_id"] == t.version]
    assert added
    for entry in added:
        assert entry["snapshot_id"] in ({"1": {t.version}}.get(version, {None}))
    if version == "3":
        first = sorted(row["first_row_id"] for row, _ in manifests(root))
        assert first == [0, 1] and document(root)["next-row-id"] == 3


@pytest.mark.feature("catalogs", format="iceberg")
def test_versions_in_a_sql_catalog(tmp_path, version):
    from pyiceberg.catalog import load_catalog

    (tmp_path / "wh").mkdir()
    options = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/wh"}
    client = load_catalog("prod", **options)
    client.create_namespace("db")
    begun = "1" if version == "1" else "2"
    client.create_table("db.t", SCHEMA, properties={"format-version": begun}).append(rows(1, 2))
    t = bh.catalog("prod", **options).open("db.t")
    if version != begun:
        t.set_properties({"format-version": version})
    t.append(rows(3, 4))
    stale = bh.catalog("prod", **options).open("db.t")
    t.delete("id = 1")
    stale.append(rows(5))
    stale.update({"x": "0"}, "id = 2")
    seen = client.load_table("db.t")
    assert seen.format_version == int(version) and ids(seen.scan()) == [2, 3, 4, 5] == ids(stale)
    if version == "3":
        found = stale.scan(["id", "_row_id"]).to_arrow().sort_by("id").column("_row_id").to_pylist()
        assert None not in found and len(set(found)) == 4
        assert seen.metadata.next_row_id > max(found)
        log = json.loads(Path(seen.metadata_location.removeprefix("file://")).read_bytes())["metadata-log"]
        assert len(log) == len({e["metadata-file"] for e in log}) >= 5
    with pytest.raises(UnsupportedFeatureError, match=r"cannot be lowered|not offered"):
        stale.set_properties({"format-version": "1" if version != "1" else "4"})
