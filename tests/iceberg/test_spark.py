"""Iceberg tables on Spark: what Spark would get wrong by itself."""

import datetime as dt
import uuid

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import boathouse as bh
from boathouse.types import INT32, STRING, TIMESTAMP, TIMESTAMP_NTZ, UUID, Field, Schema

pytestmark = pytest.mark.spark
pytest.importorskip("pyspark")


@pytest.mark.spec("I-083")
def test_columns_that_swap_names(spark, catalog, adopt):
    theirs = catalog.create_table("db.s", pa.schema([("a", pa.int64()), ("b", pa.int64())]))
    theirs.append(pa.table({"a": [1, 2], "b": [10, 20]}))
    for old, new in (("a", "t"), ("b", "a"), ("t", "b")):
        with theirs.update_schema() as update:
            update.rename_column(old, new)
    theirs.append(pa.table({"b": [3], "a": [30]}))
    table = bh.open(adopt(theirs), format="iceberg", spark=spark)
    frame = table.to_spark(spark)
    for where, expected in (("b = 1", [(1, 10)]), ("a > 15 AND b < 3", [(2, 20)]), ("a = 30", [(3, 30)])):
        assert [(r.b, r.a) for r in frame.where(where).collect()] == expected
        scanned = table.scan(where=where).to_spark(spark)
        assert [(r.b, r.a) for r in scanned.collect()] == expected


@pytest.mark.spec("I-043", "I-048", "I-049", "I-051", "I-291")
def test_rows_written_by_spark(spark, tmp_path, seen):
    fields = (
        Field("i", INT32), Field("wall", TIMESTAMP_NTZ), Field("instant", TIMESTAMP), Field("u", UUID),
        Field("s", STRING),
    )  # fmt: skip
    root = str(tmp_path / "t")
    table = bh.create(root, Schema(fields), format="iceberg", partition_by=["day(instant)"])
    id = uuid.uuid4()
    before = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", "America/Los_Angeles")
        frame = spark.sql(
            "SELECT CAST(7 AS TINYINT) AS i, TIMESTAMP_NTZ '2017-11-16 17:10:34' AS wall, "
            "TIMESTAMP '2017-11-16 17:10:34 PST' AS instant, "
            f"X'{id.hex}' AS u, 'x' AS s"
        )
        table.append(frame)
        read = bh.open(root).to_spark(spark).collect()[0]
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    eyes = seen(root)
    (row,) = eyes.rows().to_pylist()
    assert (row["i"], row["wall"], row["u"]) == (7, dt.datetime(2017, 11, 16, 17, 10, 34), id)
    assert row["instant"] == dt.datetime(2017, 11, 17, 1, 10, 34, tzinfo=dt.UTC)
    assert read.i == 7 and read.wall == dt.datetime(2017, 11, 16, 17, 10, 34) and uuid.UUID(read.u) == id
    file = eyes.live()[0]
    assert next(iter(file["partition"].values())) == dt.date(2017, 11, 17)
    stored = pq.read_metadata(file["file_path"].removeprefix("file://")).schema
    assert str(stored.column(3).logical_type) == "UUID" and stored.column(3).physical_type == "FIXED_LEN_BYTE_ARRAY"
    assert "isAdjustedToUTC=true" in str(stored.column(2).logical_type)


@pytest.mark.spec("I-085", "I-012")
def test_partitions_and_deletes_on_spark(spark, tmp_path, seen):
    rows = spark.range(100).selectExpr("id", "CAST(id % 5 AS STRING) AS p", "TIMESTAMP_NTZ '2024-01-01' AS t")
    root = str(tmp_path / "t")
    table = bh.create(root, rows.schema, format="iceberg", partition_by=["p", "bucket(4, id)"])
    table.append(rows)
    table = bh.open(root, spark=spark)
    table.delete("id % 7 = 0 OR p = '3'")
    expected = sorted(i for i in range(100) if i % 7 and i % 5 != 3)
    assert sorted(r.id for r in bh.open(root).to_spark(spark).collect()) == expected
    assert sorted(seen(root).rows()["id"].to_pylist()) == expected
