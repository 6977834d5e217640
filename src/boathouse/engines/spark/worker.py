"""The code that runs in Spark's Python workers, as picklable callables for `mapInArrow`. It imports no pyspark, store
or parser.

Tasks are part of the callable, pickled one by one, so that a worker unpickles only its own. The driving frame is
`spark.range(0, n * step, 1, n)` filtered to every `step`-th id: exactly one row, hence one bundle, per Spark partition.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from boathouse.engines.spark.exchange import encode, from_spark_batch, to_spark_batch
from boathouse.ops.tasks.numbering import Lane
from boathouse.ops.tasks.sink import pickle_error, sink_batches
from boathouse.registry import tasks
from boathouse.table.engine import RowOrder
from boathouse.table.tasks import ReadSpec, ScanTask, WriteContext
from boathouse.types import DataType

Batches = Iterator[pa.RecordBatch]

RESULT = pa.schema(
    [pa.field("task", pa.int32()), pa.field("part", pa.int32()), pa.field("data", pa.binary()),
     pa.field("error", pa.binary())]
)  # fmt: skip
RESULT_DDL = "task int, part int, data binary, error binary"
ROWS_ONLY = "__rows"
"""A placeholder where no column is read: Arrow batches without columns lose their row count."""


def bundle_ids(batches: Batches, step: int) -> Iterator[int]:
    """The bundles that a Spark partition was given."""
    for batch in batches:
        for id in batch.column(0).to_pylist():
            yield id // step


def output_types(read: ReadSpec) -> list[DataType]:
    """The types of the batches of a scan, metadata columns last."""
    by_name = {c.name: c.type for c in read.columns}
    return [by_name[n] for n in read.output] + [read.type_of(h) for h in read.hidden]


@dataclass(frozen=True)
class ScanBundles:
    """Reads bundles of `ScanTask`s into batches as Spark expects them."""

    bundles: tuple[tuple[bytes, ...], ...]
    step: int

    def __call__(self, batches: Batches) -> Batches:
        for i in bundle_ids(batches, self.step):
            for payload in self.bundles[i]:
                yield from scan_rows(pickle.loads(payload))


def scan_rows(task: ScanTask) -> Batches:
    """The rows of one task as Spark expects them."""
    types = output_types(task.read)
    for batch in tasks(task.read.format).read(task):
        if not types:
            yield pa.record_batch({ROWS_ONLY: pa.nulls(batch.num_rows, pa.int8())})
        else:
            yield to_spark_batch(batch, types)


@dataclass(frozen=True)
class MapBundles:
    """Runs `fn` over bundles of (task number, pickled task); results and errors are returned as rows of RESULT."""

    fn: Callable[[Any], Iterable[pa.RecordBatch]]
    bundles: tuple[tuple[tuple[int, bytes], ...], ...]
    step: int

    def __call__(self, batches: Batches) -> Batches:
        for i in bundle_ids(batches, self.step):
            for number, payload in self.bundles[i]:
                yield from self._run(number, payload)

    def _run(self, number: int, payload: bytes) -> Batches:
        part = 0
        try:
            for part, batch in enumerate(self.fn(pickle.loads(payload))):
                yield result(number, part, data=encode(batch))
        except Exception as error:
            yield result(number, part + 1, error=pickle_error(error))


@dataclass(frozen=True)
class SinkRows:
    """Writes the rows of a Spark partition, whose columns have these names; OUTCOMES are returned as rows of RESULT.

    With `lanes`, the number of the partition, which is below it, is one more column: it is the same when a task runs
    again, so that identity columns get the same values.
    """

    context: WriteContext
    names: tuple[str, ...]
    lanes: int = 0

    def __call__(self, batches: Batches) -> Batches:
        lane = Lane()
        if self.lanes:
            batches = (b for b in batches if b.num_rows)
            if (first := next(batches, None)) is not None:
                lane = Lane(first.column(len(self.names))[0].as_py(), self.lanes)
                batches = chain([first], batches)
        rows = (self._rows(batch) for batch in batches)
        for part, outcomes in enumerate(sink_batches(rows, self.context, lane=lane)):
            yield result(0, part, data=encode(outcomes))

    def _rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return from_spark_batch(batch.select(range(len(self.names))).rename_columns(list(self.names)))


@dataclass(frozen=True)
class AddKeys:
    """Adds to rows, whose columns have these names, the worker that sorts each, and its key. `workers` are by the
    number of the file."""

    order: RowOrder
    names: tuple[str, ...]
    workers: tuple[int, ...]
    added: tuple[str, str]

    def __call__(self, batches: Batches) -> Batches:
        at = [self.names.index(name) for name in self.order.names]
        workers = np.array(self.workers, np.int32)
        for batch in batches:
            part = from_spark_batch(batch.select(at).rename_columns(list(self.order.names)))
            keys = self.order.keys(part)
            files = np.searchsorted(self.order.starts, keys, side="right")
            arrays = [*batch.columns, pa.array(workers[files]), pa.array(keys)]
            yield pa.RecordBatch.from_arrays(arrays, names=[*batch.schema.names, *self.added])


def result(task: int, part: int, data: bytes | None = None, error: bytes | None = None) -> pa.RecordBatch:
    """One row of RESULT."""
    return pa.RecordBatch.from_pylist([{"task": task, "part": part, "data": data, "error": error}], schema=RESULT)
