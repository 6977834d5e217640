"""Row lineage of format version 3: ids are assigned by commits, and stay with rows whatever happens to their files."""

import json
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.errors import UnsupportedFeatureError
from boathouse.iceberg.commit.row_ids import numbered
from boathouse.iceberg.manifests.records import manifest_file
from boathouse.iceberg.manifests.row_ids import number_rows
from boathouse.iceberg.metadata.apply import apply
from boathouse.iceberg.metadata.updates import AddSnapshot
from boathouse.storage.local import LocalStorage

SCHEMA = pa.schema([("id", pa.int64()), ("x", pa.int64())])


def rows(*ids, x=0):
    return pa.table({"id": list(ids), "x": [x] * len(ids)}, SCHEMA)


@pytest.fixture
def root(tmp_path):
    return tmp_path / "t"


def create(root, version="3", **options):
    properties = {"format-version": version, **options.pop("properties", {})}
    return bh.create(str(root), SCHEMA, format="iceberg", properties=properties, **options)


def lineage(t, where=None):
    """id -> (row id, sequence number of the last change)."""
    found = t.scan(["id", "_row_id", "_last_updated_sequence_number"], where).to_arrow()
    return {id: pair for id, *pair in zip(*(c.to_pylist() for c in found.columns))}


def document(root):
    newest = max((root / "metadata").glob("v*.metadata.json"), key=lambda p: int(p.name[1:].split(".")[0]))
    return json.loads(newest.read_bytes())


def head(root):
    found = document(root)
    return next(s for s in found["snapshots"] if s["snapshot-id"] == found["current-snapshot-id"])


def listed(root):
    with open(head(root)["manifest-list"].removeprefix("file://"), "rb") as f:
        return list(fastavro.reader(f))


def entries(row):
    with open(row["manifest_path"].removeprefix("file://"), "rb") as f:
        return list(fastavro.reader(f))


def row(path, added, existing, first=None):
    return {
        "manifest_path": path, "manifest_length": 1, "partition_spec_id": 0, "content": 0, "sequence_number": 5,
        "min_sequence_number": 1, "added_snapshot_id": 9, "added_rows_count": added, "existing_rows_count": existing,
        "first_row_id": first,
    }  # fmt: skip


@pytest.mark.spec("I-332")
def test_the_example_of_the_specification():
    """Section "Row lineage example": 1000, 1125, 1225, and 1375 afterwards."""
    given = [row("existing", 75, 0, 925), row("added1", 100, 25), row("added2", 0, 100), row("added3", 125, 25)]
    found, following = numbered([*given, {**row("deletes", 7, 0), "content": 1}], 1000)
    assert [r["first_row_id"] for r in found] == [925, 1000, 1125, 1225, None] and following == 1375
    assert given[1]["first_row_id"] is None
    files = [
        {"status": status, "data_file": {"record_count": count, "first_row_id": first}}
        for status, count, first in ((0, 25, 800), (1, 50, None), (1, 50, None))
    ]
    number_rows(files, manifest_file(found[1], "l"))
    assert [e["data_file"]["first_row_id"] for e in files] == [800, 1000, 1050]
    snapshot = {"snapshot-id": 9, "sequence-number": 5, "timestamp-ms": 1, "first-row-id": 1000, "added-rows": 375}
    before = {"format-version": 3, "next-row-id": 1000, "last-sequence-number": 4, "snapshots": []}
    assert apply(before, AddSnapshot(snapshot))["next-row-id"] == 1375


