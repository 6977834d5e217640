"""Rows in the order that the table asks for, partition after partition, before they become files; in bounded memory:
sorted runs in temporary files, merged at the end."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from boathouse.arrow.ordering import Key, in_order, is_ordered, keys, keys_of
from boathouse.ops.tasks.partitioned import PartitionedWriter
from boathouse.ops.tasks.routing import partition_arrays
from boathouse.table.tasks import WriteContext

RUN_BYTES: Final = 128 << 20
"""Arrow memory that is sorted at once; more goes to temporary files."""
_BATCH_ROWS: Final = 1 << 14
_Keys = Callable[[pa.RecordBatch], list[Key]]


class SortedWriter:
    """A PartitionedWriter that gets all its rows at the end, in the order of the context."""

    def __init__(self, writer: PartitionedWriter, context: WriteContext, run_bytes: int = RUN_BYTES) -> None:
        self.schema = writer.schema
        self._writer = writer
        self._context = context
        self._run_bytes = run_bytes
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._runs: list[str] = []

    def write(self, batch: pa.RecordBatch) -> None:
        """Keeps rows. Raises EvaluationError for a value without a partition."""
        size = max(1, batch.num_rows * self._run_bytes // max(1, batch.nbytes))
        for start in range(0, batch.num_rows, size):
            part = batch.slice(start, size)
            if self._waiting and self._waiting_bytes + part.nbytes > self._run_bytes:
                self._spill()
            self._waiting.append(part)
            self._waiting_bytes += part.nbytes

    def finish(self) -> list[pa.Table]:
        """As PartitionedWriter.finish."""
        try:
            for rows in self._rows():
                self._writer.write(rows)
        finally:
            self._forget()
        return self._writer.finish()

    def closed(self) -> list[pa.Table]:
        """As PartitionedWriter.closed."""
        return self._writer.closed()

    def abort(self, finished: bool = False) -> None:
        """As PartitionedWriter.abort."""
        self._forget()
        self._writer.abort(finished)

    def _rows(self) -> Iterator[pa.RecordBatch]:
        if not self._waiting:
            return
        if not self._runs:
            yield from self._sorted()
            return
        self._spill()
        yield from _merged([_Run(_read(path)) for path in self._runs], self._keys)

    def _spill(self) -> None:
        self._folder = self._folder or tempfile.TemporaryDirectory(prefix="boathouse-")
        path = os.path.join(self._folder.name, f"{len(self._runs)}.arrow")
        with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, self.schema) as writer:
            for batch in self._sorted():
                writer.write_batch(batch)
        self._runs.append(path)

    def _sorted(self) -> Iterator[pa.RecordBatch]:
        rows, self._waiting, self._waiting_bytes = _one(self._waiting), [], 0
        found = self._keys(rows)
        order = None if is_ordered(found) else in_order(found)
        for start in range(0, rows.num_rows, _BATCH_ROWS):
            yield rows.slice(start, _BATCH_ROWS) if order is None else rows.take(order.slice(start, _BATCH_ROWS))

    def _keys(self, rows: pa.RecordBatch) -> list[Key]:
        """Those of the partition, then those of the order."""
        context = self._context
        values = zip(context.spec, partition_arrays(rows, context.spec, context.rows))
        return [k for f, array in values for k in keys(array, f.type)] + keys_of(rows, context.rows, context.order)

    def _forget(self) -> None:
        self._waiting, self._runs = [], []
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


@dataclass
class _Run:
    """Sorted rows that are left, the next ones in memory."""

    batches: Iterator[pa.RecordBatch]
    rows: pa.RecordBatch | None = None
    more: bool = True

    def fill(self) -> bool:
        """Whether there are rows."""
        while self.more and (self.rows is None or not self.rows.num_rows):
            self.rows = next(self.batches, None)
            self.more = self.rows is not None
        return self.rows is not None and self.rows.num_rows > 0


def _merged(runs: Sequence[_Run], keys: _Keys) -> Iterator[pa.RecordBatch]:
    """The rows of all runs in order. What is known of a run ends with its last row in memory: rows up to the first such
    row can go."""
    while left := [run for run in runs if run.fill()]:
        batches = [run.rows for run in left if run.rows is not None]
        rows = _one(batches)
        order = in_order(keys(rows)).to_numpy()
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        ends = np.cumsum([b.num_rows for b in batches])
        stop = int(min(place[ends - 1])) + 1
        yield rows.take(pa.array(order[:stop]))
        for run, batch, end in zip(left, batches, ends, strict=True):
            gone = int((place[end - batch.num_rows : end] < stop).sum())
            run.rows = batch.slice(gone)


def _one(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def _read(path: str) -> Iterator[pa.RecordBatch]:
    with pa.OSFile(path) as file:
        reader = pa.ipc.open_file(file)
        for i in range(reader.num_record_batches):
            yield reader.get_batch(i)
