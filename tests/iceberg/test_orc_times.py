"""Timestamps of ORC that are read without pyarrow's nanoseconds: those of any year, and the same as pyarrow's within
the years that it has."""

from __future__ import annotations

import random
from contextlib import closing

import pyarrow as pa
import pyarrow.orc as orc
import pytest
from file_writers import edited_footer, join_orc, split_orc

from boathouse.arrow.filesystem import data_files
from boathouse.errors import BoathouseError, CorruptTableError
from boathouse.orc.rows import open_orc
from boathouse.parquet.matching import Matching
from boathouse.storage import Stores

FIRST, LAST = -62_135_596_800_000_000, 253_402_300_799_999_999
"""Years 1 and 9999, in microseconds."""
NTZ, UTC = pa.timestamp("us"), pa.timestamp("us", "UTC")


def found(path, name="t"):
    source = open_orc(data_files(Stores()), str(path), Matching(), path.stat().st_size)
    with closing(source):
        tables = list(source.tables([name]))
    return pa.concat_tables(tables).column(name)


def without_statistics(path):
    """Nothing then says that the values are within 64 bits of nanoseconds."""
    edited_footer(path, lambda footer, script: ([f for f in footer if f[0] != 7], script))


def written(path, values, type=NTZ, **options):
    array = pa.array(values, pa.int64()).cast(type)
    orc.write_table(pa.table({"i": range(len(values)), "t": array}), path, **options)
    return array


def shapes():
    """Numbers that writers store in runs of every kind."""
    draw = random.Random(5)
    second = 1_000_000
    near = [draw.randrange(-(10**15), 4 * 10**15) for _ in range(1500)]
    return {
        "random": near,
        "equal": [1_000_001] * 700 + [7] * 4,
        "rising": [i * 1001 for i in range(1000)],
        "falling": [10**12 - i * 13 for i in range(1000)],
        "outliers": [draw.choice([3, 5, 8]) + (999_983 if i % 97 == 0 else 0) for i in range(1200)],
        "whole": [draw.randrange(-(10**9), 10**9) * second for _ in range(600)],
        "before 1970": [-1, -999, -1000, -1001, -second, -second - 1, -1_500_000, -999_999],
        "nulls": [None if v % 3 == 0 else v for v in near],
        "nothing": [None] * 50,
        "one": [123_456],
    }


@pytest.mark.parametrize("version", ["0.11", "0.12"])
@pytest.mark.parametrize("type", [NTZ, UTC], ids=["ntz", "utc"])
@pytest.mark.parametrize("name", shapes())
def test_the_same_as_pyarrow(tmp_path, name, type, version):
    path = tmp_path / "f.orc"
    array = written(path, shapes()[name], type, file_version=version, compression="zlib")
    assert found(path).type.unit == "ns"
    without_statistics(path)
    mine = found(path)
    assert mine.type == type
    assert mine.combine_chunks().equals(array)


def test_the_same_in_the_zone_of_the_writer(tmp_path):
    path = tmp_path / "f.orc"
    written(path, shapes()["nulls"], compression="uncompressed")
    data = path.read_bytes()
    assert data.count(b"GMT") == 1
    path.write_bytes(data.replace(b"GMT", b"EST"))
    theirs = found(path)
    without_statistics(path)
    assert found(path).cast(pa.timestamp("ns")).equals(theirs)
    assert found(path).type == NTZ


@pytest.mark.parametrize("type", [NTZ, UTC], ids=["ntz", "utc"])
def test_every_year(tmp_path, type):
    draw = random.Random(7)
    values = [FIRST, LAST, None, 0, -1, *(draw.randrange(FIRST, LAST) for _ in range(5000))]
    path = tmp_path / "f.orc"
    array = written(path, values, type, stripe_size=1 << 14, batch_size=500)
    assert orc.ORCFile(path).nstripes > 1
    assert found(path).combine_chunks().equals(array)


NESTED = {
    "structs": (pa.struct([("a", pa.int32()), ("t", NTZ)]), lambda v, i: {"a": i, "t": v}),
    "lists": (pa.list_(NTZ), lambda v, i: [v] * (i % 4)),
    "keys": (pa.map_(NTZ, pa.int32()), lambda v, i: [] if v is None else [(v, i), (v + 1, i)]),
    "values": (pa.map_(pa.int32(), NTZ), lambda v, i: [(i, v)] * (i % 3)),
    "two of them": (pa.struct([("t", NTZ), ("u", pa.list_(UTC))]), lambda v, i: {"t": v, "u": [v, None][: i % 3]}),
    "deep": (
        pa.list_(pa.struct([("m", pa.map_(pa.string(), pa.struct([("t", UTC)])))])),
        lambda v, i: [{"m": [("k", {"t": v}), ("n", None)]}, None, {"m": None}][: i % 4],
    ),
}


