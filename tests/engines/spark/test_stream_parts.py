"""The data source's reader and writer of streams, called as Spark calls them, in process: no JVM is started."""

from __future__ import annotations

import json
import pickle

import pyarrow as pa
import pytest

import boathouse as bh
from makers.traits import REAL

pytest.importorskip("pyspark.sql.datasource")

from pyspark import cloudpickle
from pyspark.sql import datasource
from pyspark.sql.types import Row, StructType

from boathouse.bits import system
from boathouse.bits.system import SeededSystem
from boathouse.engines.spark.exchange import from_spark_batch
from pyspark_boathouse import DefaultSource, stream_writer


@pytest.fixture(params=REAL)
def format(request) -> str:
    return request.param


@pytest.fixture
def source(tmp_path, format) -> str:
    path = str(tmp_path / "source")
    for start in (0, 3):
        bh.write(rows(start, start + 3), path, mode="append", format=format)
    return path


def rows(start: int, stop: int) -> pa.Table:
    ids = list(range(start, stop))
    return pa.table({"id": ids, "s": [f"s{i}" for i in ids]})


def sent(thing):
    """As it arrives in another process."""
    return pickle.loads(cloudpickle.dumps(thing))


class Reading:
    """The source of one query: Spark keeps offsets as JSON, and reads in executors by another reader."""

    def __init__(self, path: str, **options: str) -> None:
        self.source = DefaultSource(options={"path": path, **options})
        self.schema = self.source.schema()
        self.driver, self.executor = (self.source.streamReader(self.schema) for _ in range(2))
        self.at = self.kept(self.driver.initialOffset())

    def kept(self, offset: dict) -> dict:
        return json.loads(json.dumps(offset))

    def batch(self) -> list[pa.RecordBatch] | None:
        limits = getattr(self.driver, "getDefaultReadLimit", None)
        limited = limits is not None and hasattr(self.driver, "prepareForTriggerAvailableNow")
        end = self.kept(self.driver.latestOffset(self.at, limits()) if limited else self.driver.latestOffset())
        if end == self.at:
            return None
        parts = [sent(p) for p in self.driver.partitions(self.at, end)]
        self.at = end
        return [b for p in parts for b in sent(self.executor).read(p)]


class Writing:
    """The sink of one query."""

    def __init__(self, monkeypatch, path: str, query: str = "a-query", **options: str) -> None:
        class Context:
            def getLocalProperty(self, name: str) -> str | None:
                return query if name == "sql.streaming.queryId" else None

        class Found:
            get = staticmethod(Context)

        monkeypatch.setattr(stream_writer, "TaskContext", Found)
        self.options = {"path": path, "checkpointLocation": "/checkpoint", **options}

    def batch(self, schema, number: int, batches, overwrite: bool = False, fail: bool = False) -> None:
        """Two tasks, of which one has no rows; the writer that commits is another one than that of the tasks."""
        tasks = sent(DefaultSource(options=self.options).streamWriter(schema, overwrite))
        of_rows = isinstance(tasks, stream_writer.RowStreamWriter)
        assert of_rows is not hasattr(datasource, "DataSourceStreamArrowWriter")
        if of_rows:
            batches = [Row(**r) for batch in batches for r in batch.to_pylist()]
        messages = [sent(tasks.write(iter(given))) for given in (batches, [])]
        driver = DefaultSource(options=self.options).streamWriter(schema=schema, overwrite=overwrite)
        if fail:
            with system.use(SeededSystem(1)):  # its clock does not wait for tasks of Spark
                driver.abort([*messages, None], number)
        else:
            driver.commit(messages, number)


def test_batches_are_written_once(source, format, tmp_path, monkeypatch):
    reading, path = Reading(source), tmp_path / "target"
    writing = Writing(monkeypatch, str(path), tableFormat=format)
    first = reading.batch()
    writing.batch(reading.schema, 0, first)
    assert reading.batch() is None
    bh.open(source).append(rows(6, 8))
    second = reading.batch()
    assert [r["id"] for b in second for r in b.to_pylist()] == [6, 7]
    writing.batch(reading.schema, 1, second)
    t = bh.open(str(path))
    before = sorted(path.rglob("*"))
    writing.batch(reading.schema, 1, second)  # Spark's own commit failed, and the batch is done again
    assert sorted(path.rglob("*")) == before  # and no file is left behind
    writing.batch(reading.schema, 0, first)
    writing.batch(reading.schema, 2, [])  # nothing to commit
    assert sorted(path.rglob("*")) == before
    writing.batch(reading.schema, 2, second, fail=True)
    assert sorted(path.rglob("*")) == before
    assert bh.open(str(path)).version == t.version
    assert sorted(t.to_arrow().column("id").to_pylist()) == [*range(8)]
    Writing(monkeypatch, str(path), "another-query").batch(reading.schema, 1, second)
    assert bh.open(str(path)).to_arrow().num_rows == 10


def test_some_columns_in_another_order(source):
    options = {"path": source, "readChangeFeed": "true"}
    reading = Reading(source, readChangeFeed="true")
    asked = StructType().add("_change_type", "string").add("S", "string").add("id", "long")
    reading.driver, reading.executor = (DefaultSource(options=options).streamReader(asked) for _ in range(2))
    found = [row for batch in reading.batch() for row in batch.to_pylist()]
    assert {tuple(row.items()) for row in found} == {
        (("_change_type", "insert"), ("S", f"s{i}"), ("id", i)) for i in range(6)
    }
    with pytest.raises(bh.errors.SchemaMismatchError, match="requested as int"):
        reading.driver = DefaultSource(options=options).streamReader(StructType().add("id", "integer"))
        reading.batch()


def test_complete_mode_replaces_the_table(source, format, tmp_path, monkeypatch):
    reading, path = Reading(source), str(tmp_path / "target")
    writing = Writing(monkeypatch, path, tableFormat=format)
    batches = reading.batch()
    for number in (0, 1, 1):
        writing.batch(reading.schema, number, batches[:1], overwrite=True)
    assert sorted(bh.open(path).to_arrow().column("id").to_pylist()) == batches[0].column("id").to_pylist()


def test_what_a_sink_refuses(source, format, tmp_path, monkeypatch):
    reading = Reading(source)
    writing = Writing(monkeypatch, str(tmp_path / "target"), "", tableFormat=format)
    with pytest.raises(bh.errors.UnsupportedFeatureError, match="which streaming query they belong to"):
        writing.batch(reading.schema, 0, reading.batch())
    with pytest.raises(bh.errors.InvalidArgumentError, match="is not one of a stream"):
        DefaultSource(options={"path": "x", "txnAppId": "a"}).streamWriter(reading.schema, False)


def test_rows_of_pyspark_4_0(tmp_path):
    """Its streams give rows, which become batches again."""
    table = pa.table(
        {
            "id": [1, None],
            "l": [["a"], None],
            "m": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
            "t": pa.array([0, None], pa.timestamp("us", "UTC")),
            "s": [{"x": 1.5}, None],
        }
    )
    bh.write(table, str(tmp_path / "t"))
    schema = DefaultSource(options={"path": str(tmp_path / "t")}).schema()
    given = [Row(**{**r, "m": None if r["m"] is None else dict(r["m"])}) for r in table.to_pylist()]
    (batch,) = stream_writer._batches(iter(given), schema)
    assert from_spark_batch(batch).to_pylist() == table.to_pylist()
