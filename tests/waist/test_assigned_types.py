"""Every type of every format goes through every clause of updates and merges, as do the fields of structs."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse import errors
from boathouse.arrow.schema import to_arrow_type
from boathouse.types.text import parse_type

ON = "target.id = source.id"
COMMON = {
    "boolean": ([True, False, True], "false", False),
    "int": ([1, 2, 3], "7", 7),
    "bigint": ([2**40, 2, 3], "7", 7),
    "float": ([0.5, 1.5, 2.5], "float(0.25)", 0.25),
    "double": ([0.5, 1.5, 2.5], "double('inf')", float("inf")),
    "decimal(9,2)": ([Decimal("1.50"), Decimal("2.00"), Decimal("-3.25")], "1.25", Decimal("1.25")),
    "string": (["a", "b", "ü"], "'x'", "x"),
    "binary": ([b"a", b"b", b""], "X'00FF'", b"\x00\xff"),
    "date": (
        [dt.date(2024, 1, 1), dt.date(1, 1, 1), dt.date(9999, 12, 31)],
        "date('2020-02-29')",
        dt.date(2020, 2, 29),
    ),
    "timestamp": (
        [dt.datetime(2024, 1, i, tzinfo=dt.UTC) for i in (1, 2, 3)],
        "timestamp('2020-02-29 01:02:03Z')",
        dt.datetime(2020, 2, 29, 1, 2, 3, tzinfo=dt.UTC),
    ),
    "array<int>": ([[1, None], [], [3]], "array(1, NULL, id)", None),
    "map<string,int>": ([[("k", 1)], [], [("z", None)]], None, None),
    "struct<x:int,y:array<string>>": (
        [{"x": 1, "y": ["a"]}, {"x": None, "y": None}, {"x": 3, "y": []}],
        "named_struct('y', array('q'), 'x', 9)",
        {"x": 9, "y": ["q"]},
    ),
}
OF_DELTA = {
    "tinyint": ([1, 2, 3], "7", 7),
    "smallint": ([1, 2, 3], "7", 7),
    "timestamp_ntz": ([dt.datetime(2024, 1, i) for i in (1, 2, 3)], "NULL", None),
}
OF_ICEBERG = {
    "time": ([dt.time(1, 2, 3), dt.time(0), dt.time(23, 59)], "'12:30:00.5'", dt.time(12, 30, 0, 500_000)),
    "uuid": ([uuid.UUID(int=i).bytes for i in (1, 2, 3)], f"'{uuid.UUID(int=9)}'", uuid.UUID(int=9).bytes),
    "fixed(4)": ([b"abcd", b"efgh", b"ijkl"], "X'00010203'", b"\x00\x01\x02\x03"),
    "timestamp_ntz": ([dt.datetime(2024, 1, i) for i in (1, 2, 3)], "NULL", None),
}
ARROW = {
    "tinyint": (pa.int8(), [1, 2, 3], "7", 7),
    "uint8": (pa.uint8(), [1, 2, 255], "7", 7),
    "uint16": (pa.uint16(), [1, 2, 3], "7", 7),
    "uint32": (pa.uint32(), [1, 2, 3], "7", 7),
    "uint64": (pa.uint64(), [1, 2, 2**64 - 1], "7", 7),
    "halffloat": (pa.float16(), [0.5, 1.5, 2.5], "0.25", 0.25),
    "time_us": (pa.time64("us"), [dt.time(1), dt.time(2), dt.time(3)], "'12:30'", dt.time(12, 30)),
    "time_s": (pa.time32("s"), [dt.time(1), dt.time(2), dt.time(3)], "'12:30'", dt.time(12, 30)),
    "duration": (pa.duration("us"), [dt.timedelta(1), dt.timedelta(2), dt.timedelta(0, 1)], "NULL", None),
    "duration_s": (pa.duration("s"), [dt.timedelta(1), dt.timedelta(2), dt.timedelta(0, 1)], "NULL", None),
    "fixed": (pa.binary(3), [b"abc", b"def", b"ghi"], "X'010203'", b"\1\2\3"),
    "decimal256": (pa.decimal256(50, 2), [Decimal(10**40), Decimal("0.50"), Decimal(1)], "1.25", Decimal("1.25")),
    "timestamp_ms": (
        pa.timestamp("ms", "UTC"),
        [dt.datetime(2024, 1, i, tzinfo=dt.UTC) for i in (1, 2, 3)],
        "timestamp('2020-02-29 00:00:00Z')",
        dt.datetime(2020, 2, 29, tzinfo=dt.UTC),
    ),
    "timestamp_ntz_s": (pa.timestamp("s"), [dt.datetime(2024, 1, i) for i in (1, 2, 3)], "NULL", None),
    "vector": (pa.list_(pa.float32(), 2), [[1.0, 2.0], [0.5, 0.0], [3.0, 4.0]], "array(0.5, double('-inf'))",
               [0.5, float("-inf")]),
    "vectors": (pa.list_(pa.list_(pa.float32(), 2)), [[[1.0, 2.0]], [], [[3.0, 4.0]]], "array()", []),
    "struct_of_vector": (pa.struct([("v", pa.list_(pa.float16(), 2))]), [{"v": [1.0, 2.0]}] * 3, "NULL", None),
    "uints": (pa.list_(pa.uint32()), [[1], [2], [3]], "array(4, 5)", [4, 5]),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), ["a", "b", "c"], "'z'", "z"),
    "void": (pa.null(), [None] * 3, "NULL", None),
}  # fmt: skip


def cases():
    for format, types in (("delta", COMMON | OF_DELTA), ("iceberg", COMMON | OF_ICEBERG)):
        for name, (values, literal, becomes) in types.items():
            yield pytest.param(format, name, None, values, literal, becomes, id=f"{format}-{name}")
    for name, (arrow, values, literal, becomes) in ARROW.items():
        yield pytest.param("lance", name, arrow, values, literal, becomes, id=f"lance-{name}")


@pytest.fixture
def given(tmp_path, request):
    """A table with rows 1 and 2, the rows 2 and 3 as a source, and the three values as they are read."""

    def made(format, name, arrow, values):
        of_arrow = arrow is not None  # a type without a name in SQL
        arrow = arrow if of_arrow else to_arrow_type(parse_type(name))
        column = pa.array(values).cast(arrow) if pa.types.is_dictionary(arrow) else pa.array(values, arrow)
        rows = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "n": pa.array([0, 0, 9], pa.int64()), "c": column})
        uri = str(tmp_path / "t")
        if of_arrow:
            bh.write(rows.slice(0, 2), uri, format=format)
        else:
            bh.create(uri, f"id bigint, n bigint, c {name}", format=format)
            bh.open(uri).append(rows.slice(0, 2))
        return uri, rows.slice(1), column.to_pylist()

    return made


def rows_of(uri: str) -> dict:
    return {r["id"]: (r["n"], r["c"]) for r in bh.open(uri).to_arrow().to_pylist()}


@pytest.mark.few(12)
@pytest.mark.parametrize(("format", "name", "arrow", "values", "literal", "becomes"), list(cases()))
def test_every_type_in_every_clause(given, format, name, arrow, values, literal, becomes):
    uri, source, (a, b, c) = given(format, name, arrow, values)
    t = bh.open(uri)
    t.upsert(source, on="id")
    assert rows_of(uri) == {1: (0, a), 2: (0, b), 3: (9, c)}
    t.update({"c": "NULL"}, "id = 1")
    t.update({"n": "n + 1"}, "id = 1")
    assert rows_of(uri) == {1: (1, None), 2: (0, b), 3: (9, c)}
    t.merge(source, ON).when_matched_update({"n": "source.n + 1"}, "source.id = 2").when_matched_delete().execute()
    assert rows_of(uri) == {1: (1, None), 2: (1, b)}
    merge = t.merge(source, ON).when_matched_update({"c": "NULL"}).when_not_matched_insert_all()
    merge.when_not_matched_by_source_update({"n": "8", "c": "target.c"}).execute()
    assert rows_of(uri) == {1: (8, None), 2: (1, None), 3: (9, c)}
    merge = t.merge(source, ON).when_matched_update({"c": "source.c"}, "target.id = 2").when_matched_update_all("1 = 0")
    merge.when_not_matched_insert({"id": "id", "c": "c"}).when_not_matched_by_source_delete().execute()
    assert rows_of(uri) == {2: (1, b), 3: (9, c)}
    t.merge(source, ON).when_matched_update_all("source.id = 3").when_matched_update({"c": "target.c"}).execute()
    assert rows_of(uri) == {2: (1, b), 3: (9, c)}
    t.update({"c": "c", "n": "5"}, "id = 2")
    assert rows_of(uri) == {2: (5, b), 3: (9, c)}
    if literal is not None:
        t.update({"c": literal}, "id = 2")
        found = rows_of(uri)[2]
        assert found == (5, becomes if becomes is not None or literal == "NULL" else [1, None, 2])


def test_a_value_that_does_not_fit_is_named(tmp_path):
    uri = str(tmp_path / "t")
    bh.write(pa.table({"id": [1], "v": pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2))}), uri, format="lance")
    t = bh.open(uri)
    for value, kind, words in (
        ("true", errors.ExpressionError, "`v` is vector<float,2>, and TRUE is boolean"),
        ("array(1, 2, 3)", errors.EvaluationError, "a list of 3 elements does not fit vector<float,2>"),
        ("array('x', 'y')", errors.EvaluationError, "'x' is not a valid float"),
    ):
        with pytest.raises(kind) as error:
            t.update({"v": value})
        assert words.lower() in str(error.value).lower()
        with pytest.raises(kind) as error:
            t.merge(pa.table({"id": [1]}), ON).when_matched_update({"v": value}).when_not_matched_insert_all().execute()
        text = str(error.value)
        assert words.lower() in text.lower() and "_unit" not in text and "CASE" not in text and "boathouse:" not in text
    assert t.version == bh.open(uri).version and rows_of_vectors(uri) == [[1.0, 2.0]]


def rows_of_vectors(uri: str) -> list:
    return bh.open(uri).to_arrow().column("v").to_pylist()


@pytest.mark.spark
@pytest.mark.parametrize(
    ("format", "name", "literal", "becomes"),
    [
        ("iceberg", "fixed(4)", "X'00010203'", b"\x00\x01\x02\x03"),
        ("iceberg", "array<bigint>", "array(1, 2)", [1, 2]),
        ("delta", "array<float>", "array(double('inf'))", [float("inf")]),
        ("delta", "decimal(9,2)", "'1.25'", Decimal("1.25")),
        ("delta", "struct<x:int,y:array<string>>", "named_struct('x', 9, 'y', array('q'))", {"x": 9, "y": ["q"]}),
    ],
)
def test_types_on_spark(given, spark, format, name, literal, becomes):
    values = [becomes, becomes, None]
    uri, source, _ = given(format, name, None, values)
    t = bh.open(uri, spark=spark)
    rows = spark.createDataFrame(source.select(["id", "n"])).selectExpr("*", f"{literal} AS c")
    t.update({"c": "NULL"})
    t.merge(rows, ON).when_matched_update({"c": literal}).when_not_matched_insert_all().execute()
    t.update({"c": literal, "n": "n + 1"}, "id = 1")
    assert rows_of(uri) == {1: (1, becomes), 2: (0, becomes), 3: (9, becomes)}
    t.upsert(rows, on="id")
    assert rows_of(uri) == {1: (1, becomes), 2: (0, becomes), 3: (9, becomes)}
