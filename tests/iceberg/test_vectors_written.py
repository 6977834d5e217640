"""Merge-on-read in format version 3: deletion vectors that commits write, by their bytes and entries, and as pyiceberg
reads them."""

import json
import struct
import zlib

import pyarrow as pa
import pyroaring
import pytest
from foreign_writer import IDS, SCHEMA, Foreign, ids_of, rows, theirs

import boathouse as bh
from boathouse.bits.roaring import Bitmap
from boathouse.errors import InvalidArgumentError, UnsupportedFeatureError
from boathouse.iceberg.deletes import puffin
from boathouse.iceberg.row_modes import row_deletes
from boathouse.ops import write as write_op

MODERN = {"format": "iceberg", "profile": "modern"}
ON = "source.id = target.id"


@pytest.fixture
def root(tmp_path):
    return tmp_path / "t"


@pytest.fixture
def two(root):
    """A table with the rows 0 to 9 in one file and 10 to 19 in another, and its files."""
    bh.create(str(root), SCHEMA, **MODERN)
    for ids in (range(10), range(10, 20)):
        bh.open(str(root)).append(rows(*ids))
    foreign = Foreign(root)
    return foreign, *sorted(foreign.live(), key=lambda path: ids_in(foreign, path)[0])


def ids_in(foreign, path):
    import pyarrow.parquet as pq

    return pq.read_table(path.removeprefix("file://"))["id"].to_pylist()


def summary(foreign):
    document = foreign.document
    return next(s for s in document["snapshots"] if s["snapshot-id"] == document["current-snapshot-id"])["summary"]


def delete_manifests(foreign):
    document = foreign.document
    current = next(s for s in document["snapshots"] if s["snapshot-id"] == document["current-snapshot-id"])
    return [row for row in foreign._avro(current["manifest-list"]) if row["content"] == 1]


def deletes(foreign, status=(0, 1)):
    """The entries of row deletes."""
    found = [e for row in delete_manifests(foreign) for e in foreign._avro(row["manifest_path"])]
    return [e for e in found if e["status"] in status]


def footer(path):
    data = path.read_bytes()
    assert data[:4] == data[-4:] == b"PFA1" and data[-8:-4] == bytes(4)
    size = int.from_bytes(data[-12:-8], "little", signed=True)
    assert data[-size - 16 : -size - 12] == b"PFA1"
    return json.loads(data[-size - 12 : -12])


@pytest.mark.spec("I-270")
@pytest.mark.spec("I-181")
@pytest.mark.feature("deletion vectors", format="iceberg")
def test_a_delete_writes_a_vector_for_each_file(two):
    foreign, first, second = two
    before = set(foreign.live())
    result = bh.open(str(foreign.root)).delete("id in (0, 3, 9, 15)")
    assert (result.rows_deleted, result.files_added, result.files_removed) == (4, 0, 0)
    assert set(foreign.live()) == before
    assert ids_of(foreign.root) == sorted(set(range(20)) - {0, 3, 9, 15}) == theirs(foreign)
    [file] = foreign.root.glob("data/*.puffin")
    data, said = file.read_bytes(), footer(file)
    assert set(said["properties"]) == {"created-by"}
    found = {e["data_file"]["referenced_data_file"]: e for e in deletes(foreign)}
    assert found.keys() == {first, second}
    for blob in said["blobs"]:
        path = blob["properties"]["referenced-data-file"]
        entry, positions = found[path], [0, 3, 9] if path == first else [5]
        assert blob == {
            "type": "deletion-vector-v1", "fields": [2147483645], "snapshot-id": -1, "sequence-number": -1,
            "offset": entry["data_file"]["content_offset"], "length": entry["data_file"]["content_size_in_bytes"],
            "properties": {"referenced-data-file": path, "cardinality": str(len(positions))},
        }  # fmt: skip
        body = data[blob["offset"] : blob["offset"] + blob["length"]]
        size, checksum = struct.unpack(">I", body[:4])[0], struct.unpack(">I", body[-4:])[0]
        assert size == len(body) - 8 and body[4:8].hex() == "d1d33964" and checksum == zlib.crc32(body[4:-4])
        assert list(pyroaring.BitMap64.deserialize(body[8:-4])) == positions
        said_of = {k: v for k, v in entry["data_file"].items() if v is not None}
        for name in ("content_offset", "content_size_in_bytes"):
            said_of.pop(name)
        assert said_of == {
            "content": 1, "file_path": f"file://{file}", "file_format": "PUFFIN", "partition": {},
            "record_count": len(positions), "file_size_in_bytes": len(data), "referenced_data_file": path,
        }  # fmt: skip
        assert (entry["status"], entry["sequence_number"]) == (1, None)
    sizes = sum(b["length"] for b in said["blobs"])
    counts = {k: v for k, v in summary(foreign).items() if k.startswith(("added", "removed", "deleted", "total"))}
    total_size = int(counts.pop("total-files-size"))
    assert counts == {
        "added-delete-files": "2", "added-dvs": "2", "added-position-deletes": "4", "added-files-size": str(sizes),
        "total-records": "20", "total-data-files": "2", "total-delete-files": "2", "total-position-deletes": "4",
        "total-equality-deletes": "0",
    }  # fmt: skip
    assert summary(foreign)["operation"] == "delete"
    assert total_size == sizes + sum(f["size"] for f in bh.open(str(foreign.root)).files().to_pylist())


