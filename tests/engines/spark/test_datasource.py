import os

import pyarrow.parquet as pq
import pytest
from pyspark.sql import datasource
from pyspark.sql import functions as F

import boathouse as bh
from boathouse import types as T
from makers.traits import REAL, TRAITS

pytestmark = pytest.mark.spark


@pytest.fixture(params=REAL)
def format(request) -> str:
    return request.param


@pytest.fixture
def path(tmp_path) -> str:
    return str(tmp_path / "t ü")


def frame(spark, rows: int = 20):
    return spark.range(rows).selectExpr("id", "CAST(id % 3 AS int) AS p", "CAST(id AS string) AS s")


def save(df, path: str, mode: str = "append", **options: object) -> None:
    df.write.format("boathouse").mode(mode).options(**options).save(path)


def load(spark, path: str, **options: object):
    return spark.read.format("boathouse").options(**options).load(path)


@pytest.mark.route("data source")
def test_write_read_and_travel(spark, path, format):
    save(frame(spark), path, tableFormat=format)
    first = bh.open(path)
    assert (first.format, first.to_arrow().num_rows) == (format, 20)
    save(frame(spark, 5), path)
    assert load(spark, path).count() == 25
    assert load(spark, path, versionAsOf=first.version, tableFormat=format).count() == 20
    got = load(spark, path).agg(F.sum("id"), F.max("s")).collect()[0]
    assert tuple(got) == (200, "9")


def test_the_schema_prunes_columns(spark, path):
    save(frame(spark), path, tableFormat="delta")
    pruned = spark.read.format("boathouse").schema("s string, id bigint").load(path)
    assert pruned.columns == ["s", "id"]
    assert pruned.where("id = 7").collect()[0]["s"] == "7"
    with pytest.raises(Exception, match="column `s` is string, and was requested as int"):
        spark.read.format("boathouse").schema("s int").load(path).collect()


def test_filters_are_pushed_only_when_asked(spark, path):
    if not hasattr(datasource, "Filter"):
        pytest.skip("this PySpark has no filter push-down for Python sources")
    save(frame(spark), path, tableFormat="delta", partitionBy="p")
    assert load(spark, path).where("p = 1 AND id > 10").count() == 3
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        pushed = load(spark, path, pushFilters="true").where("p = 1 AND id > 10 AND s IS NOT NULL")
        assert sorted(r["id"] for r in pushed.collect()) == [13, 16, 19]
        assert pushed.select(F.spark_partition_id()).distinct().count() <= 2
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_transactions_are_applied_once(spark, path):
    save(frame(spark), path, tableFormat="delta")
    for _ in range(2):
        save(frame(spark, 5), path, txnAppId="etl", txnVersion=1)
    assert bh.open(path).to_arrow().num_rows == 25


def test_overwrites(spark, path):
    save(frame(spark), path, tableFormat="delta", partitionBy="p")
    save(frame(spark).where("p = 1").limit(2), path, "overwrite", replaceWhere="p = 1")
    assert bh.open(path).to_arrow().num_rows == 15
    with pytest.raises(Exception, match="does not satisfy the overwrite condition"):
        save(frame(spark), path, "overwrite", replaceWhere="p = 1")
    assert bh.open(path).to_arrow().num_rows == 15
    save(frame(spark, 4).withColumn("new", F.lit(1)), path, "overwrite", overwriteSchema="true")
    assert load(spark, path).columns == ["id", "p", "s", "new"]
    save(frame(spark, 4), path, "overwrite")
    assert load(spark, path).count() == 4


def test_columns_that_are_new_need_mergeschema(spark, path):
    save(frame(spark), path, tableFormat="delta")
    wider = frame(spark, 2).withColumn("new", F.lit(1.5))
    with pytest.raises(Exception, match="`new`"):
        save(wider, path)
    save(wider, path, mergeSchema="true", userMetadata="wider")
    assert load(spark, path).where("new = 1.5").count() == 2
    assert bh.open(path).history()[0].message == "wider"


def test_a_commit_that_fails_leaves_no_files(spark, path, tmp_path, monkeypatch):
    save(frame(spark), path, tableFormat="delta")
    before = sorted(tmp_path.rglob("*.parquet"))
    with pytest.raises(Exception, match="does not satisfy the overwrite condition"):
        save(frame(spark), path, "overwrite", replaceWhere="id < 3")
    assert sorted(tmp_path.rglob("*.parquet")) == before


