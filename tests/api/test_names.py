"""Tables by name: through Spark's metastore, without the JAR of any format."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.errors import TableNotFoundError, UnsupportedFeatureError
from makers.traits import REAL

ROWS = pa.table({"id": [1, 2]})


def test_a_dotted_name_without_spark_is_explained(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TableNotFoundError, match="spark="):
        bh.open("sales.orders")
    bh.write(ROWS, "sales.orders")
    assert bh.open("sales.orders").count() == 2


@pytest.fixture
def database(spark):
    spark.sql("create database if not exists boats")
    yield "boats"
    spark.sql("drop database boats cascade")


@pytest.mark.spark
@pytest.mark.parametrize("format", REAL)
@pytest.mark.route("names of tables")
def test_names_lead_to_where_the_table_lies(spark, database, tmp_path, format):
    uri = str(tmp_path / "a täble")
    bh.write(ROWS, uri, format=format)
    comment = "made by us\nLocation: file:/nowhere\nProvider: none"
    spark.sql(f"create table boats.t (id bigint) using parquet location '{uri}' comment '{comment}'")
    for name in ("boats.t", "BOATS.T", "`boats`.`t`", "spark_catalog.boats.t"):
        table = bh.open(name, spark=spark)
        assert table.format == format and table.to_arrow()["id"].to_pylist() == [1, 2]
    bh.open("boats.t", spark=spark).append(pa.table({"id": [3]}))
    assert bh.open(uri).count() == 3


@pytest.mark.spark
def test_a_path_goes_before_a_name(spark, database, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spark.sql(f"create table boats.t (id bigint) using parquet location '{tmp_path / 'elsewhere'}'")
    bh.write(ROWS, "boats.t")
    assert bh.open("boats.t", spark=spark).count() == 2


@pytest.mark.spark
def test_names_that_lead_nowhere(spark, database, tmp_path):
    spark.sql("create view boats.v as select 1 as id")
    with pytest.raises(UnsupportedFeatureError, match="view"):
        bh.open("boats.v", spark=spark)
    for name in ("boats.nothing", "nowhere.t", "boats.*", "a.b.c.d", "nothing_at_all"):
        with pytest.raises(TableNotFoundError):
            bh.open(name, spark=spark)
    spark.sql(f"create table boats.p using parquet location '{tmp_path / 'p'}' as select 1 as id")
    with pytest.raises(TableNotFoundError, match="Parquet"):
        bh.open("boats.p", spark=spark)


PAGE = (Path(__file__).parents[2] / "docs" / "names.md").read_text()
CALLS = re.findall(r"^\| `(.+?)` \| (fails|works) \|(?: `(.+?)`)? \|$", PAGE, re.MULTILINE)


@pytest.fixture
def lake(spark, tmp_path):
    """What the page has, with `/lake` elsewhere: a named table, rows for it, and a stream of rows."""
    spark.sql("create database sales")
    columns = "(id bigint, day date) USING delta PARTITIONED BY (day)"
    bh.sql(spark, f"CREATE TABLE sales.orders {columns} LOCATION '{tmp_path}/orders'")
    bh.sql(spark, "INSERT INTO sales.orders VALUES (1, DATE'2026-01-01')")
    df = spark.createDataFrame([(7,)], "id bigint").selectExpr("id", "DATE'2026-01-02' AS day")
    bh.write(pa.table({"id": [1, 2]}), str(tmp_path / "source"))
    stream = (
        spark.readStream.format("boathouse").load(str(tmp_path / "source")).selectExpr("id", "current_date() AS day")
    )
    spark.conf.set("spark.sql.streaming.checkpointLocation", str(tmp_path / "checkpoints"))

    def run(code: str):
        exec(code.replace("/lake/", f"{tmp_path}/"), {"spark": spark, "bh": bh, "df": df, "stream": stream})

    yield run
    spark.conf.unset("spark.sql.streaming.checkpointLocation")
    spark.catalog.dropTempView("rows")
    spark.sql("drop database sales cascade")


@pytest.mark.spark
def test_spark_s_calls_do_what_the_page_says_and_the_lines_work(spark, lake, tmp_path):
    assert len(CALLS) == 16
    for call, does, line in CALLS:
        before = bh.open(str(tmp_path / "orders")).version
        if does == "works":
            lake(call)
            continue
        with pytest.raises(Exception) as caught:
            lake(call)
        assert "boathouse" in str(caught.value) or "not support" in str(caught.value), (call, caught.value)
        assert bh.open(str(tmp_path / "orders")).version == before, call
        lake(line)
    assert not spark.catalog.tableExists("sales.orders") and bh.open(str(tmp_path / "orders")).count() > 0
    assert bh.open("sales.fresh", spark=spark).count() == bh.open("sales.made", spark=spark).count() == 1


@pytest.mark.spark
def test_names_of_the_page_are_made(spark, tmp_path, monkeypatch):
    for key, value in {"TYPE": "sql", "URI": f"sqlite:///{tmp_path}/c.db", "WAREHOUSE": f"file://{tmp_path}/w"}.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__PROD__{key}", value)
    bh.catalog("prod").create_namespace("sales")
    bh.write(pa.table({"id": [1]}), str(tmp_path / "old"))
    spark.createDataFrame([(1, 2)], "id bigint, n bigint").createOrReplaceTempView("updates")
    spark.sql("create database sales")
    try:
        (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
        exec(block.replace("/lake/", f"{tmp_path}/"), {"bh": bh, "spark": spark})
        found = [bh.open(f"sales.{n}", spark=spark) for n in ("orders", "trips", "old")]
        assert [t.count() for t in found] == [0, 1, 1]
        assert bh.catalog("prod").tables() == ["sales.orders"]
    finally:
        spark.catalog.dropTempView("updates")
        spark.sql("drop database sales cascade")
