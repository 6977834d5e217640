"""Frames whose files Spark's planner asks for: what comes later prunes, and everything that is done with frames."""

import datetime as dt
import math
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import ArithmeticException
from pyspark.sql import functions as F

import boathouse as bh
from boathouse.engines.spark import asked, statuses
from boathouse.engines.spark.catalyst import Catalyst
from boathouse.engines.spark.session import facts

pytestmark = pytest.mark.spark
FILES, ROWS = 8, 50


def part(i: int) -> pa.Table:
    """File i: ids from 50 * i on, in partition i % 4."""
    ids = range(i * ROWS, (i + 1) * ROWS)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "p": pa.array([i % 4] * ROWS, pa.int32()),
            "s": [f"file {i}, row {j:02}" for j in range(ROWS)],
            "f": [math.nan if j == 7 else float(n) for j, n in enumerate(ids)],
            "ts": pa.array([dt.datetime(2020, 11, 1, i, tzinfo=dt.UTC)] * ROWS, pa.timestamp("us", "UTC")),
            "st": [{"x": n, "y": str(n)} for n in ids],
        }
    )


@pytest.fixture(params=["delta", "iceberg"])
def uri(request, tmp_path, spark) -> str:
    uri = str(tmp_path / "t")
    for i in range(FILES):
        rows = part(i) if facts(spark).version >= (4, 1) else part(i).drop_columns("st")  # read by tasks before
        bh.write(rows, uri, format=request.param, mode="append", **({} if i else {"partition_by": ["p"]}))
    return uri


@pytest.fixture
def table(uri, spark):
    found = bh.open(uri, spark=spark)
    assert "asks which" in str(found.scan().explain())
    return found


def read(frame) -> int:
    """How many files the scans of a frame read, by Spark's own metrics; runs it."""
    frame.collect()
    stack, found = [frame._jdf.queryExecution().executedPlan()], 0
    while stack:
        node = stack.pop()
        if node.nodeName() == "AdaptiveSparkPlan":
            stack.append(node.finalPhysicalPlan())
        if node.nodeName().endswith("QueryStage"):
            stack.append(node.plan())
        if node.nodeName().startswith("Scan parquet"):
            metric = node.metrics().get("numFiles")
            found += metric.get().value() if metric.isDefined() else 0
        children = node.children()
        stack += [children.apply(i) for i in range(children.size())]
    return found


CONDITIONS = {
    "id = 54": (1, 1), "id >= 100 AND id < 200": (100, 2), "id IN (1, 399)": (2, 2), "id < 0": (0, 0),
    "id IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)": (13, 1), "p = 2": (100, 2), "p % 2 = 1": (200, 4),
    "p = 2 AND id > 150": (50, 1), "s LIKE 'file 3%'": (50, 1), "startswith(s, 'file 3, row 4')": (10, 1),
    "f > 390": (17, 8), "f < 10 AND f > 5": (3, 8), "st.x = 60": (1, 1), "id <=> 60": (1, 1), "60 > id": (60, 2),
    "id = 54 OR s = 'file 7, row 01'": (2, 2), "NOT (id < 350)": (50, 1), "id IS NULL": (0, 0),
    "abs(id) = 54": (1, 8), "id = 54 AND rand() >= 0": (1, 1), "cast(id AS string) = '54'": (1, 8),
    "s COLLATE utf8_lcase = 'FILE 3, ROW 07'": (1, 8),
}  # fmt: skip


def test_conditions_that_come_later(table, spark):
    frame = table.to_spark()
    frame.createOrReplaceTempView("asked_view")
    seen = {}
    for where in CONDITIONS if "st" in frame.columns else CONDITIONS.keys() - {"st.x = 60"}:
        rows = frame.where(where)
        seen[where] = (rows.count(), read(rows.select("id")))
    expected = dict(CONDITIONS)
    for where in ("f > 390", "f < 10 AND f > 5"):  # what the metadata tells of NaN differs
        expected[where] = (CONDITIONS[where][0], len(table.scan(where=where).files()))
    assert seen == {where: expected[where] for where in seen}
    assert read(spark.sql("SELECT id FROM asked_view WHERE id = 54")) == 1
    assert read(spark.sql("SELECT sum(id) FROM (SELECT id, p + 1 AS q FROM asked_view) WHERE q = 3")) == 2


@pytest.mark.route("files asked for")
def test_one_later_condition(table):
    rows = table.to_spark().where("id = 54")
    assert read(rows) == 1
    assert [r.s for r in rows.collect()] == ["file 1, row 04"]
    words = f"version {table.version}, 8 files, asked for by each query"[:60]
    assert words in rows._jdf.queryExecution().executedPlan().toString()