def test_a_vector_has_what_was_deleted_before(two):
    foreign, first, second = two
    t = bh.open(str(foreign.root))
    t.delete("id in (1, 11)")
    t.delete("id = 2")
    found = {e["data_file"]["referenced_data_file"]: e["data_file"]["record_count"] for e in deletes(foreign)}
    assert found == {first: 2, second: 1}
    [gone] = deletes(foreign, status=(2,))
    assert gone["data_file"]["referenced_data_file"] == first and gone["data_file"]["record_count"] == 1
    counts = summary(foreign)
    assert [counts[f"{k}-dvs"] for k in ("added", "removed")] == ["1", "1"]
    assert [counts[f"{k}-position-deletes"] for k in ("added", "removed", "total")] == ["2", "1", "3"]
    assert counts["total-delete-files"] == "2"
    assert ids_of(foreign.root) == sorted(set(range(20)) - {1, 2, 11}) == theirs(foreign)
    start = t.history()[1].version
    changes = t.changes(start).to_arrow().to_pylist()
    assert sorted((c["_change_type"], c["id"]) for c in changes) == [("delete", 1), ("delete", 2), ("delete", 11)]


@pytest.mark.spec("I-269")
def test_position_deletes_of_before_the_upgrade_go_into_the_vector(root):
    bh.create(str(root), SCHEMA, format="iceberg", properties={"write.delete.mode": "merge-on-read"})
    foreign = Foreign(root)
    foreign.commit(foreign.data(rows(*range(10)), IDS), foreign.data(rows(*range(10, 20)), IDS))
    first, second = foreign.live()
    alone = [{"key": 2147483546, "value": first.encode()}]
    foreign.commit(
        foreign.positions([(first, 1), (second, 2)]),
        foreign.positions([(first, 8), (first, 99)], lower_bounds=alone, upper_bounds=alone),
        foreign.positions([(second, 3)], referenced_data_file=second),
    )
    t = bh.open(str(root))
    t.set_properties({"format-version": "3"})
    t.delete("id = 4")
    assert ids_of(root) == sorted(set(range(20)) - {1, 4, 8, 12, 13}) == theirs(foreign)
    left = {(e["data_file"]["file_format"], e["data_file"]["referenced_data_file"]): e for e in deletes(foreign)}
    # The file that is for both stays: the other data file needs it.
    assert left.keys() == {("PUFFIN", first), ("PARQUET", None), ("PARQUET", second)}
    assert left["PUFFIN", first]["data_file"]["record_count"] == 3
    t.optimize()
    assert ids_of(root) == sorted(set(range(20)) - {1, 4, 8, 12, 13}) == theirs(foreign)
    assert [e["data_file"]["referenced_data_file"] for e in deletes(foreign)] == [None]


def test_partitions_specs_and_odd_names(root):
    """The vector is of its data file's spec and partition, also after the partitioning changed."""
    data = pa.table(
        {"id": list(range(12)), "p.q": ["a", None, "ä/b"] * 4, "d": pa.array([1.5, -0.0, float("nan")] * 4)}
    )
    bh.create(str(root), data.schema, partition_by=["p.q"], **MODERN).append(data)
    foreign = Foreign(root)
    bh.open(str(root)).partition_by("d")
    t = bh.open(str(root))
    t.append(data.set_column(0, "id", pa.array(range(100, 112), pa.int64())))
    t.delete("id in (0, 1, 2, 3, 100, 101, 102)")
    assert ids_of(root) == [*range(4, 12), *range(103, 112)] == theirs(foreign)
    specs = {row["partition_spec_id"] for row in delete_manifests(foreign)}
    assert specs == {0, 1} and len(deletes(foreign)) == 6
    t.delete("`p.q` is null and id < 50")
    assert ids_of(root) == sorted({*range(4, 12), *range(103, 112)} - {4, 7, 10}) == theirs(foreign)
    assert len(deletes(foreign)) == 5, "the vector of a file that is gone goes with it"


