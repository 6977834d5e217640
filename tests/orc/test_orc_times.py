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
from boathouse.errors import BoathouseError, CorruptTableError, UnsupportedFeatureError
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


def test_other_columns_are_read(tmp_path):
    """Within another column such timestamps are refused, by the name of the column and the file."""
    path = tmp_path / "f.orc"
    far = pa.array([LAST, 0]).cast(NTZ)
    deep = pa.StructArray.from_arrays([far], ["t"])
    orc.write_table(pa.table({"i": [1, 2], "s": deep}), path)
    assert found(path, "i").to_pylist() == [1, 2]
    with pytest.raises(UnsupportedFeatureError, match=r"`s`: ORC timestamps .* inside of another") as error:
        found(path, "s")
    assert error.value.where == str(path)


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
