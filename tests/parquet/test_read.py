"""Values, positions, deletions and damage, in files by pyarrow and duckdb."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boathouse.bits.roaring import Bitmap
from boathouse.compute.evaluate import select
from boathouse.errors import BoathouseError, CorruptTableError, EvaluationError, NotFoundError, SchemaMismatchError
from boathouse.expr.parse import parse
from boathouse.expr.resolve import bind_predicate
from boathouse.expr.tree import Column, Comparison, Literal
from boathouse.parquet import read as read_module
from boathouse.parquet.convert import rescale
from boathouse.parquet.read import SourceColumn, output_schema, scan_file
from boathouse.types import (
    BINARY,
    DATE,
    DOUBLE,
    INT8,
    INT32,
    INT64,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    UUID,
    DataType,
    DecimalType,
    Field,
    FixedType,
    ListType,
    MapType,
    Schema,
    StructType,
    TimestampType,
    TimeType,
)

UTC = dt.UTC
ODD = dt.datetime(1969, 12, 31, 23, 59, 59, 999_999)


def scan(files: Any, path: Path, columns: list[SourceColumn], **options: Any) -> pa.Table:
    schema = output_schema(columns, options.get("positions", False))
    batches = list(scan_file(files, str(path), columns, **options))
    for b in batches:
        assert b.schema == schema
        assert b.num_rows
        b.validate(full=True)
    return pa.Table.from_batches(batches, schema)


CASTS: list[tuple[pa.Array, DataType, list[Any]]] = [
    (pa.array([1, None, -1], pa.int8()), INT32, [1, None, -1]),
    (pa.array([1, None, -1], pa.int32()), INT64, [1, None, -1]),
    (pa.array([1, None, -1], pa.int32()), INT8, [1, None, -1]),
    (pa.array([1, None, -1], pa.int32()), DOUBLE, [1.0, None, -1.0]),
    (pa.array([1, None, -1], pa.int32()), DecimalType(11, 1), [Decimal("1.0"), None, Decimal("-1.0")]),
    (pa.array([2**63 - 1, None], pa.int64()), DecimalType(20, 0), [Decimal(2**63 - 1), None]),
    (pa.array([2**63 - 1, None], pa.int64()), DecimalType(38, 19), [Decimal(2**63 - 1), None]),
    (pa.array([1.5, None], pa.float32()), DOUBLE, [1.5, None]),
    (
        pa.array([Decimal("1.25"), None], pa.decimal128(5, 2)),
        DecimalType(20, 5),
        [Decimal("1.25000"), None],
    ),
    (
        pa.array([dt.date(1960, 2, 29), None]),
        TIMESTAMP_NTZ,
        [dt.datetime(1960, 2, 29), None],
    ),
    (
        pa.array([ODD, None], pa.timestamp("us")),
        TIMESTAMP,
        [ODD.replace(tzinfo=UTC), None],
    ),
    (pa.array([ODD, None], pa.timestamp("us", "UTC")), TIMESTAMP_NTZ, [ODD, None]),
    (
        pa.array([ODD, None], pa.timestamp("us", "America/New_York")),
        TIMESTAMP,
        [ODD.replace(tzinfo=UTC), None],
    ),
    (
        pa.array([-1, 1, None], pa.int64()).view(pa.timestamp("ms")),
        TIMESTAMP,
        [
            dt.datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC),
            dt.datetime(1970, 1, 1, 0, 0, 0, 1000, UTC),
            None,
        ],
    ),
    (
        pa.array([-1, 1_500, None, -1_000], pa.int64()).view(pa.timestamp("ns")),
        TIMESTAMP_NTZ,
        [ODD, dt.datetime(1970, 1, 1, 0, 0, 0, 1), None, ODD],
    ),
    (pa.array([1], pa.time32("ms")), TimeType("us"), [dt.time(0, 0, 0, 1000)]),
    (pa.array([b"ab", None]), STRING, ["ab", None]),
    (pa.array(["ab", None]), BINARY, [b"ab", None]),
    (pa.array([b"abcd", None], pa.binary(4)), BINARY, [b"abcd", None]),
    (pa.array([b"abcd", None]), FixedType(4), [b"abcd", None]),
    (pa.array([b"a" * 16, None], pa.binary(16)), UUID, [b"a" * 16, None]),
    (pa.array([b"a" * 16, None], pa.uuid()), UUID, [b"a" * 16, None]),
    (pa.array(["x", None, "x"]).dictionary_encode(), STRING, ["x", None, "x"]),
    (pa.array(["x"], pa.large_string()), STRING, ["x"]),
    (pa.array(["x"], pa.string_view()), STRING, ["x"]),
    (pa.array([None, None], pa.null()), STRING, [None, None]),
    (
        pa.array([None], pa.null()),
        StructType((Field("a", INT32),)),
        [None],
    ),
    (pa.array([[1, None], None, []], pa.list_(pa.int32())), ListType(Field("element", INT64)), [[1, None], None, []]),
    (pa.array([[1], [2]], pa.large_list(pa.int32())), ListType(Field("element", INT32)), [[1], [2]]),
    (
        pa.array([["a"], None, ["b", None], []], pa.list_view(pa.string())),
        ListType(Field("element", STRING)),
        [["a"], None, ["b", None], []],
    ),
    (pa.array([[1, 2], None], pa.large_list_view(pa.int32())), ListType(Field("element", INT64)), [[1, 2], None]),
    (pa.array([[1, 2], None], pa.list_(pa.int32(), 2)), ListType(Field("element", INT32)), [[1, 2], None]),
    (
        pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int32())),
        MapType(Field("key", BINARY, False), Field("value", INT64)),
        [[(b"a", 1)], None, []],
    ),
    (
        pa.array([{"a": 1, "b": [{"c": "x"}]}, None]),
        StructType((Field("b", ListType(Field("element", StructType((Field("c", BINARY),))))), Field("a", INT64))),
        [{"b": [{"c": b"x"}], "a": 1}, None],
    ),
]


@pytest.mark.parametrize(("array", "type", "expected"), CASTS, ids=[f"{a.type} as {t}" for a, t, _ in CASTS])
def test_types_change_as_tables_allow(
    files: Any, tmp_path: Path, array: pa.Array, type: DataType, expected: list[Any]
) -> None:
    views = pa.types.is_list_view(array.type) or pa.types.is_large_list_view(array.type)
    if int(pa.__version__.split(".")[0]) < 26 and (views or pa.types.is_fixed_size_list(array.type)):
        pytest.skip("this Arrow writes no views to Parquet, and reads no null among lists of a fixed size")
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"x": array}), path, row_group_size=2)
    assert scan(files, path, [SourceColumn("x", type)])["x"].to_pylist() == expected


def test_int96_is_an_instant_at_any_date(files: Any, tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    values = [
        dt.datetime(1, 1, 1),
        dt.datetime(1500, 6, 1, 1, 2, 3, 4),
        ODD,
        dt.datetime(9999, 12, 31, 23, 59, 59),
        None,
    ]
    array = pa.array(values, pa.timestamp("us"))
    pq.write_table(pa.table({"x": array}), path, use_deprecated_int96_timestamps=True, store_schema=False)
    assert "int96" in str(pq.ParquetFile(path).schema)
    assert scan(files, path, [SourceColumn("x", TIMESTAMP_NTZ)])["x"].to_pylist() == values
    aware = [v and v.replace(tzinfo=UTC) for v in values]
    assert scan(files, path, [SourceColumn("x", TIMESTAMP)])["x"].to_pylist() == aware


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.none()), st.sampled_from(["s", "ms", "us"]))
def test_nanoseconds_are_floored(values: list[int | None], unit: str) -> None:
    size = {"s": 10**9, "ms": 10**6, "us": 10**3}[unit]
    got = rescale(pa.array(values, pa.int64()).view(pa.timestamp("ns")), unit).view(pa.int64()).to_pylist()
    assert got == [None if v is None else v // size for v in values]


def test_values_that_cannot_be_the_type_are_errors(files: Any, tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"b": [b"\xff"], "i": pa.array([300], pa.int32()), "f": [b"abc"]}), path)
    for name, type in (("b", STRING), ("i", INT8), ("f", FixedType(4))):
        with pytest.raises(SchemaMismatchError) as caught:
            scan(files, path, [SourceColumn(name, type)])
        assert caught.value.where == str(path)


@pytest.fixture
def groups(tmp_path: Path) -> Path:
    path = tmp_path / "groups.parquet"
    table = pa.table({"i": range(1000), "s": [f"s{i}" for i in range(1000)]})
    pq.write_table(table, path, row_group_size=70)
    return path


COLUMNS = [SourceColumn("i", INT64), SourceColumn("s", STRING)]


@pytest.mark.parametrize("batch_rows", [1, 33, 70, 100_000])
@pytest.mark.spec("D-230")
def test_positions_are_those_of_the_file(files: Any, groups: Path, batch_rows: int) -> None:
    got = scan(files, groups, COLUMNS, positions=True, batch_rows=batch_rows)
    assert got["_pos"].to_pylist() == got["i"].to_pylist() == list(range(1000))
    assert max(len(b) for b in got.to_batches()) <= batch_rows


@settings(max_examples=25)
@given(gone=st.sets(st.integers(0, 1200)), batch_rows=st.sampled_from([7, 70, 256, 5000]))
def test_deleted_rows_do_not_come_out(tmp_path_factory: Any, gone: set[int], batch_rows: int) -> None:
    path = _shared_groups(tmp_path_factory)
    got = scan(_plain(), path, COLUMNS[:1], deleted=Bitmap.of(list(gone)), positions=True, batch_rows=batch_rows)
    expected = [i for i in range(1000) if i not in gone]
    assert got["i"].to_pylist() == got["_pos"].to_pylist() == expected


_SHARED: list[Path] = []


def _shared_groups(factory: Any) -> Path:
    if not _SHARED:
        _SHARED.append(factory.mktemp("shared") / "g.parquet")
        pq.write_table(pa.table({"i": range(1000)}), _SHARED[0], row_group_size=70)
    return _SHARED[0]


def _plain() -> Any:
    class Files:
        def open_input(self, uri: str, size: int | None = None) -> pa.NativeFile:
            return pa.OSFile(uri, "rb")

    return Files()


def test_everything_deleted_gives_no_batch(files: Any, groups: Path) -> None:
    assert list(scan_file(files, str(groups), COLUMNS, deleted=Bitmap.of(range(1000)))) == []


def test_without_columns_rows_are_still_counted(files: Any, groups: Path) -> None:
    batches = list(scan_file(files, str(groups), [], deleted=Bitmap.of([1, 2, 999])))
    assert sum(b.num_rows for b in batches) == 997
    got = scan(files, groups, [], positions=True, deleted=Bitmap.of([0]))
    assert got["_pos"].to_pylist() == list(range(1, 1000))
    only_absent = scan(files, groups, [SourceColumn("new", INT64, default=3), SourceColumn("void", NULL)])
    assert only_absent.num_rows == 1000
    assert set(only_absent["new"].to_pylist()) == {3}


def test_a_file_without_rows(files: Any, groups: Path) -> None:
    duckdb.sql(f"copy (select 1 as i where false) to '{groups}' (format parquet)")
    assert scan(files, groups, COLUMNS[:1]).num_rows == 0


@pytest.mark.spec("D-230")
def test_a_filter_drops_rows_and_skips_row_groups(files: Any, groups: Path) -> None:
    schema = Schema((Field("i", INT64), Field("s", STRING)))
    where = bind_predicate(Comparison(">=", Column(("i",)), Literal.of(995)), schema)
    got = scan(files, groups, COLUMNS, row_filter=where, positions=True, deleted=Bitmap.of([997]))
    assert got["_pos"].to_pylist() == got["i"].to_pylist() == [995, 996, 998, 999]


def _reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, tuple[int, ...]]]:
    seen: list[tuple[int, tuple[int, ...]]] = []
    inner = read_module._read

    def watched(source: Any, chunk: Any, leaves: tuple[int, ...], **how: Any) -> pa.Table:
        seen.extend((group, leaves) for group in chunk.groups)
        return inner(source, chunk, leaves, **how)

    monkeypatch.setattr(read_module, "_read", watched)
    return seen


def test_row_groups_are_skipped_by_their_statistics(
    files: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "f.parquet"
    nan = float("nan")
    table = pa.table(
        {
            "i": pa.array([1, 2, 3, 4, 5, 6], pa.int32()),
            "f": [1.0, 2.0, 3.0, nan, 9.0, 9.0],
            "st": pa.array([{"a": i} for i in (10, 20, 30, None, 50, 60)], pa.struct({"a": pa.int32()})),
        }
    )
    pq.write_table(table, path, row_group_size=2)
    inner = StructType((Field("a", INT64), Field("z", INT64)))
    columns = [SourceColumn("i", INT64), SourceColumn("f", DOUBLE), SourceColumn("st", inner), SourceColumn("g", INT64)]
    columns.append(SourceColumn("h", INT64, default=7))
    schema = Schema(tuple(Field(c.name, c.type) for c in columns))

    def run(left: tuple[str, ...], op: Any, value: object) -> tuple[list[int], list[int]]:
        seen = _reads(monkeypatch)
        where = bind_predicate(Comparison(op, Column(left), Literal.of(value)), schema)
        got = scan(files, path, columns, row_filter=where)["i"].to_pylist()
        monkeypatch.undo()
        return sorted({group for group, _ in seen}), got

    assert run(("i",), ">", 4) == ([2], [5, 6])
    assert run(("i",), ">", 40) == ([], [])
    # NaN is the greatest value and no footer speaks of it: no group with floats may be skipped for being too small.
    assert run(("f",), ">", 8.0) == ([0, 1, 2], [4, 5, 6])
    assert run(("f",), "<", 2.0) == ([0], [1])
    assert run(("st", "a"), "<", 30) == ([0], [1, 2])
    assert run(("st", "z"), "=", 30) == ([], [])
    assert run(("g",), "=", 1) == ([], [])
    assert run(("h",), "=", 7) == ([0, 1, 2], [1, 2, 3, 4, 5, 6])
    assert run(("h",), "=", 8) == ([], [])


def test_what_does_not_decide_is_read_only_where_rows_remain(
    files: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"i": [1, 5, 1, 9, 1, 9], "s": list("abcdef")}), path, row_group_size=2)
    monkeypatch.setattr(read_module, "_CHUNK_ROWS", 2)
    where = bind_predicate(Comparison("=", Column(("i",)), Literal.of(5)), Schema((Field("i", INT64),)))
    seen = _reads(monkeypatch)
    assert scan(files, path, COLUMNS, row_filter=where)["s"].to_pylist() == ["b"]
    assert seen == [(0, (0,)), (0, (1,)), (1, (0,)), (2, (0,))]
    seen.clear()
    assert scan(files, path, COLUMNS, row_filter=where, deleted=Bitmap.of([1, 2, 3])).num_rows == 0
    assert seen == [(0, (0,)), (2, (0,))]


def test_row_groups_too_large_for_memory_come_in_slices(
    files: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"i": range(50_000), "s": [f"s{i}" for i in range(50_000)]}), path, row_group_size=20_000)
    monkeypatch.setattr(read_module, "_CHUNK_BYTES", 20_000)
    monkeypatch.setattr(read_module, "_STREAM_BYTES", 50_000)
    seen = _reads(monkeypatch)
    where = bind_predicate(parse("i % 10 <> 3"), Schema((Field("i", INT64),)))
    got = scan(files, path, COLUMNS, row_filter=where, deleted=Bitmap.of([19_999, 20_000]), positions=True)
    expected = [i for i in range(50_000) if i % 10 != 3 and i not in (19_999, 20_000)]
    assert got["_pos"].to_pylist() == got["i"].to_pylist() == expected
    assert got["s"].to_pylist() == [f"s{i}" for i in expected]
    assert seen == []


def test_a_condition_is_not_evaluated_on_deleted_rows(files: Any, tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"s": ["1", "x", "3"]}), path)
    columns = [SourceColumn("s", STRING)]
    where = bind_predicate(parse("cast(s as int) > 1"), Schema((Field("s", STRING),)))
    assert scan(files, path, columns, row_filter=where, deleted=Bitmap.of([1]))["s"].to_pylist() == ["3"]
    with pytest.raises(EvaluationError):
        scan(files, path, columns, row_filter=where)


@settings(max_examples=40)
@given(
    values=st.lists(st.none() | st.floats() | st.sampled_from([0.0, -0.0]), min_size=1, max_size=12),
    op=st.sampled_from(["=", "<", "<=", ">", ">=", "!="]),
    value=st.floats() | st.sampled_from([0.0, -0.0]),
)
def test_skipping_never_loses_a_row(tmp_path_factory: Any, values: list[float | None], op: Any, value: float) -> None:
    path = tmp_path_factory.mktemp("skip") / "f.parquet"
    pq.write_table(pa.table({"f": pa.array(values, pa.float64())}), path, row_group_size=2)
    column = [SourceColumn("f", DOUBLE)]
    where = bind_predicate(Comparison(op, Column(("f",)), Literal.of(value)), Schema((Field("f", DOUBLE),)))
    everything = pa.RecordBatch.from_pydict({"f": pa.array(values, pa.float64())})
    got = scan(_plain(), path, column, row_filter=where)
    assert str(got["f"].to_pylist()) == str(select(everything, where)["f"].to_pylist())


def test_duckdb_files(files: Any, tmp_path: Path) -> None:
    path = tmp_path / "duck.parquet"
    duckdb.sql(
        f"""copy (select i::int as i, i % 3 = 0 as b, 'n' || i as s, [i, null] as l, {{'a': i, 'b': [i]}} as st,
                         map {{'k': i}} as m, (i / 7)::decimal(12, 3) as d, uuid() as u,
                         timestamp '1969-12-31 23:59:59.999999' as t
                  from range(5000) r(i)) to '{path}' (format parquet, row_group_size 2048)"""
    )
    columns = [
        SourceColumn("i", INT64),
        SourceColumn("s", STRING),
        SourceColumn("l", ListType(Field("element", INT64))),
        SourceColumn("st", StructType((Field("b", ListType(Field("element", INT64))), Field("a", INT64)))),
        SourceColumn("m", MapType(Field("key", STRING, False), Field("value", INT64))),
        SourceColumn("d", DecimalType(14, 4)),
        SourceColumn("t", TIMESTAMP_NTZ),
        SourceColumn("u", UUID),
    ]
    got = scan(files, path, columns)
    row = got.slice(4999, 1).to_pylist()[0]
    assert len(row.pop("u")) == 16
    assert row == {
        "i": 4999,
        "s": "n4999",
        "l": [4999, None],
        "st": {"b": [4999], "a": 4999},
        "m": [("k", 4999)],
        "d": Decimal("714.1430"),
        "t": ODD,
    }


def test_what_is_no_parquet_file_is_named(files: Any, tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    for data in (b"", b"PAR1", b"hello world, no parquet here", b"PAR1" + b"\0" * 100 + b"PAR1"):
        path.write_bytes(data)
        with pytest.raises(CorruptTableError) as caught:
            list(scan_file(files, str(path), COLUMNS))
        assert caught.value.where == str(path)


def test_damaged_bytes_never_surface_as_foreign_errors(files: Any, groups: Path) -> None:
    good = groups.read_bytes()
    rng = random.Random(5)
    bad_path = groups.with_name("bad.parquet")
    refused = 0
    for _ in range(300):
        bad = bytearray(good)
        for _ in range(rng.randint(1, 8)):
            tail = rng.random() < 0.5
            bad[rng.randrange(len(bad) - 600, len(bad)) if tail else rng.randrange(len(bad))] = rng.randrange(256)
        bad_path.write_bytes(bad)
        try:
            for _ in scan_file(files, str(bad_path), COLUMNS):
                pass
        except BoathouseError as error:
            assert error.where == str(bad_path)
            refused += 1
    assert refused > 20


def test_the_store_speaks_for_itself(groups: Path) -> None:
    class Gone:
        def open_input(self, uri: str, size: int | None = None) -> pa.NativeFile:
            raise NotFoundError("no file", where=uri)

    with pytest.raises(NotFoundError):
        list(scan_file(Gone(), "x", COLUMNS))  # type: ignore[arg-type]


def test_nanosecond_columns_stay_nanoseconds(files: Any, tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    array = pa.array([-1, None], pa.int64()).view(pa.timestamp("ns", "UTC"))
    pq.write_table(pa.table({"x": array}), path)
    got = scan(files, path, [SourceColumn("x", TimestampType(True, "ns"))])
    assert got["x"].cast(pa.int64()).to_pylist() == [-1, None]


def test_large_columns_come_in_several_chunks(files: Any, tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    n = 1_200_000
    pq.write_table(pa.table({"i": np.arange(n)}), path, row_group_size=100_000)
    got = scan(files, path, [SourceColumn("i", DOUBLE)], positions=True)
    assert got["_pos"].to_numpy().tolist() == list(range(n))
    assert got["i"].to_numpy()[-1] == n - 1


def test_date_column_as_it_is(files: Any, tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"x": pa.array([-(2**31), 2**31 - 1], pa.int32()).view(pa.date32())}), path)
    got = scan(files, path, [SourceColumn("x", DATE)])
    assert got["x"].cast(pa.int32()).to_pylist() == [-(2**31), 2**31 - 1]