def test_errors_begin_with_what_is_wrong(spark, path):
    """Planned, committed and read in workers, whose frames are no help; errors of others keep theirs."""
    save(frame(spark), path)
    wrong = frame(spark).withColumn("new", F.lit(1))

    def fails(*values):
        raise ValueError("of the user")

    cases = {
        lambda: load(spark, path + "!"): "TableNotFoundError: no Delta, Iceberg or Lance table here",
        lambda: load(spark, path, versionAsOf=99): "VersionNotFoundError: version 99 does not exist",
        lambda: save(wrong, path): "SchemaMismatchError: the data does not fit the table",
        lambda: save(frame(spark), path, "overwrite", replaceWhere="id > 90"): "ConstraintViolationError: a row does",
        lambda: spark.readStream.format("boathouse").load(path + "!"): "TableNotFoundError: no Delta",
    }
    for call, message in cases.items():
        with pytest.raises(Exception, match=r"\[PYTHON_DATA_SOURCE_ERROR\] .{0,60}: boathouse\.errors\." + message):
            call()
    for file in bh.open(path).files().column("path").to_pylist():
        os.remove(file.removeprefix("file://") if file.startswith("file:") else os.path.join(path, file))
    with pytest.raises(Exception, match=r"^\s*(An exc.*\s+)?boathouse\.errors\.MissingFileError: version 0"):
        load(spark, path).collect()
    with pytest.raises(Exception, match=r"Traceback(?s:.*)ValueError: of the user"):
        frame(spark).select(F.udf(fails)("id")).collect()


def test_sql_views(spark, path):
    save(frame(spark), path, tableFormat="delta")
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW v USING boathouse OPTIONS (path '{path}')")
    spark.sql("INSERT INTO v SELECT 77L, 2, 'x'")
    assert spark.sql("SELECT s FROM v WHERE id = 77").collect()[0]["s"] == "x"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "the path is missing"),
        ({"path": "/not/there"}, "the path does not exist"),
        ({"path": "/x", "bogus": "1"}, "unknown option 'bogus'"),
        ({"path": "/x", "versionAsOf": "first"}, "Give a whole number"),
        ({"path": "/x", "branch": "a", "tag": "b"}, "exclude each other"),
    ],
)
def test_what_is_refused_says_so(spark, options, message):
    reader = spark.read.format("boathouse").options(**options)
    with pytest.raises(Exception, match=message):
        reader.load().collect()


def test_modes_of_write(spark, path):
    with pytest.raises(Exception, match="Append"):
        frame(spark).write.format("boathouse").save(path)
    with pytest.raises(Exception, match="replaceWhere needs mode overwrite"):
        save(frame(spark), path, replaceWhere="p = 1")


def test_filters_on_what_spark_shows_otherwise_are_sparks_alone():
    """For Spark a time of day is text, and `12:00:00.000000` is after `12:00`."""
    if not hasattr(datasource, "EqualTo"):
        pytest.skip("this PySpark pushes no filters")
    from pyspark_boathouse.filters import expression

    schema = T.Schema((T.Field("t", T.TimeType()), T.Field("u", T.UUID), T.Field("i", T.INT32)))
    assert expression(datasource.GreaterThan(("t",), "12:00"), schema) is None
    assert expression(datasource.Not(datasource.EqualTo(("u",), "ab")), schema) is None
    assert str(expression(datasource.IsNotNull(("t",)), schema)) == "t IS NOT NULL"
    assert str(expression(datasource.EqualTo(("i",), 1), schema)) == "i = 1"


def test_files_of_one_write_are_as_it_says(spark, path, format):
    save(frame(spark).repartition(1), path, tableFormat=format, maxRecordsPerFile=7)
    assert sorted(bh.open(path).files().column("rows").to_pylist()) == [6, 7, 7]
    if not TRAITS[format].codecs:
        with pytest.raises(Exception, match="compression='gzip' is not offered for lance"):
            save(frame(spark), path, compression="gzip")
        return
    save(frame(spark).repartition(1), path, compression="GZIP")
    codecs = set()
    for name in bh.open(path).files().column("path").to_pylist():
        place = name.removeprefix("file://") if "://" in name else f"{path}/{name}"
        codecs.add(pq.read_metadata(place).row_group(0).column(0).compression)
    assert codecs == {"GZIP", "ZSTD"}
    with pytest.raises(Exception, match="the option compression is 'zip'"):
        save(frame(spark), path, compression="zip")


def test_properties_of_a_new_delta_table_are_options(spark, path):
    save(frame(spark), path, **{"delta.enableDeletionVectors": "true", "delta.targetFileSize": "64mb"})
    found = dict(bh.open(path).properties)
    assert found == {"delta.enableDeletionVectors": "true", "delta.targetFileSize": "64mb"}
    for options, says in (
        ({"delta.nonsense": "1"}, "delta.nonsense is no table property"),
        ({"delta.appendOnly": "true", "tableFormat": "iceberg"}, "is of Delta tables"),
    ):
        with pytest.raises(Exception, match=says):
            save(frame(spark), f"{path}2", **options)
