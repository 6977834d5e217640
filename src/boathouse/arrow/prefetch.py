"""Prefetches the rows of many tasks, in order, by threads within a memory limit."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Generator, Iterable
from itertools import count
from threading import Condition, Thread, current_thread
from typing import Any, Final

import pyarrow as pa

BYTES_AHEAD = 256 << 20
"""Arrow memory that may be buffered for the reader; the task being read may always add one batch."""
PATIENCE: Final = 2.0
"""Seconds that are waited for a thread to end, or to notice that it should."""


class _Ahead:
    """Tasks are taken and started in order, so that the one being read always has a thread of its own.

    All state is guarded by `turn`. A thread waits while too many bytes are buffered, or too many tasks have been
    started. The reader may be collected as garbage at any moment, in any thread, even while that thread holds a lock
    that one of ours needs to go on: `stop` and the threads therefore never wait for each other without end.
    """

    def __init__(self, fn: Callable[[Any], Iterable[pa.RecordBatch]], tasks: Iterable[Any], threads: int, limit: int):
        self.fn, self.tasks, self.limit = fn, iter(tasks), limit
        self.turn = Condition()
        self.batches: defaultdict[int, deque[pa.RecordBatch]] = defaultdict(deque)
        self.errors: dict[int, BaseException] = {}
        self.done: set[int] = set()
        self.count: int | None = None
        self.begun = self.reading = self.held = 0
        self.stopped = False
        self.threads = [Thread(target=self.work, name=f"boathouse-{i}", daemon=True) for i in range(threads)]

    def work(self) -> None:
        while (begun := self.begin()) is not None:
            number, task = begun
            try:
                self.run(number, task)
            except BaseException as error:
                self.errors[number] = error
            with self.turn:
                self.done.add(number)
                self.turn.notify_all()

    def begin(self) -> tuple[int, Any] | None:
        """The next task and its number; None if there is none."""
        with self.turn:
            while not self.stopped and self.count is None and self.begun > self.reading + len(self.threads):
                self.turn.wait(PATIENCE)
            if self.stopped or self.count is not None:
                return None
            try:
                task = next(self.tasks)
            except BaseException as error:
                self.count = self.begun
                if not isinstance(error, StopIteration):
                    self.errors[self.begun] = error
                self.turn.notify_all()
                return None
            self.begun += 1
            return self.begun - 1, task

    def run(self, number: int, task: Any) -> None:
        rows = iter(self.fn(task))
        try:
            for batch in rows:
                if not self.offer(number, batch):
                    return
        finally:
            close = getattr(rows, "close", None)
            if close is not None:
                close()

    def offer(self, task: int, batch: pa.RecordBatch) -> bool:
        """Waits for space in the buffer; False if the reader has closed."""
        with self.turn:
            while not self.stopped and self.held >= self.limit and (task != self.reading or self.batches[task]):
                self.turn.wait(PATIENCE)
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
            while not self.batches[task] and task not in self.done and not self._ended(task):
                self.turn.wait()
            if self.batches[task]:
                batch = self.batches[task].popleft()
                self.held -= batch.nbytes
                self.turn.notify_all()
                return batch
            del self.batches[task]
        if task in self.errors:
            raise self.errors[task]
        return None

    def _ended(self, task: int) -> bool:
        return self.count is not None and task >= self.count

    def ended(self, task: int) -> bool:
        """Whether there is no such task."""
        with self.turn:
            return self._ended(task)

    def stop(self) -> None:
        self.stopped = True
        if self.turn.acquire(timeout=PATIENCE):
            self.turn.notify_all()
            self.turn.release()
        for thread in self.threads:
            if thread is not current_thread():  # garbage may be collected, and so this be called, in one of them
                thread.join(PATIENCE)


def read_ahead(
    fn: Callable[[Any], Iterable[pa.RecordBatch]], tasks: Iterable[Any], threads: int, limit: int = BYTES_AHEAD
) -> Generator[pa.RecordBatch, None, None]:
    """The batches of `fn(task)` in the order of the tasks; closing the iterator ends its threads."""
    ahead = _Ahead(fn, tasks, threads, limit)
    for thread in ahead.threads:
        thread.start()
    try:
        for task in count():
            while (batch := ahead.next(task)) is not None:
                yield batch
            if ahead.ended(task + 1):
                return
    finally:
        ahead.stop()
