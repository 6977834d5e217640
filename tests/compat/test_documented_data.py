"""What delta-spark's pages show of `format("delta")`: batches, time travel, changes and streams, with the import of
`delta.tables` changed and nothing else."""

from __future__ import annotations

import datetime as dt

import pytest

pytest.importorskip("pyspark")
from pyspark.errors import AnalysisException
from pyspark.sql.functions import col

import boathouse as bh
from boathouse.compat import delta_format
from boathouse.compat.delta_tables import DeltaTable

pytestmark = pytest.mark.spark

ROWS = [(1, "Kiel"), (2, "Oslo")]
COLUMNS = "id bigint, city string"


def rows(df) -> list:
    return sorted((tuple(r) for r in df.collect()), key=str)


@pytest.fixture
def path(spark, tmp_path):
    """A table of two versions: two rows, and one more. The session knows the format by then."""
    uri = str(tmp_path / "t")
    DeltaTable.create(spark).location(uri).addColumn("id", "BIGINT").addColumn("city", "STRING").execute()
    spark.createDataFrame(ROWS, COLUMNS).coalesce(1).write.format("delta").mode("append").save(uri)
    spark.createDataFrame([(3, "Turku")], COLUMNS).write.format("delta").mode("append").save(uri)
    return uri


def write(df, **options):
    return df.write.format("delta").mode("overwrite").options(**options)


# ---- batches


@pytest.mark.route('format("delta")')
def test_reads_and_time_travel(spark, path):
    def read(**options):
        return spark.read.format("delta").options(**options).load(path)

    assert rows(read()) == [*ROWS, (3, "Turku")]
    assert rows(read(versionAsOf=1)) == ROWS
    latest = bh.sql(spark, f"DESCRIBE HISTORY delta.`{path}`").selectExpr("max(version)").collect()[0][0]
    assert rows(read(versionAsOf=latest)) == rows(read(timestampAsOf="2100-01-01T00:00:00.000Z")) == rows(read())
    with pytest.raises(AnalysisException, match="VersionNotFoundError"):
        read(timestampAsOf="2019-01-01")


def test_rows_that_were_deleted_are_appended_again(spark, path):
    before = spark.read.format("delta").option("versionAsOf", 2).load(path)
    DeltaTable.forPath(spark, path).delete("id = 1")
    before.where("id = 1").write.format("delta").mode("append").save(path)
    assert rows(spark.read.format("delta").load(path)) == [*ROWS, (3, "Turku")]


def test_overwrites(spark, path):
    one, two = (
        spark.createDataFrame([(1, "Bergen")], COLUMNS),
        spark.createDataFrame([(9, "x", True)], "id bigint, city string, more boolean"),
    )
    write(one, replaceWhere="id = 1").save(path)
    assert rows(spark.read.format("delta").load(path)) == [(1, "Bergen"), (2, "Oslo"), (3, "Turku")]
    with pytest.raises(AnalysisException, match="Error"):
        write(one, replaceWhere="id = 2").save(path)
    with pytest.raises(AnalysisException, match="more"):
        write(two).save(path)
    two.write.format("delta").mode("append").option("mergeSchema", "true").save(path)
    assert rows(spark.read.format("delta").load(path))[-1] == (9, "x", True)
    write(one.withColumn("id", col("id").cast("string")), overwriteSchema="true").save(path)
    assert rows(spark.read.format("delta").load(path)) == [("1", "Bergen")]
    renamed = spark.read.format("delta").load(path).withColumnRenamed("city", "town")
    write(renamed, overwriteSchema="true").save(path)
    assert spark.read.format("delta").load(path).columns == ["id", "town"]


def test_partitions_are_overwritten_one_by_one(spark, tmp_path):
    place = str(tmp_path / "p")
    DeltaTable.create(spark).location(place).addColumn("id", "BIGINT").addColumn("city", "STRING").partitionedBy(
        "city"
    ).execute()
    frame = spark.createDataFrame(ROWS, COLUMNS)
    frame.write.format("delta").mode("append").save(place)
    write(spark.createDataFrame([(7, "Kiel")], COLUMNS), partitionOverwriteMode="dynamic").save(place)
    assert rows(spark.read.format("delta").load(place)) == [(2, "Oslo"), (7, "Kiel")]


