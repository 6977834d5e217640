"""Statistics of written files against the data itself, and row-group statistics against duckdb's view of them."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sequence
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boathouse.arrow.schema import to_arrow
from boathouse.parquet.bounds import truncate_lower, truncate_texts, truncate_upper
from boathouse.parquet.read import SourceColumn
from boathouse.parquet.schema import to_parquet_schema
from boathouse.parquet.source import open_source
from boathouse.parquet.stats import LeafStats, row_group_stats
from boathouse.parquet.write import ParquetOptions, ParquetWriter
from boathouse.parquet.written_stats import StatsCollector
from boathouse.table.units import stats_type
from boathouse.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT8,
    INT32,
    INT64,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    UUID,
    VARIANT,
    DecimalType,
    Field,
    FixedType,
    ListType,
    MapType,
    Schema,
    StructType,
    TimeType,
)

NAN = float("nan")


def written(files: Any, path: Path, schema: Schema, batches: Sequence[list[dict[str, Any]]]) -> dict[str, LeafStats]:
    held = to_arrow(schema)
    collector = StatsCollector(schema)
    writer = ParquetWriter(files, str(path), to_parquet_schema(schema), ParquetOptions(row_group_rows=3))
    for rows in batches:
        batch = pa.RecordBatch.from_pylist(rows, held)
        collector.update(batch)
        writer.write(batch)
    stats = collector.finish(writer.close().metadata)
    return {".".join(s.path): s for s in stats}


def py(value: pa.Scalar | None) -> Any:
    return None if value is None else value.as_py()


VALUES: list[tuple[Any, list[Any]]] = [
    (BOOLEAN, [True, False, None, True]),
    (INT8, [3, -128, None, 127]),
    (INT32, [3, -(2**31), None, 2**31 - 1]),
    (INT64, [3, -(2**63), None, 2**63 - 1]),
    (FLOAT, [1.5, -2.5, None, math.inf]),
    (DOUBLE, [1.5, -math.inf, None, 3.25]),
    (DecimalType(9, 2), [Decimal("-1.25"), Decimal("9999999.99"), None, Decimal("0")]),
    (DecimalType(18, 3), [Decimal("-1.25"), Decimal("12345.678"), None, Decimal("0")]),
    (DecimalType(38, 5), [Decimal("-1.25"), Decimal("123456789012345678901234567890.12345"), None, Decimal("0")]),
    (STRING, ["b", "\U0001f600", None, "ÿ"]),
    (BINARY, [b"b", b"\xff\x00", None, b""]),
    (FixedType(3), [b"abc", b"\xff\x00\x01", None, b"abb"]),
    (UUID, [b"\x00" * 16, b"\xff" * 16, None, b"a" * 16]),
    (DATE, [dt.date(1, 1, 1), dt.date(9999, 12, 31), None, dt.date(1970, 1, 1)]),
    (TimeType("us"), [dt.time(0, 0, 1), dt.time(23, 59, 59, 999999), None, dt.time(1)]),
    (TIMESTAMP, [*(dt.datetime(y, 12, 31, 23, 59, 59, 999999, dt.UTC) for y in (1969, 1900, 2020)), None]),
    (TIMESTAMP_NTZ, [dt.datetime(1969, 12, 31, 23, 59, 59, 1), dt.datetime(2020, 1, 1), None, dt.datetime(9999, 1, 1)]),
]  # fmt: skip


@pytest.mark.parametrize(("type", "values"), VALUES, ids=[str(t) for t, _ in VALUES])
@pytest.mark.parametrize("nested", [False, True])
def test_bounds_and_counts_are_those_of_the_data(
    files: Any, tmp_path: Path, type: Any, values: list[Any], nested: bool
) -> None:
    leaf = Field("x", type)
    schema = Schema((Field("s", StructType((leaf,))),)) if nested else Schema((leaf,))
    rows = [{"s": {"x": v}} if nested else {"x": v} for v in values]
    got = written(files, tmp_path / "f.parquet", schema, [rows, rows[:2] + ([{"s": None}] if nested else [])])
    stats = got["s.x" if nested else "x"]
    true = [v for v in values if v is not None]
    assert (py(stats.lower), py(stats.upper)) == (min(true), max(true))
    assert (stats.lower_exact, stats.upper_exact) == (True, True)
    assert (stats.nulls, stats.values) == ((2, 7) if nested else (1, 6))
    assert stats.nans == (0 if type in (FLOAT, DOUBLE) else None)
    assert stats.column_size is not None and stats.column_size > 0


def test_dates_and_times_beyond_python(files: Any, tmp_path: Path) -> None:
    schema = Schema((Field("d", DATE), Field("t", TIMESTAMP)))
    writer = ParquetWriter(files, str(tmp_path / "f.parquet"), to_parquet_schema(schema))
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array([-(2**31), 2**31 - 1], pa.int32()).view(pa.date32()),
            pa.array([-(2**63), 2**63 - 1], pa.int64()).view(pa.timestamp("us", "UTC")),
        ],
        schema=to_arrow(schema),
    )
    collector = StatsCollector(schema)
    collector.update(batch)
    writer.write(batch)
    d, t = collector.finish(writer.close().metadata)
    assert d.lower is not None and d.upper is not None and t.lower is not None and t.upper is not None
    assert (d.lower.value, d.upper.value) == (-(2**31), 2**31 - 1)
    assert (t.lower.value, t.upper.value) == (-(2**63), 2**63 - 1)


FLOATS = st.sampled_from([NAN, -NAN, 0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, None])


@given(st.lists(st.lists(FLOATS, max_size=4), min_size=1, max_size=4), st.sampled_from([FLOAT, DOUBLE]))
@pytest.mark.spec("I-155", "I-158", "I-159", "I-160")
def test_nan_is_counted_and_never_a_bound(tmp_path_factory: Any, batches: list[list[float | None]], type: Any) -> None:
    from_disk = tmp_path_factory.mktemp("nan") / "f.parquet"
    stats = written(_files(), from_disk, Schema((Field("x", type),)), [[{"x": v} for v in b] for b in batches])["x"]
    all_values = [v for b in batches for v in b]
    true = [v for v in all_values if v is not None and not math.isnan(v)]
    assert stats.values == len(all_values)
    assert stats.nulls == all_values.count(None)
    assert stats.nans == sum(v is not None and math.isnan(v) for v in all_values)
    if not true:
        assert stats.lower is None and stats.upper is None
        return
    lower, upper = py(stats.lower), py(stats.upper)
    if set(true) in ({math.inf}, {-math.inf}) and not _arrow_bounds_infinity():
        assert lower <= true[0] <= upper
        return
    assert (lower, upper) == (min(true), max(true))
    if lower == 0:
        assert math.copysign(1, lower) == -1
    if upper == 0:
        assert math.copysign(1, upper) == 1


@cache
def _arrow_bounds_infinity() -> bool:
    """Arrow 23 bounds a column of nothing but infinity by the nearest finite number too, later ones do not."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"x": [math.inf]}), sink)
    stats = pq.ParquetFile(sink.getvalue()).metadata.row_group(0).column(0).statistics
    return bool(stats.min == math.inf)


