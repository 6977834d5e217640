"""Statistics files: sketches of distinct values, compared with DataSketches and with pyiceberg's binary form of values,
and the Puffin files that hold them."""

import datetime as dt
import json
import math
import random
import re
import struct
import uuid
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.conversions import to_bytes
from pyiceberg.table import StaticTable
from pyiceberg.table.puffin import PuffinFile

import boathouse as bh
from boathouse.bits.theta import NOMINAL, Sketch, hashed
from boathouse.errors import (
    ColumnNotFoundError,
    CorruptTableError,
    InvalidArgumentError,
    UnsupportedFeatureError,
    UnsupportedTypeError,
)
from boathouse.iceberg import puffin
from boathouse.iceberg.metadata.apply import apply
from boathouse.iceberg.metadata.updates import RemoveSnapshots
from boathouse.iceberg.statistics.sketches import sketch_of
from boathouse.storage.local import LocalStorage
from boathouse.table.features import LiveFiles
from boathouse.types.text import parse_type

UTC = dt.UTC


def of(values):
    """The sketch of byte strings."""
    ends = np.cumsum([0, *map(len, values)])
    return Sketch.of(hashed(np.frombuffer(b"".join(values), np.uint8), ends))


def head(root):
    found = max((root / "metadata").glob("v*.metadata.json"), key=lambda p: int(re.match(r"v(\d+)", p.name)[1]))
    return json.loads(found.read_bytes()), found


# ---- sketches


@pytest.mark.parametrize(
    "values, stored",
    [
        ([], "01030300001ecc93"),
        ([b"a"], "01030300001acc9317c11d528507017b"),
        ([b"a", b"b"], "02030300001acc930200000000000000857f40b689c7e53417c11d528507017b"),
    ],
)
def test_small_sketches_are_those_of_datasketches(values, stored):
    """What datasketches 5.2 stores of these texts."""
    assert of([*values, *values, b""]).to_bytes().hex() == stored
    assert Sketch.parse(bytes.fromhex(stored)).estimate == len(values)


def test_sketches_agree_with_datasketches():
    library = pytest.importorskip("datasketches")
    r = random.Random(2)
    for count in (1, 3, 17, 4096, 30_000):
        texts = ["".join(chr(r.randrange(32, 0xD000)) for _ in range(r.randrange(40))) for _ in range(count)]
        theirs = library.update_theta_sketch(12)
        for text in texts:
            theirs.update(text)
        mine, stored = of([t.encode() for t in texts]), theirs.compact().serialize()
        assert count > NOMINAL or mine.to_bytes() == stored
        assert library.compact_theta_sketch.deserialize(mine.to_bytes()).get_estimate() == mine.estimate
        assert Sketch.parse(stored).estimate == theirs.get_estimate()
        assert abs(mine.estimate / len(set(texts) - {""}) - 1) < 0.08
    theirs = library.update_theta_sketch(12)
    for number in (numbers := [r.randrange(-(2**63), 2**63) for _ in range(500)]):
        theirs.update(number)
    assert of([struct.pack("<q", n) for n in numbers]).to_bytes() == theirs.compact().serialize()


def test_a_union_is_the_sketch_of_all():
    r = random.Random(4)
    values = [struct.pack("<q", r.randrange(50_000)) for _ in range(60_000)]
    parts = [of(values[i : i + 7_000]) for i in range(0, len(values), 7_000)]
    assert any(len(p.hashes) == NOMINAL for p in parts)
    assert Sketch.union(parts).to_bytes() == Sketch.union(reversed(parts)).to_bytes()
    assert abs(Sketch.union(parts).estimate / len(set(values)) - 1) < 0.06
    assert Sketch.union([]).estimate == 0
    small = [of([bytes([i]), bytes([i + 1])]) for i in range(9)]
    assert Sketch.union(small).to_bytes() == of([bytes([i]) for i in range(10)]).to_bytes()


