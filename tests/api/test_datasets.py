"""Tables in the hands of DuckDB, polars and readers of Arrow datasets: what they pass on means the same for a scan."""

from __future__ import annotations

import datetime as dt
import math
import random
from decimal import Decimal

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import boathouse as bh
from boathouse import errors
from makers.traits import REAL

field = pc.field
SCHEMA = pa.schema([
    ("id", pa.int64()), ("city", pa.string()), ("x", pa.float64()), ("f", pa.float32()), ("day", pa.date32()),
    ("at", pa.timestamp("us", "UTC")), ("local", pa.timestamp("us")), ("d", pa.decimal128(9, 2)), ("ok", pa.bool_()),
    ("data", pa.binary()), ("s", pa.struct([("a", pa.int64()), ("t", pa.string())])), ("order", pa.int32()),
])  # fmt: skip


def rows(n: int, seed: int) -> pa.Table:
    draw = random.Random(seed)
    floats = [math.nan, -0.0, 0.0, math.inf, -math.inf, 1.5, 1e300, None]
    return pa.Table.from_pylist([
        {
            "id": draw.choice([i, i, None, 2**63 - 1, -(2**63)]),
            "city": draw.choice(["Kiel", "it's", "", "Zürich", None]),
            "x": draw.choice(floats), "f": draw.choice([math.nan, -0.0, 0.5, None]),
            "day": draw.choice([dt.date(1969, 12, 31), dt.date(2024, 2, 29), None]),
            "at": draw.choice([dt.datetime(2024, 1, 1, 5, tzinfo=dt.UTC), dt.datetime(1950, 1, 1, tzinfo=dt.UTC)]),
            "local": draw.choice([dt.datetime(2024, 1, 1, 5, 0, 0, 7), None]),
            "d": draw.choice([Decimal("1.50"), Decimal("-9999999.99"), None]), "ok": draw.choice([True, False, None]),
            "data": draw.choice([b"", b"a\\0b", None]), "order": i % 5,
            "s": draw.choice([{"a": i % 4, "t": "x"}, {"a": None, "t": None}, None]),
        }
        for i in range(n)
    ], SCHEMA)  # fmt: skip


@pytest.fixture(params=REAL)
def format_name(request) -> str:
    return request.param


@pytest.fixture
def table(format_name, tmp_path):
    t = bh.create(str(tmp_path / "t"), SCHEMA, format=format_name)
    for seed in range(4):
        t.append(rows(30, seed))
    return t


def key(row) -> str:
    return repr(row)


ATOMS = [
    "id = 7", "id > 20", "id <= 3", "id IN (1, 2, 29)", "city = 'it''s'", "city >= 'L'", "city IS NULL", "x > 1",
    "x = 0",
    "x <> 1.5", "x IS NOT NULL", "f >= 0.5", "day > DATE '2000-01-01'", "\"at\" < TIMESTAMPTZ '2000-01-01 00:00:00+00'",
    "local = TIMESTAMP '2024-01-01 05:00:00.000007'", "d < 0", "ok", "NOT ok", "data = ''::BLOB", "city LIKE '%r%'",
    "s.a = 2", "s IS NULL", '"order" BETWEEN 1 AND 3', "city IN ('Kiel', '')", "x = 'nan'::DOUBLE", "x < 'inf'::DOUBLE",
    "day = DATE '1969-12-31'", "id + 1 = 8", "x IS NULL OR id = 5",
]  # fmt: skip


@pytest.mark.feature("queries of DuckDB and polars")
def test_conditions_of_duckdb(table):
    """The same query on the table, and on its rows in memory, where nothing is passed on."""
    connection = duckdb.connect()
    connection.sql("SET TimeZone = 'UTC'")
    connection.register("whole", table.to_arrow())
    connection.register("ours", table.to_dataset())
    relation = table.to_duckdb(connection)
    assert relation.columns == SCHEMA.names
    draw = random.Random(1)
    joined = [f"({draw.choice(ATOMS)}) {draw.choice(['AND', 'OR'])} ({draw.choice(ATOMS)})" for _ in range(25)]
    for where in [*ATOMS, *(f"NOT ({a})" for a in ATOMS), *joined]:
        query = "SELECT id, city, x FROM {} WHERE " + where
        found, wanted = (sorted(connection.sql(query.format(n)).fetchall(), key=key) for n in ("ours", "whole"))
        assert list(map(key, found)) == list(map(key, wanted)), where
    assert connection.sql("SELECT count(*) FROM ours").fetchall() == [(120,)]
    assert relation.filter('"order" = 1').aggregate("count(*)").fetchall() == [(24,)]


