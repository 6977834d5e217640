"""Blob columns: values as files that fetch what is read of them, and bytes that no operation of ours loses."""

from __future__ import annotations

import io
import shutil

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.errors import (
    ColumnNotFoundError,
    CorruptTableError,
    ForeignPathError,
    InvalidArgumentError,
    MissingFileError,
    UnsupportedFeatureError,
)
from boathouse.lance.blobs import LanceBlobs
from boathouse.storage import Stores

lance = pytest.importorskip("lance")
blob = pytest.importorskip("lance.blob")
V1 = pa.schema([("id", pa.int64()), pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})])
V2 = pa.schema([("id", pa.int64()), blob.blob_field("b")])
VALUES = [b"", None, b"x" * 100, bytes(range(256)) * 400, b"q" * 200_000, b"D" * 4_300_000, b"abc"]
"""Inline, null, packed and, the large one, in a file of its own; in version 1 all in the data file."""


def made(kit, version: str, values=VALUES, **options) -> None:
    ids = pa.array(range(len(values)), pa.int64())
    if version == "2.2":
        rows = pa.table({"id": ids, "b": blob.blob_array(values)}, schema=V2)
    else:
        rows = pa.table({"id": ids, "b": pa.array(values, pa.large_binary())}, schema=V1)
    kit.pylance(rows, data_storage_version=version, **options)


def read(found) -> list[bytes | None]:
    return [None if file is None else file.read() for file in found]


def pylances(kit) -> dict[int, bytes | None]:
    """The bytes by id, as pylance reads them."""
    ds = kit.dataset()
    ids = ds.to_table(columns=["id"]).column("id").to_pylist()
    return dict(zip(ids, read(ds.take_blobs("b", indices=list(range(len(ids)))))))


@pytest.mark.spec("L-126")
@pytest.mark.feature("blobs read lazily", format="lance")
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("stable", [False, True], ids=["", "stable"])
def test_values_are_those_of_pylance(kit, version, stable):
    made(kit, version, max_rows_per_file=4, enable_stable_row_ids=stable)
    kit.dataset().delete("id = 2")
    assert read(kit.open().take_blobs("B", [5, 0, 1, 3, 5])) == [VALUES[i] for i in (6, 0, 1, 4, 6)]
    assert dict(zip((0, 1, 3, 4, 5, 6), read(kit.open().take_blobs("b", range(6))))) == pylances(kit)
    ids = [5, 2, 3] if stable else [1 << 32 | 1, 2, 3, 9 << 32]
    assert read(kit.open().take_blobs("b", row_ids=ids)) == [VALUES[5], VALUES[3]]
    assert kit.open().take_blobs("b", []) == []


def test_it_is_a_file(kit):
    made(kit, "2.2")
    (file,) = kit.open().take_blobs("b", [3])
    value = VALUES[3]
    assert (file.size(), file.tell(), file.read(5), file.tell()) == (len(value), 0, value[:5], 5)
    assert file.seek(-10, io.SEEK_END) == len(value) - 10 and file.read(100) == value[-10:] and file.read(1) == b""
    assert file.seek(300) == 300 and file.seek(7, io.SEEK_CUR) == 307 and file.read(2) == value[307:309]
    assert file.seek(len(value) + 9) and file.read() == b"" and file.readable() and file.seekable()
    buffered = io.BufferedReader(file)
    assert buffered.seek(256) == 256 and buffered.peek(1)[:1] == b"\0" and buffered.read() == value[256:]
    for wrong in (lambda: file.seek(-1), lambda: file.seek(0, 7)):
        with pytest.raises(ValueError):
            wrong()
    assert repr(file).startswith("BlobFile('file://")
    with file:
        pass
    for use in (file.read, file.tell, file.size, file.readable, lambda: file.seek(0)):
        with pytest.raises(ValueError):
            use()


def test_only_what_is_read_is_fetched(kit, monkeypatch):
    made(kit, "2.2")
    files = kit.open().take_blobs("b", range(7))
    asked = []
    get_range = type(Stores().resolve(kit.uri)[0]).get_range

    def watched(storage, key, start, length):
        asked.append(length)
        return get_range(storage, key, start, length)

    monkeypatch.setattr(type(Stores().resolve(kit.uri)[0]), "get_range", watched)
    files[5].seek(4_000_000)
    assert files[5].read(10) == b"D" * 10 and files[4].read() == VALUES[4] and asked == [10, 200_000]


