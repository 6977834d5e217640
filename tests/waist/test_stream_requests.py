"""What a batch of a stream costs: requests to the store, of its source and of both processes of its sink."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest
from asked import asked as asked
from pyspark.sql.types import LongType, StringType, StructField, StructType

import boathouse as bh
from boathouse.bits import system
from boathouse.engines.spark.exchange import encode
from boathouse.errors import SchemaMismatchError
from boathouse.ops.stream.source import Batch, ReadLimit, TableStream
from boathouse.ops.tasks.sink import sink_batches
from pyspark_boathouse.stream_options import stream_target
from pyspark_boathouse.stream_writer import RowStreamWriter, WrittenBatch

FORMATS = ["delta", "iceberg", "lance"]
COLUMNS = StructType([StructField("id", LongType()), StructField("v", StringType())])


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": pa.array(["x"] * len(ids), pa.string())})


@pytest.fixture(params=FORMATS)
def table(request, tmp_path) -> bh.Table:
    t = bh.create(str(tmp_path / "t"), rows().schema, format=request.param)
    for i in range(5):
        t.append(rows(i))
    return t


class Query:
    """The calls of a host, which keeps the last batch."""

    def __init__(self, t: bh.Table) -> None:
        self.stream = TableStream.of(bh.open(t.uri)._handle.snapshot)
        self.batch: Batch | None = None

    def next(self, files: int | None = None) -> int:
        """The number of tasks of the next batch."""
        last = self.batch
        newest = self.stream.newest(None if last is None else last.newest)
        self.batch = self.stream.next(None if last is None else last.end, ReadLimit(files), newest, last)
        return len(list(self.batch.tasks()))


def test_a_batch_without_anything_new_is_one_listing(table, asked):
    query = Query(table)
    assert query.next() == 1
    asked.clear()
    assert query.next() == 0
    assert sum(asked.of_table().values()) == 1, asked.all


def test_a_version_that_is_read_in_part_is_planned_once(table, asked):
    query = Query(table)
    assert query.next(2) == 1
    asked.clear()
    assert (query.next(2), query.next(2)) == (1, 1)
    assert set(asked.of_table()) <= {"list", "list_dir"} and sum(asked.of_table().values()) == 2, asked.all


def test_commits_are_looked_at_once(table, asked):
    """A batch of three of six commits, and one of the others: tasks are made of what the batch knows."""
    query = Query(table)
    query.next()
    for i in range(6):
        table.append(rows(20 + i))
    asked.clear()
    assert (query.next(3), query.next(3)) == (3, 3)
    at_most = {"delta": 30, "iceberg": 18, "lance": 24}[table.format]
    assert sum(asked.of_table().values()) <= at_most, asked.all
    asked.clear()
    assert len(list(query.batch.tasks())) == 3 and query.next() == 0
    assert sum(asked.of_table().values()) == 1, asked.all


def batch_of(writer: RowStreamWriter, data: pa.Table) -> WrittenBatch:
    """What tasks do with the writer that is sent to them."""
    sent = writer.__getstate__()
    assert sent["place"] is None and sent["context"] is not None
    written = tuple(encode(batch) for batch in sink_batches(data.to_batches(), sent["context"]))
    return WrittenBatch(written, "query", sent["context"])


def test_a_writer_opens_the_table_when_it_is_made_and_never_again(table, asked):
    """In the process that sends it to tasks; and in the one that commits, where the commit follows."""
    target = stream_target({"path": table.uri}, False)
    asked.clear()
    writer = RowStreamWriter(target, COLUMNS)
    opened = asked.of_table()
    asked.clear()
    message = batch_of(writer, rows(100))
    assert not asked.of_table(), asked.all
    bh.open(table.uri)
    more = opened - asked.of_table()
    assert sum(more.values()) <= 1, "as much as opening it, and a look for other writers"
    writer = RowStreamWriter(target, COLUMNS)
    asked.clear()
    writer.commit([message], 1)
    committed = asked.of_table()
    known = bh.open(table.uri)
    asked.clear()
    known.append(rows(200), txn=("other", 1))
    append = sum(asked.of_table().values())
    assert sum(committed.values()) <= append, "as much as an append to a table that is open"
    assert sorted(known.to_arrow()["id"].to_pylist()) == [0, 1, 2, 3, 4, 100, 200]


def test_a_batch_without_rows_asks_for_nothing_but_the_table(table, asked):
    target = stream_target({"path": table.uri}, False)
    message = batch_of(RowStreamWriter(target, COLUMNS), rows())
    writer = RowStreamWriter(target, COLUMNS)
    asked.clear()
    writer.commit([message], 1)
    assert not asked.of_table(), asked.all
    assert bh.open(table.uri).version == table.version


def test_what_prevents_writing_is_raised_where_the_writer_is_sent_to_tasks(table):
    other = StructType([StructField("nobody", LongType())])
    writer = RowStreamWriter(stream_target({"path": table.uri}, False), other)
    with pytest.raises(SchemaMismatchError, match="nobody"):
        pickle.dumps(writer)


def test_files_of_an_aborted_batch_are_removed_whatever_prevents_writing(table):
    target = stream_target({"path": table.uri}, False)
    before = data_files(table)
    message = batch_of(RowStreamWriter(target, COLUMNS), rows(100))
    assert len(data_files(table)) == len(before) + 1
    with system.use(system.SeededSystem(5)):  # tasks that do not report may run for seconds
        RowStreamWriter(target, StructType([StructField("nobody", LongType())])).abort([message, None], 1)
    assert data_files(table) == before


def data_files(t: bh.Table) -> set[str]:
    context = t._handle.snapshot.context
    storage, key = context.stores.resolve(context.location.uri)
    return {info.key for info in storage.list(key) if info.key.endswith((".parquet", ".lance"))}