@pytest.mark.parametrize(
    "broken", ["", "0103030000", "01030200001acc93", "01030300001acc94" + "00" * 8, "01030300001acc93",
               "02030300001acc93", "02030300001acc930900000000000000", "03030300001acc93" + "00" * 16],
)  # fmt: skip
def test_damaged_sketches(broken):
    with pytest.raises(ValueError):
        Sketch.parse(bytes.fromhex(broken))


VALUES = {
    "boolean": ([True, False, None, True], "boolean"),
    "int": ([1, -1, None, 1, 2**31 - 1], "int"),
    "bigint": ([1, -1, None, 2**63 - 1], "long"),
    "float": ([1.5, None, -0.0, 0.0], "float"),
    "double": ([1.5, None, -0.0, 0.0, math.inf], "double"),
    "decimal(20,2)": ([Decimal("1.00"), Decimal("-12345678901234567.89"), None, Decimal("1.00")], "decimal(20, 2)"),
    "date": ([dt.date(1969, 1, 1), None, dt.date(2020, 2, 2)], "date"),
    "timestamp_ntz": ([dt.datetime(1969, 1, 1, 1), None, dt.datetime(2020, 2, 2)], "timestamp"),
    "timestamp": ([dt.datetime(1969, 1, 1, tzinfo=UTC), None], "timestamptz"),
    "string": (["a", "é💥", None, "a", "x" * 100], "string"),
    "binary": ([b"\xff", b"a" * 33, None], "binary"),
}


@pytest.mark.spec("I-321")
@pytest.mark.parametrize("type", VALUES)
def test_values_are_hashed_in_their_binary_form(type):
    """As pyiceberg writes single values."""

    from boathouse.arrow.schema import to_arrow_type

    values, name = VALUES[type]
    from pyiceberg.schema import Schema as TheirSchema

    their = TheirSchema.model_validate(
        {"type": "struct", "fields": [{"id": 1, "name": "c", "required": False, "type": name}]}
    ).find_type("c")
    mine = parse_type(type)
    array = pa.array(values, to_arrow_type(mine))
    given = {to_bytes(their, v) for v in values if v is not None}
    assert sketch_of(array, mine).to_bytes() == of(sorted(given)).to_bytes()


def test_every_nan_is_one_value():
    nans = [math.nan, struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000001))[0], 1.0]
    assert sketch_of(pa.array(nans), parse_type("double")).estimate == 2
    ids = [uuid.UUID(int=i % 3).bytes for i in range(9)]
    assert sketch_of(pa.array(ids, pa.binary(16)), bh.types.UUID).estimate == 3


# ---- tables


@pytest.fixture(params=["1", "2", "3"])
def table(request, tmp_path):
    schema = "id bigint, city string, price double, s struct<x: int>, l array<int>"
    t = bh.create(str(tmp_path / "t"), schema, format="iceberg", properties={"format-version": request.param})
    rows = [{"id": i, "city": "abc"[i % 3], "price": 0.5, "s": {"x": i % 4}, "l": [i]} for i in range(50)]
    inner = pa.struct([("x", pa.int32())])
    types = {"id": pa.int64(), "city": pa.string(), "price": pa.float64(), "s": inner, "l": pa.list_(pa.int32())}
    t.append(pa.Table.from_pylist(rows, pa.schema(types)))
    return t


@pytest.mark.feature("statistics of columns", format="iceberg")
@pytest.mark.spec("I-245", "I-246", "I-248")
def test_distinct_values_are_counted_and_recorded(table, tmp_path):
    table.delete("id >= 40")
    done = table.compute_statistics(message="counted")
    assert done.rows_added == 0 and table.count() == 40
    assert table.statistics().to_pylist() == [
        {"column": "id", "distinct": 40}, {"column": "city", "distinct": 3}, {"column": "price", "distinct": 1}
    ]  # fmt: skip
    document, path = head(tmp_path / "t")
    (theirs,) = StaticTable.from_metadata(f"file://{path}").metadata.statistics
    data = Path(theirs.statistics_path.removeprefix("file://")).read_bytes()
    footer = PuffinFile(data).footer
    assert theirs.snapshot_id == table.version and theirs.file_size_in_bytes == len(data)
    assert [b.fields for b in footer.blobs] == [b.fields for b in theirs.blob_metadata] == [[1], [2], [3]]
    assert {b.type for b in footer.blobs} == {"apache-datasketches-theta-v1"}
    assert {b.compression_codec for b in footer.blobs} == {None}
    assert [b.properties["ndv"] for b in theirs.blob_metadata] == ["40", "3", "1"]
    sequence = next(s for s in document["snapshots"] if s["snapshot-id"] == table.version).get("sequence-number", 0)
    assert {b.sequence_number for b in footer.blobs} == {sequence}
    start = len(data) - theirs.file_footer_size_in_bytes
    assert data[start : start + 4] == b"PFA1" and start == footer.blobs[-1].offset + footer.blobs[-1].length
    assert [Sketch.parse(b.data).estimate for b in puffin.read(data, "here")] == [40, 3, 1]
    assert bh.open(str(tmp_path / "t")).history()[0].message == "counted"


