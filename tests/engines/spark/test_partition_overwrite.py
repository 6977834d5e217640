"""A session with spark.sql.sources.partitionOverwriteMode=dynamic, on every way by which Spark's rows are written."""

import deltalake
import pytest

import boathouse as bh
from boathouse import errors

pytestmark = pytest.mark.spark
MODE = "spark.sql.sources.partitionOverwriteMode"


@pytest.fixture
def dynamic(spark):
    spark.conf.set(MODE, "DYNAMIC")
    yield spark
    spark.conf.unset(MODE)


@pytest.fixture(params=["delta", "iceberg"])
def format(request) -> str:
    return request.param


@pytest.fixture
def uri(tmp_path, spark, format) -> str:
    """Two rows in each of the partitions 0, 1, 2 of m."""
    bh.write(spark.range(6).selectExpr("id", "CAST(id % 3 AS int) AS m"), str(tmp_path / "t"), format, partition_by="m")
    return str(tmp_path / "t")


def new(spark, *rows: tuple[int, int]):
    return spark.createDataFrame(list(rows), "id bigint, m int")


def ids(uri: str) -> list[int]:
    return sorted(bh.open(uri).to_arrow().column("id").to_pylist())


def saved(df, uri: str, **options: str) -> None:
    df.write.format("boathouse").mode("overwrite").options(**options).save(uri)


WAYS = {
    "write": lambda df, uri: bh.write(df, uri, mode="overwrite"),
    "overwrite": lambda df, uri: bh.open(uri).overwrite(df),
    "data source": saved,
}


@pytest.mark.parametrize("way", WAYS)
def test_the_session_is_obeyed(dynamic, uri, way):
    WAYS[way](new(dynamic, (10, 0)), uri)
    assert ids(uri) == [1, 2, 4, 5, 10]
    WAYS[way](new(dynamic).where("m = 0"), uri)
    assert ids(uri) == [1, 2, 4, 5, 10]
    dynamic.conf.set(MODE, "static")
    WAYS[way](new(dynamic, (11, 1)), uri)
    assert ids(uri) == [11]


def test_a_table_without_partitions_is_replaced(dynamic, tmp_path):
    for format in ["delta", "lance"]:
        for way in WAYS.values():
            bh.write(new(dynamic, (1, 0)), str(tmp_path / format), format, mode="overwrite")
            way(new(dynamic, (10, 0)), str(tmp_path / format))
            assert ids(str(tmp_path / format)) == [10]


def test_what_a_write_says_is_before_the_session(spark, uri):
    saved(new(spark, (10, 0)), uri, partitionOverwriteMode="dynamic")
    assert ids(uri) == [1, 2, 4, 5, 10]
    spark.conf.set(MODE, "dynamic")
    try:
        saved(new(spark, (11, 0)), uri, replaceWhere="m < 2")
        assert ids(uri) == [2, 5, 11]
        bh.write(new(spark, (12, 0)), uri, mode="overwrite", where="m = 0")
        assert ids(uri) == [2, 5, 12]
        with pytest.raises(Exception, match="replaces the whole table"):
            saved(new(spark, (13, 0)), uri, overwriteSchema="true")
        with pytest.raises(errors.SchemaError, match="replaces the whole table"):
            bh.open(uri).overwrite(new(spark, (13, 0)), overwrite_schema=True)
        saved(new(spark, (13, 0)), uri, overwriteSchema="true", partitionOverwriteMode="static")
        assert ids(uri) == [13]
        saved(new(spark, (14, 1)), uri, partitionOverwriteMode="static")
        assert ids(uri) == [14]
    finally:
        spark.conf.unset(MODE)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"partitionOverwriteMode": "dynamic", "replaceWhere": "m = 0"}, "both say which rows"),
        ({"partitionOverwriteMode": "dynamic", "overwriteSchema": "true"}, "replaces the whole table"),
        ({"partitionOverwriteMode": "some"}, "partitionOverwriteMode is 'some'"),
    ],
)
def test_options_that_are_refused(spark, tmp_path, options, match):
    bh.write(new(spark, (1, 0)), str(tmp_path / "t"), partition_by="m")
    with pytest.raises(Exception, match=match):
        saved(new(spark, (2, 0)), str(tmp_path / "t"), **options)
    assert ids(str(tmp_path / "t")) == [1]
    assert len(deltalake.DeltaTable(tmp_path / "t").file_uris()) == len(list(tmp_path.glob("t/m=*/*.parquet")))


def test_lance_refuses_the_option(spark, tmp_path):
    bh.write(new(spark, (1, 0)), str(tmp_path / "t"), "lance")
    with pytest.raises(Exception, match="lance tables have no partitions"):
        saved(new(spark, (2, 0)), str(tmp_path / "t"), partitionOverwriteMode="dynamic")


def test_a_stream_in_complete_mode_replaces_the_table(dynamic, tmp_path):
    bh.write(new(dynamic, (0, 0), (1, 1)), str(tmp_path / "source"))
    bh.write(new(dynamic, (7, 7)), str(tmp_path / "sink"), partition_by="m")
    counted = dynamic.readStream.format("boathouse").load(str(tmp_path / "source")).groupBy("m").count()
    rows = counted.selectExpr("`count` AS id", "m").writeStream.format("boathouse").outputMode("complete")
    rows.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).start(
        str(tmp_path / "sink")
    ).awaitTermination()
    assert sorted(bh.open(str(tmp_path / "sink")).to_arrow().column("m").to_pylist()) == [0, 1]
