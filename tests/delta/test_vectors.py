"""Deletion vectors: every storage, and every way to be wrong."""

import json
import struct
import uuid
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import boathouse as bh
from boathouse.bits import z85
from boathouse.bits.roaring import Bitmap, deserialize64, serialize32, serialize64
from boathouse.delta.features.deletion_vectors import NATIVE, PORTABLE, file_uri, load_all, parse
from boathouse.delta.log.tail import unique_id
from boathouse.errors import CorruptTableError, UnsupportedFeatureError

PROTOCOL = {
    "protocol": {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors"],
        "writerFeatures": ["deletionVectors", "appendOnly", "invariants"],
    }
}
ROWS = pa.table({"x": list(range(10))})


def payload(rows):
    return struct.pack("<I", PORTABLE) + serialize64(Bitmap.of(rows))


def stored(data):
    return struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))


def table_with(raw, delta, vector, protocol=PROTOCOL):
    table = raw()
    size = table.file("f.parquet", ROWS)
    stats = json.dumps({"numRecords": 10, "minValues": {"x": 0}, "maxValues": {"x": 9}, "nullCount": {"x": 0}})
    add = table.add("f.parquet", deletionVector=vector, stats=stats)
    add["add"]["size"] = size
    table.commit(0, protocol, delta.metadata([delta.field("x", "long")]), add)
    return table


def ids(table):
    return bh.open(str(table)).to_arrow().column("x").to_pylist()


def inline(rows):
    data = payload(rows)
    padded = data + b"\0" * (-len(data) % 4)
    return {
        "storageType": "i",
        "pathOrInlineDv": z85.encode(padded),
        "sizeInBytes": len(data),
        "cardinality": len(rows),
    }


def in_file(table, rows, kind="u", prefix="", offset=1, id=None):
    data = payload(rows)
    id = id or uuid.uuid4()
    name = f"deletion_vector_{id}.bin"
    where = table.path / prefix / name if prefix else table.path / name
    where.parent.mkdir(exist_ok=True)
    where.write_bytes(b"\x01" + b"\0" * (offset - 1) + stored(data))
    path = prefix + z85.encode(id.bytes) if kind == "u" else where.as_uri()
    return where, {
        "storageType": kind,
        "pathOrInlineDv": path,
        "offset": offset,
        "sizeInBytes": len(data),
        "cardinality": len(rows),
    }


@pytest.mark.spec("D-206", "D-215")
def test_inline(raw, delta):
    table = table_with(raw, delta, inline([0, 9]))
    assert ids(table) == list(range(1, 9))
    assert bh.open(str(table)).count() == 8
    assert len(delta.rows(table)) == 8


@pytest.mark.parametrize(
    ("kind", "prefix", "offset"),
    [("u", "", 1), ("u", "ab", 1), ("u", "test%dv%prefix-", 1), ("p", "", 1), ("p", "a b", 1), ("u", "", 77)],
)
@pytest.mark.spec("D-200", "D-202", "D-203", "D-204", "D-205")
def test_in_files(raw, delta, kind, prefix, offset):
    table = raw()
    _, vector = in_file(table, [3, 4], kind, prefix, offset)
    size = table.file("f.parquet", ROWS)
    add = table.add("f.parquet", deletionVector=vector)
    add["add"]["size"] = size
    table.commit(0, PROTOCOL, delta.metadata([delta.field("x", "long")]), add)
    assert ids(table) == [0, 1, 2, 5, 6, 7, 8, 9]
    if kind == "u":
        table.path.rename(table.path.with_name("moved"))
        assert ids(table.path.with_name("moved")) == [0, 1, 2, 5, 6, 7, 8, 9]


def test_nothing_beyond_the_file_is_asked_for(raw):
    """Stores refuse such a request, or answer it range by range."""
    table = raw()
    where, vector = in_file(table, [3, 4])

    class Store:
        asked = ()

        def resolve(self, uri):
            return self, uri

        def get_ranges(self, key, ranges):
            self.asked = tuple(ranges)
            return [where.read_bytes()[start : start + length] for start, length in ranges]

    store = Store()
    (bitmap,) = load_all([vector], table.path.as_uri(), store)
    assert deserialize64(bitmap).positions().tolist() == [3, 4]
    assert max(start + length for start, length in store.asked) == where.stat().st_size


@pytest.mark.spec("D-201")
def test_where_a_relative_vector_lies():
    vector = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^"}
    found = "s3://mytable/ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    assert file_uri(vector, "s3://mytable") == found


@pytest.mark.spec("D-208")
@pytest.mark.parametrize("with_version", [True, False])
def test_a_vector_without_an_offset(raw, delta, with_version):
    table = raw()
    where, vector = in_file(table, [3, 4])
    del vector["offset"]
    if not with_version:
        where.write_bytes(where.read_bytes()[1:])
    size = table.file("f.parquet", ROWS)
    add = table.add("f.parquet", deletionVector=vector)
    add["add"]["size"] = size
    table.commit(0, PROTOCOL, delta.metadata([delta.field("x", "long")]), add)
    assert ids(table) == [0, 1, 2, 5, 6, 7, 8, 9]
    where.write_bytes(b"\2" + where.read_bytes())
    with pytest.raises(CorruptTableError):
        ids(table)


