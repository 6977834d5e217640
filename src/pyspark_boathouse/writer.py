"""Writing through the Python Data Source: files in tasks, one commit in Spark's driver-side Python worker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from boathouse.engines.spark.exchange import decode, encode, from_spark_batch
from boathouse.engines.spark.schema import from_spark
from boathouse.ops.tasks.sink import sink_batches
from boathouse.table.tasks import WriteContext
from pyspark_boathouse.options import WriteTarget
from pyspark_boathouse.told_errors import told_plainly

_OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
"""Tasks know the settings of the session that are not as by default; the driver's side of a Python source does not."""


@dataclass
class Written(WriterCommitMessage):
    """OUTCOMES of one task, encoded; `dynamic`: the session lets overwrites replace single partitions."""

    outcomes: tuple[bytes, ...]
    dynamic: bool = field(default=False, kw_only=True)


@told_plainly
class TableWriter(DataSourceArrowWriter):
    """`context` is None if there is nothing to write: the application transaction was applied before."""

    def __init__(self, target: WriteTarget, schema: StructType) -> None:
        self.target = target
        self.schema = from_spark(schema)
        self.context: WriteContext | None = _driver().begin(target, self.schema)[0]

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        if self.context is None:
            return Written(())
        rows = (from_spark_batch(batch) for batch in iterator)
        outcomes = tuple(encode(batch) for batch in sink_batches(rows, self.context))
        return Written(outcomes, dynamic=_replaces_partitions())

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        if self.context is not None:
            dynamic = any(m.dynamic for m in messages if isinstance(m, Written))
            _driver().commit(self.target, self.schema, self.context, list(batches(messages)), dynamic)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Removes what tasks wrote if some of them failed. If all reported, their commit was tried: it has removed
        the files, or they may be the table's."""
        if self.context is not None and failed(messages):
            _driver().remove(self.context)


def _replaces_partitions() -> bool:
    task = TaskContext.get()
    return task is not None and (task.getLocalProperty(_OVERWRITE_MODE) or "").strip().lower() == "dynamic"


def failed(messages: Sequence[WriterCommitMessage | None]) -> bool:
    """Whether a task has not reported."""
    return any(message is None for message in messages)


def batches(messages: Sequence[WriterCommitMessage | None]) -> Iterator[pa.RecordBatch]:
    """The OUTCOMES of all tasks that reported."""
    for message in messages:
        if isinstance(message, Written):
            for data in message.outcomes:
                yield from decode(data)


def _driver() -> Any:
    """The driver's side, which executors must not load: it needs parsers and stores."""
    return import_module("pyspark_boathouse.committing")
