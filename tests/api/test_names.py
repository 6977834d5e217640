"""Tables by name: through Spark's metastore, without the JAR of any format."""

from __future__ import annotations

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