@pytest.mark.spec("D-230", "D-214")
def test_rows_count_from_the_start_of_the_file(raw, delta):
    """Whatever a predicate prunes: row groups, pages or nothing."""
    table = raw()
    rows = pa.table({"x": list(range(1000)), "s": [f"{i:04}" for i in range(1000)]})
    pq.write_table(rows, table.path / "f.parquet", row_group_size=100, data_page_size=64, write_page_index=True)
    gone = list(range(0, 1000, 7))
    add = table.add("f.parquet", deletionVector=inline(gone), stats='{"numRecords":1000}')
    add["add"]["size"] = (table.path / "f.parquet").stat().st_size
    table.commit(0, PROTOCOL, delta.metadata([delta.field("x", "long"), delta.field("s", "string")]), add)
    left = [i for i in range(1000) if i % 7]
    opened = bh.open(str(table))
    assert opened.to_arrow().column("x").to_pylist() == left and opened.count() == len(left)
    for where, keeps in (
        ("x >= 650", lambda i: i >= 650),
        ("s = '0301' or x = 300 or x = 301", {300, 301}.__contains__),
    ):
        found = opened.scan(where=where)
        assert found.to_arrow().column("x").to_pylist() == [i for i in left if keeps(i)]
        assert found.count() == sum(map(keeps, left))


def test_tables_of_the_older_draft(raw, delta):
    old = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7}}
    assert ids(table_with(raw, delta, inline([1]), old)) == [0, *range(2, 10)]


@pytest.mark.spec("D-209", "D-210", "D-211", "D-226", "D-228", "D-229")
def test_wrong_vectors_are_refused(raw, delta):
    base = raw()
    where, vector = in_file(base, [3, 4])
    size = base.file("f.parquet", ROWS)
    good = where.read_bytes()

    def check(vector, data):
        where.write_bytes(data)
        add = base.add("f.parquet", deletionVector=vector)
        add["add"]["size"] = size
        base.commit(0, PROTOCOL, delta.metadata([delta.field("x", "long")]), add)
        with pytest.raises(CorruptTableError) as error:
            bh.open(str(base)).to_arrow()
        assert error.value.where

    check(vector, good[:-1])
    check(vector, good[:-4] + b"\0\0\0\0")
    check(vector, good[:20] + bytes([good[20] ^ 1]) + good[21:])
    check(vector, b"\2" + good[1:])
    check(vector, good[:1] + bytes([good[1] ^ 1]) + good[2:])
    check({**inline([3, 4]), "offset": 0}, good)
    check({**vector, "sizeInBytes": vector["sizeInBytes"] - 4}, good)
    check({**vector, "cardinality": 3}, good)
    check({**vector, "offset": 500}, good)
    check({**vector, "pathOrInlineDv": "x"}, good)
    check({**vector, "storageType": "q"}, good)
    where.unlink()
    with pytest.raises(CorruptTableError, match="missing"):
        in_log = base.add("f.parquet", deletionVector=vector)
        base.commit(0, PROTOCOL, delta.metadata([delta.field("x", "long")]), in_log)
        bh.open(str(base)).to_arrow()


@pytest.mark.spec("D-222", "D-223", "D-207")
def test_payloads():
    example = z85.decode("wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L")
    assert parse(example, "t").positions().tolist() == [3, 4, 7, 11, 18, 29]
    high = bytearray(payload([1]))
    high[15] = 0x80  # the highest bit of the bucket's key, behind the magic and the number of buckets
    with pytest.raises(CorruptTableError):
        parse(bytes(high), "t")
    rows = [0, 5, 2**32 + 1, 2**33]
    assert parse(payload(rows), "t").positions().tolist() == rows
    parts = [serialize32(Bitmap.of(np.array(p, np.int64))) for p in ([0, 5], [1], [0])]
    native = struct.pack("<Ii", NATIVE, 3) + b"".join(struct.pack("<i", len(p)) + p for p in parts)
    assert parse(native, "t").positions().tolist() == rows
    for bad in (b"", b"abc", b"\0\0\0\0", struct.pack(">I", PORTABLE) + b"\0" * 8, native[:-3], payload(rows)[:-2]):
        with pytest.raises(CorruptTableError):
            parse(bad, "t")


@pytest.mark.spec("D-212")
def test_identity_of_a_vector():
    assert unique_id(None) is None
    assert unique_id({"storageType": "u", "pathOrInlineDv": "p", "offset": 1}) == "up@1"
    assert unique_id({"storageType": "i", "pathOrInlineDv": "p", "offset": None}) == "ip"


def test_copy_on_write_of_a_file_with_a_vector(raw, delta):
    vector = inline([0, 9])
    table = table_with(raw, delta, vector)
    bh.open(str(table)).delete("x = 5")
    entry = delta.log(table)[1]
    (remove,) = [a["remove"] for a in entry if "remove" in a]
    assert remove["deletionVector"] == vector
    assert ids(table) == [1, 2, 3, 4, 6, 7, 8]
    assert sorted(r["x"] for r in delta.rows(table)) == [1, 2, 3, 4, 6, 7, 8]


