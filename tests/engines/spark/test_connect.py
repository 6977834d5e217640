"""Conditions on Spark Connect, in a process of its own: without ANSI mode, and on NaN, they give what they give in
process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.smoke]

PROGRAM = """
import math, sys
from pyspark.sql import SparkSession
builder = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false")
spark = builder.config("spark.driver.memory", "1g").config("spark.sql.shuffle.partitions", "2").getOrCreate()
import pyarrow as pa
import boathouse as bh

def outcome(run):
    try:
        return run()
    except Exception:
        return "fails"

def agree(path, conditions, early=True):
    local, t = bh.open(path), bh.open(path, spark=spark)
    found = []
    for where in conditions:
        wanted = outcome(lambda: local.scan(where=where).count())
        ways = {
            "scan": lambda: t.scan(where=where).to_spark().count(),
            "rows": lambda: len(t.scan(where=where).to_spark().collect()),
            "count": lambda: t.scan(where=where).count(),
            "delete": lambda: t.delete(where, dry_run=True).rows_deleted,
        }
        if not early:
            ways["late"] = lambda: t.to_spark().where(where).count()
        for name, run in ways.items():
            if (got := outcome(run)) != wanted:
                wrong.append((path.rpartition("/")[2], where, name, wanted, got))
        found.append(wanted)
    return found

wrong = []
rows = pa.table({
    "id": pa.array([1, 2, 3, 4], pa.int64()), "i": pa.array([5, None, 2**31 - 1, 5], pa.int32()),
    "s": ["05", "05", "7", "x"], "ar": pa.array([[1], None, [], None], pa.list_(pa.int32())),
    "z": pa.array([-0.0, 0.0, 1.0, None]),
})
ansi = ("size(ar) < 1", "coalesce(i, s) = 5", "greatest(i, s) = '5'", "CASE WHEN id > 1 THEN i ELSE s END = 5",
        "s IN (5, 7)", "s = 5", "i + 1 > 0", "1 / z > 0", "id / 0 = 1", "size(ar) IS NULL", "id > 2", "z * 2 > 0.5D")
nan = math.nan
first = pa.table({"id": [1, 2, 3, 6], "d": [1.0, nan, 2.0, -0.0], "f": pa.array([1.0, nan, 2.0, -0.0], pa.float32())})
second = pa.table({"id": [4, 5], "d": [50.0, 60.0], "f": pa.array([50.0, 60.0], pa.float32())})
NAN = "CAST('NaN' AS DOUBLE)"
floats = (
    "d > 27", "27 < d", "d >= 27", "NOT (d <= 27)", "f > 27", f"d = {NAN}", "d > 27.0D", "d IN (27, 28) OR d > 27",
    "isnan(d)", f"d BETWEEN 27 AND {NAN}", f"d <=> {NAN}", "d != 1", "d <> 1 AND d <> 2", "d = 0", "f IN (0, 1)",
)
for format in ("delta", "iceberg", "lance"):
    spark.conf.set("spark.sql.ansi.enabled", "false")
    path = f"{sys.argv[1]}/ansi-{format}"
    bh.write(rows, path, format=format)
    found = agree(path, ansi)
    assert "fails" in found and 2 in found, found
    spark.conf.unset("spark.sql.ansi.enabled")
    path = f"{sys.argv[1]}/nan-{format}"
    bh.write(first, path, format=format)
    bh.open(path).append(second)
    assert agree(path, floats, early=False)[:5] == [3] * 5
assert not wrong, wrong

path = f"{sys.argv[1]}/held"
listed = spark.createDataFrame([(1, "a", None), (2, None, [1.5])], "id long, s string, f array<double>")
for frame in (listed, spark.createDataFrame(rows).toDF(*rows.column_names)):
    path += "_"
    assert bh.write(frame, path, partition_by="s").engine == "local"
    assert bh.open(path).append(frame.where("id > 1")).engine == "spark"
    wanted = sorted(map(repr, frame.collect() + frame.where("id > 1").collect()))
    assert sorted(map(repr, bh.open(path, spark=spark).to_spark().collect())) == wanted
    merged = bh.open(path, spark=spark).upsert(frame.where("id = 1"), on="id")
    assert (merged.rows_updated, merged.rows_added) == (1, 0)

t = f"delta.`{path}`"
for where in ("s = '05' AND id > 1", "s = '05' OR id = 4", "i BETWEEN 1 AND 5 AND size(ar) > 0", "s IS NULL"):
    by_view = bh.sql(spark, f"SELECT id FROM {t} WHERE {where} ORDER BY id")
    wanted = spark.createDataFrame(bh.open(path).to_arrow()).where(where).orderBy("id").select("id")
    assert by_view.collect() == wanted.collect(), where
print("done")
"""


def test_conditions_give_what_they_give_in_process(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(program), str(tmp_path)],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.split()[-1] == "done"
