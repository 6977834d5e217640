"""Writing a stream through the Python Data Source: files in tasks, one commit of the table for each batch.

Spark makes a writer for the tasks of a batch and another one for its commit, in different processes. The query's id is
known to the tasks, the batch's number to the commit; together they name the application transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import Row, StructType

from boathouse.engines.spark.exchange import encode, from_spark_batch
from boathouse.engines.spark.schema import from_spark
from boathouse.errors import BoathouseError, UnsupportedFeatureError
from boathouse.ops.tasks.sink import sink_batches
from boathouse.table.tasks import WriteContext
from pyspark_boathouse.options import WriteTarget
from pyspark_boathouse.told_errors import told_plainly
from pyspark_boathouse.writer import Written, batches, failed

_QUERY = "sql.streaming.queryId"
"""The property by which Spark tells tasks the query; it is the same after a restart from the checkpoint."""
_ROWS = 1 << 16


@dataclass
class WrittenBatch(Written):
    """OUTCOMES of one task, the query that it belongs to, and how its files were written."""

    query: str
    context: WriteContext


@told_plainly
class StreamSink:
    """What the writers of every PySpark do: the rows of tasks, and the commit.

    The table is opened when a writer is made. What prevents that is raised when the writer is sent to tasks, or
    commits, so that files of a failed batch are removed even then.
    """

    def __init__(self, target: WriteTarget, schema: StructType) -> None:
        self.target = target
        self.struct = schema
        self.schema = from_spark(schema)
        self.context: WriteContext | None = None
        self.place: Any = None
        self.error: BoathouseError | None = None
        try:
            self.context, self.place = _driver().begin(target, self.schema)
        except BoathouseError as error:
            self.error = error

    def __getstate__(self) -> dict[str, Any]:
        """The writer as it is sent to tasks, which open nothing."""
        if self.error is not None:
            raise self.error
        return {**self.__dict__, "place": None}

    def written(self, iterator: Iterator[pa.RecordBatch]) -> WrittenBatch:
        task = TaskContext.get()
        query = None if task is None else task.getLocalProperty(_QUERY)
        if not query or self.context is None:
            raise UnsupportedFeatureError(
                "Spark does not tell its tasks which streaming query they belong to, so batches would not be written "
                "exactly once",
                advice="write the batches with foreachBatch and the option txn (docs/streams.md)",
            )
        rows = (from_spark_batch(batch) for batch in iterator)
        return WrittenBatch(tuple(encode(batch) for batch in sink_batches(rows, self.context)), query, self.context)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        found = [m for m in messages if isinstance(m, WrittenBatch)]
        if found:
            first, written = found[0], list(batches(found))
            _driver().commit_batch(self.target, self.schema, first.context, first.query, batchId, written, self.place)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """As TableWriter.abort. The write is known by a task that reported: without one, files of tasks that were cut
        off stay as orphans, which no commit refers to."""
        found = [m for m in messages if isinstance(m, WrittenBatch)]
        if found and failed(messages):
            _driver().remove(found[0].context)


@told_plainly
class RowStreamWriter(StreamSink, DataSourceStreamWriter):
    """For PySpark 4.0, whose streams give rows."""

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        return self.written(_batches(iterator, self.struct))


def _batches(rows: Iterable[Row], schema: StructType) -> Iterator[pa.RecordBatch]:
    convert = import_module("pyspark.sql.conversion").LocalDataToArrowConversion.convert
    held: list[Row] = []
    for row in rows:
        held.append(row)
        if len(held) == _ROWS:
            yield from convert(held, schema, False).to_batches()
            held = []
    if held:
        yield from convert(held, schema, False).to_batches()


def _driver() -> Any:
    """The driver's side, which executors must not load: it needs parsers and stores."""
    return import_module("pyspark_boathouse.committing")
