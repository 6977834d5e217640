"""Writing beside delta-spark: it is seen wherever it wrote, and allowed by one line."""

import json
import os
import time

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.compat.delta_tables import DeltaTable
from boathouse.errors import MixedWritersError

ROWS = pa.table({"x": [1]})
SETTING = "spark.boathouse.allowMixedWriters"


def by_delta_spark(path, version, age_ms=0):
    """An entry says that delta-spark made it."""
    file = path / "_delta_log" / f"{version:020}.json"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    made = int(time.time() * 1000) - age_ms
    lines[0]["commitInfo"] |= {"engineInfo": "Apache-Spark/4.0.0 Delta-Lake/4.0.0", "timestamp": made}
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    os.utime(file, (made / 1000, made / 1000))


@pytest.fixture
def table(tmp_path):
    """Version 1 is delta-spark's, and lies below the checkpoint of version 2."""
    path = tmp_path / "t"
    bh.create(str(path), ROWS.schema, format="delta", properties={"delta.checkpointInterval": "2"})
    # Entries do not change, so that what this process has looked at is not read again.
    t = bh.open(str(path), allow_mixed_writers=True)
    for _ in range(3):
        t.append(ROWS)
    by_delta_spark(path, 1)
    return path


def test_a_commit_below_the_newest_checkpoint_is_seen(table):
    assert bh.open(str(table)).detail()["checkpoint"] == 2
    with pytest.raises(MixedWritersError, match=r"version 1 was written by .*allow_mixed_writers=True") as caught:
        bh.open(str(table)).append(ROWS)
    assert SETTING in str(caught.value) and "BOATHOUSE_ALLOW_MIXED_WRITERS=1" in str(caught.value)
    bh.open(str(table), allow_mixed_writers=True).append(ROWS)


def test_a_commit_of_days_ago_is_no_other_writer(table):
    by_delta_spark(table, 1, 2 * 86_400_000)
    bh.open(str(table)).append(ROWS)


def test_a_commit_that_comes_later_is_seen(table):
    by_delta_spark(table, 1, 2 * 86_400_000)
    t = bh.open(str(table))
    t.append(ROWS)
    t.append(ROWS)
    by_delta_spark(table, 5)
    with pytest.raises(MixedWritersError, match="version 5"):
        bh.open(str(table)).append(ROWS)


@pytest.mark.parametrize("value", ["1", "true", "0", ""])
def test_the_environment_allows_it(table, monkeypatch, value):
    monkeypatch.setenv("BOATHOUSE_ALLOW_MIXED_WRITERS", value)
    if value in ("0", ""):
        with pytest.raises(MixedWritersError):
            bh.open(str(table)).append(ROWS)
    else:
        bh.open(str(table)).append(ROWS)
        assert bh.open(str(table)).count() == 4


@pytest.mark.spark
def test_the_setting_of_the_session_allows_it(table, spark):
    def steps():
        yield lambda: bh.sql(spark, f"DELETE FROM delta.`{table}` WHERE x = 7")
        yield lambda: DeltaTable.forPath(spark, str(table)).delete("x = 7")
        yield lambda: bh.open(str(table), spark=spark).append(ROWS)
        yield lambda: bh.write(spark.createDataFrame(ROWS.to_pandas()), str(table), mode="append")

    for step in steps():
        with pytest.raises(MixedWritersError, match=SETTING):
            step()
    spark.conf.set(SETTING, "true")
    try:
        for step in steps():
            step()
    finally:
        spark.conf.unset(SETTING)
    rows = spark.createDataFrame(ROWS.to_pandas()).write.format("boathouse").mode("append")
    with pytest.raises(Exception, match="MixedWriters"):
        rows.save(str(table))
    rows.option("allowMixedWriters", "true").save(str(table))
    assert bh.open(str(table)).count() == 6
