import datetime as dt
import decimal
import math

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.errors import ConstraintViolationError, EvaluationError, InvalidArgumentError
from boathouse.table.units import DATA_FILE

pytestmark = pytest.mark.spark

ROWS = 60
UTC = pa.timestamp("us", "UTC")
NEW_YEAR = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
TABLE = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int64()),
        "i32": pa.array([None if i % 5 == 0 else i for i in range(ROWS)], pa.int32()),
        "f": pa.array([[math.nan, -0.0, math.inf, None][i % 4] for i in range(ROWS)], pa.float64()),
        "f32": pa.array([i / 3 for i in range(ROWS)], pa.float32()),
        "dec": pa.array([decimal.Decimal(i) / 4 for i in range(ROWS)], pa.decimal128(38, 4)),
        "b": pa.array([i % 2 == 0 for i in range(ROWS)]),
        "s": pa.array(["", "ü%/ ", None, "a'b"] * (ROWS // 4)),
        "bin": pa.array([b"\x00\xff", b"", None, b"x"] * (ROWS // 4)),
        "d": pa.array([dt.date(1, 1, 1), dt.date(9999, 12, 31), None, dt.date(1970, 1, 1)] * (ROWS // 4)),
        "ts": pa.array([dt.datetime(1883, 11, 18, 12, i, tzinfo=dt.UTC) for i in range(ROWS)], UTC),
        "ntz": pa.array([dt.datetime(2020, 3, 8, 2, i) for i in range(ROWS)], pa.timestamp("us")),
        "st": pa.array([{"a": i, "l": [NEW_YEAR]} if i % 3 else None for i in range(ROWS)],
                       pa.struct([("a", pa.int64()), ("l", pa.list_(UTC))])),
        "m": pa.array([[("k", i), ("l", None)] if i % 7 else None for i in range(ROWS)],
                      pa.map_(pa.string(), pa.int32())),
        "p": pa.array([None if i % 6 == 0 else i % 3 for i in range(ROWS)], pa.int32()),
    }
)  # fmt: skip


def text(table: pa.Table) -> list[str]:
    return [str({k: repr(v) for k, v in sorted(row.items())}) for row in table.sort_by("id").to_pylist()]


@pytest.mark.parametrize("format", ["delta", "iceberg"])
@pytest.mark.route("sink")
def test_every_type_arrives_as_it_was_in_any_zone(engine, tmp_path, other_zone, format):
    frame = engine.source(TABLE)
    result = bh.write(frame, str(tmp_path / "t %"), format=format, partition_by=["p"])
    assert result.rows_added == ROWS
    table = bh.open(str(tmp_path / "t %"), spark=engine.spark)
    assert text(table.to_arrow().select(TABLE.column_names)) == text(TABLE)
    utc = table.to_spark(engine.spark).toArrow()
    for i, field in enumerate(TABLE.schema):
        if pa.types.is_timestamp(field.type) and field.type.tz:
            utc = utc.set_column(i, field.name, utc.column(i).cast(field.type))
    assert utc.select(["id", "ts", "ntz", "d", "dec", "bin", "p", "m"]).sort_by("id").to_pylist() == (
        TABLE.select(["id", "ts", "ntz", "d", "dec", "bin", "p", "m"]).to_pylist()
    )


def test_rows_of_a_partition_meet_in_few_files(engine, tmp_path):
    frame = engine.spark.range(0, 4000, 1, 8).selectExpr("id", "id % 4 AS p")
    result = bh.write(frame, str(tmp_path / "t"), format="delta", partition_by=["p"])
    assert result.files_added == 4
    assert bh.open(str(tmp_path / "t")).to_arrow().num_rows == 4000


def test_a_frame_runs_exactly_once(engine, tmp_path):
    log = tmp_path / "runs"
    log.mkdir()

    def mark(batches):
        import uuid

        (log / uuid.uuid4().hex).touch()
        yield from batches

    frame = engine.spark.range(0, 100, 1, 3).mapInArrow(mark, "id bigint")
    from boathouse.table.engine import Spread

    context = delta_context(engine, tmp_path)
    before = engine.spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch")
    outcomes = engine.sink(frame, context, Spread("none"))
    assert len(list(log.iterdir())) == 3
    assert sum(outcomes.column("inserted").drop_null().to_pylist()) == 100
    assert outcomes.column("kind").to_pylist().count(DATA_FILE) == 3
    assert engine.spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch") == before


def delta_context(engine, tmp_path):
    from boathouse import registry
    from boathouse.storage import Stores
    from boathouse.table.context import TableContext
    from boathouse.table.edits import CreateTable
    from boathouse.table.location import Location
    from boathouse.types import INT64, Field, Schema

    delta = registry.load("delta")
    location, stores = Location(f"file://{tmp_path}/table"), Stores()
    new = delta.create(TableContext(location, stores), CreateTable(Schema((Field("id", INT64),))))
    return new.write_context("write-1")


@pytest.mark.route("errors of rows")
def test_a_rows_error_comes_with_its_type_and_leaves_no_files(engine, tmp_path):
    path = str(tmp_path / "t")
    bh.write(engine.spark.range(10).selectExpr("id", "id % 2 AS p"), path, format="delta")
    data = engine.spark.range(5).selectExpr("id", "id % 2 AS p")
    before = sorted(tmp_path.rglob("*.parquet"))
    with pytest.raises(ConstraintViolationError, match="does not satisfy the overwrite condition"):
        bh.write(data, path, mode="overwrite", where="p = 1")
    assert sorted(tmp_path.rglob("*.parquet")) == before
    assert bh.open(path).to_arrow().num_rows == 10


def test_what_ansi_calls_an_error_is_an_evaluation_error(engine, tmp_path):
    frame = engine.spark.range(3).selectExpr("CAST(concat('x', id) AS bigint) AS id")
    with pytest.raises(EvaluationError):
        bh.write(frame, str(tmp_path / "t"), format="delta")
    assert bh.detect(str(tmp_path / "t")) == ()


@pytest.mark.route("tasks")
def test_tasks_run_in_order_and_errors_keep_their_type(engine):
    def double(n):
        if n == 7:
            raise InvalidArgumentError("seven", where="here", advice="take another")
        yield pa.record_batch({"n": pa.array([n, n * 2], pa.uint64()), "e": pa.array([{}, None], pa.struct([]))})
        yield pa.record_batch({"n": pa.array([n + 1], pa.uint64()), "e": pa.array([{}], pa.struct([]))})

    batches = list(engine.map(double, [5, 3, 9, 1], [1, 100, 1, 1]))
    assert [b.column(0).to_pylist() for b in batches] == [[5, 10], [6], [3, 6], [4], [9, 18], [10], [1, 2], [2]]
    with pytest.raises(InvalidArgumentError, match="seven") as caught:
        list(engine.map(double, [1, 7, 7]))
    assert (caught.value.where, caught.value.advice) == ("here", "take another")
    assert list(engine.map(double, [])) == []


def test_more_tasks_than_one_frame_holds(engine, monkeypatch):
    monkeypatch.setattr("boathouse.engines.spark.task_frames.MAX_CLOSURE", 100)

    def length(data):
        yield pa.record_batch({"n": [len(data)]})

    assert [b.column(0)[0].as_py() for b in engine.map(length, [b"x" * n for n in (90, 5, 300)])] == [90, 5, 300]


def test_a_task_scan_does_not_look_small(engine, make_plan):
    """Spark guesses the size of tasks' rows from the frame that drives them, and broadcasts what looks small."""
    from boathouse import types as T
    from boathouse.table.tasks import ReadColumn

    maker = make_plan()
    maker.add("a:b.parquet", pa.table({"x": [1, 2]}))
    maker.units[0]["size"] = 1 << 30
    frame = engine.scan(maker.plan([ReadColumn("x", T.INT64, physical=("x",))]))
    assert int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())) > 50 << 20
    assert frame.count() == 2


@pytest.mark.route("summaries")
def test_summaries_and_functions(engine):
    rows = engine.source(pa.table({"id": [1, 2, None], "a b": [1.5, math.nan, None]}))
    asked = [("n", "count_all", ""), ("c", "count", "`a b`"), ("m", "max", "`a b`"), ("s", "sum", "id + 1")]
    got = engine.summary(rows, asked)
    assert [repr(v) for row in got.to_pylist() for v in row.values()] == ["3", "2", "nan", "5"]
    assert engine.covers(["a + 1", "a +", "percentile(x, 0.5)", "nope(1)"]) == ["a +", "nope(1)"]


@pytest.mark.route("pinned rows")
def test_pinned_rows_stay_the_same(engine):
    pinned = engine.pin(engine.spark.range(1000).selectExpr("id", "rand() AS r"))
    assert pinned.exceptAll(pinned).count() == 0
    assert engine.summary(pinned, [("s", "sum", "r")]) == engine.summary(pinned, [("s", "sum", "r")])


@pytest.mark.route("sources")
def test_sources(engine, other_zone):
    import pandas as pd
    import polars as pl

    naive = dt.datetime(2020, 3, 8, 2, 30)
    table = pa.table({"n": pa.array([naive], pa.timestamp("us")), "c": pa.array(["a"]).dictionary_encode()})
    got = engine.source(table)
    assert got.dtypes == [("n", "timestamp_ntz"), ("c", "string")]
    assert got.collect()[0]["n"] == naive
    assert engine.source(got) is got
    assert engine.source(pd.DataFrame({"x": [1]})).dtypes == [("x", "bigint")]
    assert engine.source(pl.DataFrame({"x": [1], "s": ["a"]})).collect()[0]["s"] == "a"
    assert engine.source(table.slice(0, 0)).dtypes == got.dtypes
    with pytest.raises(InvalidArgumentError, match="cannot read rows from"):
        engine.source(42)