@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles"])
def test_instants_where_a_text_means_two(table, spark, zone):
    """In Los Angeles 01:30 of this day was at 08:30 and at 09:30 UTC."""
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        frame = table.to_spark()
        for hour in range(FILES):
            instant = f"TIMESTAMP'2020-11-01T{hour:02}:00:00Z'"
            rows = frame.where(f"ts = {instant}")
            assert (rows.count(), read(rows.select("id"))) == (ROWS, 1)
            assert frame.where(f"ts > {instant}").count() == ROWS * (FILES - 1 - hour)
        many = ", ".join(f"TIMESTAMP'2020-11-01T07:{m:02}:00Z'" for m in range(14))
        assert read(frame.where(f"ts IN ({many})")) == 1
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_filters_on_partition_columns_are_applied_to_the_last_row(table, spark, tmp_path):
    frame = table.to_spark()
    odd = F.udf(lambda p: p % 2 == 1, "boolean")
    assert frame.where(odd("p")).count() == 200
    assert frame.where("p = (SELECT max(v) FROM VALUES (1), (2) AS t(v))").count() == 100
    assert frame.where("p + id % 2 = 3").count() == 100
    assert frame.where("p IN (SELECT v FROM VALUES (1), (2) AS t(v))").count() == 200
    assert [tuple(r) for r in frame.groupBy("p").count().orderBy("p").collect()] == [(i, 100) for i in range(4)]
    spark.createDataFrame([(2, 1), (3, 0)], "k int, one int").coalesce(1).write.parquet(str(tmp_path / "few"))
    few = spark.read.parquet(str(tmp_path / "few")).where("one = 1")
    joined = frame.join(few, F.col("p") == F.col("k"))
    assert joined.count() == 100
    assert read(joined.select("id")) == 3  # one of the other side, whose rows prune partitions


def test_errors_of_filters_are_sparks(table):
    frame = table.to_spark()
    assert frame.where("p != 0 AND 6 / p = 2").count() == 100
    with pytest.raises(ArithmeticException, match="DIVIDE_BY_ZERO"):
        frame.where("6 div p = 2").count()


def test_deleted_rows(table, spark):
    table.delete("id IN (3, 60) OR id >= 390")
    frame = table.to_spark()
    assert frame.count() == 388
    assert frame.where("id = 60").count() == 0 and frame.where("id = 61").count() == 1
    assert read(frame.where("id = 61")) == 1
    assert frame.where("p = 3 AND id > 380").count() == 9
    table.update({"s": "'changed'"}, "p = 1 AND id < 60")
    assert table.to_spark().where("s = 'changed'").count() == 10


def test_caching(table, uri, spark):
    frame = table.to_spark().cache()
    try:
        assert frame.count() == 400
        again = bh.open(uri, spark=spark).to_spark()
        assert "InMemoryTableScan" in again._jdf.queryExecution().executedPlan().toString()
        assert again.where("id = 54").count() == 1
        table.append(part(FILES).select(table.schema.names))
        newer = bh.open(uri, spark=spark).to_spark()
        assert "InMemoryTableScan" not in newer._jdf.queryExecution().executedPlan().toString()
        assert (newer.count(), frame.count()) == (450, 400)
    finally:
        frame.unpersist()


def test_self_joins_and_versions(table, uri, spark):
    before, frame = table.version, table.to_spark()
    assert frame.alias("a").join(frame.alias("b"), "id").where("a.p = 1 AND b.s LIKE 'file 5%'").count() == 50
    table.append(part(FILES).select(table.schema.names))
    newest, old = bh.open(uri, spark=spark).to_spark(), bh.open(uri, version=before, spark=spark).to_spark()
    assert newest.unionAll(old).where("id >= 350").count() == 150
    assert newest.exceptAll(old).count() == ROWS
    assert (newest.where("id > 395").count(), old.where("id > 395").count(), frame.count()) == (54, 4, 400)


def test_names_of_files(table, uri, spark):
    frame = table.to_spark()
    files = {f.removeprefix("file://") for f in frame.inputFiles()}
    assert files == {f.removeprefix("file://") for f in table.scan().files()}
    rows = frame.select("id", F.input_file_name().alias("f"), "_metadata.file_path", "_metadata.file_modification_time")
    found = rows.where("id = 54").collect()[0]
    assert found.f == found.file_path.replace("file:/", "file:///", 1)
    assert found.f.removeprefix("file://") in files
    assert found.file_modification_time.year > 2020
    assert frame.where("_metadata.file_name = 'no such file'").count() == 0
    assert frame.select("_metadata.file_path").distinct().count() == FILES