def _files() -> Any:
    class Files:
        def open_output(self, uri: str) -> pa.NativeFile:
            return pa.OSFile(uri, "wb")

    return Files()


@pytest.mark.spec("I-154")
def test_lists_and_maps_count_elements_and_have_no_bounds(files: Any, tmp_path: Path) -> None:
    point = StructType((Field("x", DOUBLE), Field("y", INT32)))
    schema = Schema(
        (
            Field("li", ListType(Field("element", point))),
            Field("ma", MapType(Field("key", STRING, False), Field("value", DOUBLE))),
            Field("after", INT32),
        )
    )
    rows = [
        {"li": [{"x": NAN, "y": 1}, None, {"x": None, "y": None}], "ma": {"a": NAN, "b": None}, "after": 1},
        {"li": None, "ma": None, "after": 2},
        {"li": [], "ma": {}, "after": 3},
    ]
    got = written(files, tmp_path / "f.parquet", schema, [rows, rows])
    assert list(got) == ["li.element.x", "li.element.y", "ma.key", "ma.value", "after"]
    counts = {name: (s.nulls, s.nans, s.values) for name, s in got.items()}
    assert counts == {
        "li.element.x": (4, 2, 6),
        "li.element.y": (4, None, 6),
        "ma.key": (0, None, 4),
        "ma.value": (2, 2, 4),
        "after": (0, None, 6),
    }
    assert all(s.lower is None and s.upper is None for name, s in got.items() if name != "after")
    assert (py(got["after"].lower), py(got["after"].upper)) == (1, 3)


def test_void_variant_and_columns_after_them(files: Any, tmp_path: Path) -> None:
    schema = Schema((Field("n", NULL), Field("v", VARIANT), Field("k", INT32)))
    rows = [
        {"n": None, "v": {"metadata": b"\x01\x00\x00", "value": b"\x00"}, "k": 7},
        {"n": None, "v": None, "k": 8},
    ]
    got = written(files, tmp_path / "f.parquet", schema, [rows])
    assert (got["n"].nulls, got["n"].values, got["n"].lower) == (2, 2, None)
    assert (got["v"].nulls, got["v"].values, got["v"].lower) == (1, 2, None)
    assert (py(got["k"].lower), py(got["k"].upper), got["k"].nulls) == (7, 8, 0)


def test_nothing_is_claimed_of_nothing(files: Any, tmp_path: Path) -> None:
    schema = Schema((Field("a", STRING), Field("b", DOUBLE)))
    empty = written(files, tmp_path / "e.parquet", schema, [[]])
    assert [(s.lower, s.nulls, s.values) for s in empty.values()] == [(None, 0, 0)] * 2
    nulls = written(files, tmp_path / "n.parquet", schema, [[{"a": None, "b": None}] * 7])
    assert [(s.lower, s.lower_exact, s.nulls, s.values) for s in nulls.values()] == [(None, None, 7, 7)] * 2


