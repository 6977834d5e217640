"""Prefetches the rows of many tasks, in order, by threads within a memory limit."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import Condition, Thread
from typing import Any

import pyarrow as pa

BYTES_AHEAD = 256 << 20
"""Arrow memory that may be buffered for the reader; the task being read may always add one batch."""


class _Ahead:
    """Tasks are started in order, so that the one being read always has a thread of its own.

    All state is guarded by `turn`. A thread waits while too many bytes are buffered, or too many tasks have been
    started.
    """

    def __init__(self, fn: Callable[[Any], Iterable[pa.RecordBatch]], tasks: Sequence[Any], threads: int, limit: int):
        self.fn, self.tasks, self.limit = fn, tasks, limit
        self.turn = Condition()
        self.batches: list[deque[pa.RecordBatch]] = [deque() for _ in tasks]
        self.errors: dict[int, BaseException] = {}
        self.done: set[int] = set()
        self.begun = self.reading = self.held = 0
        self.stopped = False
        self.threads = [Thread(target=self.work, name=f"boathouse-{i}", daemon=True) for i in range(threads)]

    def work(self) -> None:
        while (task := self.begin()) is not None:
            try:
                self.run(task)
            except BaseException as error:
                self.errors[task] = error
            with self.turn:
                self.done.add(task)
                self.turn.notify_all()

    def begin(self) -> int | None:
        with self.turn:
            while not self.stopped and self.begun < len(self.tasks) and self.begun > self.reading + len(self.threads):
                self.turn.wait()
            if self.stopped or self.begun >= len(self.tasks):
                return None
            self.begun += 1
            return self.begun - 1

    def run(self, task: int) -> None:
        rows = iter(self.fn(self.tasks[task]))
        try:
            for batch in rows:
                if not self.offer(task, batch):
                    return
        finally:
            close = getattr(rows, "close", None)
            if close is not None:
                close()

    def offer(self, task: int, batch: pa.RecordBatch) -> bool:
        """Waits for space in the buffer; False if the reader has closed."""
        with self.turn:
            while not self.stopped and self.held >= self.limit and (task != self.reading or self.batches[task]):
                self.turn.wait()
            if self.stopped:
                return False
            self.batches[task].append(batch)
            self.held += batch.nbytes
            self.turn.notify_all()
            return True

    def next(self, task: int) -> pa.RecordBatch | None:
        """The task's next batch, None after its last. Raises what the task raised."""
        with self.turn:
            self.reading = task
            self.turn.notify_all()
            while not self.batches[task] and task not in self.done:
                self.turn.wait()
            if self.batches[task]:
                batch = self.batches[task].popleft()
                self.held -= batch.nbytes
                self.turn.notify_all()
                return batch
        if task in self.errors:
            raise self.errors[task]
        return None

    def stop(self) -> None:
        with self.turn:
            self.stopped = True
            self.turn.notify_all()
        for thread in self.threads:
            thread.join()


def read_ahead(
    fn: Callable[[Any], Iterable[pa.RecordBatch]], tasks: Sequence[Any], threads: int, limit: int = BYTES_AHEAD
) -> Iterator[pa.RecordBatch]:
    """The batches of `fn(task)` in the order of the tasks; closing the iterator ends its threads."""
    ahead = _Ahead(fn, tasks, min(threads, len(tasks)), limit)
    for thread in ahead.threads:
        thread.start()
    try:
        for task in range(len(tasks)):
            while (batch := ahead.next(task)) is not None:
                yield batch
    finally:
        ahead.stop()