def test_statistics_are_of_one_version(table, tmp_path):
    counted = table.version
    table.compute_statistics("s.x")
    table.append([{"id": 1}])
    assert table.statistics().num_rows == 0
    assert bh.open(str(tmp_path / "t"), version=counted).statistics().to_pylist() == [{"column": "s.x", "distinct": 4}]
    table.compute_statistics(["city"])
    table.compute_statistics(["id"])  # of the same version: those before are not named any more
    document, _ = head(tmp_path / "t")
    assert len(document["statistics"]) == 2 and table.statistics()["column"].to_pylist() == ["id"]
    table.set_properties({"a": "b"})
    assert head(tmp_path / "t")[0]["statistics"] == document["statistics"]
    left = apply(document, RemoveSnapshots((counted,)))
    assert [s["snapshot-id"] for s in left["statistics"]] == [table.version]
    report = bh.open(str(tmp_path / "t"))._handle.snapshot.offers(LiveFiles)
    assert {s["statistics-path"] for s in document["statistics"]} <= set(report.uris())


def test_what_cannot_be_counted(table, tmp_path):
    before = sorted((tmp_path / "t" / "metadata").iterdir())
    for columns, error in (
        ("l", UnsupportedTypeError), (["id", "s"], UnsupportedTypeError), ("no", ColumnNotFoundError),
        ([], InvalidArgumentError), ([3], InvalidArgumentError),
    ):  # fmt: skip
        with pytest.raises(error):
            table.compute_statistics(columns)
    table.compute_statistics(dry_run=True)
    assert sorted((tmp_path / "t" / "metadata").iterdir()) == before
    empty = bh.create(str(tmp_path / "u"), "id int", format="iceberg")
    with pytest.raises(InvalidArgumentError, match="no version yet"):
        empty.compute_statistics()
    assert empty.statistics().num_rows == 0


def test_a_concurrent_commit_does_not_matter(table, tmp_path, monkeypatch):
    """What was counted is of the version that was read; a file of an attempt that lost is removed."""
    other, real, done, counted = bh.open(str(tmp_path / "t")), LocalStorage.put, [], table.version

    def put(self, key, data, *mode):
        if key.endswith("metadata.json") and not done:
            done.append(key)
            other.append([{"id": 99}])
        return real(self, key, data, *mode)

    monkeypatch.setattr(LocalStorage, "put", put)
    table.compute_statistics("id")
    document, _ = head(tmp_path / "t")
    assert [s["snapshot-id"] for s in document["statistics"]] == [counted]
    named = {s["statistics-path"].rsplit("/", 1)[1] for s in document["statistics"]}
    assert {p.name for p in (tmp_path / "t" / "metadata").glob("*.stats")} == named
    assert table.count() == 51


def test_a_sketch_whose_number_is_not_in_the_metadata(table, tmp_path):
    """As other writers may leave it out: it is read from the file."""
    table.compute_statistics()
    document, path = head(tmp_path / "t")
    for blob in document["statistics"][0]["blob-metadata"]:
        del blob["properties"]
    path.write_text(json.dumps(document))
    assert bh.open(str(tmp_path / "t")).statistics()["distinct"].to_pylist() == [50, 3, 1]
    file = Path(document["statistics"][0]["statistics-path"].removeprefix("file://"))
    file.write_bytes(file.read_bytes() + b"x")
    with pytest.raises(CorruptTableError, match="Puffin"):
        bh.open(str(tmp_path / "t")).statistics()
    assert bh.open(str(tmp_path / "t")).count() == 50


