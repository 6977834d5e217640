"""Random conditions on Spark, early and late, with and without ANSI mode, against a plain Python model.

The values of every column include its extremes; floats are NaN, both zeros and both infinities too. Files are those of
each writer, whose bounds, dictionaries and bloom filters Spark's reader would skip rows by.
"""

from __future__ import annotations

import random
from functools import reduce

import deltalake
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from test_model import PREDICATES, TYPES, VALUES

import boathouse as bh

sql = pytest.importorskip("pyspark.sql")
F, DataFrame = sql.functions, sql.DataFrame
pytestmark = pytest.mark.spark
FILES, CONDITIONS = 5, 24


def rows_of(chance):
    """The rows of one file: few values a column, so that bounds exclude some conditions."""
    some = {c: chance.choices(VALUES[c], k=chance.randint(1, 3)) for c in TYPES}
    return [{c: chance.choice(values) for c, values in some.items()} for _ in range(chance.randint(1, 6))]


def in_place(write):
    def make(path, tables, spark):
        path.mkdir()
        for i, table in enumerate(tables):
            write(table, path / f"part-{i}.parquet")
        bh.convert(str(path))

    return make


def by_deltalake(path, tables, spark):
    for table in tables:
        deltalake.write_deltalake(str(path), table, mode="append")


def by_us(format):
    def make(path, tables, spark):
        for i, table in enumerate(tables):
            data = table if i % 2 else spark.createDataFrame(table).coalesce(1)
            bh.write(data, str(path), format=format, mode="append")

    return make


WRITERS = {
    "pyarrow": in_place(lambda table, path: pq.write_table(table, path, write_page_index=True)),
    "duckdb": in_place(lambda found, path: duckdb.sql(f"COPY found TO '{path}' (FORMAT parquet)")),
    "deltalake": by_deltalake,
    "delta": by_us("delta"),
    "iceberg": by_us("iceberg"),
    "lance": by_us("lance"),
}


def predicates(number):
    """Conditions on the columns of the table, as the seed draws them."""
    found = []

    @seeded(number)
    @settings(max_examples=CONDITIONS, phases=[Phase.generate], database=None, suppress_health_check=list(HealthCheck))
    @given(PREDICATES.filter(lambda p: p.columns <= set(TYPES)))
    def draw(predicate):
        found.append(predicate)

    draw()
    return found


@pytest.fixture(params=["ansi", "not ansi"])
def mode(request, spark):
    spark.conf.set("spark.sql.ansi.enabled", str(request.param == "ansi").lower())
    yield request.param
    spark.conf.unset("spark.sql.ansi.enabled")


def check(spark, tmp_path, writer, number):
    chance = random.Random(number)
    files = [rows_of(chance) for _ in range(FILES)]
    numbered = [{**row, "id": 100 * i + j} for i, rows in enumerate(files) for j, row in enumerate(rows)]
    schema = pa.schema(list(TYPES.items()))
    tables, start = [], 0
    for rows in files:
        tables.append(pa.Table.from_pylist(numbered[start : start + len(rows)], schema))
        start += len(rows)
    WRITERS[writer](tmp_path / "t", tables, spark)
    table = bh.open(str(tmp_path / "t"), spark=spark)
    everything, frames, expected = table.to_spark(), {}, {}
    for i, p in enumerate(predicates(number)):
        wanted = sorted(r["id"] for r in numbered if p.true(r))
        for how, frame in (("early", table.scan(["id"], p.text).to_spark()), ("late", everything.where(p.text))):
            name = f"{how} {i}: {p.text}"
            frames[name], expected[name] = frame.select(F.lit(name).alias("name"), "id"), wanted
    found = reduce(DataFrame.unionAll, frames.values()).toArrow().to_pylist()
    assert {n: sorted(r["id"] for r in found if r["name"] == n) for n in frames} == expected


@pytest.mark.parametrize(("writer", "number"), [("pyarrow", 1), ("delta", 2), ("iceberg", 3)])
def test_random_conditions(spark, tmp_path, writer, number):
    check(spark, tmp_path, writer, number)


def test_random_conditions_without_ansi(spark, tmp_path):
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        check(spark, tmp_path, "duckdb", 4)
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


@pytest.mark.slow
@pytest.mark.parametrize("number", range(10, 18))
@pytest.mark.parametrize("writer", WRITERS)
def test_many_random_conditions(spark, tmp_path, mode, writer, number):
    check(spark, tmp_path, writer, number)
