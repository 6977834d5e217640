"""Deletion vectors of Iceberg v3, in Puffin files that the tests write from the specification; pyiceberg reads them
too."""

import json
import os
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from foreign_writer import Foreign
from pyiceberg.table import StaticTable

import boathouse as bh
from boathouse.bits.roaring import Bitmap
from boathouse.errors import BoathouseError, CorruptTableError, MissingFileError
from boathouse.iceberg.deletes import puffin
from boathouse.iceberg.deletes import vectors as deletion_vectors
from boathouse.storage.local import LocalStorage

IDS = (1, 2, 3)
SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("x", pa.float64())])
CORPORA = Path(os.environ.get("BOATHOUSE_CORPORA") or Path(__file__).parents[2] / "../shared/corpora").resolve()
JAVA = CORPORA / "iceberg" / "java-resources" / "org" / "apache" / "iceberg" / "deletes"


def rows(start, stop, p="a"):
    ids = list(range(start, stop))
    return pa.table({"id": ids, "p": [p] * len(ids), "x": [float(i) for i in ids]}, SCHEMA)


def ids_of(table, **scan):
    return sorted(table.scan(["id"], **scan).to_arrow()["id"].to_pylist())


def theirs(foreign):
    """The ids that pyiceberg reads."""
    table = StaticTable.from_metadata(f"file://{foreign.head}")
    return sorted(table.scan(selected_fields=("id",)).to_arrow()["id"].to_pylist())


@pytest.fixture
def two(tmp_path):
    """A table of format version 3 with the rows 0 to 9 in one file and 10 to 19 in another, and its files."""
    root = tmp_path / "t"
    bh.create(str(root), SCHEMA, format="iceberg")
    foreign = Foreign(root).upgrade()
    foreign.commit(foreign.data(rows(0, 10), IDS, bounds=True))
    (first,) = foreign.live()
    foreign.commit(foreign.data(rows(10, 20), IDS, bounds=True))
    (second,) = set(foreign.live()) - {first}
    return foreign, first, second


@pytest.mark.spec("I-215")
@pytest.mark.feature("deletion vectors", format="iceberg")
def test_vectors_of_one_puffin_file(two, monkeypatch):
    foreign, first, second = two
    before = foreign.document["current-snapshot-id"]
    foreign.commit(*foreign.vectors({first: [0, 3, 9], second: [5]}))
    asked = []
    real = LocalStorage.get_ranges
    monkeypatch.setattr(
        LocalStorage, "get_ranges", lambda self, key, ranges: asked.append(key) or real(self, key, ranges)
    )
    table = bh.open(str(foreign.root))
    expected = sorted(set(range(20)) - {0, 3, 9, 15})
    assert ids_of(table) == expected == theirs(foreign)
    assert len([key for key in asked if key.endswith(".puffin")]) == 1
    assert table.count() == 16 and ids_of(table, where="x >= 8") == [8, *range(10, 15), *range(16, 20)]
    found = table.scan(["id"], where="id = 15").to_arrow()
    assert found.num_rows == 0
    assert ids_of(bh.open(str(foreign.root), version=before)) == list(range(20))


def test_footers_of_puffin_files(two):
    """Compressed, flagged, with blobs of other types beside the vectors: the entries say where these are."""
    foreign, first, second = two
    vectors = foreign.vectors({first: [0, 3], second: [5]})
    path = Path(vectors[0]["data_file"]["file_path"].removeprefix("file://"))
    plain = path.read_bytes()
    size = int.from_bytes(plain[-12:-8], "little")
    body, footer = plain[: -size - 16], json.loads(plain[-size - 12 : -12])
    sketch = {"type": "apache-datasketches-theta-v1", "fields": [1], "snapshot-id": 1, "sequence-number": 1,
              "offset": len(body), "length": 3, "compression-codec": "zstd", "properties": {"ndv": "2"}}  # fmt: skip
    payload = pa.Codec("lz4").compress(json.dumps({**footer, "blobs": [sketch, *footer["blobs"]]}).encode(), True)
    assert payload[:4] == bytes.fromhex("04224d18"), "a frame of LZ4"
    flags = (1).to_bytes(4, "little")
    path.write_bytes(body + b"???" + b"PFA1" + payload + len(payload).to_bytes(4, "little") + flags + b"PFA1")
    for entry in vectors:
        entry["data_file"]["file_size_in_bytes"] = path.stat().st_size
    foreign.commit(*vectors)
    assert ids_of(bh.open(str(foreign.root))) == sorted(set(range(20)) - {0, 3, 15})


def test_pruned_files_need_no_vector(two):
    foreign, first, second = two
    foreign.commit(*foreign.vectors({first: [0]}))
    foreign.commit(*foreign.vectors({second: [0]}))
    path = max(foreign.root.glob("data/*.puffin"), key=lambda p: p.stat().st_mtime_ns)
    path.unlink()
    table = bh.open(str(foreign.root))
    assert ids_of(table, where="id < 10") == list(range(1, 10))
    with pytest.raises(MissingFileError, match="delete file"):
        ids_of(table)