def test_values_too_long_for_a_footer_have_unknown_bounds(files: Any, tmp_path: Path) -> None:
    rows = [{"a": "z" * 9000}, {"a": "a"}, {"a": "c"}, {"a": "d"}]
    stats = written(files, tmp_path / "f.parquet", Schema((Field("a", STRING),)), [rows])["a"]
    assert (stats.lower, stats.upper, stats.lower_exact, stats.nulls, stats.values) == (None, None, None, 0, 4)


@given(st.text(max_size=12), st.integers(0, 6), st.text(max_size=3))
def test_truncated_text_still_bounds(text: str, length: int, rest: str) -> None:
    lower, upper = truncate_lower(text, length), truncate_upper(text, length)
    assert len(lower) <= length
    assert lower.encode() <= text.encode()
    if upper is not None:
        assert len(upper) <= length or upper == text
        assert upper.encode() >= text.encode()
        if len(text) > length:
            assert upper.encode() > (text + rest).encode()


@given(st.binary(max_size=8), st.integers(0, 5))
def test_truncated_bytes_still_bound(data: bytes, length: int) -> None:
    upper = truncate_upper(data, length)
    assert truncate_lower(data, length) <= data
    assert upper is None or (upper >= data and (len(upper) <= length or upper == data))


_EDGES = st.sampled_from("ab~\x7f\x80\u00ff\u07ff\u0800\ud7ff\ue000\uffff\U0010ffff\0")


@given(st.lists(st.none() | st.text(st.characters() | _EDGES, max_size=6), max_size=8), st.integers(1, 4))
def test_columns_of_texts_are_truncated_alike(texts: list[str | None], length: int) -> None:
    column = pa.array(texts, pa.string())
    for part in (column, column.slice(1), pa.array(["x", *texts], pa.string())[1:]):
        lower, upper = truncate_texts(part, part, length)
        upper.validate(full=True)
        for found, cut in ((lower, truncate_lower), (upper, truncate_upper)):
            values = [None if t is None else cut(t, length) for t in part.to_pylist()]
            assert found.to_pylist() == [None if v is None else v.encode() for v in values]


def test_truncation_at_the_edges() -> None:
    assert truncate_upper("ab\ud7ffz"[:3] + "z", 3) == "ab\ue000"
    assert truncate_upper("a\U0010ffffz", 2) == "b"
    assert truncate_upper("\U0010ffff" * 3, 2) is None
    assert truncate_upper(b"a\xff\xff", 2) == b"b"
    assert truncate_upper(b"\xff\xff\xff", 2) is None
    assert truncate_upper("ab", 2) == "ab"


def test_row_groups_as_the_footer_says(files: Any, tmp_path: Path) -> None:
    path = tmp_path / "g.parquet"
    table = pa.table(
        {
            "i": pa.array([1, 2, None, 4, 5, 6], pa.int32()),
            "f": [1.0, NAN, 3.0, NAN, NAN, NAN],
            "s": ["a", "b", "c", None, None, None],
            "t": pa.array([-1_500, 2_000, 3_000, 0, 0, 0], pa.timestamp("us")).cast(pa.timestamp("ns")),
        }
    )
    pq.write_table(table, path, row_group_size=3)
    source = open_source(files, str(path))
    columns = [
        SourceColumn("i", INT64),
        SourceColumn("f", DOUBLE),
        SourceColumn("s", STRING),
        SourceColumn("t", TIMESTAMP),
        SourceColumn("gone", INT32),
    ]
    got = row_group_stats(source.metadata, source.resolver, columns)
    assert got.type == stats_type([c.type for c in columns])
    rows = got.to_pylist()
    assert [(r["0"]["lower"], r["0"]["upper"], r["0"]["nulls"]) for r in rows] == [(1, 2, 1), (4, 6, 0)]
    assert [(r["1"]["lower"], r["1"]["upper"], r["1"]["nans"]) for r in rows] == [(1.0, 3.0, None), (None, None, None)]
    assert [(r["2"]["lower"], r["2"]["upper"], r["2"]["nulls"]) for r in rows] == [("a", "c", 0), (None, None, 3)]
    assert rows[0]["3"]["lower"] == dt.datetime(1969, 12, 31, 23, 59, 59, 998500, dt.UTC)
    assert [(r["4"]["nulls"], r["4"]["values"], r["4"]["nans"]) for r in rows] == [(3, 3, 0)] * 2
    theirs = duckdb.sql(
        f"select stats_min_value, stats_max_value, stats_null_count from parquet_metadata('{path}') "
        "where path_in_schema = 'i' order by row_group_id"
    ).fetchall()
    assert theirs == [("1", "2", 1), ("4", "6", 0)]