def test_writes_are_done_once_and_explained(spark, path):
    frame = spark.createDataFrame([(4, "Umeå"), (5, "Riga")], COLUMNS).coalesce(1)
    for _ in range(2):
        frame.write.format("delta").mode("append").option("txnVersion", 7).option("txnAppId", "nightly").save(path)
    assert spark.read.format("delta").load(path).count() == 5
    table = DeltaTable.forPath(spark, path)
    before = table.detail().first()["numFiles"]
    frame.write.format("delta").mode("append").option("maxRecordsPerFile", "1").save(path)
    assert table.detail().first()["numFiles"] == before + 2
    write(frame, userMetadata="overwritten-for-fixing").save(path)
    assert table.history(1).first()["userMetadata"] == "overwritten-for-fixing"
    spark.conf.set("spark.databricks.delta.commitInfo.userMetadata", "by the session")
    try:
        table.delete("id = 4")
        bh.sql(spark, f"INSERT INTO delta.`{path}` VALUES (6, 'Bonn')")
    finally:
        spark.conf.unset("spark.databricks.delta.commitInfo.userMetadata")
    assert [r["userMetadata"] for r in table.history(2).collect()] == ["by the session"] * 2


def test_a_column_of_nulls_keeps_its_type(spark, path):
    spark.range(9, 10).selectExpr("id", "NULL AS city").write.format("delta").mode("append").save(path)
    assert rows(spark.read.format("delta").load(path))[-1] == (9, None)


# ---- changes


@pytest.fixture
def changed(spark, tmp_path):
    uri = str(tmp_path / "c")
    made = DeltaTable.create(spark).location(uri).addColumn("id", "BIGINT").addColumn("city", "STRING")
    table = made.property("delta.enableChangeDataFeed", "true").execute()
    spark.createDataFrame(ROWS, COLUMNS).coalesce(1).write.format("delta").mode("append").save(uri)
    table.update("id = 1", {"city": "'Bonn'"})
    table.delete("id = 2")
    return uri


def test_changes_are_read_as_a_batch(spark, changed):
    def read(**options):
        df = spark.read.format("delta").option("readChangeFeed", "true").options(**options).load(changed)
        return rows(df.select("_commit_version", "id", "city", "_change_type"))

    inserted = [(1, 1, "Kiel", "insert"), (1, 2, "Oslo", "insert")]
    updated = [(2, 1, "Bonn", "update_postimage"), (2, 1, "Kiel", "update_preimage")]
    assert read(startingVersion=0, endingVersion=10**0) == inserted
    assert read(startingVersion=0, endingVersion=2) == [*inserted, *updated]
    assert read(startingVersion=2) == [*updated, (3, 2, "Oslo", "delete")]
    assert read(startingTimestamp="2021-04-21 05:45:46") == read(startingVersion=0)
    assert read(startingTimestamp="2021-04-21", endingTimestamp="2100-05-21 12:00:00") == read(startingVersion=0)
    for options, match in (
        ({}, "startingVersion"),
        ({"startingVersion": 9}, "VersionNotFoundError"),
        ({"startingVersion": 0, "endingVersion": 9}, "VersionNotFoundError"),
        ({"startingVersion": 0, "endingVersion": 1, "endingTimestamp": "2100-01-01"}, "exclude each other"),
        ({"startingVersion": 2, "endingVersion": 1}, "VersionNotFoundError"),
    ):
        with pytest.raises(AnalysisException, match=match):
            read(**options)


def test_changes_are_read_as_a_stream(spark, changed, tmp_path):
    stream = (
        spark.readStream.format("delta").option("readChangeFeed", "true").option("startingVersion", 0).load(changed)
    )
    assert copied(spark, stream, tmp_path) == [
        ("delete",),
        ("insert",),
        ("insert",),
        ("update_postimage",),
        ("update_preimage",),
    ]


def copied(spark, stream, folder):
    place = str(folder / "out")
    sink = (
        stream.select("_change_type")
        .writeStream.format("delta")
        .option("checkpointLocation", str(folder / "checkpoint"))
    )
    sink.trigger(availableNow=True).start(place).awaitTermination()
    return rows(spark.read.format("delta").load(place))