def test_updates_and_merges_obey_their_own_modes(root):
    bh.create(str(root), SCHEMA, **MODERN).append(rows(*range(10)))
    foreign = Foreign(root)
    [first] = foreign.live()
    t = bh.open(str(root))
    result = t.update({"x": "x + 100"}, "id = 6")
    assert (result.rows_updated, result.rows_copied, result.files_removed) == (1, 0, 0)
    assert first in foreign.live() and len(deletes(foreign)) == 1
    source = rows(2, 3, 30, x=-1.0)
    merge = t.merge(source, ON).when_matched_delete("source.id = 2").when_matched_update_all()
    result = merge.when_not_matched_insert_all().execute()
    assert (result.rows_added, result.rows_updated, result.rows_deleted, result.rows_copied) == (1, 1, 1, 0)
    assert summary(foreign)["operation"] == "overwrite" and len(deletes(foreign)) == 1
    found = t.scan(["id", "x"]).to_arrow().sort_by("id").to_pydict()
    assert found["id"] == [0, 1, 3, 4, 5, 6, 7, 8, 9, 30] == theirs(foreign)
    assert found["x"] == [0.0, 1.0, -1.0, 4.0, 5.0, 106.0, 7.0, 8.0, 9.0, -1.0]
    t.set_properties({"write.update.mode": "copy-on-write"})
    assert t.update({"x": "0"}, "id = 0").rows_copied == 6
    assert first not in foreign.live() and deletes(foreign) == []
    assert ids_of(root) == found["id"] == theirs(foreign)
    # A conditional overwrite writes files anyway: it rewrites those of which it keeps rows, as it always did.
    t.delete("id = 1")
    t.overwrite(rows(4, x=9.0), where="id = 4")
    assert deletes(foreign) == [] and ids_of(root) == [0, *range(3, 10), 30] == theirs(foreign)


def test_a_file_without_any_row_left_goes_with_its_vector(two):
    foreign, _, second = two
    t = bh.open(str(foreign.root))
    t.delete("id < 5 or id = 12")
    t.delete("id < 10")
    assert foreign.live() == [second] and len(deletes(foreign)) == 1
    assert t.delete("id >= 10").rows_deleted == 9
    assert foreign.live() == [] and deletes(foreign) == [] and theirs(foreign) == []
    assert summary(foreign)["total-delete-files"] == "0" == summary(foreign)["total-position-deletes"]


def test_delete_manifests_are_merged(root):
    bh.create(str(root), SCHEMA, properties={"commit.manifest.min-count-to-merge": "4"}, **MODERN)
    t = bh.open(str(root))
    for i in range(10):
        t.append(rows(2 * i, 2 * i + 1))
    foreign = Foreign(root)
    for i in range(10):
        t.delete(f"id = {2 * i}")
    assert ids_of(root) == list(range(1, 20, 2)) == theirs(foreign)
    assert len(deletes(foreign)) == 10 and len(delete_manifests(foreign)) <= 4
    sequences = [e["sequence_number"] for e in deletes(foreign) if e["status"] == 0]
    assert len(set(sequences)) == len(sequences), "each keeps its number"


@pytest.fixture
def meanwhile(monkeypatch):
    """Lets `act` happen once, after the first work of a write and before its commit; counts the plans."""

    def arrange(act):
        calls = []
        for kind in (write_op.RowWork, write_op.TaskWork):

            def perform(work, engine, real=kind.perform):
                done = real(work, engine)
                calls.append(1)
                if len(calls) == 1:
                    act()
                return done

            monkeypatch.setattr(kind, "perform", perform)
        return calls

    return arrange


def puffins_that_nothing_names(foreign):
    there = {f"file://{p}" for p in foreign.root.glob("data/*.puffin")}
    named = set()
    for s in foreign.document["snapshots"]:
        for row in foreign._avro(s["manifest-list"]):
            if row["content"]:
                named |= {e["data_file"]["file_path"] for e in foreign._avro(row["manifest_path"])}
    return there - named


