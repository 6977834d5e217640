"""Writes rows to data files: by partition, rolled at the target size, with a bounded number of open writers."""

from __future__ import annotations

from collections import OrderedDict, deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Final

import pyarrow as pa

from boathouse.arrow.schema import to_arrow
from boathouse.errors import BoathouseError
from boathouse.ops.outcomes import discard
from boathouse.ops.tasks.routing import PartitionKey, same, split
from boathouse.registry import tasks
from boathouse.table.tasks import ClosedFile, FileWriter, WriteContext

GATHERED_BYTES: Final = 64 << 20
"""Arrow memory of a stream that is collected to be grouped by partition."""
_SLICE_ROWS: Final = 1 << 16
_HELD: Final = 1 << 14
"""The number of columns of finished files whose statistics are kept before they are turned into a table."""
_MANY_FILES: Final = 32
"""From this number on files are finished in threads: a small file is written when it is closed."""


class PartitionedWriter:
    """Writes rows of the context's schema to files.

    Rows of a partitioned table are collected up to `gathered_bytes`, and written one partition after the other, so that
    many partitions rarely compete for few open files, and each has one file if all rows were collected. Many files are
    finished in `threads`.
    """

    def __init__(self, context: WriteContext, gathered_bytes: int = GATHERED_BYTES, threads: int = 1) -> None:
        self.schema = to_arrow(context.rows)
        self._context = context
        self._files = tasks(context.format).writers(context)
        self._gathered_bytes = gathered_bytes
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0
        self._open: OrderedDict[PartitionKey, tuple[FileWriter, int]] = OrderedDict()
        self._threads = threads
        self._pool: ThreadPoolExecutor | None = None
        self._closing: deque[Future[ClosedFile]] = deque()
        self._closed: list[ClosedFile] = []
        self._files_closed = 0
        self._described: list[pa.Table] = []

    def write(self, batch: pa.RecordBatch) -> None:
        if not self._context.spec.fields:
            self._write_partition((), batch)
            return
        self._waiting.append(batch)
        self._waiting_bytes += batch.nbytes
        if self._waiting_bytes >= self._gathered_bytes:
            self._write_waiting()

    def _write_waiting(self, last: bool = False) -> None:
        """With `last` no more rows follow: a partition is closed when the next one begins."""
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        before: PartitionKey | None = None
        for values, rows in split(waiting, self._context.spec, self._context.schema):
            key = same(values)
            if last and before not in (None, key) and before in self._open:
                self._close(before)
            self._write_partition(values, rows)
            before = key

    def _write_partition(self, values: PartitionKey, rows: pa.RecordBatch) -> None:
        context = self._context
        key = same(values)
        offset = 0
        while offset < rows.num_rows:
            writer, held = self._writer(key, values)
            room = _SLICE_ROWS if context.target_rows is None else min(_SLICE_ROWS, context.target_rows - held)
            part = rows.slice(offset, room)
            writer.write(part)
            offset += part.num_rows
            held += part.num_rows
            self._open[key] = (writer, held)
            if writer.bytes_written >= context.target_bytes or held == context.target_rows:
                self._close(key)

    def _writer(self, key: PartitionKey, values: PartitionKey) -> tuple[FileWriter, int]:
        if key in self._open:
            self._open.move_to_end(key)
            return self._open[key]
        if len(self._open) >= self._context.max_open_files:
            self._close(next(iter(self._open)))
        by_id = {f.id: value for f, value in zip(self._context.spec, values, strict=True)}
        self._open[key] = (self._files.open(by_id), 0)
        return self._open[key]

    def _close(self, key: PartitionKey) -> None:
        writer, _ = self._open.pop(key)
        self._files_closed += 1
        if self._threads > 1 and self._files_closed > _MANY_FILES:
            self._pool = self._pool or ThreadPoolExecutor(self._threads, thread_name_prefix="boathouse")
            self._closing.append(self._pool.submit(_finished, writer))
            self._settle(2 * self._threads)
        else:
            self._closed.append(_finished(writer))
        if len(self._closed) * max(1, len(self._context.schema)) >= _HELD:
            self._describe()

    def _settle(self, left: int) -> None:
        """Waits until at most this number of files is being finished."""
        while len(self._closing) > left:
            self._closed.append(self._closing.popleft().result())

    def _describe(self) -> None:
        if self._closed:
            self._described.append(self._files.outcomes(self._closed))
            self._closed = []

    def finish(self) -> list[pa.Table]:
        """Writes buffered rows and closes open files; returns the OUTCOMES rows of every file."""
        self._write_waiting(last=True)
        while self._open:
            self._close(next(iter(self._open)))
        self._settle(0)
        self._end_threads()
        self._describe()
        return self._described

    def closed(self) -> list[pa.Table]:
        """The OUTCOMES rows of the files that were finished before a failure; a file without any is removed."""
        try:
            self._describe()
        except Exception:
            self._remove_closed()
        return self._described

    def abort(self, finished: bool = False) -> None:
        """Aborts the open files; closed ones are in `closed` for the caller to remove, or are removed too."""
        self._waiting = []
        while self._open:
            _, (writer, _held) = self._open.popitem()
            writer.abort()
        while self._closing:
            with suppress(BaseException):  # the first error is raised; this file has removed itself
                self._settle(len(self._closing) - 1)
        self._end_threads()
        if finished:
            self._remove_closed()
            for outcomes in self._described:
                discard(outcomes, self._context)

    def _end_threads(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def _remove_closed(self) -> None:
        for path in (path for file in self._closed for path in file.paths):
            with suppress(BoathouseError, OSError):
                self._context.files.delete(path)
        self._closed = []


def _finished(writer: FileWriter) -> ClosedFile:
    try:
        return writer.close()
    except BaseException:
        writer.abort()
        raise
