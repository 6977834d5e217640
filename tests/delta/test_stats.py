"""Statistics: what is written, and what is believed."""

import datetime as dt
import json
from decimal import Decimal

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.delta.stats.bounds import StatsColumn, decode_stats, row_counts
from boathouse.delta.stats.written import column_names, cut_upper
from boathouse.types import DATE, DOUBLE, INT64, STRING, TIMESTAMP, DecimalType


def stats_of(path, delta, version=0):
    return [json.loads(a["add"]["stats"]) for a in delta.log(path)[version] if "add" in a]


def written(tmp_path, delta, data, **properties):
    bh.write(data, str(tmp_path / "t"), format="delta", properties=properties)
    (found,) = stats_of(tmp_path / "t", delta)
    return found


def found(path, where):
    return sorted(bh.open(str(path)).scan(where=where).to_arrow().column("x").to_pylist())


@pytest.mark.spec("D-261")
def test_nested_columns_mirror_the_schema(tmp_path, delta):
    data = pa.table({"a": [{"b": {"c": 1}}, {"b": {"c": None}}, {"b": {"c": 5}}], "l": [[1], [2], []]})
    assert written(tmp_path, delta, data) == {
        "numRecords": 3,
        "minValues": {"a": {"b": {"c": 1}}},
        "maxValues": {"a": {"b": {"c": 5}}},
        "nullCount": {"a": {"b": {"c": 1}}},
    }
    assert bh.open(str(tmp_path / "t")).scan(where="a.b.c = 5").count() == 1
    assert bh.open(str(tmp_path / "t")).scan(where="a.b.c = 6").to_arrow().num_rows == 0


@pytest.mark.spec("D-262")
def test_dots_in_names_are_no_paths(tmp_path, delta):
    data = pa.table({"a.b": [1], "a": [{"b": 9}]})
    stats = written(tmp_path, delta, data)
    assert stats["minValues"] == {"a.b": 1, "a": {"b": 9}}
    table = bh.open(str(tmp_path / "t"))
    assert table.scan(where="`a.b` = 1").count() == 1
    assert table.scan(where="a.b = 9").count() == 1
    assert table.scan(where="a.b = 1").count() == 0


@pytest.mark.spec("D-266")
def test_all_null(tmp_path, delta):
    data = pa.table({"x": pa.array([None, None], pa.int64()), "s": pa.array([None, None], pa.string())})
    stats = written(tmp_path, delta, data)
    assert stats["minValues"] == stats["maxValues"] == {} and stats["nullCount"] == {"x": 2, "s": 2}
    table = bh.open(str(tmp_path / "t"))
    assert table.scan(where="x is null").count() == 2
    assert table.scan(where="x = 1 or s is null").count() == 2
    assert len(delta.rows(tmp_path / "t", "select * from t where x is null")) == 2


@pytest.mark.spec("D-267")
def test_strings_are_cut(tmp_path, delta):
    long = "é" * 31 + "😀" + "z" * 10
    stats = written(tmp_path, delta, pa.table({"s": [long]}))
    assert stats["minValues"]["s"] == long[:32]
    high = stats["maxValues"]["s"]
    assert len(high) == 33 and high.encode() > long.encode() and high.startswith(long[:32])
    for text in ("a" * 32, "a" * 33, "a" * 32 + "\x7f", "a" * 32 + "\U0010ffff" + "b", "\U0010ffff" * 40):
        bound = cut_upper(text)
        assert bound is not None and bound.encode() >= text.encode() and len(bound) <= 64
    assert cut_upper("\U0010ffff" * 100) is None
    assert len(delta.rows(tmp_path / "t", f"select * from t where s = '{long}'")) == 1


@pytest.mark.spec("D-268", "D-269")
def test_bounds_that_were_cut_lose_no_row(tmp_path, delta):
    instant = dt.datetime(2020, 1, 1, 0, 0, 0, 123456, tzinfo=dt.UTC)
    data = pa.table(
        {
            "x": [1],
            "t": pa.array([instant], pa.timestamp("us", "UTC")),
            "s": ["y" * 40],
            "d": pa.array([Decimal("12345678901234567890123.45")], pa.decimal128(38, 2)),
        }
    )
    stats = written(tmp_path, delta, data)
    assert stats["maxValues"]["t"] == stats["minValues"]["t"] == "2020-01-01T00:00:00.123Z"
    path = tmp_path / "t"
    for where in (
        "t = timestamp '2020-01-01 00:00:00.123456'",
        f"s = '{'y' * 40}'",
        "d = 12345678901234567890123.45",
        "t > timestamp '2020-01-01 00:00:00.123'",
        f"s > '{'y' * 32}'",
    ):
        assert found(path, where) == [1]
        assert bh.open(str(path)).scan(where=where).count() == 1
    assert found(path, "t > timestamp '2020-01-01 00:00:00.124'") == []