@pytest.mark.feature("statistics of partitions", format="iceberg")
@pytest.mark.spec("I-242")
@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_statistics_of_partitions(tmp_path, version):
    """Sums that pyiceberg's inspection agrees with, under the field ids of the specification, sorted by partition."""
    properties = {"format-version": version, **({} if version == "1" else {"write.delete.mode": "merge-on-read"})}
    t = bh.create(
        str(tmp_path / "t"), "id bigint, p string", format="iceberg", partition_by=["p"], properties=properties
    )
    with pytest.raises(InvalidArgumentError, match="no partitions, or no version"):
        t.compute_partition_statistics()
    t.append([{"id": i, "p": ["b", None, "a", "é"][i % 4]} for i in range(40)])
    t.delete("id IN (1, 2, 6)")
    t.partition_by("p", "bucket(2, id)")
    t.append([{"id": 100, "p": "a"}, {"id": 101, "p": "a"}])
    counted = t.version
    t.compute_partition_statistics()
    document, path = head(tmp_path / "t")
    (entry,) = document["partition-statistics"]
    assert entry["snapshot-id"] == counted
    file = Path(entry["statistics-path"].removeprefix("file://"))
    assert file.stat().st_size == entry["file-size-in-bytes"]
    found = pq.ParquetFile(file).read()
    ids = [int(f.metadata[b"PARQUET:field_id"]) for f in found.schema]
    assert ids == [*range(1, 13), *([13] if version == "3" else [])]
    inner = found.schema.field("partition").type
    specs = {f["name"]: f["field-id"] for spec in document["partition-specs"] for f in spec["fields"]}
    assert {f.name: int(f.metadata[b"PARQUET:field_id"]) for f in inner} == specs
    rows = found.to_pylist()
    order = [(r["partition"]["p"] is not None, (r["partition"]["p"] or "").encode()) for r in rows]
    assert order == sorted(order)
    theirs = StaticTable.from_metadata(f"file://{path}").inspect.partitions().to_pylist()
    wanted = sorted(
        (str(r["partition"].get("p")), r["spec_id"], r["record_count"], r["file_count"],
         r["total_data_file_size_in_bytes"], r["position_delete_record_count"]) for r in theirs
    )  # fmt: skip
    mine = sorted(
        (str(r["partition"]["p"]), r["spec_id"], r["data_record_count"], r["data_file_count"],
         r["total_data_file_size_in_bytes"], r["position_delete_record_count"]) for r in rows
    )  # fmt: skip
    assert mine == wanted
    marks = sum(r["position_delete_file_count"] for r in rows), sum(r.get("dv_count") or 0 for r in rows)
    assert marks == {"1": (0, 0), "2": (2, 0), "3": (0, 2)}[version]
    assert {r["last_updated_snapshot_id"] for r in rows} <= {s["snapshot-id"] for s in document["snapshots"]}
    t.append([{"id": 7, "p": "b"}])
    assert head(tmp_path / "t")[0]["partition-statistics"] == [entry]
    left = apply(head(tmp_path / "t")[0], RemoveSnapshots((counted,)))
    assert left["partition-statistics"] == []


# ---- Puffin files


def compressed(data, codec):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def by_hand(blobs, flags=bytes(4), codec=None):
    """A file with blobs (bytes, codec), its footer compressed by `codec`."""
    data, described = bytearray(b"PFA1"), []
    for i, (body, how) in enumerate(blobs):
        stored = body if how is None else compressed(body, how)
        found = {"type": f"t{i}", "fields": [i], "snapshot-id": 5, "sequence-number": 6, "offset": len(data),
                 "length": len(stored)}  # fmt: skip
        described.append(found if how is None else {**found, "compression-codec": how})
        data += stored
    payload = json.dumps({"blobs": described}).encode()
    payload = payload if codec is None else compressed(payload, codec)
    return bytes(data) + b"PFA1" + payload + struct.pack("<I", len(payload)) + flags + b"PFA1"


