"""Conditions mean what Spark means in its session's time zone: scans, deletes, overwrites, on both engines."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest
from pyspark.sql import datasource

import boathouse as bh
from boathouse.errors import ExpressionError, InvalidArgumentError
from makers.traits import REAL

pytestmark = pytest.mark.spark

ZONES = [
    "Australia/Lord_Howe",
    *(pytest.param(zone, marks=pytest.mark.slow) for zone in ("America/New_York", "UTC", "Asia/Kolkata")),
]
CONDITIONS = [
    "hour(ts) = 21",
    "ts >= timestamp'2024-03-10 00:00:00'",
    "ts >= '2024-03-10'",
    "ts < '2024-04-07 02:15:00'",
    "cast(ts as date) = date'2024-03-09'",
    "to_date(ts) = date'2024-03-10'",
    "date_trunc('day', ts) = timestamp'2024-03-10'",
    "cast(ts as string) like '2024-03-09%'",
    "ts in ('2024-03-09 20:30:00', timestamp'2024-04-07 01:30:00')",
    "ts > d AND ts < date_add(d, 1)",
    "d = timestamp'2024-03-10 00:00:00'",
    "ts = n",
    "n < ts OR minute(ts) = 30",
]
HOUR = dt.timedelta(hours=1)


@pytest.fixture(params=ZONES)
def zone(spark, request):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield request.param
    spark.conf.set("spark.sql.session.timeZone", before)


def rows() -> pa.Table:
    """Half hours around the changes of the clocks of New York and Lord Howe, with their UTC wall clock and date."""
    starts = [dt.datetime(2024, 3, 9, 14), dt.datetime(2024, 3, 10, 4), dt.datetime(2024, 4, 6, 12)]
    clocks = [start + HOUR / 2 * i for start in starts for i in range(24)]
    return pa.table(
        {
            "id": pa.array(range(len(clocks)), pa.int32()),
            "ts": pa.array(clocks, pa.timestamp("us")).cast(pa.timestamp("us", "UTC")),
            "n": pa.array([c - 5 * HOUR for c in clocks], pa.timestamp("us")),
            "d": pa.array([c.date() for c in clocks]),
        }
    )


def made(path, format: str, partition_by=()) -> bh.Table:
    """A table of several files with narrow bounds, so that pruning has something to say."""
    data = rows()
    for start in range(0, data.num_rows, 12):
        bh.write(data.slice(start, 12), str(path), format=format, mode="append", partition_by=partition_by)
    return bh.open(str(path))


def ids(table) -> list[int]:
    return sorted(table.column("id").to_pylist())


def spark_ids(frame) -> list[int]:
    return sorted(r.id for r in frame.select("id").collect())


def answers(frame) -> dict[str, list[int]]:
    """The ids that each of the conditions holds for, by Spark itself in one job; each tells some rows from others."""
    marks = frame.selectExpr("id", *(f"{where} AS c{i}" for i, where in enumerate(CONDITIONS))).collect()
    found = {where: sorted(r.id for r in marks if r[f"c{i}"]) for i, where in enumerate(CONDITIONS)}
    assert sum(0 < len(hits) < len(marks) for hits in found.values()) > len(CONDITIONS) // 2
    return found


@pytest.mark.parametrize("format", REAL)
def test_scans(spark, tmp_path, zone, format):
    made(tmp_path / "t", format)
    t = bh.open(str(tmp_path / "t"), spark=spark)
    local = bh.open(str(tmp_path / "t"), timezone=zone)
    for i, (where, wanted) in enumerate(answers(t.to_spark()).items()):
        assert ids(t.scan(where=where).to_arrow()) == wanted, where
        assert ids(local.scan(where=where).to_arrow()) == wanted, where
        assert local.scan(where=where).count() == len(wanted), where
        if i < 4:  # the others are printed and pushed in the same way
            assert spark_ids(t.scan(where=where).to_spark()) == wanted, where


@pytest.mark.parametrize("zone", ZONES[:2], indirect=True)
@pytest.mark.parametrize(
    ("format", "by"),
    [("delta", "ts"), ("delta", "d"), ("delta", "n"), ("iceberg", "hours(ts)"), ("iceberg", "days(n)")],
)
def test_partitioned_by_time(spark, tmp_path, zone, format, by):
    """Partition values are in UTC, whatever the session's zone; conditions on them are not."""
    made(tmp_path / "t", format, [by])
    t = bh.open(str(tmp_path / "t"), spark=spark)
    found = answers(t.to_spark())
    for where, wanted in found.items():
        assert ids(t.scan(where=where).to_arrow()) == wanted, where
    assert spark_ids(t.scan(where=CONDITIONS[1]).to_spark()) == found[CONDITIONS[1]]


@pytest.mark.parametrize("on_spark", [False, True])
@pytest.mark.parametrize("format", REAL)
def test_deletes(spark, tmp_path, zone, format, on_spark):
    made(tmp_path / "t", format)
    t = bh.open(str(tmp_path / "t"), spark=spark if on_spark else None, timezone=None if on_spark else zone)
    frame = t.to_spark(spark)
    where = "ts >= timestamp'2024-03-10 00:00:00' AND ts < timestamp'2024-04-07 01:45:00'"
    kept = spark_ids(frame.where(f"NOT ({where})"))
    gone = frame.where(where).count()
    assert t.delete(where).rows_deleted == gone
    assert ids(t.to_arrow()) == kept and 0 < len(kept) < 72