@pytest.mark.spec("D-268", "D-269")
def test_cut_bounds_of_others_lose_no_row(raw, delta):
    table = raw()
    fields = [
        delta.field(n, t) for n, t in (("x", "long"), ("t", "timestamp"), ("s", "string"), ("d", "decimal(38,2)"))
    ]
    instant = dt.datetime(2020, 1, 1, 0, 0, 0, 123999, tzinfo=dt.UTC)
    number = Decimal("12345678901234567890.12")
    table.file(
        "f.parquet",
        pa.table(
            {
                "x": [1],
                "t": pa.array([instant], pa.timestamp("us", "UTC")),
                "s": ["b" * 40],
                "d": pa.array([number], pa.decimal128(38, 2)),
            }
        ),
    )
    instant_text = "2020-01-01T00:00:00.123Z"
    low = {"t": instant_text, "s": "b" * 32, "d": 1.2345678901234567e19}
    high = {"t": instant_text, "s": "b" * 32 + "\x7f", "d": 1.2345678901234567e19}
    nulls = {"t": 0, "s": 0, "d": 0}
    stats = json.dumps({"numRecords": 1, "minValues": low, "maxValues": high, "nullCount": nulls})
    table.commit(0, delta.PROTOCOL, delta.metadata(fields), table.add("f.parquet", stats=stats))
    for where in ("t = timestamp '2020-01-01 00:00:00.123999'", f"s = '{'b' * 40}'", f"d = {number}", f"d >= {number}"):
        assert found(table, where) == [1], where
    assert found(table, "t > timestamp '2020-01-01 00:00:00.124'") == []
    assert found(table, "d > 12345678901234580000.00") == []


@pytest.mark.spec("D-270")
def test_floats(tmp_path, raw, delta):
    nan, inf = float("nan"), float("inf")
    for i, values in enumerate(([nan, 1.0], [nan, nan], [inf, -inf], [-0.0, 0.0], [nan, inf, None])):
        path = tmp_path / str(i)
        bh.write(pa.table({"x": list(range(len(values))), "f": values}), str(path), format="delta")
        (stats,) = stats_of(path, delta)
        bounds = [stats[k].get("f") for k in ("minValues", "maxValues")]
        assert bounds == ([0.0, 0.0] if i == 3 else [None, None])
        json.loads(json.dumps(stats), parse_constant=lambda text: pytest.fail(text))
        table = bh.open(str(path)).to_arrow().to_pylist()
        for where, test in (
            ("f > 5", lambda v: v is not None and (v > 5 or v != v)),
            ("f = 0", lambda v: v == 0),
            ("f < 0", lambda v: v is not None and v < 0),
            ("f = cast('NaN' as double)", lambda v: v is not None and v != v),
        ):
            assert found(path, where) == [r["x"] for r in table if test(r["f"])], (values, where)
            if not any(v is not None and v != v for v in values):  # DataFusion loses NaN by the Parquet footer
                assert len(delta.rows(path, f"select * from t where {where}")) == len(found(path, where))
    # A writer that leaves NaN out of its bounds: the NaN row is still found.
    other = raw()
    other.file("f.parquet", pa.table({"x": [0, 1], "f": [nan, 1.0]}))
    stats = '{"numRecords":2,"minValues":{"f":1.0},"maxValues":{"f":1.0},"nullCount":{"f":0}}'
    fields = [delta.field("x", "long"), delta.field("f", "double")]
    other.commit(0, delta.PROTOCOL, delta.metadata(fields), other.add("f.parquet", stats=stats))
    assert found(other, "f > 5") == [0]
    assert found(other, "f != 1.0") == [0]


@pytest.mark.spec("D-274")
@pytest.mark.parametrize(
    "stats", [None, "", "{}", "{", '{"numRecords": 2}', '{"minValues": 7, "numRecords": "x"}', "[]"]
)
def test_without_statistics_the_file_is_read(raw, delta, stats):
    table = raw()
    table.file("f.parquet", pa.table({"x": [1, 2]}))
    more = {} if stats is None else {"stats": stats}
    table.commit(0, delta.PROTOCOL, delta.metadata([delta.field("x", "long")]), table.add("f.parquet", **more))
    assert found(table, "x = 2") == [2]
    assert bh.open(str(table)).count() == 2


def decoded(text, type):
    array = decode_stats(pa.array([text]), [StatsColumn(type, ("c",))])
    return array.field("0").to_pylist()[0]


