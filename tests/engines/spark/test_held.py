"""Small frames whose rows the driver holds: it writes them in process, the same rows as tasks would write."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import functions as F

import boathouse as bh
from boathouse.engines.spark import catalyst, held
from boathouse.engines.spark.engine import SparkEngine
from boathouse.errors import BoathouseError, ConstraintViolationError, SchemaMismatchError
from boathouse.types import Identity
from makers.traits import REAL, TRAITS

pytestmark = [pytest.mark.spark, pytest.mark.held]

ROWS = pa.table({"id": pa.array([1, 2, None], pa.int64()), "s": ["a", "ü%", None], "f": [1.5, float("nan"), -0.0]})


@pytest.fixture
def engine(spark):
    return SparkEngine(spark)


def same(table: pa.Table) -> list[str]:
    return sorted(repr(tuple(row.values())) for row in table.to_pylist())


def in_a_session(spark, name, value):
    class Setting:
        def __enter__(self):
            self.before = spark.conf.get(name, None)
            spark.conf.set(name, value)

        def __exit__(self, *_):
            spark.conf.unset(name) if self.before is None else spark.conf.set(name, self.before)

    return Setting()


@pytest.mark.parametrize("format", REAL)
@pytest.mark.route("rows that the driver holds")
def test_the_driver_writes_what_it_holds(spark, tmp_path, format):
    frame, path = spark.createDataFrame(ROWS), str(tmp_path / "t %")
    by = {"partition_by": ["s"]} if TRAITS[format].partitions else {}
    created = bh.write(frame, path, format=format, **by)
    assert (created.engine, created.rows_added) == ("local", 3)
    table = bh.open(path, spark=spark)
    assert table.append(frame.where("id = 2").select("id", "f")).engine == "local"
    assert table.append(spark.range(7, 8)).engine == "spark"
    more = pa.table({"id": [2, 7], "s": [None, None], "f": [float("nan"), None]})
    assert same(table.to_arrow()) == same(pa.concat_tables([ROWS, more.cast(ROWS.schema)]))
    replaced = table.overwrite(frame.limit(1))
    assert (replaced.engine, replaced.rows_added, replaced.rows_deleted) == ("local", 1, 5)
    assert table.append(ROWS).engine == "local"
    assert table.delete("id = 1").engine is None and table.set_properties({"a": "b"}).engine is None


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_every_type_is_written_as_tasks_write_it(spark, tmp_path, monkeypatch, zone, ansi):
    frame = spark.sql("""
        SELECT * FROM VALUES
          (1Y, 2S, 3, 4L, 1.5F, CAST('NaN' AS DOUBLE), 1.25BD, true, 'ü', X'00FF', DATE'0001-01-01',
           TIMESTAMP'1883-11-18 12:01:02.000003', TIMESTAMP_NTZ'2020-03-08 02:30:00', ARRAY(1, NULL), MAP('k', 1L),
           NAMED_STRUCT('a.b', 1, 'l', ARRAY(TIMESTAMP'2020-11-01 01:30:00'))),
          (NULL, NULL, NULL, NULL, NULL, -0.0D, NULL, NULL, NULL, NULL, DATE'9999-12-31', NULL, NULL, NULL, NULL, NULL)
        AS t (a, b, c, d, e, f, g, h, i, `j.k`, l, m, n, o, p, q)""")
    with in_a_session(spark, "spark.sql.session.timeZone", zone), in_a_session(spark, "spark.sql.ansi.enabled", ansi):
        kept = frame.selectExpr("*", "parse_json('{\"x\": [1]}') AS v", "c + 1 AS w")
        for format, properties in {"delta": None, "iceberg": {"format-version": "3"}}.items():
            found = {}
            for most in (held.MOST_ROWS, -1):
                monkeypatch.setattr(held, "MOST_ROWS", most)
                path = str(tmp_path / f"{format}{most}")
                result = bh.write(kept, path, format=format, properties=properties)
                found[result.engine] = bh.open(path)
            monkeypatch.undo()
            local, tasks = found["local"], found["spark"]
            assert local.schema == tasks.schema and same(local.to_arrow()) == same(tasks.to_arrow())
            assert local.to_arrow().schema == tasks.to_arrow().schema


FRAMES = {
    "a table": (lambda s: s.createDataFrame(ROWS), "local"),
    "pandas": (lambda s: s.createDataFrame(ROWS.slice(0, 2).to_pandas()), None),
    "values": (lambda s: s.sql("VALUES (1, 'a'), (2, 'b') AS t (id, s)"), "local"),
    "casts and filters": (
        lambda s: s.createDataFrame(ROWS).where("id > 1").selectExpr("CAST(id AS string) s", "id * 2 AS id"), "local"),
    "one row": (lambda s: s.sql("SELECT 1 AS id, upper('a') AS s"), "local"),
    "no rows": (lambda s: s.createDataFrame(ROWS).where("false"), "local"),
    "a sorted limit": (lambda s: s.createDataFrame(ROWS).limit(2).toDF("id", "s", "f"), "local"),
    "the time": (lambda s: s.createDataFrame(ROWS).selectExpr("CAST(current_timestamp() AS string) AS s"), "local"),
    "a range": (lambda s: s.range(3), "spark"),
    "a list": (lambda s: s.createDataFrame([(1, "a")], "id long, s string"), "spark"),
    "rand": (lambda s: s.createDataFrame(ROWS).selectExpr("id", "rand() AS f"), "spark"),
    "uuid": (lambda s: s.createDataFrame(ROWS).selectExpr("id", "uuid() AS s"), "spark"),
    "a function of the user": (
        lambda s: s.createDataFrame(ROWS).select("id", F.udf(lambda x: "x", "string")("s").alias("s")), "spark"),
    "rows exploded": (lambda s: s.createDataFrame(ROWS).selectExpr("explode(sequence(1L, 20000L)) AS id"), "spark"),
    "many rows": (lambda s: s.createDataFrame(pa.table({"id": range(held.MOST_ROWS + 1)})), "spark"),
    "long rows": (lambda s: s.createDataFrame(pa.table({"s": ["x" * (9 << 20)]})), "spark"),
    "a join": (lambda s: s.createDataFrame(ROWS).join(s.createDataFrame(ROWS).select("id"), "id"), "spark"),
}  # fmt: skip


@pytest.mark.parametrize("name", FRAMES)
def test_which_frames_are_held(spark, tmp_path, name):
    make, engine = FRAMES[name]
    frame = make(spark)
    result = bh.write(frame, str(tmp_path / "t"))
    if engine is not None:
        assert result.engine == engine
    if name not in ("rand", "uuid", "the time"):
        assert same(bh.open(str(tmp_path / "t")).to_arrow()) == same(frame.toArrow())


def test_cached_rows_are_those_that_were_cached(spark, tmp_path):
    frame = spark.createDataFrame(ROWS).selectExpr("id", "CAST(current_timestamp() AS string) AS s").cache()
    try:
        kept = same(frame.toArrow())
        result = bh.write(frame, str(tmp_path / "t"))
        assert result.engine == "spark" and same(bh.open(str(tmp_path / "t")).to_arrow()) == kept
    finally:
        frame.unpersist()


def test_a_function_of_the_user_is_not_called(spark):
    """The optimizer would call it to fold rows, and the tasks once more."""
    calls = []

    class Shout:
        def call(self, value):
            calls.append(value)
            return value

        class Java:
            implements = ["org.apache.spark.sql.api.java.UDF1"]

    ensure_callback_server_started(spark.sparkContext._gateway)
    kind = spark._jvm.org.apache.spark.sql.types.DataTypes.StringType
    spark._jsparkSession.udf().register("shout", Shout(), kind)
    try:
        frame = spark.createDataFrame(ROWS).selectExpr("shout(s) AS s")
        assert held.held_rows(frame) is None and not calls
        assert len(frame.collect()) == 3 and calls  # the optimizer does call it
    finally:
        spark.sql("DROP TEMPORARY FUNCTION shout")


@pytest.mark.parametrize("fault", [AttributeError("moved"), TypeError("'JavaPackage' object is not callable")])
def test_classes_that_have_moved_leave_the_rows_to_tasks(spark, tmp_path, monkeypatch, fault):
    def moved(*_):
        raise fault

    monkeypatch.setattr(catalyst, "held_plan", moved)
    assert bh.write(spark.createDataFrame(ROWS), str(tmp_path / "t")).engine == "spark"


def test_rows_that_cannot_be_collected_are_left_to_tasks(spark, tmp_path, monkeypatch):
    frame = spark.createDataFrame(ROWS)

    def broken(*_):
        raise PySparkException("no")

    wanted = held.held_rows(frame).table()
    monkeypatch.setattr(catalyst, "held_batches", lambda *_: None)
    assert same(held.held_rows(frame).table()) == same(wanted)  # by a job
    monkeypatch.setattr(catalyst, "held_batches", broken)
    assert held.held_rows(frame) is None


def test_what_is_refused_is_refused_as_by_tasks(spark, tmp_path):
    path = str(tmp_path / "t")
    bh.write(spark.createDataFrame(ROWS), path)
    table = bh.open(path, spark=spark)
    table.add_constraint("small", "id IS NULL OR id < 10")
    files = sorted(Path(path).rglob("*"))
    with pytest.raises(ConstraintViolationError, match="small"):
        table.append(spark.createDataFrame(pa.table({"id": [3, 11]})))
    with pytest.raises(ConstraintViolationError, match="the overwrite condition"):
        table.overwrite(spark.createDataFrame(pa.table({"id": [3, 4]})), where="id = 3")
    with pytest.raises(SchemaMismatchError):
        table.append(spark.createDataFrame(pa.table({"id": [True]})))
    with pytest.raises(BoathouseError):
        table.append(spark.sql("SELECT id / 0 AS id FROM VALUES (1) AS t (id)"))
    assert sorted(Path(path).rglob("*")) == files


def test_identities_and_generated_columns(spark, tmp_path):
    path = str(tmp_path / "t")
    bh.create(path, "id bigint, x bigint", identity={"id": Identity()})
    table, rows = bh.open(path, spark=spark), pa.table({"x": pa.array([5, 6], pa.int64())})
    assert table.append(spark.createDataFrame(rows)).engine == "local"
    assert table.append(spark.range(2).selectExpr("id AS x")).engine == "spark"
    assert table.append(spark.createDataFrame(rows)).engine == "local"
    ids = bh.open(path).to_arrow().column("id").to_pylist()
    assert len(set(ids)) == 6


def test_merges_take_the_source_as_it_is(spark, engine, tmp_path):
    path = str(tmp_path / "t")
    bh.write(ROWS, path)
    source = spark.createDataFrame(
        pa.table({"id": pa.array([2, 9], pa.int64()), "s": ["new", "nine"], "f": [0.0, 9.0]})
    )
    assert engine.pin(source) is source
    for other in (source.where("id > 1"), source.selectExpr("id", "current_timestamp() AS t"), spark.range(3)):
        assert engine.pin(other) is not other
    done = bh.open(path, spark=spark).upsert(source, on="id")
    assert (done.rows_updated, done.rows_added) == (1, 1)
    assert same(bh.open(path).to_arrow()) == same(
        pa.table(
            {"id": pa.array([1, None, 2, 9], pa.int64()), "s": ["a", None, "new", "nine"], "f": [1.5, -0.0, 0.0, 9.0]}
        )
    )


def test_a_merge_without_source_rows_runs_no_task(spark, tmp_path):
    path = str(tmp_path / "t")
    bh.write(ROWS, path)
    done = bh.open(path, spark=spark).upsert(spark.createDataFrame(ROWS.slice(0, 0)), on="id")
    assert (done.rows_updated, done.rows_added, done.commit) == (0, 0, None)


def test_no_job_runs(spark, tmp_path):
    path, group = str(tmp_path / "t"), uuid.uuid4().hex
    bh.write(ROWS, path)
    frame, table = spark.createDataFrame(ROWS), bh.open(path, spark=spark)
    spark.sparkContext.setJobGroup(group, "held")
    try:
        assert table.append(frame).engine == "local"
        tracker = spark.sparkContext.statusTracker()
        jobs = tracker.getJobIdsForGroup(group)
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    assert not jobs
    last = sorted(Path(path, "_delta_log").glob("*.json"))[-1].read_text().splitlines()
    assert sum("add" in json.loads(line) for line in last) == 1
