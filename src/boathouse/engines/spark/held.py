"""Frames whose few rows Spark's driver holds: the driver writes them, in process, without tasks.

What the frame computes from them, Spark's optimizer has computed when it is asked for the plan; the rows that are then
collected are those of the same plan, so nothing is computed twice. Frames whose rows may differ from one evaluation to
the next, or that call functions of users, are not asked.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from boathouse.engines.sources import Batches
from boathouse.engines.spark import catalyst
from boathouse.engines.spark.exchange import from_spark_batch

MOST_ROWS: Final = 10_000
MOST_BYTES: Final = 8 << 20
"""Spark's tasks share larger writes: files of many partitions, and their upload."""
_RENAMING: Final = frozenset({"ToDF", "WithColumnsRenamed", "SubqueryAlias"})
"""Plans of Connect that leave the rows as they are."""
_FAULTS: Final = (PySparkException, Py4JError, pa.ArrowException, AttributeError, TypeError)
"""What a plan that fails raises, and what classes that have moved do."""


def held_rows(frame: DataFrame) -> Batches | None:
    """The rows of a frame, if they are few and held by the driver, or by the client of Connect; else None."""
    if not frame.columns:
        return None
    try:
        table = _rows(frame)
    except _FAULTS:
        return None  # tasks meet the same, and say it as ever
    if table is None or table.nbytes > MOST_BYTES:
        return None
    batches = [from_spark_batch(b) for b in table.to_batches() or [_no_rows(table.schema)]]
    return Batches.of(pa.Table.from_batches(batches))


def is_constant(frame: DataFrame) -> bool:
    """Whether a frame is nothing but few rows that the driver or the client holds: the same at every use."""
    if _on_connect(frame):
        return _held_by_client(frame)
    try:
        return catalyst.held_plan(frame, MOST_ROWS, MOST_BYTES, computed=False) is not None
    except _FAULTS:
        return False


def _rows(frame: DataFrame) -> pa.Table | None:
    if _on_connect(frame):
        return frame.toArrow() if _held_by_client(frame) else None
    plan = catalyst.held_plan(frame, MOST_ROWS, MOST_BYTES)
    if plan is None:
        return None
    zone = str(frame.sparkSession.conf.get("spark.sql.session.timeZone"))
    table = catalyst.held_batches(frame, plan, zone)
    return frame.toArrow() if table is None else table


def _on_connect(frame: DataFrame) -> bool:
    return type(frame).__module__.startswith("pyspark.sql.connect")


def _held_by_client(frame: Any) -> bool:
    plan = frame._plan
    while type(plan).__name__ in _RENAMING:
        plan = plan._child
    table = getattr(plan, "_table", None) if type(plan).__name__ == "LocalRelation" else None
    return isinstance(table, pa.Table) and table.num_rows <= MOST_ROWS and table.nbytes <= MOST_BYTES


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], schema=schema)