@pytest.mark.spec("I-215")
def test_a_vector_supersedes_the_position_deletes_of_its_file(two):
    foreign, first, second = two
    foreign.commit(foreign.positions([(first, 1), (second, 2)]), foreign.positions([(first, 8)]))
    assert ids_of(bh.open(str(foreign.root))) == sorted(set(range(20)) - {1, 8, 12}) == theirs(foreign)
    foreign.commit(*foreign.vectors({first: [4]}))
    table = bh.open(str(foreign.root))
    assert ids_of(table) == sorted(set(range(20)) - {4, 12})
    assert table.count() == 18


@pytest.mark.spec("I-215")
def test_two_vectors_of_one_file_are_refused(two):
    foreign, first, _ = two
    foreign.commit(*foreign.vectors({first: [1]}))
    foreign.commit(*foreign.vectors({first: [1]}))
    table = bh.open(str(foreign.root))
    with pytest.raises(CorruptTableError, match="more than one deletion vector"):
        table.to_arrow()
    assert ids_of(table, where="id >= 10") == list(range(10, 20))


def test_a_replaced_vector_and_its_changes(two):
    foreign, first, _ = two
    start = foreign.commit(*foreign.vectors({first: [1, 2]}))
    end = foreign.commit(*foreign.vectors({first: [2, 7]}), drop=lambda file: file["referenced_data_file"] == first)
    table = bh.open(str(foreign.root))
    assert ids_of(table) == sorted(set(range(20)) - {2, 7})
    changes = table.changes(start).to_arrow().to_pylist()
    assert sorted((c["_change_type"], c["_commit_version"], c["id"]) for c in changes) == [
        ("delete", start, 1), ("delete", start, 2), ("delete", end, 7), ("insert", end, 1),
    ]  # fmt: skip


def test_vectors_go_with_their_data_files(two):
    """What is copied has lost the rows; a vector of a file that is gone would stay for ever."""
    foreign, first, second = two
    foreign.commit(*foreign.vectors({first: [1], second: [2, 3]}))
    t = bh.open(str(foreign.root))
    t.append(rows(30, 31))
    assert len(_vectors(foreign)) == 2
    t.delete("id = 5")
    expected = [0, 2, 3, 4, *range(6, 12), *range(14, 20), 30]
    assert ids_of(t) == expected == theirs(foreign)
    assert _vectors(foreign) == [second]
    summary = foreign.document["snapshots"][-1]["summary"]
    assert (summary["removed-dvs"], summary["removed-delete-files"], summary["removed-position-deletes"]) == tuple(
        "111"
    )
    t.optimize()
    assert ids_of(bh.open(str(foreign.root))) == expected == theirs(foreign) and _vectors(foreign) == []


def _vectors(foreign):
    """The data files that live entries of vectors name."""
    document = foreign.document
    current = next(s for s in document["snapshots"] if s["snapshot-id"] == document["current-snapshot-id"])
    deletes = [r["manifest_path"] for r in foreign._avro(current["manifest-list"]) if r["content"]]
    found = [e for path in deletes for e in foreign._avro(path)]
    return [e["data_file"]["referenced_data_file"] for e in found if e["status"] != 2]


@pytest.mark.spec("I-215")
def test_vectors_and_copy_on_write(tmp_path):
    """Java's readers apply vectors whatever the version; what a commit copies has lost the rows."""
    root = tmp_path / "t"
    bh.create(str(root), SCHEMA, format="iceberg")
    foreign = Foreign(root)
    foreign.commit(foreign.data(rows(0, 10), IDS))
    foreign.commit(*foreign.vectors({foreign.live()[0]: [1, 2]}))
    table = bh.open(str(root))
    table.delete("id = 5")
    assert ids_of(table) == [0, 3, 4, 6, 7, 8, 9] == theirs(foreign)
    table.update({"x": "x + 100"}, "id = 6")
    table.append(rows(20, 22))
    assert ids_of(table) == [0, 3, 4, 6, 7, 8, 9, 20, 21] == theirs(foreign)
    assert ids_of(table, where="x = 106") == [6]
    table.overwrite(rows(30, 32))
    assert ids_of(table) == [30, 31] == theirs(foreign) and _vectors(foreign) == []


