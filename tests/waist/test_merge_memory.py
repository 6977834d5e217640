"""The memory of a merge depends on its source, not on its target."""

from __future__ import annotations

import os
import subprocess
import sys

import pyarrow as pa
import pytest

import boathouse as bh

PROGRAM = """
import resource, sys, threading, time
import psutil
import numpy as np, pyarrow as pa
import boathouse as bh

uri, format, engine, rows = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
FILE = 250_000
schema = pa.schema([("id", pa.int64()), ("x", pa.float64()), ("s", pa.string())])

def piece(first, ids):
    return pa.table({"id": ids, "x": ids / 7.0, "s": [f"text {i % 997} and some more" for i in range(len(ids))]})

if engine == "make":
    bh.create(uri, schema, format=format)
    table = bh.open(uri)
    for first in range(0, rows, FILE):
        table.append(piece(first, np.arange(first, first + FILE)))
    sys.exit()
ids = np.linspace(0, rows - 1, 9_000).astype(np.int64)
source = piece(0, np.concatenate([ids, rows + np.arange(1_000)]))
if engine == "spark":
    from pyspark.sql import SparkSession
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", "1g").config("spark.sql.shuffle.partitions", "4")
    spark = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    source = spark.createDataFrame(source)
most = [0]
def watch():  # the Python processes of the executors, all at once; the JVM has a fixed heap
    while True:
        found = 0
        for process in psutil.Process().children(recursive=True):
            try:
                found += process.memory_info().rss if "python" in process.name() else 0
            except psutil.Error:
                pass
        most[0] = max(most[0], found)
        time.sleep(0.05)
threading.Thread(target=watch, daemon=True).start()
merge = bh.open(uri).merge(source, "target.id = source.id").when_matched_update({"s": "concat(source.s, target.s)"})
done = merge.when_not_matched_insert_all().when_matched_delete("false").execute()
assert (done.rows_updated, done.rows_added) == (9_000, 1_000), done
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10) + (most[0] >> 20))
"""


def peak(*arguments: object) -> int:
    """The highest resident memory in MiB, of the driver's Python and of the executors' together."""
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, arguments)],
        check=True, capture_output=True, text=True, env=os.environ | {"PYSPARK_PYTHON": sys.executable},
    ).stdout  # fmt: skip
    return int(found.split()[-1]) if found.strip() else 0


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=pytest.mark.spark)])
@pytest.mark.parametrize("format", ["delta", "lance"])
def test_a_target_of_four_times_the_size(tmp_path, format, engine):
    """`delta` writes the touched files again, `lance` marks rows as deleted; the merge touches every file.

    The smaller target is large enough to fill the buffers, whose size is fixed.
    """
    found = []
    for rows in (2_000_000, 8_000_000):
        uri = str(tmp_path / str(rows))
        peak(uri, format, "make", rows)
        found.append(peak(uri, format, engine, rows))
    assert found[1] <= found[0] * 1.1, f"{found[0]} MiB at 1x, {found[1]} MiB at 4x"


@pytest.mark.spark
@pytest.mark.parametrize("format", ["toy", "delta"])
def test_spark_brings_no_rows_to_the_driver(spark, tmp_path, monkeypatch, format):
    uri, found = str(tmp_path / "t"), []
    rows = pa.table({"id": list(range(5_000)), "s": [f"text {i}" for i in range(5_000)]})
    bh.write(rows, uri, format=format)
    source = spark.createDataFrame(rows.slice(2_000)).selectExpr("id + 1000 as id", "s")
    kind = type(source)
    for name in ("collect", "toPandas", "toArrow", "take", "toLocalIterator"):

        def counted(frame, *args, real=getattr(kind, name), **more):
            done = real(frame, *args, **more)
            found.append(len(done))
            return done

        monkeypatch.setattr(kind, name, counted)
    merge = bh.open(uri, format=format).merge(source, "target.id = source.id").when_matched_update_all()
    done = merge.when_not_matched_insert_all().when_not_matched_by_source_update({"s": "'alone'"}).execute()
    assert (done.rows_updated, done.rows_added) == (5_000, 1_000)
    assert found and max(found) < 50  # bounds of keys, and outcomes