def test_one_file_with_two_vectors_in_one_commit(raw, delta):
    table = table_with(raw, delta, inline([0]))
    add = table.add("f.parquet", deletionVector=inline([0, 1]))
    add["add"]["size"] = (table.path / "f.parquet").stat().st_size
    remove = {
        "remove": {"path": "f.parquet", "deletionTimestamp": 1, "dataChange": True, "deletionVector": inline([0])}
    }
    for version, actions in ((1, (remove, add)), (2, ())):
        table.commit(version, {"commitInfo": {}}, *actions)
    assert ids(table) == list(range(2, 10))
    table.commit(1, add, remove)
    assert ids(table) == list(range(2, 10))


@pytest.mark.spec("D-147")
def test_protocols_above_ours(raw, delta):
    for protocol, said in (
        (
            {"minReaderVersion": 4, "minWriterVersion": 7, "readerFeatures": ["zap"], "writerFeatures": ["zap"]},
            "version 4",
        ),
        ({"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["zap"], "writerFeatures": ["zap"]}, "zap"),
        (
            {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": ["catalogManaged"],
                "writerFeatures": ["catalogManaged"],
            },
            "catalogManaged",
        ),
    ):
        table = raw()
        table.commit(0, {"protocol": protocol}, delta.metadata([delta.field("x", "long")]))
        with pytest.raises(UnsupportedFeatureError) as error:
            bh.open(str(table))
        assert said in error.value.message and "upgrade" in error.value.advice
    for protocol, said in (
        ({"minReaderVersion": 1, "minWriterVersion": 8}, "version 8"),
        (
            {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["zap", "other"]},
            "other, zap",
        ),
    ):
        table = raw()
        table.commit(0, {"protocol": protocol}, delta.metadata([delta.field("x", "long")]))
        opened = bh.open(str(table))
        assert opened.count() == 0
        with pytest.raises(UnsupportedFeatureError) as error:
            opened.append(pa.table({"x": [1]}))
        assert said in error.value.message and "upgrade" in error.value.advice
        assert list(delta.log(table)) == [0]


def test_properties_that_ask_for_features_are_refused(tmp_path):
    path = str(tmp_path / "t")
    for key, value in (
        ("delta.enableIcebergCompatV9", "true"),
        ("delta.constraints.c", "x > 1"),
        ("delta.zap", "1"),
    ):
        with pytest.raises(UnsupportedFeatureError, match=key):
            bh.create(path, pa.schema([("x", pa.int64())]), properties={key: value})
    bh.create(path, pa.schema([("x", pa.int64())]), properties={"delta.enableDeletionVectors": "false", "own": "1"})
    with pytest.raises(UnsupportedFeatureError, match=r"delta\.enableIcebergCompatV9"):
        bh.open(path).set_properties({"delta.enableIcebergCompatV9": "true"})
    assert bh.open(path).version == 0


@pytest.mark.spec("D-315")
def test_mixed_writers(raw, delta):
    import time

    from boathouse.delta.adapter import FORMAT
    from boathouse.errors import MixedWritersError
    from boathouse.storage import Stores
    from boathouse.table.context import TableContext
    from boathouse.table.location import Location

    now = int(time.time() * 1000)
    spark = "Apache-Spark/4.0.0 Delta-Lake/4.0.0"
    for engine, made, refused in (
        (spark, now, True),
        (spark, now - 2 * 86_400_000, False),
        ("delta-rs:py-1.6.6", now, False),
    ):
        table = raw()
        info = {"commitInfo": {"timestamp": made, "engineInfo": engine}}
        table.commit(0, info, delta.PROTOCOL, delta.metadata([delta.field("x", "long")]))
        snapshot = FORMAT.open(TableContext(Location(f"file://{table}"), Stores()))
        if refused:
            with pytest.raises(MixedWritersError, match="Delta-Lake"):
                snapshot.check_writable()
            allowed = TableContext(snapshot.location, snapshot.stores, allow_mixed_writers=True)
            FORMAT.open(allowed).check_writable()
        else:
            snapshot.check_writable()


@pytest.mark.parametrize(("days", "refused"), [(0, True), (2, False), (900, False)])
def test_a_temporary_entry_left_long_ago_is_no_other_writer(tmp_path, days, refused):
    import os
    import time

    from boathouse.errors import MixedWritersError

    path = tmp_path / "t"
    bh.write(pa.table({"x": [1]}), str(path), format="delta")
    left = path / "_delta_log" / ".tmp" / "00000000000000000001.json"
    left.parent.mkdir()
    left.write_text("{}")
    then = time.time() - days * 86_400
    os.utime(left, (then, then))
    if refused:
        with pytest.raises(MixedWritersError, match="commits that another writer has started"):
            bh.open(str(path)).append(pa.table({"x": [2]}))
    else:
        bh.open(str(path)).append(pa.table({"x": [2]}))
    assert bh.open(str(path)).count() == 2 - refused