def test_two_deletes_of_one_file_make_one_vector(two, meanwhile):
    foreign, _, _ = two
    calls = meanwhile(lambda: bh.open(str(foreign.root)).delete("id in (1, 2)"))
    result = bh.open(str(foreign.root)).delete("id in (2, 3)")
    assert result.rows_deleted == 1 and len(calls) == 3, "planned again"
    assert ids_of(foreign.root) == sorted(set(range(20)) - {1, 2, 3}) == theirs(foreign)
    assert [e["data_file"]["record_count"] for e in deletes(foreign)] == [3]
    assert puffins_that_nothing_names(foreign) == set()


def test_deletes_of_other_files_are_no_conflict(two, meanwhile):
    foreign, first, second = two
    calls = meanwhile(lambda: bh.open(str(foreign.root)).delete("id = 12"))
    assert bh.open(str(foreign.root)).delete("id = 3").rows_deleted == 1
    assert len(calls) == 2, "committed on top"
    assert ids_of(foreign.root) == sorted(set(range(20)) - {3, 12}) == theirs(foreign)
    assert {e["data_file"]["referenced_data_file"] for e in deletes(foreign)} == {first, second}


@pytest.mark.parametrize("ours", ["delete", "update", "optimize"])
def test_a_file_that_is_gone_gets_no_vector(two, meanwhile, ours):
    """Removed or rewritten meanwhile, or given a vector that a copy of its rows must not forget."""
    foreign, _, _ = two
    other = bh.open(str(foreign.root))
    act = (lambda: other.delete("id in (4, 14)")) if ours == "optimize" else lambda: other.optimize()
    calls = meanwhile(act)
    t = bh.open(str(foreign.root))
    match ours:
        case "delete":
            t.delete("id = 3")
        case "update":
            t.update({"x": "-1"}, "id = 3")
        case "optimize":
            t.optimize()
    assert len(calls) > 2
    wanted = set(range(20)) - ({4, 14} if ours == "optimize" else {3} if ours == "delete" else set())
    assert ids_of(foreign.root) == sorted(wanted) == theirs(foreign)
    live = set(foreign.live())
    assert {e["data_file"]["referenced_data_file"] for e in deletes(foreign)} <= live
    assert puffins_that_nothing_names(foreign) == set()


@pytest.mark.parametrize("level", [None, "serializable", "snapshot"])
def test_rows_added_meanwhile(two, meanwhile, level):
    """Under snapshot isolation they stay, under the other they are deleted too."""
    foreign, _, _ = two
    if level is not None:
        bh.open(str(foreign.root)).set_properties({"write.delete.isolation-level": level})
    calls = meanwhile(lambda: bh.open(str(foreign.root)).append(rows(3)))
    bh.open(str(foreign.root)).delete("id = 3")
    snapshot = level == "snapshot"
    assert len(calls) == (2 if snapshot else 3)
    assert ids_of(foreign.root) == sorted({*range(20)} - {3} | ({3} if snapshot else set())) == theirs(foreign)


def test_the_level_of_a_call_is_above_that_of_the_table(two, meanwhile):
    foreign, _, _ = two
    bh.open(str(foreign.root)).set_properties({"write.update.isolation-level": "SNAPSHOT"})
    calls = meanwhile(lambda: bh.open(str(foreign.root)).append(rows(3, x=7.0)))
    bh.open(str(foreign.root)).update({"x": "-1"}, "id = 3", isolation="serializable")
    assert len(calls) == 5
    assert bh.open(str(foreign.root)).scan(["x"], where="id = 3").to_arrow()["x"].to_pylist() == [-1.0, -1.0]


def test_levels_that_do_not_exist_are_refused_before_anything_is_written(two):
    foreign, _, _ = two
    t = bh.open(str(foreign.root))
    t.set_properties({"write.merge.isolation-level": "chaos"})
    before = sorted(foreign.root.rglob("*"))
    with pytest.raises(InvalidArgumentError, match=r"write\.merge\.isolation-level is 'chaos'"):
        t.merge(rows(1), ON).when_matched_delete().execute()
    assert sorted(foreign.root.rglob("*")) == before
    assert t.delete("id = 1").rows_deleted == 1


def test_the_profile(root):
    t = bh.create(str(root), SCHEMA, properties={"write.update.mode": "copy-on-write"}, **MODERN)
    metadata = t._handle.snapshot.metadata
    assert [row_deletes(metadata, o) for o in ("delete", "update", "merge")] == ["vectors", "rewrite", "vectors"]
    older = bh.create(f"{root}2", SCHEMA, properties={"format-version": "2"}, **MODERN)
    assert row_deletes(older._handle.snapshot.metadata, "delete") == "rewrite"


