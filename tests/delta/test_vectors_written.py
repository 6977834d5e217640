"""Rows deleted by deletion vectors: what is written, and that others read it."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import boathouse as bh
from boathouse import errors
from boathouse.bits import z85
from boathouse.bits.roaring import deserialize64
from boathouse.delta.features.deletion_vectors import PORTABLE
from boathouse.table.commit import FileCommitter

ON = {"delta.enableDeletionVectors": "true"}
PROTOCOL = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": ["deletionVectors"],
    "writerFeatures": ["appendOnly", "invariants", "deletionVectors"],
}


def rows(start: int, stop: int) -> pa.Table:
    ids = list(range(start, stop))
    return pa.table({"id": ids, "p": ["ab"[i % 2] for i in ids], "x": [i / 2 for i in ids]})


def made(path: Path, *pieces: pa.Table, **options) -> bh.Table:
    bh.create(str(path), pieces[0].schema, format="delta", properties=ON, **options)
    t = bh.open(str(path))
    for piece in pieces:
        t.append(piece)
    return t


def actions(log, kind: str) -> list[dict]:
    return [a[kind] for a in log if kind in a]


def vector_files(path: Path) -> list[Path]:
    return sorted(path.rglob("*.bin"))


def parsed(path: Path, vector: dict) -> list[int]:
    """The rows of a vector, read from the file as the specification lays it out."""
    id = z85.decode(vector["pathOrInlineDv"]).hex()
    name = f"deletion_vector_{id[:8]}-{id[8:12]}-{id[12:16]}-{id[16:20]}-{id[20:]}.bin"
    data = (path / name).read_bytes()
    assert data[:1] == b"\x01"
    at, size = vector["offset"], vector["sizeInBytes"]
    assert struct.unpack(">i", data[at : at + 4])[0] == size
    body = data[at + 4 : at + 4 + size]
    assert struct.unpack(">I", data[at + 4 + size : at + 8 + size])[0] == zlib.crc32(body)
    assert struct.unpack("<I", body[:4])[0] == PORTABLE
    found = deserialize64(body[4:], where=name).positions().tolist()
    assert len(found) == vector["cardinality"]
    return found


@pytest.mark.spec("D-013", "D-014", "D-118", "D-155", "D-161", "D-216", "D-219", "D-224", "D-225", "D-227")
@pytest.mark.feature("deletionVectors", format="delta")
def test_what_a_delete_writes(tmp_path, delta):
    t = made(tmp_path, rows(0, 10), rows(10, 20), partition_by="p")
    assert actions(delta.log(tmp_path)[0], "protocol") == [PROTOCOL]
    data = sorted(p for p in tmp_path.rglob("*.parquet") if "_delta_log" not in p.parts)
    before = {a["path"]: a for v in (1, 2) for a in actions(delta.log(tmp_path)[v], "add")}

    first = t.delete("id in (3, 4, 15)")
    assert (first.rows_deleted, first.files_added, first.files_removed, first.rows_copied) == (3, 0, 0, 0)
    second = t.delete("id in (5, 14)")
    assert sorted(p for p in tmp_path.rglob("*.parquet") if "_delta_log" not in p.parts) == data
    assert len(vector_files(tmp_path)) == 2 and {p.parent for p in vector_files(tmp_path)} == {tmp_path}

    one, two = (delta.log(tmp_path)[v.version] for v in (first, second))
    assert {tuple(parsed(tmp_path, a["deletionVector"])) for a in actions(one, "add")} == {(1,), (2,), (2,)}
    for add in actions(one, "add"):
        old = before[add["path"]]
        assert {k: add[k] for k in ("partitionValues", "size", "modificationTime")} == {
            k: old[k] for k in ("partitionValues", "size", "modificationTime")
        }
        stats = json.loads(add["stats"])
        assert stats["numRecords"] == 5 and stats["tightBounds"] is False
        assert json.loads(old["stats"]) | {"tightBounds": False} == stats
    replaced = {a["path"]: a["deletionVector"] for a in actions(one, "add")}
    for remove in actions(two, "remove"):
        assert remove.get("deletionVector") == replaced.get(remove["path"])
        assert {"deletionTimestamp", "dataChange", "extendedFileMetadata", "partitionValues", "size"} <= set(remove)
    for add in actions(two, "add"):
        old = replaced.get(add["path"])
        kept = parsed(tmp_path, old) if old else []
        assert set(kept) < set(parsed(tmp_path, add["deletionVector"]))

    want = [r for r in rows(0, 20).to_pylist() if r["id"] not in (3, 4, 5, 14, 15)]
    assert sorted(delta.rows(tmp_path), key=lambda r: r["id"]) == want
    assert t.to_arrow().sort_by("id").to_pylist() == want and t.count() == 15
    assert sorted(bh.open(str(tmp_path), version=first.version).to_arrow()["id"].to_pylist()) == [
        i for i in range(20) if i not in (3, 4, 15)
    ]


@pytest.mark.spec("D-218")
def test_a_file_without_any_row_left_is_removed(tmp_path, delta):
    t = made(tmp_path, rows(0, 5), rows(5, 10))
    t.delete("id in (1, 2)")
    done = t.delete("x < 2.5 and id + 0 < 5")
    log = delta.log(tmp_path)[done.version]
    assert not actions(log, "add") and len(actions(log, "remove")) == 1
    assert (done.rows_deleted, done.files_removed) == (3, 1)
    assert sorted(r["id"] for r in delta.rows(tmp_path)) == list(range(5, 10))


@pytest.mark.spec("D-114")
def test_a_live_file_never_comes_back_alone(tmp_path, delta):
    """Every add of a path that is live is in one entry with the remove of the file with its old vector."""
    t = made(tmp_path, rows(0, 10), rows(10, 20), rows(20, 30))
    t.delete("id in (1, 11)")
    t.update({"x": "0.0"}, "id in (2, 12, 13)")
    t.merge(rows(3, 15), "target.id = source.id").when_matched_update_all().execute()
    t.delete("id = 4")
    t.restore(4)
    t.overwrite(rows(2, 3), where="id < 15")
    t.optimize()
    live: dict[str, tuple] = {}
    for entry in delta.log(tmp_path).values():
        gone = {(a["path"], *_pair(a)) for a in actions(entry, "remove")}
        for path, *pair in gone:
            assert live.pop(path) == tuple(pair)
        for action in actions(entry, "add"):
            assert action["path"] not in live, "another vector without the remove of the old one"
            live[action["path"]] = _pair(action)
    assert len(live) == bh.open(str(tmp_path)).detail()["files"]


def _pair(action: dict) -> tuple:
    vector = action.get("deletionVector") or {}
    return vector.get("pathOrInlineDv"), vector.get("offset")


@pytest.mark.spec("D-217")
def test_without_the_property_no_vector_is_written(tmp_path, delta):
    t = made(tmp_path, rows(0, 10))
    t.delete("id = 1")
    t.set_properties({"delta.enableDeletionVectors": "false"})
    done = t.delete("id = 2")
    assert (done.files_added, done.files_removed, done.rows_copied) == (1, 1, 8)
    assert len(vector_files(tmp_path)) == 1
    assert sorted(r["id"] for r in delta.rows(tmp_path)) == [0, *range(3, 10)]


@pytest.mark.spec("D-162")
def test_the_property_upgrades_the_protocol(tmp_path, delta, raw):
    bh.write(rows(0, 10), str(tmp_path / "t"), format="delta")
    t = bh.open(str(tmp_path / "t"))
    t.set_properties(ON)
    log = delta.log(tmp_path / "t")[1]
    assert actions(log, "protocol") == [PROTOCOL] and len(actions(log, "metaData")) == 1
    t.delete("id = 1")
    assert len(vector_files(tmp_path)) == 1
    t.set_properties({"own": "1"})
    assert not actions(delta.log(tmp_path / "t")[3], "protocol")

    old = raw()
    protocol = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 4}}
    old.commit(0, protocol, delta.metadata([delta.field("id", "long")]))
    bh.open(str(old)).set_properties(ON)
    [upgraded] = actions(delta.log(old)[1], "protocol")
    everything = ["appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns"]
    assert upgraded["writerFeatures"] == [*everything, "deletionVectors"]
    assert upgraded["readerFeatures"] == ["deletionVectors"]


def test_statistics_that_were_never_written(tmp_path, delta, raw):
    """The number of rows, which a file with a vector must have, is read from the file."""
    table = raw()
    add = table.add("f.parquet")
    add["add"]["size"] = table.file("f.parquet", rows(0, 10))
    fields = [delta.field("id", "long"), delta.field("p", "string"), delta.field("x", "double")]
    table.commit(0, {"protocol": PROTOCOL}, delta.metadata(fields, configuration=ON), add)
    bh.open(str(table)).delete("id = 3")
    [after] = actions(delta.log(table)[1], "add")
    assert json.loads(after["stats"]) == {"numRecords": 10, "tightBounds": False}
    assert bh.open(str(table)).count() == 9 == len(delta.rows(table))


def test_statistics_that_a_checkpoint_holds_as_columns_only(tmp_path, delta):
    t = made(tmp_path, rows(0, 10))
    t.set_properties(
        {
            "delta.checkpointInterval": "4",
            "delta.checkpoint.writeStatsAsJson": "false",
            "delta.checkpoint.writeStatsAsStruct": "true",
        }
    )
    t.append(rows(10, 20))
    t.append(rows(20, 30))
    assert list((tmp_path / "_delta_log").glob("*.checkpoint.parquet"))
    for old in (tmp_path / "_delta_log").glob("0000000000000000000[0-3].json"):
        old.unlink()
    done = bh.open(str(tmp_path)).delete("id in (3, 25)")
    for add in actions(delta.log(tmp_path)[done.version], "add"):
        stats = json.loads(add["stats"])
        assert stats["numRecords"] == 10 and stats["tightBounds"] is False
        assert stats["maxValues"]["id"] - stats["minValues"]["id"] == 9 and stats["nullCount"]["x"] == 0
    assert bh.open(str(tmp_path)).scan(where="id > 20").count() == 8
    assert sorted(r["id"] for r in delta.rows(tmp_path)) == [i for i in range(30) if i not in (3, 25)]


def test_two_deletes_in_one_file(tmp_path, delta, monkeypatch):
    """The second one is planned again on the vector of the first; the file that it had written is removed."""
    t, other = made(tmp_path, rows(0, 10)), bh.open(str(tmp_path))
    publish, met = FileCommitter.publish, []

    def later(self, attempt):
        if not met:
            met.append(True)
            other.delete("id = 2")
        return publish(self, attempt)

    monkeypatch.setattr(FileCommitter, "publish", later)
    assert t.delete("id = 1").rows_deleted == 1
    assert sorted(r["id"] for r in delta.rows(tmp_path)) == [0, *range(3, 10)] == sorted(t.to_arrow()["id"].to_pylist())
    named = {a["deletionVector"]["pathOrInlineDv"] for v in (2, 3) for a in actions(delta.log(tmp_path)[v], "add")}
    assert len(vector_files(tmp_path)) == 2 == len(named)


def test_nothing_is_written_by_a_delete_that_fails(tmp_path):
    t = made(tmp_path, rows(0, 10))
    with pytest.raises(errors.EvaluationError):
        t.delete("1 / (id - 5) > 0")
    assert t.delete("id = 99").version is None
    assert not vector_files(tmp_path)


def test_changes_and_compaction(tmp_path, delta):
    t = made(tmp_path, rows(0, 10), rows(10, 20))
    t.delete("id in (3, 12)")
    done = t.update({"x": "-1"}, where="id = 4")
    found = t.changes(t.version - 1, t.version).to_arrow().to_pylist()
    assert sorted((r["id"], r["_change_type"], r["_commit_version"], r["x"]) for r in found) == [
        (3, "delete", done.version - 1, 1.5),
        (4, "delete", done.version, 2.0),
        (4, "insert", done.version, -1.0),
        (12, "delete", done.version - 1, 6.0),
    ]
    t.optimize()
    log = delta.log(tmp_path)[t.refresh().version]
    assert len(actions(log, "add")) == 1 and "deletionVector" not in actions(log, "add")[0]
    assert json.loads(actions(log, "add")[0]["stats"])["numRecords"] == 18 == len(delta.rows(tmp_path))


@pytest.mark.spark
@pytest.mark.feature("deletionVectors", format="delta")
@pytest.mark.route("deletion vectors written")
def test_on_spark(tmp_path, delta, spark):
    t = made(tmp_path, rows(0, 1000), rows(1000, 2000), partition_by="p")
    files = len(list(tmp_path.rglob("*.parquet")))
    t = bh.open(str(tmp_path), spark=spark)
    assert t.delete("id % 100 = 7").rows_deleted == 20
    assert t.delete("hash(id) % 50 = 0 and id % 100 = 8").files_added == 0
    assert len(list(tmp_path.rglob("*.parquet"))) == files
    source = spark.createDataFrame([(9, "a", 0.0), (5000, "b", 1.0)], "id long, p string, x double")
    merged = t.merge(source, "target.id = source.id").when_matched_update_all().when_not_matched_insert_all().execute()
    assert (merged.rows_updated, merged.rows_added, merged.rows_copied) == (1, 1, 0)
    want = sorted((r["id"], r["x"]) for r in delta.rows(tmp_path))
    assert sorted((r.id, r.x) for r in t.scan().to_spark().collect()) == want
    assert sorted((r["id"], r["x"]) for r in t.to_arrow().to_pylist()) == want


@pytest.mark.spec("D-220")
def test_a_long_vector_has_every_kind_of_container(tmp_path, delta):
    """Sparse, dense, and in runs."""
    n = 400_000
    ids = pa.array(range(n), pa.int64())
    t = made(tmp_path, pa.table({"id": ids}))
    assert pq.ParquetFile(next(tmp_path.glob("*.parquet"))).metadata.num_rows == n
    gone = "id % 9999 = 0 or (id between 70000 and 131000 and id % 2 = 0) or id between 200000 and 330000"
    t.delete(gone)
    want = [
        i for i in range(n) if not (i % 9999 == 0 or (70000 <= i <= 131000 and i % 2 == 0) or 200000 <= i <= 330000)
    ]
    assert sorted(r["id"] for r in delta.rows(tmp_path)) == want == sorted(t.to_arrow()["id"].to_pylist())