def test_files_of_others(kit, tmp_path):
    """Whole, and a part; by a URI, and below a base path."""
    made(kit, "2.2", VALUES[:1])
    inside, outside = tmp_path / "a base" / "e%20 x.bin", tmp_path / "out side.bin"
    inside.parent.mkdir()
    for path in (inside, outside):
        path.write_bytes(b"external bytes")
    kit.dataset().add_bases([lance.DatasetBasePath(str(inside.parent), name="base")])
    values = [
        blob.Blob.from_uri(str(inside)), blob.Blob.from_uri(str(inside), 3, 5),
        blob.Blob.from_uri(outside.as_uri()), blob.Blob.from_uri(outside.as_uri(), 9, 5),
    ]  # fmt: skip
    made(kit, "2.2", values, mode="append", allow_external_blob_outside_bases=True)
    found = kit.open().take_blobs("b", range(5))
    assert (
        read(found)
        == [b"", b"external bytes", b"ernal", b"external bytes", b"bytes"]
        == read(kit.dataset().take_blobs("b", indices=range(5)))
    )
    assert [f.size() for f in found] == [0, 14, 5, 14, 5]
    outside.write_bytes(b"short")
    with pytest.raises(CorruptTableError, match="a blob ends after 0 of 5 bytes"):
        kit.open().take_blobs("b", [4])[0].read()
    outside.unlink()
    for at in (3, 4):
        (file,) = kit.open().take_blobs("b", [at])
        with pytest.raises(MissingFileError, match="version 3 of the table"):
            file.read()
    snapshot = kit.load()
    for stored, error in (
        ({"kind": 3, "blob_id": 1, "blob_uri": "../x"}, CorruptTableError),
        ({"kind": 3, "blob_id": 9, "blob_uri": "x"}, CorruptTableError),
        ({"kind": 4, "blob_id": 0, "blob_uri": ""}, UnsupportedFeatureError),
    ):
        with pytest.raises(error):
            LanceBlobs(snapshot)._span("file:///x.lance", {"position": 0, "size": 1, **stored})


def test_metadata_in_a_bucket_opens_no_local_file(kit):
    from boathouse.lance.adapter import FORMAT
    from boathouse.table.context import TableContext
    from boathouse.table.location import Location

    made(kit, "2.2", VALUES[:1])
    context = TableContext(Location(kit.location.uri), Stores(home=kit.location.uri))
    blobs = LanceBlobs(FORMAT.open(context))
    with pytest.raises(ForeignPathError):
        blobs._span("file:///x.lance", {"kind": 3, "position": 0, "size": 1, "blob_id": 0, "blob_uri": "s3://b/x"})


def test_clones_and_branches_find_them(kit, tmp_path):
    made(kit, "2.2")
    kit.dataset().shallow_clone(str(tmp_path / "clone"), 1)
    kit.dataset().create_branch("dev", 1)
    for t in (bh.open(str(tmp_path / "clone")), kit.open(ref="dev")):
        assert read(t.take_blobs("b", range(7))) == VALUES


@pytest.mark.spec("L-126")
@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("stable", [False, True], ids=["", "stable"])
def test_no_operation_loses_them(kit, version, stable):
    """What would write them again is refused, and changes nothing; all else leaves them where they are."""
    made(kit, version, max_rows_per_file=4, enable_stable_row_ids=stable)
    t, before, files = kit.open(), pylances(kit), kit.files()
    for write in (
        lambda: t.update({"id": "id + 100"}, where="id = 3"),
        lambda: t.upsert(t.take([3]), on="id"),
        lambda: t.append(t.take([3])),
        lambda: t.optimize(sort_by=["id"]),
        t.optimize,
    ):
        with pytest.raises(UnsupportedFeatureError, match="blob"):
            write()
        assert kit.files() == files and pylances(kit) == before
    t.add_columns({"twice": "id * 2"})
    t.rename_column("id", "n")
    t.delete("n = 4")
    t.set_properties({"x": "1"})
    t.rename_column("n", "id")
    del before[4]
    assert pylances(kit) == before
    assert dict(zip(before, read(kit.open().take_blobs("b", range(6))))) == before
    t.restore(1)
    assert pylances(kit) == dict(enumerate(VALUES))


def test_what_is_asked_wrongly(kit):
    made(kit, "2.2")
    t = kit.open()
    for call, message in (
        (lambda: t.take_blobs("id", [0]), "column `id` has no blobs"),
        (lambda: t.take_blobs("b"), "take_blobs needs positions or row_ids"),
        (lambda: t.take_blobs("b", [0], row_ids=[0]), "take_blobs needs"),
        (lambda: t.take_blobs("b", [7]), "there is no row 7"),
        (lambda: t.take_blobs("b", ["x"]), "positions are not integers"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            call()
    with pytest.raises(ColumnNotFoundError):
        t.take_blobs("c", [0])
    shutil.rmtree(next(p for p in (kit.root / "data").iterdir() if p.is_dir()))
    small, packed = kit.open().take_blobs("b", [2, 3])
    assert small.read() == VALUES[2]
    with pytest.raises(MissingFileError):
        packed.read()
