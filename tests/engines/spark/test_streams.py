"""`spark.readStream` and `df.writeStream`: batches, restarts, and that rows are read and written once."""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import boathouse as bh

pytestmark = pytest.mark.spark
LIMITS = find_spec("pyspark.sql.streaming.datasource") is not None
"""Spark passes limits to a Python source, and lets it say where a query with `availableNow` ends (PySpark 4.2)."""
PAGE = Path(__file__).parents[3] / "docs" / "streams.md"


def append(path: str, start: int, stop: int, **options: object):
    ids = list(range(start, stop))
    data = pa.table({"id": ids, "p": pa.array([i % 3 for i in ids], pa.int32()), "s": [str(i) for i in ids]})
    return bh.write(data, path, mode="append", **options)


class Streams:
    """One stream from a table to a table, run as often as a test wants."""

    def __init__(self, spark, tmp_path) -> None:
        self.spark = spark
        self.source, self.target = str(tmp_path / "sä urce"), str(tmp_path / "target")
        self.checkpoint = tmp_path / "checkpoint"

    def run(self, mode: str = "append", change=lambda frame: frame, sink=(), **options: object):
        stream = self.spark.readStream.format("boathouse").options(**options).load(self.source)
        query = (
            change(stream).writeStream.format("boathouse").outputMode(mode).options(**dict(sink))
            .option("checkpointLocation", str(self.checkpoint)).trigger(availableNow=True).start(self.target)
        )  # fmt: skip
        query.awaitTermination()
        return query

    def ids(self) -> list[int]:
        return sorted(bh.open(self.target).to_arrow().column("id").to_pylist())

    def forget_last_commit(self) -> None:
        """As if the driver had died after the table's commit, and before Spark's own."""
        last = max((self.checkpoint / "commits").glob("[0-9]*"), key=lambda f: int(f.name))
        last.unlink()
        last.with_name(f".{last.name}.crc").unlink()

    def offsets(self) -> list[dict]:
        files = sorted((self.checkpoint / "offsets").glob("[0-9]*"), key=lambda f: int(f.name))
        return [json.loads(f.read_text().splitlines()[2]) for f in files]


@pytest.fixture
def streams(spark, tmp_path) -> Streams:
    return Streams(spark, tmp_path)


@pytest.mark.feature("streams, each row once", format="delta")
@pytest.mark.route("streams")
def test_all_rows_first_then_what_is_new_each_once(streams):
    """A restart between, and one after a batch that was committed to the table but not to Spark's checkpoint."""
    append(streams.source, 0, 5, format="delta", partition_by=["p"])
    bh.open(streams.source).set_properties({"delta.enableDeletionVectors": "true"})
    bh.open(streams.source).delete("id = 1")
    streams.run(sink={"tableFormat": "delta", "partitionBy": "p"})
    assert streams.ids() == [0, 2, 3, 4]
    append(streams.source, 5, 8)
    append(streams.source, 8, 9)
    streams.run()
    assert streams.ids() == [0, *range(2, 9)]
    written = bh.open(streams.target)
    streams.forget_last_commit()
    append(streams.source, 9, 10)
    streams.run()
    if not LIMITS:  # this Spark ends such a query with the batch that it repeats
        streams.run()
    assert streams.ids() == [0, *range(2, 10)]
    after = bh.open(streams.target)
    assert after.partitioning == written.partitioning and after.version == written.version + 1
    offset, source = streams.offsets()[-1], bh.open(streams.source)
    assert (offset["format"], offset["version"], offset["snapshot"]) == (source.format, source.version, False)