# ---- streams


def test_streams_append_replace_and_upsert(spark, path, tmp_path):
    def started(df, mode, place, checkpoint):
        sink = df.writeStream.format("delta").outputMode(mode).option("checkpointLocation", str(tmp_path / checkpoint))
        sink.trigger(availableNow=True).start(place).awaitTermination()
        return rows(spark.read.format("delta").load(place))

    events = spark.readStream.format("delta").option("maxFilesPerTrigger", 100).load(path)
    copy = str(tmp_path / "copy")
    assert started(events, "append", copy, "a") == [*ROWS, (3, "Turku")]
    DeltaTable.forPath(spark, copy).delete("id = 3")
    assert started(events, "append", copy, "a") == ROWS  # nothing is new
    counted = started(events.groupBy("city").count(), "complete", str(tmp_path / "counts"), "b")
    assert counted == [("Kiel", 1), ("Oslo", 1), ("Turku", 1)]
    target = DeltaTable.forPath(spark, copy)

    def upsert(batch, number):
        (
            target.alias("t").merge(batch.alias("s"), "s.id = t.id")
            .whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
        )  # fmt: skip
        batch.write.format("delta").mode("append").option("txnVersion", number).option("txnAppId", "log").save(log)

    log = str(tmp_path / "log")
    query = events.writeStream.format("delta").foreachBatch(upsert).outputMode("update").trigger(availableNow=True)
    query.start().awaitTermination()
    assert rows(target.toDF()) == rows(spark.read.format("delta").load(log)) == [*ROWS, (3, "Turku")]


def test_streams_begin_where_they_are_told_and_pass_over_deletes(spark, path, tmp_path):
    def ids(name, **options):
        stream = spark.readStream.format("delta").options(**options).load(path)
        place = str(tmp_path / name)
        sink = stream.writeStream.format("delta").option("checkpointLocation", f"{place}_checkpoint")
        sink.trigger(availableNow=True).start(place).awaitTermination()
        return [r[0] for r in rows(spark.read.format("delta").load(place))]

    assert ids("two", startingVersion="2") == [3]
    DeltaTable.forPath(spark, path).delete("id = 3")  # a whole file
    assert ids("deletes", startingTimestamp="2018-10-18", ignoreDeletes="true") == [1, 2, 3]


# ---- when the format is there


def missing() -> AnalysisException:
    """As the JVM raises it, whose conditions PySpark's own list does not have."""
    error = AnalysisException("[DATA_SOURCE_NOT_FOUND] delta")
    error._errorClass = "DATA_SOURCE_NOT_FOUND"
    return error


def test_the_format_is_offered_once_and_not_beside_another(spark, monkeypatch):
    class Session:
        """Knows a source of that name, or fails in a way that says so."""

        def __init__(self, error=None):
            self.error, self.registered = error, []
            self.dataSource = self.read = self

        def format(self, name):
            assert name == "delta"
            return self

        def load(self):
            if self.error is not None:
                raise self.error
            return spark.range(1)

        def register(self, source):
            self.registered.append(source.name())

    plain = Session(missing())
    delta_format.offer_format(plain)
    delta_format.offer_format(plain)
    assert plain.registered == ["delta"]
    for other in (Session(), Session(AnalysisException("[DELTA_PATH_DOES_NOT_EXIST] path"))):
        delta_format.offer_format(other)
        assert other.registered == []
    monkeypatch.setattr(delta_format.SparkSession, "getActiveSession", classmethod(lambda cls: late))
    late = Session(missing())
    delta_format.offer_to_active()
    assert late.registered == ["delta"]


def test_the_format_is_of_delta_alone(spark, path, tmp_path):
    bh.write(spark.range(2), str(tmp_path / "ice"), format="iceberg")
    with pytest.raises(AnalysisException, match="Iceberg"):
        spark.read.format("delta").load(str(tmp_path / "ice"))
    spark.range(2).write.format("delta").mode("append").save(str(tmp_path / "new"))
    assert bh.detect(str(tmp_path / "new")) == ("delta",)
    assert bh.open(path).history(1)[0].timestamp_ms <= dt.datetime.now().timestamp() * 1000 + 1