@pytest.mark.spec("I-248")
@pytest.mark.parametrize("footer", [None, "lz4"])
def test_puffin_files_of_others(footer):
    blobs = [(b"one" * 50, None), (b"", None), (b"two" * 500, "zstd"), (b"three" * 70, "lz4")]
    found = puffin.read(by_hand(blobs, bytes([footer is not None, 0, 0, 0]), footer), "here")
    assert [(b.type, b.fields, b.data) for b in found] == [(f"t{i}", (i,), b) for i, (b, _) in enumerate(blobs)]
    assert {(b.snapshot_id, b.sequence_number) for b in found} == {(5, 6)}
    if footer is None:
        plain = by_hand(blobs[:2])
        assert [(b.offset, b.length) for b in PuffinFile(plain).footer.blobs] == [(4, 150), (154, 0)]


@pytest.mark.spec("I-248")
def test_what_is_written_is_read_by_pyiceberg():
    blobs = [puffin.Blob("a", (1, 2), 3, 4, b"x" * 9, {"k": "v"}), puffin.Blob("b", (), -1, -1, b"")]
    data, size = puffin.written(blobs)
    assert puffin.read(data, "here") == blobs
    footer = PuffinFile(data).footer
    assert [(b.type, b.fields, b.length, b.properties) for b in footer.blobs] == [
        ("a", [1, 2], 9, {"k": "v"}),
        ("b", [], 0, {}),
    ]
    assert data[-size:][:4] == b"PFA1" and footer.properties["created-by"].startswith("boathouse")


@pytest.mark.spec("I-248")
def test_damaged_puffin_files():
    good = by_hand([(b"one" * 50, None), (b"two" * 50, "zstd")])
    r = random.Random(6)
    broken = [
        b"",
        b"PFA1",
        good[:-1],
        good[1:],
        b"PFA2" + good[4:],
        good[:-4] + b"PFA2",
        good[:-12] + b"\xff" * 4 + good[-8:],
    ]
    broken += [good[: r.randrange(len(good))] for _ in range(30)]
    for data in broken:
        with pytest.raises(CorruptTableError):
            puffin.read(data, "here")
    for flags in (b"\x02\0\0\0", b"\0\0\0\x01", b"\x03\0\0\0"):
        with pytest.raises(UnsupportedFeatureError, match="flags"):
            puffin.read(by_hand([], flags), "here")
    unknown = good.replace(b'"compression-codec": "zstd"', b'"compression-codec": "some"')
    with pytest.raises(UnsupportedFeatureError, match="some"):
        puffin.read(unknown, "here")
    for i in range(len(good)):
        try:
            puffin.read(good[:i] + bytes([good[i] ^ 0x20]) + good[i + 1 :], "here")
        except (CorruptTableError, UnsupportedFeatureError):
            continue


@pytest.mark.spark
def test_counted_on_spark(spark, table, tmp_path):
    table.compute_statistics(["id", "s.x"])
    here = [Sketch.parse(b.data).to_bytes() for b in blobs_of(tmp_path / "t")]
    bh.open(str(tmp_path / "t"), spark=spark).compute_statistics(["id", "s.x"])
    assert [Sketch.parse(b.data).to_bytes() for b in blobs_of(tmp_path / "t")] == here
    (row,) = bh.sql(
        spark, f"CALL system.compute_table_stats(table => 'iceberg.`{tmp_path}/t`', columns => array('city'))"
    ).collect()
    assert row["statistics_file"] == head(tmp_path / "t")[0]["statistics"][0]["statistics-path"]
    assert table.refresh().statistics().to_pylist() == [{"column": "city", "distinct": 3}]


def blobs_of(root):
    path = head(root)[0]["statistics"][0]["statistics-path"]
    return puffin.read(Path(path.removeprefix("file://")).read_bytes(), path)
