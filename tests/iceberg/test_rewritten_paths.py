"""The metadata of a table for another place: once the files are copied as it says, everybody reads the table there,
every version of it, and writes it."""

from __future__ import annotations

import csv
import os
import shutil
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import StaticTable

import boathouse as bh
from boathouse import errors

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string())])


def rows(*ids):
    return pa.table({"id": list(ids), "p": [f"p{i % 2}" for i in ids]}, SCHEMA)


def history(root: Path, version: str, by=("p",)) -> bh.Table:
    modes = {f"write.{n}.mode": "merge-on-read" for n in ("delete", "update", "merge")} if version != "1" else {}
    t = bh.create(str(root), SCHEMA, format="iceberg", partition_by=by, properties=modes | {"format-version": version})
    t.append(rows(*range(10)))
    t.delete("id IN (1, 2, 5)")
    t.refs.create_tag("early", t.version)
    t.append(rows(*range(20, 26)))
    if version != "1":
        t.upsert(rows(20, 9), on=["id"], deletes="equality")
        t.delete("id = 21")
    t.optimize()
    t.append(rows(40))
    t.delete("id IN (3, 40)")
    t.compute_statistics()
    return t


def copied(done) -> None:
    for source, target in done.copies:
        source, target = (p.removeprefix("file://") for p in (source, target))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copyfile(source, target)


def seen(path) -> dict:
    """The rows of every version that is retained, and the files that deletes are in."""
    t = bh.open(str(path))
    return {
        "refs": {name: t.refs[name].version for name in t.refs},
        **{
            e.version: sorted(bh.open(str(path), version=e.version).to_arrow()["id"].to_pylist())
            for e in t.history() if not e.metadata_only
        },
        "ids": sorted(t.scan(["id", *LINEAGE]).to_arrow().to_pylist(), key=str) if t.properties.get("v3") else None,
    }  # fmt: skip


LINEAGE = ("_row_id", "_last_updated_sequence_number")


@pytest.mark.few(1)
@pytest.mark.feature("rewrite of paths", format="iceberg")
@pytest.mark.parametrize("version", ("1", "2", "3"))
def test_a_table_is_written_for_another_place(tmp_path, version):
    old, new = tmp_path / "öld table", tmp_path / "new"
    t = history(old, version)
    if version == "3":
        t.set_properties({"v3": "yes"})
    before = seen(old)
    content = {p: p.read_bytes() for p in old.rglob("*") if p.is_file()}
    done = t.rewrite_table_path(str(old), str(new))
    assert {p: p.read_bytes() for p in content} == content
    listed = list(csv.reader(Path(done.file_list.removeprefix("file://")).read_text().splitlines()))
    assert listed == [list(c) for c in done.copies] and done.latest_version in listed[-1][1]
    assert done.manifests > 0 and (done.delete_files > 0) == (version != "1")
    copied(done)
    for path in new.rglob("*"):
        if path.suffix == ".avro":
            with open(path, "rb") as file:
                assert str(old) not in repr(list(fastavro.reader(file)))
        elif path.is_file() and path.suffix != ".parquet":
            assert str(old).encode() not in path.read_bytes(), path
    shutil.rmtree(old)
    assert seen(new) == before
    moved = bh.open(str(new))
    assert moved.statistics().num_rows == 2
    newest = before[moved.version]
    if version == "1":
        head = f"file://{new}/metadata/{done.latest_version}"
        assert sorted(StaticTable.from_metadata(head).scan().to_arrow()["id"].to_pylist()) == newest
    moved.append(rows(50))
    moved.delete("id = 4")
    moved.optimize()
    assert sorted(bh.open(str(new)).to_arrow()["id"].to_pylist()) == sorted({*newest, 50} - {4})


def test_pyiceberg_reads_positions_at_the_new_place(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    properties = {"write.delete.mode": "merge-on-read", "write.delete.granularity": "partition"}
    t = bh.create(str(old), SCHEMA, format="iceberg", properties=properties)
    for i in range(3):
        t.append(rows(*range(10 * i, 10 * i + 10)))
    t.delete("id % 4 = 1")
    expected = sorted(t.to_arrow()["id"].to_pylist())
    done = t.rewrite_table_path(f"file:{old}", str(new), str(tmp_path / "staging"))
    assert done.file_list == f"file://{tmp_path}/staging/file-list" and done.delete_files == 1
    assert len(list((old / "metadata").iterdir())) == 5 + 4 * 2 + 1
    copied(done)
    shutil.rmtree(old)
    shutil.rmtree(tmp_path / "staging")
    theirs = StaticTable.from_metadata(f"file://{new}/metadata/{done.latest_version}")
    assert sorted(theirs.scan().to_arrow()["id"].to_pylist()) == expected
    (deletes,) = [f for f in theirs.inspect.files().to_pylist() if f["content"] == 1]
    place = deletes["file_path"].removeprefix("file://")
    assert deletes["file_size_in_bytes"] == os.path.getsize(place)
    found = pq.read_table(place)
    assert set(found["file_path"].to_pylist()) == {
        f["file_path"] for f in theirs.inspect.files().to_pylist() if f["content"] == 0
    }
    assert [f.metadata[b"PARQUET:field_id"] for f in found.schema] == [b"2147483546", b"2147483545"]
    assert sorted(bh.open(str(new)).to_arrow()["id"].to_pylist()) == expected


def test_a_table_that_was_copied_already(tmp_path):
    """Opened with `relocated=` it is read only: its metadata is written for where it is."""
    old, new = tmp_path / "old", tmp_path / "new"
    history(old, "2")
    before = seen(old)
    shutil.copytree(old, new)
    shutil.rmtree(old)
    t = bh.open(str(new), relocated={str(old): str(new)})
    done = t.rewrite_table_path(str(old), str(new))
    assert all(source != target for source, target in done.copies)
    assert not any(target.endswith(".parquet") and "-deletes" not in target for _, target in done.copies)
    copied(done)
    assert seen(new) == before
    moved = bh.open(str(new))
    moved.append(rows(77))
    assert 77 in bh.open(str(new)).to_arrow()["id"].to_pylist()


def test_what_is_not_rewritten(tmp_path):
    t = bh.create(str(tmp_path / "t"), SCHEMA, format="iceberg")
    t.append(rows(1))
    pq.write_table(rows(2), tmp_path / "elsewhere.parquet")
    t.add_files(tmp_path / "elsewhere.parquet")
    before = {p for p in tmp_path.rglob("*") if p.is_file() and p.suffix == ".parquet"}
    with pytest.raises(errors.InvalidArgumentError, match=r"elsewhere\.parquet is not below"):
        t.rewrite_table_path(str(tmp_path / "t"), "s3://bucket/t")
    done = t.rewrite_table_path(str(tmp_path), "s3://bucket/all", str(tmp_path / "staging"))
    assert (f"file://{tmp_path}/elsewhere.parquet", "s3://bucket/all/elsewhere.parquet") in done.copies
    assert {p for p in tmp_path.rglob("*") if p.is_file() and p.suffix == ".parquet"} == before
    with pytest.raises(errors.AlreadyExistsError):
        t.rewrite_table_path(str(tmp_path), "s3://bucket/all", str(tmp_path / "staging"))
    with pytest.raises(errors.InvalidArgumentError, match="target_prefix='' is no folder"):
        t.rewrite_table_path(str(tmp_path), "")
    bh.write(rows(1), str(tmp_path / "d"))
    with pytest.raises(errors.UnsupportedFeatureError, match="rewrite_table_path is not offered for delta"):
        bh.open(str(tmp_path / "d")).rewrite_table_path(str(tmp_path), "s3://bucket")