@pytest.mark.parametrize("nulls", ["none", "some", "stripes"])
@pytest.mark.parametrize("name", NESTED)
def test_inside_of_other_columns(tmp_path, name, nulls):
    """In several stripes, of which all values may be null."""
    path, draw = tmp_path / "f.orc", random.Random(7)
    type, made = NESTED[name]
    moments = [
        draw.choice([FIRST, LAST, None, draw.randrange(FIRST, LAST - 1), draw.randrange(10**15)]) for _ in range(6000)
    ]
    gone = {"none": lambda i: False, "some": lambda i: i % 5 == 2, "stripes": lambda i: 1000 <= i < 4500}[nulls]
    values = [None if gone(i) else made(v and min(v, LAST - 1), i) for i, v in enumerate(moments)]
    array = pa.array(values, type)
    orc.write_table(pa.table({"i": range(6000), "c": array}), path, stripe_size=1 << 14, batch_size=500)
    assert orc.ORCFile(path).nstripes > 1
    assert found(path, "c").combine_chunks().equals(array)
    assert found(path, "i").to_pylist() == list(range(6000))


@pytest.mark.spark
def test_groups_that_are_null_in_files_of_java(tmp_path, spark):
    """The writer of Hive and Spark: structs that are null in all rows of a stripe or of a row group, with children."""
    far = "TIMESTAMP_NTZ'9999-12-31 23:59:59.999999'"
    path, rows = tmp_path / "t", 30_000
    column = f"named_struct('t', {far}, 'l', array(named_struct('u', {far}, 's', string(id))), 'm', map(id, {far}))"
    nulls = {"always": "true", "first": "id < 12000", "middle": "id BETWEEN 9000 AND 21000", "none": "false"}
    for name, null in nulls.items():
        frame = spark.range(0, rows, 1, 1).selectExpr("id", f"CASE WHEN {null} THEN NULL ELSE {column} END AS c")
        frame.write.option("orc.stripe.size", 1 << 16).option("orc.row.index.stride", 1000).orc(str(path / name))
        (file,) = (path / name).glob("*.orc")
        ours = found(file, "c").combine_chunks()
        valid = {"always": 0, "first": 18_000, "middle": 17_999, "none": rows}[name]
        assert (len(ours), len(ours) - ours.null_count) == (rows, valid)
        theirs = spark.read.orc(str(path / name)).where("c IS NOT NULL").orderBy("id")
        there = ours.drop_null()
        assert [r.s for r in theirs.selectExpr("c.l[0].s AS s").collect()] == [
            v["l"][0]["s"] for v in there.to_pylist()
        ]
        moments = there.field("t").cast(pa.int64()).unique().to_pylist()
        inner = there.field("l").flatten().field("u").cast(pa.int64()).unique().to_pylist()
        assert moments == inner == ([LAST] if valid else [])
        assert there.field("m").items.cast(pa.int64()).unique().to_pylist() == moments


def test_damage_is_named(tmp_path):
    """Any other bytes give rows, or an error of ours that names the file."""
    path = tmp_path / "f.orc"
    written(path, [FIRST, LAST, *range(0, 5_000_000, 1001)], compression="uncompressed")
    before, footer, script = split_orc(path.read_bytes())
    draw, refused = random.Random(3), 0
    for _ in range(300):
        data = bytearray(before)
        for _ in range(draw.randrange(1, 4)):
            data[draw.randrange(3, len(data))] = draw.randrange(256)
        path.write_bytes(join_orc(bytes(data), footer, script))
        try:
            found(path)
        except BoathouseError as error:
            assert error.where == str(path)
            refused += 1
    assert refused


def test_seconds_beyond_64_bits(tmp_path):
    path = tmp_path / "f.orc"
    orc.write_table(pa.table({"t": pa.array([10**14, 0]).cast(pa.timestamp("s"))}), path)
    with pytest.raises(CorruptTableError, match="timestamp of"):
        found(path)
