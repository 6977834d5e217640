"""Frames whose files Spark's planner asks for: what comes later prunes, and everything that is done with frames."""

import datetime as dt
import math
import os
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from operator import or_

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import ArithmeticException, IllegalArgumentException
from pyspark.sql import functions as F

import boathouse as bh
from boathouse.engines.spark import asked, statuses
from boathouse.engines.spark.catalyst import Catalyst
from boathouse.engines.spark.session import facts
from boathouse.errors import MissingFileError
from boathouse.table.features import Outlined
from boathouse.types import INT64, STRING, Field, ListType, Schema, StructType
from makers.traits import TRAITS

pytestmark = pytest.mark.spark
FILES, ROWS = 8, 50
SEARCHED = {name for name, traits in TRAITS.items() if Outlined in traits.offers}


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
            "ntz": pa.array([dt.datetime(2020, 11, 1, i, 30)] * ROWS, pa.timestamp("us")),
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
            local = f"TIMESTAMP_NTZ'2020-11-01T{hour:02}:30:00'"
            rows = frame.where(f"ntz >= {local} AND ntz < {local} + INTERVAL 1 MINUTE")
            assert (rows.count(), read(rows.select("id"))) == (ROWS, 1)
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


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_columns_are_the_tables(spark, tmp_path, format):
    fields = (Field("id", INT64, False, doc="the key"), Field("v", STRING, doc="more"))
    uri = str(tmp_path / format)
    t = bh.create(uri, Schema(fields), format=format)
    t.append(pa.table({"id": [1, 2], "v": ["a", None]}))
    frame = bh.open(uri, spark=spark).to_spark()
    told = [(f.name, f.nullable, f.metadata.get("comment")) for f in frame.schema.fields]
    assert told == [("id", False, "the key"), ("v", True, "more")]
    for i, source in enumerate((frame, t.to_arrow(), t)):
        bh.write(source, f"{uri} copy {i}", format=format)
        assert [f.doc for f in bh.open(f"{uri} copy {i}").schema] == ["the key", "more"]


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_fields_inside_columns_are_the_tables(spark, tmp_path, format):
    if facts(spark).version < (4, 1):
        pytest.skip("structs are read by tasks")
    inner = StructType((Field("x", INT64, False, doc="inner"), Field("y", INT64)))
    many = ListType(Field("element", StructType((Field("z", STRING, False, doc="deep"),)), False))
    uri = str(tmp_path / format)
    t = bh.create(uri, Schema((Field("st", inner), Field("l", many))), format=format)
    t.append([{"st": {"x": i, "y": None}, "l": [{"z": "a"}]} for i in (1, 2)])
    frame = bh.open(uri, spark=spark).to_spark()
    st, many_of = (f.dataType for f in frame.schema.fields)
    assert [(f.nullable, f.metadata) for f in st] == [(False, {"comment": "inner"}), (True, {})]
    assert not many_of.containsNull and not many_of.elementType[0].nullable
    assert frame.where("st.x = 2 AND l[0].z = 'a'").count() == 1
    assert frame.unionAll(frame.selectExpr("st", "array(struct('b' AS z)) AS l")).count() == 4
    for i, source in enumerate((frame, t.to_arrow(), t)):
        bh.write(source, f"{uri} copy {i}", format=format)
        copied = [(f.name, f.doc) for _, f in bh.open(f"{uri} copy {i}").schema.walk() if f.doc]
        assert copied == [("x", "inner"), ("z", "deep")]


@pytest.fixture
def files(spark, tmp_path):
    """A Delta table of these tables, a file each."""

    def made(*parts: pa.Table, **options):
        for rows in parts:
            bh.write(rows, str(tmp_path / "made"), mode="append", format="delta", **options)
        return bh.open(str(tmp_path / "made"), spark=spark)

    return made


def test_fields_of_structs_that_a_query_needs_few_of(files, spark):
    """Spark numbers the fields that it reads, and not those of the table."""
    if facts(spark).version < (4, 1):
        pytest.skip("structs are read by tasks")
    struct = pa.struct(
        [("x", pa.int64()), ("y", pa.int64()), ("in", pa.struct([("a", pa.int64()), ("b", pa.int64())]))]
    )
    rows = [{"x": i, "y": 100 + i, "in": {"a": 200 + i, "b": 300 + i}} for i in range(3)]
    frame = files(*(pa.table({"id": [i], "st": pa.array([r], struct)}) for i, r in enumerate(rows))).to_spark()
    for where in ("st.y = 101", "st.`in`.b = 301", "st.x = 1 AND st.`in`.a > 200"):
        found = frame.where(where).select("id")
        assert (read(found), [r.id for r in found.collect()]) == (1, [1]), where


