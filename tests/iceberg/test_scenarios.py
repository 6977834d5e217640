"""Scenarios of the reference's own tests that no other test here has: partitions by nothing but void fields, deletes
that apply to nothing any more, what expires after a roll back and after a cherry-pick."""

import pyarrow as pa
import pytest

import boathouse as bh

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string())])
LATER = "2100-01-01"


def rows(*ids, p="a"):
    return pa.table({"id": list(ids), "p": [p] * len(ids)}, SCHEMA)


def ids(table):
    return sorted(table.to_arrow()["id"].to_pylist())


def data_files(eyes):
    return {p.name for p in (eyes.root / "data").rglob("*.parquet")}


@pytest.mark.parametrize("version", ["1", "2"])
def test_partitions_of_void_fields_are_replaced_as_partitions(make, version):
    """TestReplacePartitions: a spec of void fields has one partition, whose files are replaced; those of another spec
    stay. Version 2 has no such spec: without fields all is replaced."""
    table, eyes = make(rows(1), partition_by=["p"], properties={"format-version": version})
    table.append(pa.table({"id": [2], "p": pa.array([None], pa.string())}, SCHEMA))
    table.partition_by()
    table.append(rows(3))
    table.overwrite(rows(4), partitions="dynamic")
    fields = [f["transform"] for s in eyes.document()["partition-specs"] for f in s["fields"]]
    assert fields == ["identity", *(["void"] if version == "1" else [])]
    assert ids(bh.open(table.uri)) == ([1, 2, 4] if version == "1" else [4])
    assert sorted(eyes.rows()["id"].to_pylist()) == ids(table)


def test_deletes_that_apply_to_nothing_stay_until_they_are_rewritten(make):
    """TestRowDelta: an append carries the manifests of deletes as they are, and so does the removal of data files by
    somebody who leaves the deletes."""
    wanted = {"format-version": "2", "write.delete.mode": "merge-on-read", "write.delete.granularity": "partition"}
    table, eyes = make(rows(*range(6)), partition_by=["p"], properties=wanted)
    table.append(rows(*range(6, 9)))
    table.delete("id IN (1, 7)")
    table.upsert(rows(2), on="id", deletes="equality")
    deletes = [m["manifest_path"] for m in eyes.manifests() if m["content"] == 1]
    table.append(rows(10))
    assert [m["manifest_path"] for m in eyes.manifests() if m["content"] == 1] == deletes
    table.optimize()
    assert ids(table) == [0, 2, 3, 4, 5, 6, 8, 10]
    table.rewrite_deletes()
    assert [
        m for m in eyes.manifests() if m["content"] == 1 and m["added_files_count"] + m["existing_files_count"]
    ] == []
    assert ids(bh.open(table.uri)) == [0, 2, 3, 4, 5, 6, 8, 10] == sorted(eyes.rows()["id"].to_pylist())


def test_what_was_rolled_back_expires_with_its_files(make):
    """TestRemoveSnapshots: after a roll back the later snapshots are on no branch; files of older ones that they alone
    removed stay."""
    table, eyes = make(rows(1, 2))
    first = table.version
    table.append(rows(3))
    table.overwrite(rows(4))
    assert len(data_files(eyes)) == 3
    table.refs.rollback(first)
    done = bh.open(table.uri).expire_snapshots(LATER, retain_last=1)
    assert done.kinds["data"] == 2 and len(data_files(eyes)) == 1
    table = bh.open(table.uri)
    assert ids(table) == [1, 2] == sorted(eyes.rows()["id"].to_pylist())
    assert [s["snapshot_id"] for s in table.inspect.snapshots().to_pylist()] == [first]
    table.append(rows(5))
    assert ids(table) == [1, 2, 5]


def test_a_staged_snapshot_expires_once_it_was_picked_and_its_file_stays(make):
    """TestRemoveSnapshots: the pick names the same data file, which the staged snapshot added."""
    table, eyes = make(rows(1), properties={"write.wap.enabled": "true"})
    table.append(rows(2), metadata={"wap.id": "w"})
    staged = [s["snapshot_id"] for s in table.inspect.snapshots().to_pylist()][-1]
    table = bh.open(table.uri)
    table.append(rows(3))
    table.refs.publish("w")
    head = bh.open(table.uri).version
    assert head != staged
    bh.open(table.uri).expire_snapshots(LATER, retain_last=1)
    table = bh.open(table.uri)
    assert [s["snapshot_id"] for s in table.inspect.snapshots().to_pylist()] == [head]
    assert ids(table) == [1, 2, 3] == sorted(eyes.rows()["id"].to_pylist()) and len(data_files(eyes)) == 3


def test_a_row_delete_beside_a_compaction_that_was_planned_before_it(make):
    """TestRewriteFiles: a removed data file takes its vector with it, and none is left for a file that is gone."""
    wanted = {"format-version": "3", **{f"write.{o}.mode": "merge-on-read" for o in ("delete", "update", "merge")}}
    table, eyes = make(rows(0, 1), properties=wanted)
    table.append(rows(2, 3))
    table.delete("id IN (0, 2)")
    stale = bh.open(table.uri)
    table.delete("id = 3")
    stale.optimize()
    live = [m for m in eyes.manifests() if m["content"] == 1]
    left = [e["data_file"]["referenced_data_file"] for m in live for e in eyes.entries(m) if e["status"] != 2]
    there = {e["data_file"]["file_path"] for m in eyes.manifests() if m["content"] == 0 for e in eyes.entries(m)
             if e["status"] != 2}  # fmt: skip
    assert set(left) <= there and ids(bh.open(table.uri)) == [1]
