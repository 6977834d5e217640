"""Jobs whose tasks write files: they have ended when the call that started them does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.sql import SparkSession

from boathouse.bits import system
from boathouse.engines.spark.errors import typed_errors

_LONGEST: Final = 5.0
"""Seconds after which Spark has ended the workers of a failed job: it looks every 2 s, and then gives them 2 s
(`spark.python.task.killTimeout`)."""
_DESCRIPTION: Final = "spark.job.description"
_POLL, _DYING = 0.05, 0.2
"""Seconds between two looks at the tasks, and from the end of a task to that of its worker."""


@contextmanager
def job(spark: SparkSession) -> Iterator[None]:
    """Runs a job. If it fails, tasks of it that still run are waited for: what they wrote can then be found.

    Raises EvaluationError, JobError, and the library's own error if a task raised it.
    """
    try:
        with typed_errors():
            yield
    except BaseException:
        wait_for_tasks(spark)
        raise


@contextmanager
def described(spark: SparkSession, text: str) -> Iterator[None]:
    """Jobs of this thread are called so where Spark shows them, unless the user has given them a name; Connect has no
    names of jobs."""
    context = None if type(spark).__module__.startswith("pyspark.sql.connect") else spark.sparkContext
    if context is None or context.getLocalProperty(_DESCRIPTION) is not None:
        yield
        return
    context.setLocalProperty(_DESCRIPTION, text)
    try:
        yield
    finally:
        context.setLocalProperty(_DESCRIPTION, None)


def wait_for_tasks(spark: SparkSession | None = None) -> None:
    """Waits until no task runs, or, where that is unknown, for as long as those of a failed job may run."""
    clock = system.current()
    until = clock.monotonic() + _LONGEST
    while (left := until - clock.monotonic()) > 0:
        running = _running(spark)
        if running == 0:
            clock.sleep(_DYING)
            return
        clock.sleep(left if running is None else _POLL)


def _running(spark: SparkSession | None) -> int | None:
    """How many tasks run; None if Spark does not tell, as with Connect."""
    if spark is None or type(spark).__module__.startswith("pyspark.sql.connect"):
        return None
    try:
        executors = spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()
        return sum(executor.numRunningTasks() for executor in executors)
    except Exception:  # an interface of the JVM, which another version may have changed; or the JVM is gone
        return None