def test_columns_that_are_called_like_those_of_files(files):
    names = ("file_size", "file_name", "file_path", "row_index", "file_block_start")
    frame = files(*(pa.table({"id": [i], **{n: pa.array([-i - 1], pa.int64()) for n in names}}) for i in range(3)))
    frame = frame.to_spark()
    assert frame.where("_metadata.file_size > 100").count() == 3
    assert frame.where("_metadata.row_index = 0 AND _metadata.file_block_start = 0").count() == 3
    assert frame.where("_metadata.file_name LIKE '%.parquet'").count() == 3
    found = frame.where("file_size = -2 AND id = 1 AND _metadata.file_size > 100").select("id", "row_index")
    assert (read(found), [tuple(r) for r in found.collect()]) == (1, [(1, -2)])


def test_a_column_that_is_called_like_the_unit(files):
    table = files(
        *(pa.table({"id": [0, 1, 2], "__UNIT": [i] * 3, "__unit_": [i + 10] * 3}) for i in range(3)),
        properties={"delta.enableDeletionVectors": "true"},
    )
    table.delete("id = 1 AND `__UNIT` < 2")
    rows = sorted(tuple(r) for r in table.to_spark().collect())
    assert rows == [(0, 0, 10), (0, 1, 11), (0, 2, 12), (1, 2, 12), (2, 0, 10), (2, 1, 11), (2, 2, 12)]


def test_filters_with_queries_in_them_and_deep_ones(files, spark):
    frame = files(*(pa.table({"id": [i], "n": [i]}) for i in range(3))).to_spark()
    frame.createOrReplaceTempView("three")
    assert frame.where("id = (SELECT max(id) FROM range(2))").count() == 1
    assert frame.where("id = (SELECT max(id) FROM range(2)) AND n < 2").count() == 1
    queries = "id IN (SELECT id FROM range(1)) OR n = (SELECT 2L)"
    assert spark.sql(f"SELECT * FROM three WHERE {queries}").count() == 2
    assert spark.sql("SELECT * FROM three t WHERE EXISTS (SELECT 1 FROM range(2) r WHERE r.id = t.id)").count() == 2
    deep = reduce(or_, [(F.col("id") == i) & (F.col("n") >= i) for i in range(2, 152)])
    assert (frame.where(deep).count(), read(frame.where(deep).select("id"))) == (1, 3)


def test_zeros_and_nan_among_many_values(files):
    values = [0.0, -0.0, 1.5, math.nan, None]
    frame = files(*(pa.table({"id": [i], "f": pa.array([v], pa.float64())}) for i, v in enumerate(values))).to_spark()
    for zero in ("0.0D", "-0.0D"):
        many = ", ".join([zero, *(f"{n}.0D" for n in range(20, 32))])
        assert [r.id for r in frame.where(f"f IN ({many})").orderBy("id").collect()] == [0, 1]
        assert [r.id for r in frame.where(f"f NOT IN ({many})").orderBy("id").collect()] == [2, 3]


@pytest.fixture
def searched(table, uri, spark, monkeypatch):
    """The table as one of so many files that each query looks for them, of which Delta knows enough to do so."""
    monkeypatch.setattr("boathouse.api.scan.HELD_FILES", 3)
    frame = table.to_spark()
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert ("about 8 files" in plan) == (table.format in SEARCHED)
    return frame