P = pl.col
POLARS = [
    P("id") == 7, P("id") > 20, P("id").is_in([1, 2, 29]), P("city") == "it's", P("city").is_null(), P("x") > 1,
    P("x") == 0, P("x") != 1.5, P("x").is_nan(), P("f") >= 0.5, P("day") > dt.date(2000, 1, 1), P("ok"), ~P("ok"),
    P("at") < dt.datetime(2000, 1, 1, tzinfo=dt.UTC), P("local") == dt.datetime(2024, 1, 1, 5, 0, 0, 7), P("d") < 0,
    P("city").str.starts_with("K"), P("city").str.to_uppercase() == "KIEL", P("s").struct.field("a") == 2,
    P("order").is_between(1, 3), P("order").is_between(1, 3, closed="none"), P("x").eq_missing(None), P("data") == b"",
    P("city").str.contains("r", literal=True), P("city").str.contains("^K"), P("id") + 1 == 8, P("f") == 0.5,
    ~P("id").is_in([1, 2]), P("x").is_in([0.0, 1.5]), P("city").is_in(["Kiel", None]), P("x") == math.nan,
]  # fmt: skip


@pytest.mark.feature("queries of DuckDB and polars")
def test_conditions_of_polars(table):
    whole = pl.from_arrow(table.to_arrow())
    lazy = table.to_polars()
    assert isinstance(lazy, pl.LazyFrame) and lazy.collect_schema() == whole.schema
    draw = random.Random(2)
    joined = [draw.choice(POLARS) & draw.choice(POLARS) for _ in range(12)]
    joined += [draw.choice(POLARS) | draw.choice(POLARS) for _ in range(12)]
    for where in [*POLARS, *(~p for p in POLARS), *joined]:
        found, wanted = (f.lazy().filter(where).select("id", "city", "x").collect().rows() for f in (lazy, whole))
        assert sorted(map(key, found)) == sorted(map(key, wanted)), str(where)
    assert lazy.head(7).collect().height == 7 and lazy.select(pl.len()).collect().item() == 120
    assert lazy.head(50).filter(P("order") == 1).collect().height == 10
    assert lazy.filter(P("order") == 1).head(3).collect().height == 3
    assert lazy.group_by("order").agg(pl.len()).sort("order").collect().rows() == [(i, 24) for i in range(5)]


def test_what_is_passed_on_chooses_the_files(tmp_path):
    t = bh.create(str(tmp_path / "t"), "id bigint, name string")
    for i in range(0, 50, 10):
        t.append(pa.table({"id": range(i, i + 10), "name": [f"n{j}" for j in range(i, i + 10)]}))
    needed = t.scan(where="id = 3").files()
    for file in set(t.scan().files()) - set(needed):  # who reads another one fails
        (tmp_path / "t" / file.rpartition("/")[2]).unlink()
    connection = duckdb.connect()
    connection.register("ours", t.to_dataset())
    names = [tuple(r) for r in connection.sql("SELECT name FROM ours WHERE id IN (3, 7) AND name > 'n4'").fetchall()]
    lazily = t.to_polars().filter(pl.col("id").is_in([3, 7]) & (pl.col("name").str.len_chars() == 2)).select("name")
    there = {tuple(r) for r in lazily.collect().rows()} if names else set()
    assert (names, there) == ([("n7",)], {("n3",), ("n7",)})


def test_conditions_of_others_in_every_call(table):
    assert table.scan(where=field("order") == 1).count() == table.scan(where=pl.col("order") == 1).count() == 24
    kept = table.count()
    gone = table.scan(where="x > 1 AND `order` = 2").count()
    table.delete((field("x") > 1) & (field("order") == 2))  # NaN is greater than 1 here, as in Spark
    assert table.count() == kept - gone and gone > 0
    table.update({"city": "'Oslo'"}, where=pl.col("order").is_in([0, 4]) & pl.col("city").is_not_null())
    assert (
        table.scan(where="city = 'Oslo'").count() == table.scan(where="`order` IN (0, 4) AND city IS NOT NULL").count()
    )


