"""Executor tasks as DataFrames: every bundle of tasks is one Spark partition, on 4.0 to 4.3, classic and Connect."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from heapq import heapify, heapreplace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as S

from boathouse.engines.spark.artifacts import ship
from boathouse.engines.spark.exchange import decode
from boathouse.engines.spark.jobs import job
from boathouse.engines.spark.schema import to_spark
from boathouse.engines.spark.session import cores
from boathouse.engines.spark.worker import RESULT_DDL, ROWS_ONLY, MapBundles, ScanBundles, output_types
from boathouse.table.plan import ScanPlan
from boathouse.types import Field

MAX_CLOSURE = 32 << 20
"""Bytes of pickled tasks in one frame; more are split into several frames."""
SCAN_TASK_BYTES = 64 << 20
_ROUNDS = 4
"""Bundles per core: enough to balance tasks whose costs are estimates, few enough to keep the start-up cost low."""
_MAX_RANGE = 1 << 24


def scan_frame(spark: SparkSession, plans: Sequence[ScanPlan]) -> DataFrame:
    """The rows of plans with the same columns, read by executor tasks (the format's own reader). Raises
    UnsupportedTypeError."""
    read = plans[0].read
    fields = [Field(n, t) for n, t in zip((*read.output, *read.hidden), output_types(read), strict=True)]
    struct = to_spark(fields)
    if not any(plan.units.num_rows for plan in plans):
        return spark.createDataFrame([], struct)
    ship(spark)
    wire = struct if fields else S.StructType([S.StructField(ROWS_ONLY, S.ByteType())])
    frames = []
    for chunk in _chunks(_scans(plans, cores(spark)), lambda p: len(p[0])):
        bundles = _gathered(chunk, cores(spark)) if len(plans) > 1 else tuple((data,) for data, _ in chunk)
        step = _step(len(bundles), sum(cost for _, cost in chunk))
        frames.append(_driving(spark, len(bundles), step).mapInArrow(ScanBundles(bundles, step), wire))
    frame = reduce(DataFrame.unionAll, frames)
    return frame if fields else frame.drop(ROWS_ONLY)


def _scans(plans: Sequence[ScanPlan], workers: int) -> list[tuple[bytes, int]]:
    """The tasks of plans, pickled, with their costs; of a single plan at least one a worker."""
    at_least = workers if len(plans) == 1 else 1
    tasks = (task for plan in plans if plan.units.num_rows for task in plan.tasks(SCAN_TASK_BYTES, at_least=at_least))
    return [(pickle.dumps(task), task.cost) for task in tasks]


def _gathered(payloads: Sequence[tuple[bytes, int]], workers: int) -> tuple[tuple[bytes, ...], ...]:
    """The small tasks of many plans in their order, in bundles of about equal cost: one a worker, or more if they are
    as large as one large task."""
    total = sum(max(1, cost) for _, cost in payloads)
    count = min(len(payloads), max(workers, total // SCAN_TASK_BYTES))
    bundles: list[list[bytes]] = [[] for _ in range(count)]
    seen = 0
    for data, cost in payloads:
        bundles[seen * count // total].append(data)
        seen += max(1, cost)
    return tuple(tuple(b) for b in bundles if b)


def run_tasks(
    spark: SparkSession,
    fn: Callable[[Any], Iterable[pa.RecordBatch]],
    tasks: Sequence[Any],
    cost: Sequence[int] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Runs `fn` over the tasks on the executors; results in the order of the tasks. Raises the first task's error,
    and JobError."""
    if not tasks:
        return
    ship(spark)
    work = [(i, pickle.dumps(t), cost[i] if cost else 1) for i, t in enumerate(tasks)]
    for chunk in _chunks(work, lambda w: len(w[1])):
        bundles = _balanced(chunk, min(len(chunk), cores(spark) * _ROUNDS))
        frame = _driving(spark, len(bundles), 1).mapInArrow(MapBundles(fn, bundles, 1), RESULT_DDL)
        with job(spark):
            results = frame.toArrow()
        yield from in_order(results)


def in_order(results: pa.Table) -> Iterator[pa.RecordBatch]:
    """The batches of RESULT rows by task and part. Raises the error of the first task that has one."""
    table = results.sort_by([("task", "ascending"), ("part", "ascending")])
    for error in table.column("error").drop_null():
        raise pickle.loads(error.as_py())
    for data in table.column("data"):
        yield from decode(data.as_py())


def _driving(spark: SparkSession, bundles: int, step: int) -> DataFrame:
    rows = spark.range(0, bundles * step, 1, bundles)
    return rows if step == 1 else rows.where(f"id % {step} = 0")


def _step(bundles: int, size: int) -> int:
    """How many ids represent a bundle, so that Spark's estimate of the frame's size grows with the bytes that it reads.

    Spark sizes the output of `mapInArrow` by its input: a few rows would look small enough to broadcast.
    """
    return max(1, min(size // 8, _MAX_RANGE) // bundles)


def _chunks(items: Sequence[Any], size: Callable[[Any], int]) -> Iterator[list[Any]]:
    chunk: list[Any] = []
    held = 0
    for item in items:
        if chunk and held + size(item) > MAX_CLOSURE:
            yield chunk
            chunk, held = [], 0
        chunk.append(item)
        held += size(item)
    if chunk:
        yield chunk


def _balanced(work: Sequence[tuple[int, bytes, int]], count: int) -> tuple[tuple[tuple[int, bytes], ...], ...]:
    """Bundles of about equal cost, most expensive tasks first (longest processing time)."""
    bundles: list[list[tuple[int, bytes]]] = [[] for _ in range(count)]
    loads = [(0, i) for i in range(count)]
    heapify(loads)
    for number, data, cost in sorted(work, key=lambda w: (-w[2], w[0])):
        load, i = loads[0]
        bundles[i].append((number, data))
        heapreplace(loads, (load + max(1, cost), i))
    return tuple(tuple(b) for b in bundles)