def test_version_1_has_no_row_deletes(root):
    properties = {"format-version": "1", "write.delete.mode": "merge-on-read"}
    t = bh.create(str(root), SCHEMA, format="iceberg", properties=properties)
    t.append(rows(1, 2))
    before = sorted(root.rglob("*"))
    with pytest.raises(UnsupportedFeatureError, match="format version 1 has no row deletes"):
        t.delete("id = 1")
    assert sorted(root.rglob("*")) == before


def test_a_vector_that_readers_do_not_allow_is_refused(monkeypatch):
    monkeypatch.setattr(puffin, "MOST", 40)
    with pytest.raises(UnsupportedFeatureError, match="deletion vector of"):
        puffin.written([("a", Bitmap.of(range(0, 100, 2)))])


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["vectors", pytest.param("positions", marks=pytest.mark.slow)])
def test_rows_are_marked_on_spark(root, spark, kind):
    """Several tasks find rows of one file; row ids stay with the rows that an update writes anew."""
    modes = {f"write.{operation}.mode": "merge-on-read" for operation in ("delete", "update", "merge")}
    more = {"format-version": "3"} if kind == "vectors" else {"write.delete.granularity": "partition"}
    bh.create(str(root), SCHEMA, format="iceberg", partition_by=["p"], properties=modes | more)
    for start in (0, 20):
        bh.open(str(root)).append(
            pa.concat_tables([rows(*range(start, start + 20, 2)), rows(start + 1, start + 3, p="b")])
        )
    foreign = Foreign(root)
    before = set(foreign.live())
    t = bh.open(str(root), spark=spark)
    assert t.delete("id in (2, 24, 1)").rows_deleted == 3
    assert t.update({"x": "id * 2.0"}, "hash(id) is not null and id in (4, 26)").rows_updated == 2
    source = spark.createDataFrame([(6, "a", 0.5), (7, "c", 0.25)], "id bigint, p string, x double")
    result = t.merge(source, ON).when_matched_update_all().when_not_matched_insert_all().execute()
    assert (result.rows_added, result.rows_updated, result.rows_copied) == (1, 1, 0)
    live = {*range(0, 40, 2), 1, 3, 21, 23, 7} - {2, 24, 1}
    assert ids_of(root) == sorted(live) == theirs(foreign) and before <= set(foreign.live())
    assert {r["id"] for r in t.to_spark(spark).select("id").collect()} == live
    files = [e["data_file"] for e in deletes(foreign)]
    assert {f["file_format"] for f in files} == {"PUFFIN" if kind == "vectors" else "PARQUET"}
    if kind == "vectors":
        assert len({f["referenced_data_file"] for f in files}) == len(files)
        found = bh.open(str(root)).scan(["id", "_row_id", "_last_updated_sequence_number"]).to_arrow().to_pylist()
        numbers = {r["id"]: r["_last_updated_sequence_number"] for r in found}
        assert [numbers[n] for n in (0, 20, 4, 26, 6, 7)] == [1, 2, 4, 4, 5, 5]
        assert len({r["_row_id"] for r in found}) == len(live)


def test_many_vectors(root):
    """More than are decoded one by one: those of other files are not looked at, and stay as they are."""
    count = 70
    bh.create(str(root), SCHEMA, **MODERN)
    foreign = Foreign(root)
    foreign.commit(*(foreign.data(rows(*range(n, n + 10)), IDS, bounds=True) for n in range(0, 10 * count, 10)))
    t = bh.open(str(root))
    assert t.delete("id % 10 in (3, 4)").rows_deleted == 2 * count
    [listed] = delete_manifests(foreign)
    assert listed["added_files_count"] == count and len(list(root.glob("data/*.puffin"))) == 1
    before = {e["data_file"]["referenced_data_file"]: e["data_file"] for e in deletes(foreign)}
    t.delete("id = 55")
    t.delete("id >= 100 and id < 110")
    live = [n for n in range(10 * count) if n % 10 not in (3, 4) and n != 55 and not 100 <= n < 110]
    assert ids_of(root) == live == theirs(foreign) and t.count() == len(live)
    after = {e["data_file"]["referenced_data_file"]: e["data_file"] for e in deletes(foreign)}
    assert len(deletes(foreign)) == len(after) == count - 1
    changed = [path for path in after if after[path] != before[path]]
    assert [after[path]["record_count"] for path in changed] == [3] and len(set(before) - set(after)) == 1
    assert sorted(bh.open(str(root)).files()["deleted"].to_pylist()) == [2] * (count - 2) + [3]
    assert bh.open(str(root)).scan(["id"], where="id < 10").to_arrow()["id"].to_pylist() == [0, 1, 2, *range(5, 10)]