@pytest.mark.parametrize(
    "where",
    [
        pc.match_like(field("city"), "K%"), field("id").isin([1, None]), field("nope") == 1, field("x") > field("id"),
        pl.col("city").str.to_uppercase() == "KIEL", pl.col("id").cast(pl.Int32) == 1, pl.col("id").is_in([1, None]),
        pl.col("id").rolling_mean(2) > 1,
    ],
    ids=str,
)  # fmt: skip
def test_conditions_without_a_counterpart(tmp_path, where):
    t = bh.create(str(tmp_path / "t"), SCHEMA)
    t.append(rows(3, 0))
    with pytest.raises(errors.UnsupportedFeatureError, match=r"cannot be a condition here(.|\n)*Spark SQL text"):
        t.scan(where=where)
    with pytest.raises(errors.UnsupportedFeatureError, match="cannot be a condition here"):
        t.delete(where)
    assert t.count() == 3


def test_an_arrow_dataset(table):
    whole, dataset = table.to_arrow(), table.to_dataset()
    assert dataset.schema == whole.schema and dataset.count_rows() == 120 and dataset.head(4).num_rows == 4
    some = dataset.to_table(["order", "id"], field("order") < 2)
    assert some.column_names == ["order", "id"] and some.num_rows == dataset.count_rows(field("order") < 2) == 48
    like = pc.match_like(field("city"), "K%")  # which Arrow evaluates
    assert (
        dataset.to_table(["id"], like).num_rows == whole.filter(like).num_rows == dataset.head(999, None, like).num_rows
    )
    assert sum(b.num_rows for b in dataset.to_batches(["id"])) == 120 and dataset.to_table([]).num_rows == 120
    assert pa.table(dataset.scanner(["id"], field("id") == 7)).column_names == ["id"]
    limited = table.scan({"double": "`order` * 2"}, limit=50)
    assert limited.to_dataset().to_table(filter=field("double") == 2).num_rows == 10
    assert limited.to_polars().filter(pl.col("double") == 2).collect().height == 10
    assert limited.to_duckdb(duckdb.connect()).filter("double = 2").count("*").fetchall() == [(10,)]
    placed = table.scan(["_pos", "order"])  # a condition on where a row is
    assert placed.to_duckdb(duckdb.connect()).filter("_pos = 3").count("*").fetchall() == [(4,)]
    assert placed.to_polars().filter(pl.col("_pos") == 3).collect().height == 4
    assert pl.scan_pyarrow_dataset(dataset).filter(pl.col("order") == 1).select("id").collect().height == 24


@pytest.mark.parametrize(
    "call",
    [
        lambda d: d.get_fragments(), lambda d: d.replace_schema(SCHEMA), lambda d: d.filter(field("id") == 1),
        lambda d: d.sort_by("id"), lambda d: d.join(d, "id"), lambda d: d.join_asof(d, "id", "id", 1),
    ],
)  # fmt: skip
def test_what_a_dataset_refuses(tmp_path, call):
    dataset = bh.create(str(tmp_path / "t"), SCHEMA).to_dataset()
    with pytest.raises(errors.UnsupportedFeatureError, match="not offered by the dataset of a table"):
        call(dataset)
    with pytest.raises(errors.InvalidArgumentError, match="no column 'nope'"):
        dataset.to_table(["nope"])
    with pytest.raises(errors.InvalidArgumentError, match="is not an expression of Arrow"):
        dataset.to_table(filter="id = 1")


def test_columns_that_substrait_lacks(tmp_path):
    """They stand beside those that conditions name."""
    t = bh.create(
        str(tmp_path / "t"),
        pa.schema([("v", pa.list_(pa.float16(), 2)), ("u", pa.uint32()), ("id", pa.int64())]),
        format="lance",
    )
    t.append(
        pa.table(
            {
                "v": pa.array([[1, 2]] * 3, pa.list_(pa.float16(), 2)),
                "u": pa.array([1, 2, 3], pa.uint32()),
                "id": [1, 2, 3],
            }
        )
    )
    assert t.scan(where=field("id") > 1).count() == t.to_dataset().count_rows(field("id") > 1) == 2
