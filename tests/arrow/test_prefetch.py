"""Batches that threads read ahead: in order, within a limit, and without any that stays."""

from __future__ import annotations

import sys
import threading
import time

import pyarrow as pa
import pytest

from boathouse.arrow import prefetch
from boathouse.arrow.prefetch import read_ahead


def numbered(task: int):
    for i in range(20):
        yield pa.record_batch({"x": [task * 100 + i] * 1000})


def ours() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name.startswith("boathouse")]


@pytest.mark.parametrize("limit", [1, 1 << 14, 1 << 30])
def test_rows_come_in_the_order_of_the_tasks(limit):
    found = [b.column(0)[0].as_py() for b in read_ahead(numbered, range(7), 3, limit)]
    assert found == [t * 100 + i for t in range(7) for i in range(20)]
    assert not ours()


def test_no_more_than_the_limit_waits():
    made = []

    def watched(task):
        for batch in numbered(task):
            made.append(batch.nbytes)
            yield batch

    rows = read_ahead(watched, range(50), 4, limit=64_000)
    next(rows)
    time.sleep(0.2)
    assert sum(made) <= 64_000 + 8 * 8_000 * 2
    rows.close()
    assert not ours()


def test_closing_early_ends_threads_and_tasks():
    closed = []

    def task(number):
        try:
            yield from numbered(number)
        finally:
            closed.append(number)

    rows = read_ahead(task, range(10), 3, limit=1)
    next(rows)
    rows.close()
    assert not ours() and len(closed) <= 4


def test_an_error_comes_where_its_task_does():
    def task(number):
        yield from numbered(number)
        if number == 2:
            raise ValueError("broken")

    found = []
    with pytest.raises(ValueError, match="broken"):
        for batch in read_ahead(task, range(6), 3):
            found.append(batch.column(0)[0].as_py())
    assert found == [t * 100 + i for t in range(3) for i in range(20)]
    assert not ours()


def test_an_iterator_that_is_collected_in_one_of_its_threads_ends(monkeypatch):
    held, failed, first, done = [], [], threading.Event(), threading.Event()
    batch = pa.record_batch({"x": [1]})
    monkeypatch.setattr(sys, "unraisablehook", failed.append)

    def read(task):
        yield batch
        first.wait(10)
        held.clear()  # the last reference: the iterator is closed here
        done.set()

    held.append(read_ahead(read, iter([1]), 1))
    assert next(held[0]) == batch
    first.set()
    assert done.wait(10) and not failed


def test_closing_under_a_lock_that_a_task_waits_for_does_not_hang(monkeypatch):
    """As garbage collection may do, in whatever the reader's thread is about then."""
    monkeypatch.setattr(prefetch, "PATIENCE", 0.05)
    lock, batch = threading.Lock(), pa.record_batch({"x": [1]})

    def read(task):
        yield batch
        with lock:
            yield batch

    rows = read_ahead(read, range(3), 2)
    with lock:
        assert next(rows) == batch
        rows.close()
        assert ours()  # it did not wait for those that wait for the lock
    for thread in ours():
        thread.join(30)
    assert not ours()
