"""Blob columns: values as files that fetch what is read of them, and bytes that no operation of ours loses."""

from __future__ import annotations

import datetime as dt
import io
import random
import shutil
from dataclasses import replace

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.errors import (
    BoathouseError,
    ColumnNotFoundError,
    CorruptTableError,
    ExpressionError,
    ForeignPathError,
    InvalidArgumentError,
    MissingFileError,
    SchemaMismatchError,
    UnsupportedFeatureError,
)
from boathouse.lance.blobs.values import LanceBlobs
from boathouse.lance.file.schema import BLOB_V2
from boathouse.lance.file.writer import LanceWriter
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
        t.update({"id": "id + 10"}, where="id >= 3")
        t.append(plain({20: b"more" * 20_000}))
        t.optimize()
        found = dict(zip(t.scan(["id"]).to_arrow()["id"].to_pylist(), read(t.take_blobs("b", range(8)))))
        assert found == {(i if i < 3 else i + 10): b for i, b in enumerate(VALUES)} | {20: b"more" * 20_000}
        kinds = {b and b["kind"] for b in t.scan(["b"]).to_arrow()["b"].to_pylist()}
        assert kinds == {None, 0, 1, 2}
    assert pylances(kit) == dict(enumerate(VALUES)), "the table itself has no part in it"


def ours(kit) -> dict[int, bytes | None]:
    """The bytes by id, as we read them."""
    t = kit.open()
    ids = t.scan(columns=["id"]).to_arrow().column("id").to_pylist()
    return dict(zip(ids, read(t.take_blobs("b", range(len(ids))))))


def plain(rows) -> pa.Table:
    """Rows as they are given: bytes."""
    return pa.table({"id": pa.array(rows, pa.int64()), "b": pa.array(list(rows.values()), pa.binary())})


class Blobs:
    """A table of blobs, and what it should hold."""

    def __init__(self, kit, version: str, **options) -> None:
        made(kit, version, max_rows_per_file=4, **options)
        self.kit, self.rows = kit, dict(enumerate(VALUES))

    def check(self, changes=(), gone=()) -> None:
        self.rows |= dict(changes)
        for id in gone:
            del self.rows[id]
        self.kit.dataset().validate()
        assert ours(self.kit) == self.rows == pylances(self.kit)


@pytest.mark.spec("L-126")
@pytest.mark.feature("blobs written", format="lance")
@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("stable", [False, True], ids=["", "stable"])
def test_every_operation_keeps_them(kit, version, stable):
    blobs, t = Blobs(kit, version, enable_stable_row_ids=stable), kit.open()
    fresh = {10: b"new", 11: None, 12: b"", 13: b"L" * 4_200_000, 14: b"m" * 70_000}
    t.append(plain(fresh))
    blobs.check(fresh)
    t.update({"id": "id + 100"}, where="id >= 3 and id < 6 or id = 1")
    blobs.check({i + 100: blobs.rows[i] for i in (1, 3, 4, 5)}, (1, 3, 4, 5))
    t.update({"b": "X'0102'"}, where="id = 104 or id = 11")
    t.update({"b": "null"}, where="b.size > 70000 and id < 100")
    blobs.check({104: b"\1\2", 11: b"\1\2", 13: None})
    t.upsert(plain({6: b"merged", 50: b"inserted", 51: None}), on="id")
    blobs.check({6: b"merged", 50: b"inserted", 51: None})
    source = pa.table({"k": pa.array([103, 52], pa.int64()), "b": [b"S", b"T"], "c": [b"S", b"T"]})
    clauses = t.merge(source, on="target.id = source.k and source.b < X'FF'")
    clauses = clauses.when_matched_update({"id": "source.k + 1000"})
    clauses.when_not_matched_insert({"id": "source.k", "b": "concat(source.c, X'FF')"}).execute()
    blobs.check({1103: blobs.rows[103], 52: b"T\xff"}, (103,))
    t.delete("id = 50")
    t.optimize()
    blobs.check(gone=(50,))
    assert len(kit.dataset().get_fragments()) == 1
    t.optimize(sort_by=["id"])
    t.add_columns({"twice": "id * 2"})
    t.rename_column("twice", "n")
    t.drop_column("n")
    blobs.check()
    kit.dataset().optimize.compact_files()
    kit.dataset().insert(plain_of_pylance(version, {60: b"theirs"}))
    kit.dataset().delete("id = 52")
    t.optimize()
    blobs.check({60: b"theirs"}, (52,))
    t.restore(1)
    assert pylances(kit) == dict(enumerate(VALUES))