@pytest.mark.feature("row lineage", format="iceberg")
@pytest.mark.parametrize("profile", [None, "modern"])
def test_ids_stay_with_rows(root, profile):
    """Rows that change keep them too, whether their file is written again or loses them by a vector."""
    t = create(root, profile=profile)
    t.append(rows(1, 2, 3))
    t.append(rows(4, 5))
    assert lineage(t) == {1: [0, 1], 2: [1, 1], 3: [2, 1], 4: [3, 2], 5: [4, 2]}
    assert (head(root)["first-row-id"], head(root)["added-rows"], document(root)["next-row-id"]) == (3, 2, 5)
    t.update({"x": "7"}, "id = 2")
    # The rows beside it were copied, and are as old as they were.
    assert lineage(t) == {1: [0, 1], 2: [1, 3], 3: [2, 1], 4: [3, 2], 5: [4, 2]}
    t.delete("id = 1")
    source = rows(3, 6, x=9)
    t.merge(source, "source.id = target.id").when_matched_update_all().when_not_matched_insert_all().execute()
    found = lineage(t)
    new = found.pop(6)
    assert found == {2: [1, 3], 3: [2, 5], 4: [3, 2], 5: [4, 2]}
    assert new[0] >= 5 and new[1] == 5
    t.optimize()
    assert len(t.files()) == 1 and lineage(t) == {**found, 6: new}
    t.overwrite(rows(4), where="id = 4")
    kept = lineage(t)
    assert kept.pop(4)[0] > new[0] and kept == {k: v for k, v in {**found, 6: new}.items() if k != 4}
    assert lineage(t, "id = 5") == {5: [4, 2]}


def test_files_store_ids_of_earlier_rows_only(root):
    import pyarrow.parquet as pq

    t = create(root)
    t.append(rows(1, 2))
    [first] = t.files().column("path").to_pylist()
    t.update({"x": "7"}, "id = 2")
    after = [path.removeprefix("file://") for path in t.files().column("path").to_pylist()]
    assert pq.read_schema(first.removeprefix("file://")).names == ["id", "x"]
    schema = pq.read_schema(after[0])
    ids = [int(f.metadata[b"PARQUET:field_id"]) for f in schema]
    assert schema.names == ["id", "x", "_row_id", "_last_updated_sequence_number"] and ids[2:] == [
        2147483540,
        2147483539,
    ]
    stored = pa.concat_tables(map(pq.read_table, after)).sort_by("id").select(schema.names[2:]).to_pydict()
    assert stored == {"_row_id": [0, 1], "_last_updated_sequence_number": [1, None]}
    # New files have no id of their own in the manifest that adds them.
    added = [e["data_file"] for r in listed(root) for e in entries(r) if e["status"] == 1]
    assert added and {f["first_row_id"] for f in added} == {None}


