"""Deletion files both ways."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap

from boathouse.bits.roaring import Bitmap
from boathouse.errors import CorruptTableError
from boathouse.lance.deletions import deletion_uri, read_deletions, write_deletions
from boathouse.lance.messages import DataFragment


def _deletion_files(kit):
    return sorted((kit.root / "_deletions").glob("*")) if (kit.root / "_deletions").exists() else []


@pytest.mark.spec("L-002", "L-082")
def test_names(kit, numbers):
    table = kit.create(numbers)
    assert _deletion_files(kit) == [] and kit.load().manifest.fragments[0].deletion_file is None
    table.append(numbers)
    table.delete("a = 3")
    files = _deletion_files(kit)
    fragments = kit.load().manifest.fragments
    names = {f"{f.id}-2-{f.deletion_file.id}.arrow" for f in fragments}  # read at version 2, committed as 3
    assert {p.name for p in files} == names and len(names) == 2
    assert kit.load().version == 3
    assert kit.dataset().to_table() == kit.read()
    assert kit.read().num_rows == 18


@pytest.mark.spec("L-083", "L-088")
def test_deletion_files_are_cumulative(kit, numbers):
    table = kit.create(numbers)
    for i in (3, 7, 1):
        table.delete(f"a = {i}")
    assert len(_deletion_files(kit)) == 3
    fragment = kit.load().manifest.fragments[0]
    assert fragment.deletion_file.num_deleted_rows == 3 and fragment.physical_rows == 10
    assert read_deletions(kit.stores, f"file://{kit.root}", fragment) == Bitmap.of([1, 3, 7])
    assert table.count() == kit.dataset().count_rows() == 7
    assert kit.dataset().to_table() == kit.read()


@pytest.mark.spec("L-084")
def test_a_fragment_without_deletions_has_no_file(kit, numbers):
    table = kit.create(numbers)
    table.append(pa.table({"a": [100], "s": ["x"]}))
    table.delete("a = 3")
    with_file = [f.deletion_file is not None for f in kit.load().manifest.fragments]
    assert with_file == [True, False]
    assert len(_deletion_files(kit)) == 1
    assert table.delete("a = 12345").version in (None, 4)
    assert kit.dataset().count_rows() == 10


@pytest.mark.spec("L-085")
def test_arrow_files_of_others(kit):
    kit.pylance(pa.table({"a": list(range(1000))}))
    for where in ("a = 7", "a = 3", "a > 900"):
        kit.dataset().delete(where)
    found = [pa.ipc.open_file(p).read_all() for p in _deletion_files(kit)]
    assert {str(t.schema.field(0).type) for t in found} == {"uint32"}
    assert kit.read() == kit.dataset().to_table()
    assert kit.read().num_rows == 899


@pytest.mark.spec("L-085")
def test_arrow_files_are_written_as_uint32(kit):
    file, uri = write_deletions(kit.stores, f"file://{kit.root}", 4, 9, Bitmap.of([5, 2]))
    assert uri == deletion_uri(f"file://{kit.root}", 4, file)
    table = pa.ipc.open_file(uri.removeprefix("file://")).read_all()
    assert table.schema == pa.schema([pa.field("row_id", pa.uint32(), False)])
    assert table.column(0).to_pylist() == [2, 5]


@pytest.mark.parametrize("compression", [None, "zstd", "lz4"])
@pytest.mark.parametrize("kind", [pa.uint32(), pa.int32()])
def test_compressed_and_unsorted_arrow_files_are_read(kit, compression, kind):
    file, uri = write_deletions(kit.stores, f"file://{kit.root}", 0, 1, Bitmap.of([3, 5, 7]))
    schema = pa.schema([pa.field("row_id", kind, False)])
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.OSFile(uri.removeprefix("file://"), "wb") as sink, pa.ipc.new_file(sink, schema, options=options) as out:
        out.write_batch(pa.record_batch([pa.array([7, 3, 5], kind)], schema=schema))
    fragment = DataFragment(id=0, deletion_file=file, physical_rows=10)
    assert read_deletions(kit.stores, f"file://{kit.root}", fragment) == Bitmap.of([3, 5, 7])


@pytest.mark.spec("L-086", "L-087")
def test_the_format_changes_at_5000(kit):
    table = kit.create(pa.table({"a": np.arange(20_000)}))
    table.delete("a < 4999")
    assert [p.suffix for p in _deletion_files(kit)] == [".arrow"]
    assert kit.dataset().count_rows() == len(kit.dataset().to_table()) == 15_001
    table.delete("a = 10000")
    assert sorted(p.suffix for p in _deletion_files(kit)) == [".arrow", ".bin"]
    (path,) = (p for p in _deletion_files(kit) if p.suffix == ".bin")
    assert list(BitMap.deserialize(path.read_bytes())) == [*range(4999), 10_000]
    assert kit.dataset().to_table() == kit.read()
    assert kit.read().num_rows == 15_000
    kit.dataset().delete("a % 2 = 0")  # pylance reads ours and writes its own, cumulative
    assert kit.read() == kit.dataset().to_table()


@pytest.mark.spec("L-086")
@pytest.mark.parametrize("runs", [False, True])
def test_bitmaps_with_and_without_runs_are_read(kit, runs):
    file, uri = write_deletions(kit.stores, f"file://{kit.root}", 0, 1, Bitmap.of(range(6000)))
    bitmap = BitMap(range(6000))
    if runs:
        bitmap.run_optimize()
    path = uri.removeprefix("file://")
    with open(path, "wb") as out:
        out.write(bitmap.serialize())
    found = read_deletions(kit.stores, f"file://{kit.root}", DataFragment(id=0, deletion_file=file))
    assert found == Bitmap.of(range(6000))


def test_pylance_bitmaps_are_read(kit):
    kit.pylance(pa.table({"a": np.arange(20_000)}))
    kit.dataset().delete("a % 3 = 0")
    assert [p.suffix for p in _deletion_files(kit)] == [".bin"]
    assert kit.read() == kit.dataset().to_table()


@pytest.mark.spec("L-089", "L-014")
def test_a_fragment_without_rows_leaves_the_manifest(kit, numbers):
    table = kit.create(numbers)
    table.append(pa.table({"a": [100, 101], "s": ["x", "y"]}))
    table.delete("a = 100")
    table.delete("a = 101")  # the rest of fragment 1
    assert [f.id for f in kit.load().manifest.fragments] == [0]
    transaction = kit.dataset().read_transaction(kit.load().version)
    assert transaction.operation.deleted_fragment_ids == [1]
    table.delete()
    manifest = kit.load().manifest
    assert manifest.fragments == () and manifest.max_fragment_id == 1
    assert kit.dataset().count_rows() == 0
    table.append(numbers)
    assert [f.id for f in kit.load().manifest.fragments] == [2]
    assert kit.dataset().to_table() == numbers


@pytest.mark.spec("L-090")
def test_rows_that_we_deleted_never_appear_to_others(kit):
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(400, dtype=np.float32)), 4)
    table = kit.create(pa.table({"id": list(range(100)), "v": vectors}))
    table.delete("id % 3 = 0")
    dataset = kit.dataset()
    alive = [i for i in range(100) if i % 3]
    assert dataset.to_table().column("id").to_pylist() == alive
    assert dataset.take([0, 5]).column("id").to_pylist() == [alive[0], alive[5]]
    assert dataset.to_table(filter="id < 10").column("id").to_pylist() == [1, 2, 4, 5, 7, 8]
    assert dataset.count_rows() == len(alive) and dataset.count_rows(filter="id < 10") == 6
    query = np.array([12, 13, 14, 15], np.float32)  # exactly the row 3, which is deleted
    near = dataset.to_table(nearest={"column": "v", "q": query, "k": 2})
    assert sorted(near.column("id").to_pylist()) == [2, 4]
    dataset.create_scalar_index("id", "BTREE")
    assert kit.dataset().to_table(filter="id = 3").num_rows == 0
    table = kit.open()
    table.delete("id = 4")
    assert kit.dataset().to_table(filter="id = 4").num_rows == 0
    assert kit.dataset().to_table(filter="id = 5").num_rows == 1
    kit.dataset().validate()


def _broken(kit, numbers, change, where="a < 3"):
    kit.pylance(numbers)
    kit.dataset().delete(where)
    (path,) = _deletion_files(kit)
    change(path)


@pytest.mark.spec("L-092")
@pytest.mark.parametrize(
    "change",
    [
        lambda p: p.unlink(),
        lambda p: p.write_bytes(b""),
        lambda p: p.write_bytes(p.read_bytes()[:-30]),
        lambda p: p.write_bytes(b"x" * 500),
    ],
    ids=["missing", "empty", "cut", "garbage"],
)
def test_broken_deletion_files_are_refused(kit, numbers, change):
    _broken(kit, numbers, change)
    with pytest.raises(CorruptTableError, match="_deletions"):
        kit.read()
    with pytest.raises(Exception):  # noqa: B017 - pylance raises several kinds
        kit.dataset().to_table()


@pytest.mark.spec("L-092")
def test_rows_beyond_the_fragment_and_wrong_counts_are_refused(kit, numbers):
    kit.pylance(numbers)
    for rows, count in (([3, 50], 2), ([3], 2)):
        file, _ = write_deletions(kit.stores, f"file://{kit.root}", 0, 1, Bitmap.of(rows))
        file = replace(file, num_deleted_rows=count)
        kit.edit(lambda m, file=file: replace(m, fragments=(replace(m.fragments[0], deletion_file=file),)))
        with pytest.raises(CorruptTableError):
            kit.read()