def test_streams_whose_batches_read_a_table(table, spark, tmp_path):
    spark.range(3).write.parquet(str(tmp_path / "source"))
    found = []

    def batch(rows, number):
        found.append(table.to_spark().join(rows.withColumnRenamed("id", "i"), F.col("id") == F.col("i")).count())

    stream = spark.readStream.schema("id bigint").parquet(str(tmp_path / "source")).writeStream.foreachBatch(batch)
    stream.trigger(availableNow=True).option("checkpointLocation", str(tmp_path / "c")).start().awaitTermination()
    assert found == [3]


def test_sessions_and_threads(table, spark):
    other = spark.newSession()
    other.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    frames = [table.to_spark(spark), table.to_spark(other)]
    barrier = threading.Barrier(8)

    def ask(i: int) -> int:
        barrier.wait()
        return sum(frames[i % 2].where(f"id % 7 = {i} AND id < 350").count() for _ in range(3))

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(ask, range(8))) == 3 * 350
    assert other.conf.get("spark.sql.session.timeZone") == "Asia/Kolkata"


def test_sizes_decide_what_is_broadcast(table, spark):
    frame = table.to_spark()
    size = frame._jdf.queryExecution().analyzed().collectLeaves().head().relation().sizeInBytes()
    assert size == sum(f["size"] for f in table.scan().plan().units.to_pylist())
    joined = spark.range(1000).join(frame, "id")
    assert "BroadcastHashJoin" in joined._jdf.queryExecution().executedPlan().toString()


def test_columns_are_the_tables(spark, tmp_path):
    for format in ("delta", "iceberg"):
        schema = bh.types.Schema(
            (
                bh.types.Field("id", bh.types.INT64, False, doc="the key"),
                bh.types.Field("v", bh.types.STRING, doc="more"),
            )
        )
        t = bh.create(str(tmp_path / format), schema, format=format)
        t.append(pa.table({"id": [1, 2], "v": ["a", None]}))
        fields = bh.open(str(tmp_path / format), spark=spark).to_spark().schema.fields
        assert [(f.name, f.nullable, f.metadata.get("comment")) for f in fields] == [
            ("id", False, "the key"), ("v", True, "more")
        ]  # fmt: skip
        copy = bh.write(t.to_spark(spark), str(tmp_path / f"{format} copy"), format=format)
        assert copy is not None
        assert [f.doc for f in bh.open(str(tmp_path / f"{format} copy")).schema] == ["the key", "more"]


def test_statuses_are_what_hadoop_reads(spark):
    catalyst = Catalyst.of(spark)
    names = [
        "file:///a/b c%20d#é",
        "s3a://bucket/" + "x" * 300,
        "file:///_h/.i/🙂",
        *(f"file:///{i}" for i in range(50)),
    ]
    sizes = np.array([0, 2**40, 1, *range(50)], np.int64)
    times = np.array([0, 2**42, 127, *range(100, 150)], np.int64)
    paths = pa.array(names)
    found = catalyst.statuses(list(statuses.chunks(paths.slice(1), sizes[1:], times[1:])))
    assert len(found) == 52
    for i in (0, 1, 51):
        status = found[i]
        told = (status.getPath().toString(), status.getLen(), status.getModificationTime(), status.isFile())
        assert told == (names[i + 1].replace("file:///", "file:/"), sizes[i + 1], times[i + 1], True)


def test_without_the_classes_spark_lists_the_files(table, spark, monkeypatch):
    monkeypatch.setattr(asked, "_FOUND", {})
    monkeypatch.setattr(asked, "Catalyst", None)
    assert "it lists them, since Spark 4" in str(table.scan().explain())
    frame = table.to_spark()
    assert "InMemoryFileIndex" in frame._jdf.queryExecution().executedPlan().toString()
    assert frame.where("p % 2 = 1 AND id > 300").count() == 50
    assert read(frame.where("p = 2")) == 2


RESTARTED = """
    import sys
    import boathouse as bh
    from pyspark.sql import SparkSession
    for turn in range(2):
        spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
        frame = bh.open(sys.argv[1], spark=spark).to_spark()
        assert frame.where("id = 54").count() == 1
        assert "asked for by each query" in frame._jdf.queryExecution().executedPlan().toString()
        spark.stop()
    print("restarted")
"""


@pytest.mark.slow
def test_a_session_after_another(uri):
    found = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(RESTARTED), uri],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert "restarted" in found.stdout, found.stderr[-2000:]