def test_manifests_that_are_written_again_keep_the_ids(root):
    t = create(root, properties={"commit.manifest.min-count-to-merge": "3"})
    known = {}
    for i in range(8):
        t.append(rows(2 * i, 2 * i + 1))
        found = lineage(t)
        assert {id: found[id] for id in known} == known and len({r for r, _ in found.values()}) == len(found)
        assert all(number == id // 2 + 1 for id, (_, number) in found.items())
        known = found
    assert len(listed(root)) < 8
    t.delete("id in (4, 5)")
    assert lineage(t) == {id: pair for id, pair in known.items() if id not in (4, 5)}
    existing = [e["data_file"] for r in listed(root) for e in entries(r) if e["status"] == 0]
    assert existing and all(f["first_row_id"] is not None for f in existing)


def test_a_lost_race_assigns_again(root, monkeypatch):
    create(root)
    t, real, raced = bh.open(str(root)), LocalStorage.put, []

    def put(self, key, data, *mode):
        if key.endswith("v2.metadata.json") and not raced:
            raced.append(key)
            bh.open(str(root)).append(rows(1, 2, 3))
        return real(self, key, data, *mode)

    monkeypatch.setattr(LocalStorage, "put", put)
    assert t.append(rows(4, 5)).retries == 1
    assert lineage(t) == {1: [0, 1], 2: [1, 1], 3: [2, 1], 4: [3, 2], 5: [4, 2]}
    first = [(s["first-row-id"], s["added-rows"]) for s in document(root)["snapshots"]]
    assert first == [(0, 3), (3, 2)] and document(root)["next-row-id"] == 5


def test_an_upgraded_table(root):
    """Rows get ids by the first commit after the upgrade, and have none in the snapshots before."""
    t = create(root, "2")
    t.append(rows(1, 2))
    t.append(rows(3))
    before = t.version
    t.set_properties({"format-version": "3"})
    assert document(root)["next-row-id"] == 0 and set(map(tuple, lineage(t).values())) == {(None, None)}
    t.append(rows(4))
    found = lineage(t)
    assert sorted(id for id, _ in found.values()) == [0, 1, 2, 3]
    assert {id: number for id, (_, number) in found.items()} == {1: 1, 2: 1, 3: 2, 4: 3}
    assert all(r["first_row_id"] is not None for r in listed(root)) and document(root)["next-row-id"] == 4
    t.update({"x": "1"}, "id = 1")
    assert lineage(t) == {**found, 1: [found[1][0], 4]}
    assert set(map(tuple, lineage(bh.open(str(root), version=before)).values())) == {(None, None)}


@pytest.mark.parametrize("operation", ["update", "delete", "optimize"])
def test_the_first_commit_after_an_upgrade_may_copy_rows(root, operation):
    t = create(root, "2")
    t.append(rows(1, 2, 3))
    t.append(rows(4))
    t.set_properties({"format-version": "3"})
    acts = {
        "update": lambda: t.update({"x": "1"}, "id = 1"), "delete": lambda: t.delete("id = 1"), "optimize": t.optimize,
    }  # fmt: skip
    acts[operation]()
    found = [id for id, _ in lineage(t).values()]
    assert None not in found and len(set(found)) == len(found) == t.count()
    assert max(found) < document(root)["next-row-id"]


def test_rows_that_got_ids_meanwhile_are_copied_with_them(root, monkeypatch):
    """An update that read the table before rows had ids, and loses to the commit that gives them."""
    t = create(root, "2")
    t.append(rows(1, 2))
    t.set_properties({"format-version": "3"})
    real, raced = LocalStorage.put, []

    def put(self, key, data, *mode):
        if key.endswith("v4.metadata.json") and not raced:
            raced.append(key)
            bh.open(str(root)).append(rows(3))
        return real(self, key, data, *mode)

    monkeypatch.setattr(LocalStorage, "put", put)
    done = t.update({"x": "1"}, "id = 1", isolation="snapshot")
    assert raced and done.retries >= 1
    between = bh.open(str(root), version=document(root)["snapshots"][-2]["snapshot-id"])
    assert {id: r for id, (r, _) in lineage(t).items()} == {id: r for id, (r, _) in lineage(between).items()}
    assert lineage(t)[1][1] == 3 and lineage(t)[2][1] == 1


def test_names_of_lineage_are_no_columns(root):
    for name in ("_row_id", "_LAST_UPDATED_SEQUENCE_NUMBER"):
        with pytest.raises(UnsupportedFeatureError, match="row lineage"):
            bh.create(str(root), pa.schema([(name, pa.int64())]), format="iceberg", profile="modern")
    t = bh.create(str(root), pa.schema([("_row_id", pa.int64())]), format="iceberg")
    with pytest.raises(UnsupportedFeatureError, match="row lineage"):
        t.set_properties({"format-version": "3"})
    t = create(Path(f"{root}2"))
    with pytest.raises(UnsupportedFeatureError, match="row lineage"):
        t.add_column("_row_id", "bigint")
    t.rename_column("x", "y")
    with pytest.raises(UnsupportedFeatureError, match="row lineage"):
        t.rename_column("y", "_row_id")


@pytest.mark.spark
def test_ids_stay_with_rows_on_spark(spark, root):
    create(root).append(rows(1, 2, 3))
    t = bh.open(str(root), spark=spark)
    t.append(rows(4, 5))
    t.update({"x": "7"}, "id = 2")
    t.merge(
        spark.createDataFrame(rows(3, 6, x=9).to_pandas()), "source.id = target.id"
    ).when_matched_update_all().when_not_matched_insert_all().execute()
    t.optimize()
    found = lineage(bh.open(str(root)))
    assert found.pop(6)[1] == 4
    assert found == {1: [0, 1], 2: [1, 3], 3: [2, 4], 4: [3, 2], 5: [4, 2]}
