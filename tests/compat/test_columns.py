"""Columns of PySpark are the text that means the same, classic and Connect."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse import errors

pytest.importorskip("pyspark")
from pyspark.sql import functions as classic
from pyspark.sql.connect import functions as connect

from boathouse.engines.spark.columns import alias_of, column_text

pytestmark = pytest.mark.spark

BERLIN = dt.timezone(dt.timedelta(hours=1))
SAMPLES = [
    lambda F: (F.col("a") == 1) & ~(F.col("b") > F.lit("x'y\\z")) | F.col("a").isNull(),
    lambda F: F.col("a").isin(1, 2) & F.col("b").isin() & F.col("b").isNotNull(),
    lambda F: (F.col("a") != 2) & F.col("a").eqNullSafe(F.lit(None)),
    lambda F: -(F.col("a") * 2 - 1) / 3 % 4 + F.col("a").bitwiseAND(3),
    lambda F: F.when(F.col("a") > 1, "big").when(F.col("a") == 1, F.upper("b")).otherwise(F.lit("none")),
    lambda F: F.when(F.col("a") > 1, 1.5),
    lambda F: F.col("b").like("x%") | F.col("b").rlike("^y") | F.col("b").startswith("z") | F.col("b").contains("q"),
    lambda F: F.col("b").cast("int") + F.col("a").cast("string").try_cast("bigint"),
    lambda F: F.col("a").between(1, 3) & F.expr("a + 1 > 0 or b = 'x'"),
    lambda F: F.col("s.x") + F.col("s")["x"] + F.col("s").getField("x") + F.col("arr")[0],
    lambda F: F.coalesce(F.col("`odd name`"), F.lit("x")).alias("unused"),
    lambda F: F.lit(dt.date(2026, 11, 20)) > F.col("day"),
    lambda F: F.col("at") >= F.lit(dt.datetime(2026, 1, 1, 12, 30, 0, 123456, BERLIN)),
    lambda F: F.col("a") * F.lit(Decimal("1.50")) + F.lit(2.5),
    lambda F: F.concat(F.col("b"), F.lit("é")).substr(1, 2),
    lambda F: F.lit(True) & F.col("a").isNaN(),
]


@pytest.fixture
def frame(spark):
    return spark.createDataFrame(
        [
            (1, "x'y\\z", (5,), [1], "n", dt.date(2026, 1, 1), dt.datetime(2026, 1, 2)),
            (2, "2", (6,), [2], None, dt.date(2027, 1, 1), dt.datetime(2025, 1, 2)),
            (None, None, None, None, None, None, None),
        ],
        "a bigint, b string, s struct<x:int>, arr array<int>, `odd name` string, day date, at timestamp",
    )


def results(frame, column) -> list:
    try:
        return [tuple(r) for r in frame.select(column).collect()]
    except Exception as error:  # ANSI: both fail alike
        return [error.getCondition()]


def test_the_text_means_what_the_column_means(frame):
    for make in SAMPLES:
        column = make(classic)
        text = column_text(column)
        assert results(frame, classic.expr(text)) == results(frame, column.alias("c")), text
    assert results(frame, classic.expr(column_text(frame["s.x"]))) == results(frame, frame["s.x"])


def test_connect_gives_text_that_means_the_same(frame):
    for make in SAMPLES:
        text = column_text(make(connect))
        assert results(frame, classic.expr(text)) == results(frame, make(classic).alias("c")), text


def test_operators_are_written_so_that_files_are_pruned(frame):
    assert column_text((classic.col("a") == 1) & (classic.col("b") < "x")) == "((a = 1) AND (b < 'x'))"
    assert column_text(frame["a"] > 1) in ("(a > 1)", "(`a` > 1)")


def test_columns_without_text_are_refused(spark, frame):
    from pyspark.sql import Window

    for column in (
        classic.udf(lambda x: x)("a"),
        classic.sum("a").over(Window.partitionBy("b")),
        classic.countDistinct("a"),
        classic.transform("arr", lambda x: x + 1),
    ):
        with pytest.raises(errors.UnsupportedFeatureError, match="Column"):
            column_text(column)


def test_aliases_of_frames(spark, frame):
    frame.createOrReplaceTempView("some_view")
    assert alias_of(frame) is None
    assert alias_of(frame.alias("x")) == "x"
    assert alias_of(spark.table("some_view")) == "some_view"
    assert alias_of(spark.table("some_view").where("a > 1")) == "some_view"
    assert alias_of(frame.alias("x").join(frame.alias("y"), classic.expr("x.a = y.a"))) is None
    spark.catalog.dropTempView("some_view")


@pytest.mark.route("conditions as columns")
def test_columns_wherever_conditions_are_taken(spark, tmp_path):
    uri = str(tmp_path / "t")
    bh.write(pa.table({"id": [1, 2, 3, 4], "p": [1, 1, 2, 2]}), uri, partition_by=["p"])
    t = bh.open(uri, spark=spark)
    assert t.scan(where=classic.col("id") > 2).count() == 2
    t.update({"id": classic.col("id") * 10}, classic.col("id") == 1)
    t.delete(classic.col("id") == 2)
    source = spark.createDataFrame([(3,), (5,)], "id bigint")
    merge = t.merge(source, classic.col("target.id") == classic.col("source.id")).when_matched_delete()
    merge.when_not_matched_insert({"id": classic.col("source.id"), "p": classic.lit(9)}, classic.lit(True)).execute()
    t.optimize(classic.col("p") == 2)
    assert sorted(t.to_arrow()["id"].to_pylist()) == [4, 5, 10]
    with pytest.raises(errors.ExpressionError, match="not a condition"):
        t.delete(7)