def test_changes_and_complete_mode(streams):
    """The changes of an update that its commit did not record, counted into a table that every batch replaces."""
    append(streams.source, 0, 4, format="delta")

    def counted(frame):
        return frame.groupBy("_change_type").agg(F.count("*").alias("id"))

    sink = {"tableFormat": "delta"}
    streams.run("complete", counted, sink, readChangeFeed="true")
    assert bh.open(streams.target).to_arrow().to_pylist() == [{"_change_type": "insert", "id": 4}]
    t = bh.open(streams.source)
    t.update({"s": "'new'"}, where="id in (1, 2)")
    t.append(pa.table({"id": [9], "p": pa.array([0], pa.int32()), "s": ["9"]}))
    streams.run("complete", counted, sink, readChangeFeed="true")
    found = {r["_change_type"]: r["id"] for r in bh.open(streams.target).to_arrow().to_pylist()}
    assert found == {"insert": 4 + 2 + 1, "delete": 2}


@pytest.mark.slow
def test_what_ends_a_stream_says_so(streams):
    append(streams.source, 0, 2, format="delta")
    streams.run(sink={"tableFormat": "delta"}, startingVersion="latest")
    append(streams.source, 2, 3)
    bh.open(streams.source).delete("id = 0")
    with pytest.raises(Exception, match=r"StreamError: version 2 \(DELETE\) .*skipChangeCommits"):
        streams.run(startingVersion="latest")
    assert streams.ids() == [2]  # what came before it was given first


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"startingVersion": "first"}, "Give a whole number"),
        ({"startingVersion": "1", "startingTimestamp": "2026-01-01"}, "exclude each other"),
        ({"maxFilesPerTrigger": "0"}, "at least 1"),
        ({"maxBytesPerTrigger": "many"}, "Give for example"),
        ({"ignoreChanges": "true"}, "the option ignoreChanges is not offered"),
        ({"readChangeFeed": "yes"}, "Give true or false"),
        ({"readChangeFeed": "true", "versionAsOf": "1"}, "unknown option 'versionasof'"),
    ],
)
def test_options_are_checked_when_a_stream_is_loaded(spark, tmp_path, options, message):
    append(str(tmp_path), 0, 1, format="delta")
    with pytest.raises(Exception, match=message):
        spark.readStream.format("boathouse").options(**options).load(str(tmp_path))


def test_the_page_of_streams_runs(spark, tmp_path):
    """An upsert of every batch into another table, which a second run of a batch leaves as it is."""
    append(f"{tmp_path}/lake/orders", 0, 3, format="delta")
    names = {"spark": spark}
    # Workers resolve relative paths where Spark was started.
    text = (
        PAGE.read_text().replace('"lake/', f'"{tmp_path}/lake/').replace('"checkpoints/', f'"{tmp_path}/checkpoints/')
    )
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
        append(f"{tmp_path}/lake/orders", 2, 4)
    found = sorted(bh.open(f"{tmp_path}/lake/current").to_arrow().column("id").to_pylist())
    assert found == [0, 1, 2, 3]
    batch = spark.createDataFrame([(0, 0, "again")], "id long, p int, s string")
    names["upsert"](batch, 0)
    assert "again" not in bh.open(f"{tmp_path}/lake/current").to_arrow().column("s").to_pylist()


@pytest.mark.slow
@pytest.mark.skipif(not LIMITS, reason="this PySpark passes no limits")
def test_limits_make_batches(streams):
    for i in range(4):
        append(streams.source, 2 * i, 2 * i + 2, format="delta")
    streams.run(sink={"tableFormat": "delta"}, maxFilesPerTrigger="3")
    assert streams.ids() == [*range(8)]
    assert len(streams.offsets()) == 2
    for i in range(4, 6):
        append(streams.source, 2 * i, 2 * i + 2)
    streams.run(maxBytesPerTrigger="1b")
    assert streams.ids() == [*range(12)]
    assert len(streams.offsets()) == 4


@pytest.mark.parametrize("format", ["iceberg", "lance"])
@pytest.mark.feature("streams, each row once")
def test_the_other_formats(streams, format):
    append(streams.source, 0, 3, format=format)
    streams.run(sink={"tableFormat": format})
    append(streams.source, 3, 5)
    streams.run()
    streams.forget_last_commit()
    streams.run()
    assert bh.open(streams.target).format == format
    assert streams.ids() == [*range(5)]