def plain_of_pylance(version: str, rows) -> pa.Table:
    ids = pa.array(rows, pa.int64())
    if version == "2.2":
        return pa.table({"id": ids, "b": blob.blob_array(list(rows.values()))}, schema=V2)
    return pa.table({"id": ids, "b": pa.array(list(rows.values()), pa.large_binary())}, schema=V1)


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_an_overwrite_keeps_the_kind_of_column(kit, version):
    blobs = Blobs(kit, version)
    bh.write(plain({1: b"over", 2: None}), kit.uri, mode="overwrite")
    blobs.rows = {}
    blobs.check({1: b"over", 2: None})
    bh.write(plain({2: b"x"}), kit.uri, mode="overwrite", where="id = 2")
    blobs.check({2: b"x"})
    kit.open().append(plain({3: b"y"}).append_column("z", pa.array([1])), merge_schema=True)
    assert ours(kit)[3] == b"y"


def test_pylances_own_values_are_taken(kit):
    blobs = Blobs(kit, "2.2")
    kit.open().append(plain_of_pylance("2.2", {20: b"a", 21: None, 22: b""}))
    blobs.check({20: b"a", 21: None, 22: b""})


def test_where_they_are_stored(kit):
    """As pylance stores them: by their size, and by what the field says of sizes."""
    sizes = [1 << 16, (1 << 16) + 1, 4 << 20, (4 << 20) + 1, 70_000]
    rows = {i: bytes([i]) * size for i, size in enumerate(sizes)}

    def stored() -> list[tuple[int, ...]]:
        found = kit.dataset().to_table(filter="id >= 0").column("b").to_pylist()
        return [(b["kind"], b["blob_id"], b["position"], b["size"]) for b in found]

    kit.pylance(plain_of_pylance("2.2", rows), data_storage_version="2.2")
    wanted = stored()
    kit.open().delete("true")
    kit.open().append(plain(rows))
    assert stored() == wanted == [(0, 0, 0, sizes[0]), (1, 1, 0, sizes[1]), (1, 1, sizes[1], sizes[2]),
                                  (2, 2, 0, sizes[3]), (1, 1, sizes[1] + sizes[2], sizes[4])]  # fmt: skip
    limits = {"inline_size_threshold": 15, "dedicated_size_threshold": 50, "pack_file_size_threshold": 60}
    schema = pa.schema([("id", pa.int64()), blob.blob_field("b", **limits)])
    few = [b"a" * 10, b"b" * 20, b"c" * 40, b"d" * 80, b"e" * 30]
    for value in (None, few):
        ids = pa.array(range(len(few)), pa.int64())
        if value is None:
            kit.pylance(pa.table({"id": ids, "b": blob.blob_array(few)}, schema=schema), mode="overwrite")
            wanted = stored()
        else:
            kit.open().delete("true")
            kit.open().append(plain(dict(enumerate(few))))
            assert stored() == wanted and {kind for kind, *_ in wanted} == {0, 1, 2}


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("rows", [3000, 70_000])
def test_many_small_ones(kit, version, rows):
    """More than a page, or chunk, of descriptors; some pages have nulls, others nothing else."""
    blobs = Blobs(kit, version)
    small = {1000 + i: None if i % 7 == 0 or i < rows // 3 else str(i).encode() for i in range(rows)}
    kit.open().append(plain(small))
    kit.open().delete("id < 7")
    kit.open().optimize()
    found = kit.dataset().read_blobs("b", indices=range(rows))
    assert [value for _, value in found] == list(small.values())
    some = [0, rows // 3, rows // 2, rows - 1]
    assert read(kit.open().take_blobs("b", some)) == [list(small.values())[i] for i in some]
    assert blobs.kit.dataset().count_rows() == rows


def test_files_of_others_stay_where_they_are(kit, tmp_path):
    """A rewrite keeps the reference, as it is stored."""
    made(kit, "2.2", VALUES[:1])
    inside = tmp_path / "base" / "e.bin"
    inside.parent.mkdir()
    inside.write_bytes(b"external bytes")
    kit.dataset().add_bases([lance.DatasetBasePath(str(inside.parent), name="base")])
    values = [blob.Blob.from_uri(str(inside)), blob.Blob.from_uri(str(inside), 3, 5)]
    made(kit, "2.2", values, mode="append", allow_external_blob_outside_bases=True)
    t = kit.open()
    t.update({"id": "id + 5"})
    t.optimize()
    assert sorted(read(t.take_blobs("b", range(3)))) == [b"", b"ernal", b"external bytes"]
    assert sorted(read(kit.dataset().take_blobs("b", indices=range(3)))) == [b"", b"ernal", b"external bytes"]
    assert sorted(b["kind"] for b in kit.dataset().to_table().column("b").to_pylist()) == [0, 3, 3]
    for value in (blob.Blob.from_uri(str(inside)), b"x"):
        rows = pa.table({"id": [1], "b": blob.blob_array([value])}, schema=V2)
        if value == b"x":
            t.append(rows)
        else:
            with pytest.raises(SchemaMismatchError, match="`b` has blobs in other files"):
                t.append(rows)


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_what_is_no_blob_is_refused(kit, version):
    made(kit, version)
    t, files = kit.open(), kit.files()
    rows, texts = t.take([3]), pa.table({"id": [1], "b": ["x"]})
    own = {"boathouse:data": b"x", "boathouse:file": "file:///etc/hostname"}
    forged = pa.table({"id": [1], "b": [{"position": 0, "size": 9, **own}]})
    for write, error, message in (
        (lambda: t.append(rows), SchemaMismatchError, "says where blobs are"),
        (lambda: t.upsert(rows, on="id"), ExpressionError, "`b` has blobs"),
        (lambda: t.append(texts), SchemaMismatchError, "the table has blobs: give binary"),
        (lambda: t.append(forged), SchemaMismatchError, "a table's own blobs"),
        (lambda: t.upsert(forged, on="id"), SchemaMismatchError, "a table's own blobs"),
        (lambda: t.update({"b": "b.size"}), ExpressionError, "`b` has blobs, and b.size is bigint"),
        (lambda: t.update({"b": "'x'"}), ExpressionError, "is string"),
        (lambda: t.update({"id": "length(b)"}), ExpressionError, "text is needed"),
        (lambda: t.delete("b = X'00'"), ExpressionError, "incompatible types"),
    ):
        with pytest.raises(error, match=message):
            write()
        assert kit.files() == files


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_a_write_that_fails_leaves_no_file(kit, version):
    made(kit, version)
    t, files = kit.open(), kit.files()

    def batches():
        yield from plain({9: b"z" * 5_000_000}).to_batches()
        yield from plain({9: b"z" * 70_000}).to_batches()
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        t.append(pa.RecordBatchReader.from_batches(plain({}).schema, batches()))
    assert kit.files() == files
    other = pa.table({"id": [1]})
    with kit.overtaken_by(lambda: kit.pylance(other, mode="overwrite")), pytest.raises(BoathouseError):
        t.append(plain({9: b"z" * 5_000_000, 8: b"z" * 70_000}))
    assert [f for f in kit.files() - files if f.endswith(".blob")] == []
    assert kit.dataset().to_table() == other


def test_a_file_that_lost_its_end(kit):
    made(kit, "2.2")
    packed = next(p for p in (kit.root / "data").rglob("1000*.blob"))
    packed.write_bytes(packed.read_bytes()[:-1])
    files = kit.files()
    with pytest.raises(CorruptTableError, match="ends before"):
        kit.open().update({"id": "id + 1"})
    assert kit.files() == files


def test_places_that_cannot_be(kit):
    """Of which a blob is not copied, and nothing else is written."""
    made(kit, "2.2")
    columns = {"kind": [0], "position": [1 << 63], "size": [5], "blob_id": [0], "blob_uri": [""]}
    for place in ({}, {"position": [1 << 40]}, {"size": [1 << 62], "position": [0]}):
        stored = pa.StructArray.from_arrays(
            [pa.array(v, f.type) for v, f in zip((columns | place).values(), BLOB_V2)], fields=list(BLOB_V2)
        )
        path = next((kit.root / "data").glob("*.lance"))
        schema = kit.load().manifest.fields
        with open(path, "wb") as sink:
            writer = LanceWriter(sink, pa.schema([("id", pa.int64()), pa.field("b", BLOB_V2)]), schema)
            writer.write(pa.record_batch([pa.array([1]), stored], ["id", "b"]))
            summary = writer.close()

        def as_written(manifest, summary=summary):
            (fragment,) = manifest.fragments
            file = replace(fragment.files[0], file_size_bytes=summary.size)
            return replace(manifest, fragments=(replace(fragment, physical_rows=1, files=(file,)),))

        kit.edit(as_written)
        files = kit.files()
        with pytest.raises(CorruptTableError):
            kit.open().update({"id": "id + 1"})
        assert kit.files() == files


def test_of_two_columns(kit):
    """One may take the blobs of the other."""
    schema = pa.schema([*V2, blob.blob_field("c")])
    parts = {"b": blob.blob_array(VALUES), "c": blob.blob_array([b"c" * 80_000] * 7)}
    kit.pylance(pa.table({"id": pa.array(range(7), pa.int64()), **parts}, schema=schema), data_storage_version="2.2")
    kit.open().update({"c": "b", "b": "null"}, where="id % 2 = 1")
    t = kit.open()
    ids = t.scan(columns=["id"]).to_arrow().column("id").to_pylist()
    for name, wanted in (
        ("b", lambda i: None if i % 2 else VALUES[i]),
        ("c", lambda i: VALUES[i] if i % 2 else b"c" * 80_000),
    ):
        assert read(t.take_blobs(name, range(7))) == [wanted(i) for i in ids]
        assert read(kit.dataset().take_blobs(name, indices=range(7))) == [wanted(i) for i in ids]


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


class History(Blobs):
    """Steps of ours and of pylance's by turns."""

    def __init__(self, kit, seed: int) -> None:
        self.rng, self.next = random.Random(seed), 1000
        self.version = ["2.2", "2.1", "2.2", "2.0"][seed % 4]
        super().__init__(kit, self.version, enable_stable_row_ids=bool(seed % 2))

    def fresh(self) -> dict[int, bytes | None]:
        self.next += 8
        sizes = (0, 3, 300, 65_536, 65_537, 200_000)
        return {
            id: None if self.rng.random() < 0.2 else self.rng.randbytes(self.rng.choice(sizes))
            for id in range(self.next - 8, self.next)
        }

    def some(self) -> tuple[str, list[int]]:
        modulus, rest = self.rng.choice([2, 3, 7]), self.rng.randrange(2)
        return f"id % {modulus} = {rest}", [i for i in self.rows if i % modulus == rest]

    def append(self, ours: bool) -> None:
        rows = self.fresh()
        if ours:
            self.kit.open().append(plain(rows))
        else:
            self.kit.dataset().insert(plain_of_pylance(self.version, rows))
        self.rows |= rows

    def update(self, ours: bool) -> None:
        """pylance writes no blobs again by an update."""
        where, ids = self.some()
        value = self.rng.choice([None, b"set"])
        if self.rng.random() < 0.5:
            self.kit.open().update({"b": "null" if value is None else "X'736574'"}, where=where)
            self.rows |= dict.fromkeys(ids, value)
        else:
            self.kit.open().update({"id": "id + 1000000"}, where=where)
            self.rows = {i + 1_000_000 if i in ids else i: b for i, b in self.rows.items()}

    def upsert(self, ours: bool) -> None:
        known = self.rng.sample(sorted(self.rows), min(3, len(self.rows)))
        rows = self.fresh() | dict(zip(known, self.fresh().values()))
        self.kit.open().upsert(plain(rows), on="id")
        self.rows |= rows

    def delete(self, ours: bool) -> None:
        where, ids = self.some()
        if len(ids) < len(self.rows):
            (self.kit.open() if ours else self.kit.dataset()).delete(where)
            self.rows = {i: b for i, b in self.rows.items() if i not in ids}

    def compact(self, ours: bool) -> None:
        if not ours:
            self.kit.dataset().optimize.compact_files()
        elif self.rng.random() < 0.5:
            self.kit.open().optimize()
        else:
            self.kit.open().optimize(sort_by=["id desc"])

    def column(self, ours: bool) -> None:
        name = f"c{self.next}"
        self.next += 1
        (self.kit.open() if ours else self.kit.dataset()).add_columns({name: "id * 2"})
        (self.kit.open().drop_column if ours else self.kit.dataset().drop_columns)(name if ours else [name])

    def clean(self, ours: bool) -> None:
        """What no version needs goes, and nothing else."""
        if ours:
            self.kit.open().vacuum(0, enforce_retention_duration=False)
        else:
            self.kit.dataset().cleanup_old_versions(older_than=dt.timedelta(0), delete_unverified=True)


@pytest.mark.parametrize("seed", [1, 2, 3, *(pytest.param(n, marks=pytest.mark.slow) for n in range(4, 44))])
def test_histories_by_turns(kit, seed):
    history = History(kit, seed)
    for _ in range(10):
        step = history.rng.choice(["append", "update", "upsert", "delete", "compact", "column", "clean"])
        getattr(history, step)(history.rng.random() < 0.5)
        history.check()


@pytest.mark.spark
@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_on_spark(kit, spark, version):
    blobs, t = Blobs(kit, version), bh.open(kit.uri, spark=spark)
    new = spark.createDataFrame(
        [(6, bytearray(b"merged")), (50, bytearray(b"i" * 70_000)), (51, None)], "id bigint, b binary"
    )
    t.append(new.where("id > 50"))
    t.merge(new, on="target.id = source.id").when_matched_update_all().when_not_matched_insert_all().execute()
    blobs.check({6: b"merged", 50: b"i" * 70_000, 51: None})
    t.update({"b": "X'01'"}, where="id = 50")
    t.update({"id": "id + 100"}, where="id = 3")
    clauses = t.merge(new.where("id = 50"), on="target.id = source.id")
    clauses.when_matched_update({"id": "source.id + 2", "b": "concat(source.b, X'FF')"}).execute()
    t.optimize()
    blobs.check({103: VALUES[3], 52: b"i" * 70_000 + b"\xff"}, (3, 50))