def test_files_that_each_query_looks_for(searched, table, uri, spark):
    seen = {}
    for where in CONDITIONS if "st" in searched.columns else CONDITIONS.keys() - {"st.x = 60"}:
        rows = searched.where(where)
        seen[where] = (rows.count(), read(rows.select("id")))
    expected = dict(CONDITIONS)
    for where in ("f > 390", "f < 10 AND f > 5"):
        expected[where] = (CONDITIONS[where][0], len(table.scan(where=where).files()))
    assert seen == {where: expected[where] for where in seen}
    assert searched.count() == 400 and read(searched.select("id")) == 8
    assert sorted(searched.inputFiles()) == sorted(f"file://{f.removeprefix('file://')}" for f in table.scan().files())
    assert [tuple(r) for r in searched.groupBy("p").count().orderBy("p").collect()] == [(i, 100) for i in range(4)]
    for some, held in ((100, True), (250, table.format not in SEARCHED)):  # 2 files, and 5
        early = table.scan(where=f"id < {some}").to_spark()
        assert (early.count(), read(early.where("id > 60 AND id < 100").select("id"))) == (some, 1)
        assert ("about" not in early._jdf.queryExecution().executedPlan().toString()) is held
    same = searched.where("p = 2")._jdf.queryExecution().analyzed()
    assert same.sameResult(bh.open(uri, spark=spark).to_spark().where("p = 2")._jdf.queryExecution().analyzed())


def test_versions_and_conditions_of_searched_files_are_told_apart(searched, table, uri, spark):
    searched.cache()
    try:
        assert searched.count() == 400
        early = table.scan(where="id < 100").to_spark()
        assert early.count() == 100 and table.scan(where="id < 99").to_spark().count() == 99
        table.append(part(FILES).select(table.schema.names))
        newer = bh.open(uri, spark=spark).to_spark()
        assert (newer.count(), newer.where("id >= 400").count(), searched.count()) == (450, 50, 400)
    finally:
        searched.unpersist()


def test_of_many_files_with_deleted_rows_the_list_is_held(files, monkeypatch):
    monkeypatch.setattr("boathouse.api.scan.HELD_FILES", 3)
    parts = [part(i).drop_columns("st") for i in range(5)]
    table = files(*parts, properties={"delta.enableDeletionVectors": "true"})
    assert "about 5 files" in table.to_spark()._jdf.queryExecution().executedPlan().toString()
    table.delete("id = 60")
    frame = table.to_spark()
    assert table.scan().explain().with_deletes == 1
    assert "about" not in frame._jdf.queryExecution().executedPlan().toString()
    assert frame.count() == 249 and frame.where("id IN (60, 61)").count() == 1


@pytest.mark.parametrize("held", [True, False])
def test_a_file_that_is_gone_is_named(table, uri, spark, monkeypatch, held):
    if not held:
        monkeypatch.setattr("boathouse.api.scan.HELD_FILES", 3)
    frame = table.to_spark()
    gone = bh.open(uri).scan(where="id = 54").files()[0].removeprefix("file://")
    os.remove(gone)
    assert frame.where("id = 154").count() == 1
    with pytest.raises(IllegalArgumentException, match=f"MissingFileError: version {table.version} of the table") as e:
        frame.where("id = 54").count()
    assert os.path.basename(gone) in str(e.value)
    with pytest.raises(MissingFileError, match=f"version {table.version} of the table"):
        bh.write(frame.where("id = 54"), f"{uri} copy", format=table.format)


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


def test_threads_that_are_not_pinned_are_not_asked(table, spark, monkeypatch):
    """Filters on partition columns would be evaluated with the settings of another session."""
    monkeypatch.setattr(asked, "_FOUND", {})
    monkeypatch.setattr(asked, "ClientServer", str)
    assert "it lists them, since its planner would ask with another thread's settings" in str(table.scan().explain())


def test_filters_are_evaluated_with_the_settings_of_their_session(files, spark):
    """A wrong setting would take 01/02 for another day."""
    table = files(pa.table({"p": ["2020-01-02", "02/01/2020"], "id": [1, 2]}), partition_by=["p"])
    legacy = spark.newSession()
    legacy.conf.set("spark.sql.ansi.enabled", "false")
    legacy.conf.set("spark.sql.legacy.timeParserPolicy", "LEGACY")
    spark.conf.set("spark.sql.legacy.timeParserPolicy", "CORRECTED")
    where = "date_format(to_date(p, 'yyyy-MM-dd'), 'u') = '4'"  # a letter that only the older formats have as a weekday
    try:
        assert [r.id for r in table.to_spark(legacy).where(where).collect()] == [1]
        with pytest.raises(Exception, match=r"(?i)pattern"):
            table.to_spark(spark).where(where).collect()
    finally:
        spark.conf.unset("spark.sql.legacy.timeParserPolicy")


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
