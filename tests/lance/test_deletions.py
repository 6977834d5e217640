"""Deletion files both ways."""

from __future__ import annotations

import re
import struct
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap

from boathouse.bits.inflate import FLOOR, RATIO
from boathouse.bits.roaring import Bitmap
from boathouse.errors import CorruptTableError
from boathouse.lance.deletions.files import deletion_uri, read_deletions, write_deletions
from boathouse.lance.deletions.ipc import read_integers
from boathouse.lance.manifests.messages import DataFragment

from .fuzzing import MEGABYTES, peak_megabytes


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


def _zeros(rows: int, codec: str, batches: int = 4) -> bytes:
    """An Arrow file of batches of this number of offsets each, all of them 0."""
    schema = pa.schema([pa.field("row_id", pa.uint32(), False)])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as out:
        batch = pa.record_batch([pa.array(np.zeros(rows, np.uint32))], schema=schema)
        for _ in range(batches):
            out.write_batch(batch)
    return sink.getvalue().to_pybytes()


@pytest.mark.spec("L-092")
@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_a_deletion_file_never_inflates_without_bound(codec):
    """The batches of one file share its budget, and nothing is taken before it is granted."""
    packed = _zeros(FLOOR // 8, codec, batches=8)
    granted = max(FLOOR, RATIO * len(packed))
    assert granted < 3.5 * FLOOR < 8 * FLOOR // 2
    pool = pa.default_memory_pool()
    before, most = pool.bytes_allocated(), []
    real = pa.ipc.read_record_batch

    def spy(message, schema):
        found = real(message, schema)
        most.append(pool.bytes_allocated() - before)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pa.ipc, "read_record_batch", spy)
        with pytest.raises(CorruptTableError, match=r"inflate to more than [\d,]+, .*\[memory://t/x.arrow\]"):
            read_integers(packed, "memory://t/x.arrow")
    assert len(most) == granted // (FLOOR // 2) and max(most) < 1.1 * granted
    assert len(read_integers(_zeros(1 << 20, codec), "x")) == 1 << 22


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_a_buffer_that_claims_too_much_is_refused(codec):
    whole = _zeros(1000, codec)
    claims = [at for at in range(len(whole) - 8) if whole[at : at + 8] == (4000).to_bytes(8, "little")]
    assert len(claims) >= 4  # one in each batch
    for size in (1 << 40, 1 << 62, -2):
        for at in claims:
            broken = whole[:at] + size.to_bytes(8, "little", signed=True) + whole[at + 8 :]
            with pytest.raises(CorruptTableError, match=r"inflate to more|not an Arrow file"):
                read_integers(broken, "x")


def test_arrow_files_that_are_not_one_column_of_offsets():
    def file(table: pa.Table, **options) -> bytes:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as out:
            out.write_table(table)
        return sink.getvalue().to_pybytes()

    for table in (
        pa.table({"a": ["x"]}),
        pa.table({"a": [1], "b": [2]}),
        pa.table({"a": pa.array([1, None])}),
        pa.table({"a": pa.array([1, 2]).dictionary_encode()}),
        pa.table({"a": pa.array([[1]])}),
    ):
        with pytest.raises(CorruptTableError):
            read_integers(file(table, compression="zstd"), "x")
    plain, packed = file(pa.table({"a": [1, 2]})), file(pa.table({"a": [1, 2]}), compression="zstd")
    old = file(pa.table({"a": [1, 2]}), metadata_version=pa.ipc.MetadataVersion.V4)
    for data in (plain, packed, old):
        assert read_integers(data, "x").to_pylist() == [1, 2]
    assert read_integers(file(pa.table({"a": pa.array([], pa.int32())})), "x").to_pylist() == []
    for data in (plain, packed):
        for end in range(len(data)):
            with pytest.raises(CorruptTableError):
                read_integers(data[:end], "x")


def test_a_footer_that_names_a_batch_again_and_again_is_refused():
    """Nothing is compressed, but the offsets would be copied as often."""
    schema = pa.schema([pa.field("row_id", pa.uint32(), False)])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema) as out:
        out.write_batch(pa.record_batch([pa.array(np.zeros(1 << 20, np.uint32))], schema=schema))
        for _ in range(2000):
            out.write_batch(pa.record_batch([pa.array([], pa.uint32())], schema=schema))
    data = sink.getvalue().to_pybytes()
    (length,) = struct.unpack_from("<i", data, len(data) - 10)
    at = len(data) - 10 - length
    starts = [b.start() for b in re.finditer(rb"(?s)(?=.{8}.{4}\0{4}.{6}\0\0)", data[at:])]
    first = next(i for i in starts if struct.unpack_from("<qiiq", data, at + i)[3] == 4 << 20)
    block = data[at + first : at + first + 24]
    broken = data[: at + first] + block * 2001 + data[at + first + 24 * 2001 :]
    with pytest.raises(CorruptTableError, match="inflate to more than"):
        read_integers(broken, "x")
    assert len(read_integers(data, "x")) == 1 << 20


def test_any_byte_of_a_compressed_deletion_file_may_be_wrong():
    whole = _zeros(100, "zstd")
    before, refused = peak_megabytes(), 0
    for at in range(len(whole)):
        for byte in {0, 0x7F, 0xFF} - {whole[at]}:
            try:
                read_integers(whole[:at] + bytes([byte]) + whole[at + 1 :], "x")
            except CorruptTableError:
                refused += 1
    assert refused > 100 and peak_megabytes() - before < MEGABYTES