@pytest.mark.parametrize("format", REAL)
def test_overwrites_lose_nothing(spark, tmp_path, zone, format):
    """Data filtered by the same condition replace themselves."""
    made(tmp_path / "t", format)
    t = bh.open(str(tmp_path / "t"), spark=spark)
    t.overwrite(t.to_spark().where(CONDITIONS[1]), where=CONDITIONS[1])
    assert ids(t.to_arrow()) == list(range(72))
    local = bh.open(str(tmp_path / "t"), timezone=zone)
    local.overwrite(local.scan(where=CONDITIONS[3]).to_arrow(), where=CONDITIONS[3])
    assert ids(local.to_arrow()) == list(range(72))
    where = CONDITIONS[5]
    bh.write(local.scan(where=where).to_arrow(), str(tmp_path / "t"), mode="overwrite", where=where, timezone=zone)
    assert ids(bh.open(str(tmp_path / "t")).to_arrow()) == list(range(72))


@pytest.mark.route("the session's zone")
def test_the_session_decides_on_spark(spark, tmp_path):
    """A zone that the session does not have cannot be had on Spark: it is refused, not mixed."""
    made(tmp_path / "t", "delta")
    t = bh.open(str(tmp_path / "t"), spark=spark, timezone="Asia/Tokyo")
    with pytest.raises(InvalidArgumentError, match=r"timezone='Asia/Tokyo'.*'UTC'"):
        t.scan(where="hour(ts) = 1").to_spark()
    with pytest.raises(InvalidArgumentError, match="session"):
        t.delete("hour(ts) = 1")
    assert t.to_spark().count() == 72
    assert bh.open(str(tmp_path / "t"), spark=spark, timezone="Etc/UTC").scan(where="hour(ts) = 21").to_spark().count()


@pytest.mark.parametrize("zone", ["America/New_York"], indirect=True)
def test_a_python_source_is_told_the_zone(spark, tmp_path, zone):
    """Spark hides its session's zone from Python sources: `timeZone` names it, and nothing is guessed."""
    made(tmp_path / "t", "delta")
    where = "ts >= timestamp'2024-03-10 00:00:00'"
    data = spark.read.format("boathouse").load(str(tmp_path / "t")).where(where).localCheckpoint()
    write = data.write.format("boathouse").mode("overwrite").option("replaceWhere", where)
    with pytest.raises(Exception, match="time zone"):
        write.save(str(tmp_path / "t"))
    write.option("timeZone", zone).save(str(tmp_path / "t"))
    assert ids(bh.open(str(tmp_path / "t")).to_arrow()) == list(range(72))


@pytest.mark.parametrize("zone", ["America/New_York"], indirect=True)
def test_a_filter_that_is_pushed_prunes_in_the_sessions_zone(spark, tmp_path, zone):
    if not hasattr(datasource, "Filter"):
        pytest.skip("this PySpark has no filter push-down for Python sources")
    made(tmp_path / "t", "delta")
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        frame = spark.read.format("boathouse").option("pushFilters", "true").load(str(tmp_path / "t"))
        found = answers(bh.open(str(tmp_path / "t")).to_spark(spark))
        for where in CONDITIONS[1:5]:
            assert spark_ids(frame.where(where)) == found[where], where
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


@pytest.mark.parametrize("zone", ["Asia/Kolkata"], indirect=True)
def test_time_travel_by_the_sessions_clock(spark, tmp_path, zone):
    t = made(tmp_path / "t", "delta")
    first = t.history()[-1]
    at = dt.datetime.fromtimestamp(first.timestamp_ms / 1000 + 0.001, dt.UTC)
    clock = spark.sql(f"select cast(timestamp'{at:%Y-%m-%d %H:%M:%S.%f}Z' as string) x").first().x
    assert bh.open(str(tmp_path / "t"), timestamp=clock, spark=spark).version == first.version
    assert bh.open(str(tmp_path / "t"), timestamp=clock, timezone=zone).version == first.version


def test_an_expression_without_a_zone_is_refused_where_it_needs_one():
    from boathouse.expr.parse import parse
    from boathouse.expr.resolve import bind
    from boathouse.types.text import parse_schema

    schema = parse_schema("ts timestamp, d date, n timestamp_ntz, s string")
    for text in ("hour(ts) = 1", "ts > '2024-01-01'", "ts > d", "ts = n", "cast(ts as string) = s", "to_date(ts) = d"):
        with pytest.raises(ExpressionError, match="time zone"):
            bind(parse(text), schema, None)
    for text in ("ts > timestamp'2024-01-01 00:00:00Z'", "hour(n) = 1", "d > '2024-01-01'", "ts IS NULL", "ts = NULL"):
        assert bind(parse(text), schema, None) is not None