def test_decoding():
    text = '{"numRecords":3,"minValues":{"c":%s},"maxValues":{"c":%s},"nullCount":{"c":1}}'
    one = decoded(text % ("1", "9223372036854775807"), INT64)
    assert one == {
        "lower": 1, "upper": 2**63 - 1, "lower_exact": True, "upper_exact": True, "nulls": 1, "nans": None, "values": 3,
    }  # fmt: skip
    assert decoded(text % ('"a"', '"b"'), INT64)["lower"] is None
    assert decoded(text % ("1", "9223372036854775808"), INT64)["upper"] is None
    dates = decoded(text % ('"0001-01-01"', '"9999-12-31"'), DATE)
    assert (dates["lower"], dates["upper"]) == (dt.date(1, 1, 1), dt.date(9999, 12, 31))
    short = decoded(text % ('"a"', '"b"'), STRING)
    assert short["lower_exact"] and short["upper_exact"]
    long = decoded(text % (f'"{"a" * 32}"', f'"{"b" * 33}"'), STRING)
    assert not long["lower_exact"] and not long["upper_exact"]
    floats = decoded(text % ('"-Infinity"', '"NaN"'), DOUBLE)
    assert floats["lower"] == -float("inf") and floats["upper"] is None
    decimals = decoded(text % ("0E-10", "12345678901234567890.1234567890"), DecimalType(38, 10))
    assert decimals["upper"] == Decimal("12345678901234567890.1234567890") and decimals["upper_exact"]
    zoned = decoded(text % ('"2020-01-01T00:00:00.000-08:00"', '"2020-01-01T00:00:00.000+00:53"'), TIMESTAMP)
    assert zoned["lower"] == dt.datetime(2020, 1, 1, 8, tzinfo=dt.UTC) and not zoned["lower_exact"]
    assert zoned["upper"] >= dt.datetime(2019, 12, 31, 23, 7, 59, tzinfo=dt.UTC)


def test_wide_bounds_are_inexact():
    text = '{"numRecords":3,"tightBounds":false,"minValues":{"c":1},"maxValues":{"c":2},"nullCount":{"c":%d}}'
    for nulls, believed in ((0, 0), (1, None), (3, 3)):
        one = decoded(text % nulls, INT64)
        assert (one["lower"], one["upper"], one["lower_exact"], one["upper_exact"]) == (1, 2, False, False)
        assert one["nulls"] == believed


def test_row_counts():
    texts = [
        '{"numRecords":12,"x":1}', '{"numRecords":0}', None, "", '{ "numRecords" : 7 }',
        '{"minValues":{"numRecords":9},"numRecords":3}',
        '{"numRecords":99999999999999}', '{"numRecords":-1}', '{"numRecords":', '{"numRecords":1.5}', "x",
    ]  # fmt: skip
    expected = [12, 0, None, None, 7, 3, 99999999999999, None, None, None, None]
    array = pa.array(texts)
    assert row_counts(array).to_pylist() == expected
    assert row_counts(array.slice(3, 5)).to_pylist() == expected[3:8]
    assert row_counts(pa.nulls(2, pa.string())).to_pylist() == [None, None]


def test_which_columns_are_counted(tmp_path, delta):
    data = pa.table({f"c{i}": [i] for i in range(40)})
    assert len(written(tmp_path / "a", delta, data)["minValues"]) == 32
    few = written(tmp_path / "b", delta, data, **{"delta.dataSkippingNumIndexedCols": "3"})
    assert list(few["minValues"]) == ["c0", "c1", "c2"]
    named = written(tmp_path / "c", delta, data, **{"delta.dataSkippingStatsColumns": "c7, `c9`"})
    assert list(named["minValues"]) == ["c7", "c9"]
    assert column_names("a.b, `c,d`.e,f") == [("a", "b"), ("c,d", "e"), ("f",)]


def test_the_reference_skips_by_our_statistics(tmp_path, delta):
    path = tmp_path / "t"
    for part in range(4):
        rows = pa.table(
            {
                "x": [part],
                "d": pa.array([Decimal(part) / 100], pa.decimal128(10, 2)),
                "t": pa.array([dt.datetime(2020, 1, 1 + part)], pa.timestamp("us", "UTC")),
                "f": pa.array([part + 0.1], pa.float32()),
            }
        )
        bh.write(rows, str(path), format="delta", mode="append")
    for where in ("d = 0.02", "t = timestamp '2020-01-03'", "f > 1.5 and f < 2.5", "x = 2"):
        assert [r["x"] for r in delta.rows(path, f"select x from t where {where}")] == [2], where
        assert found(path, where) == [2]
        plan = bh.open(str(path)).scan(where=where).files()
        assert len(plan) == 1