def test_partitions_and_older_vectors(tmp_path):
    root = tmp_path / "t"
    bh.create(str(root), SCHEMA, format="iceberg", partition_by=["p"])
    foreign = Foreign(root).upgrade()
    foreign.commit(foreign.data(rows(0, 5, "a"), IDS, {"p": "a"}), foreign.data(rows(5, 10, "b"), IDS, {"p": "b"}))
    a, b = foreign.live()
    foreign.commit(*foreign.vectors({a: [0]}, {"p": "a"}), *foreign.vectors({b: [0]}, {"p": "b"}))
    assert ids_of(bh.open(str(root))) == [1, 2, 3, 4, 6, 7, 8, 9] == theirs(foreign)
    assert ids_of(bh.open(str(root)), where="p = 'b'") == [6, 7, 8, 9]
    foreign.commit(*foreign.vectors({a: [0]}, {"p": "b"}), drop=lambda file: file["referenced_data_file"] == a)
    with pytest.raises(CorruptTableError, match="another partition"):
        bh.open(str(root)).to_arrow()


@pytest.mark.parametrize("lacking", ["referenced_data_file", "content_offset", "content_size_in_bytes"])
def test_an_entry_that_does_not_say_where_its_vector_is(two, lacking):
    foreign, first, _ = two
    (entry,) = foreign.vectors({first: [1]})
    entry["data_file"][lacking] = None
    foreign.commit(entry)
    with pytest.raises(CorruptTableError, match=f"lacks {lacking}"):
        bh.open(str(foreign.root)).to_arrow()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"record_count": 2}, "has 3 rows, the metadata records 2"),
        ({"content_size_in_bytes": 10}, "cannot be 10 bytes"),
        ({"content_size_in_bytes": 1 << 31}, "cannot be"),
        ({"content_offset": -1}, "at offset -1"),
        ({"content_offset": 1 << 40}, "truncated"),
        ({"content_offset": 5}, "says that it has"),
    ],
)
def test_an_entry_that_does_not_fit_its_vector(two, change, words):
    foreign, first, _ = two
    (entry,) = foreign.vectors({first: [1, 2, 3]})
    entry["data_file"] |= change
    foreign.commit(entry)
    with pytest.raises(CorruptTableError, match=words):
        bh.open(str(foreign.root)).to_arrow()


@pytest.mark.spec("I-270")
def test_damage_never_gives_other_rows(two):
    """Every byte of a blob, and every length of the file."""
    foreign, first, _ = two
    (entry,) = foreign.vectors({first: [1, 2, 8]})
    foreign.commit(entry)
    table = bh.open(str(foreign.root))
    expected = ids_of(table)
    path = Path(entry["data_file"]["file_path"].removeprefix("file://"))
    whole, start = path.read_bytes(), entry["data_file"]["content_offset"]
    size = entry["data_file"]["content_size_in_bytes"]
    seed = random.Random(3)
    for at in range(start, start + size):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << seed.randrange(8))]) + whole[at + 1 :])
        with pytest.raises(CorruptTableError):
            ids_of(bh.open(str(foreign.root)))
    for end in range(0, start + size, 3):
        path.write_bytes(whole[:end])
        with pytest.raises(BoathouseError):
            ids_of(bh.open(str(foreign.root)))
    path.write_bytes(whole[: start + size])
    assert ids_of(bh.open(str(foreign.root))) == expected


@pytest.mark.skipif(not JAVA.exists(), reason="the reference's files are not there")
@pytest.mark.spec("I-270")
def test_vectors_of_the_reference():
    """The bitmaps of Java's TestBitmapPositionDeleteIndex: arrays, runs, and more than 32 bits."""

    def wide(array, first, last):
        """An array container, a run of the next one, and nearly all of the one after it."""
        runs = range((1 << 16) + first, (1 << 16) + last), range((2 << 16) + 1, (3 << 16) - 1)
        return [*array, *runs[0], *runs[1]]

    expected = {
        "empty-position-index.bin": [],
        "small-alternating-values-position-index.bin": [1, 3, 5, 7, 9],
        "small-and-large-values-position-index.bin": [100, 101, (1 << 31) + 99, (1 << 31) + 100],
        "all-container-types-position-index.bin": wide([5, 7], 1, 1000)
        + [n + (1 << 32) for n in wide([10, 20], 10, 500)],
    }
    for name, positions in expected.items():
        data = (JAVA / name).read_bytes()
        assert deletion_vectors.parse(data, name).positions().tolist() == positions, name
        assert puffin.vector(Bitmap.of(np.array(positions, np.int64))) == data, name


@pytest.mark.spark
@pytest.mark.spec("I-215")
@pytest.mark.feature("deletion vectors", format="iceberg")
@pytest.mark.route("deletion vectors of Iceberg")
def test_on_spark(spark, two):
    foreign, first, second = two
    foreign.commit(foreign.positions([(first, 1), (second, 2)]))
    foreign.commit(*foreign.vectors({first: [4, 9]}))
    table = bh.open(str(foreign.root), spark=spark)
    assert table.scan().to_spark(spark).count() == 17
    found = table.scan(["id"], where="x >= 3").to_spark(spark)
    assert sorted(r.id for r in found.collect()) == sorted(set(range(3, 20)) - {4, 9, 12})
    assert "native" in str(table.scan().explain())
