"""Frames to data files: one `mapInArrow` over the common sink, executed exactly once."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from boathouse import registry
from boathouse.bits.names import Names
from boathouse.engines.spark.artifacts import ship
from boathouse.engines.spark.jobs import job
from boathouse.engines.spark.ordered import COLUMN as _COLUMN
from boathouse.engines.spark.ordered import ordered
from boathouse.engines.spark.read_schema import quoted
from boathouse.engines.spark.session import cores, settings
from boathouse.engines.spark.task_frames import in_order
from boathouse.engines.spark.worker import RESULT_DDL, SinkRows
from boathouse.ops.outcomes import collect_outcomes
from boathouse.table.engine import Spread
from boathouse.table.tasks import WriteContext
from boathouse.types import PartitionField, StringType

BATCH_ROWS = 1 << 16
LANES = 4
"""Tasks per core, at most, of a write with identity columns: the values of each task are as far apart as there may be
tasks, a number that Spark tells to none of them."""
_KEY, _LANE = "__key", "__lane"


def write(frame: DataFrame, context: WriteContext, spread: Spread) -> pa.Table:
    """Writes every row once; returns OUTCOMES. Raises the first task's error with its own type.

    An error of our own in a task is an outcome like others. One of Spark's evaluation, of a function of the rows or of
    a worker fails the job, and with it the outcomes of tasks that had finished are lost.
    """
    spark = frame.sparkSession
    ship(spark)
    names = tuple(frame.columns)
    rows = spread_rows(frame, context, spread) if spread.order is None else ordered(frame, spread.order)
    schema = registry.tasks(context.format).outcomes_schema(context)
    lanes = 0
    if context.identities:
        lanes = cores(spark) * LANES
        rows = rows.coalesce(lanes).withColumn(_LANE, F.spark_partition_id())
    return collect_outcomes(_results(rows.mapInArrow(SinkRows(context, names, lanes), RESULT_DDL)), schema, context)


def _results(written: DataFrame) -> Iterator[pa.RecordBatch]:
    spark = written.sparkSession
    with settings(spark, {"spark.sql.execution.arrow.maxRecordsPerBatch": BATCH_ROWS}), job(spark):
        results = written.toArrow()
    yield from in_order(results)


def spread_rows(frame: DataFrame, context: WriteContext, spread: Spread) -> DataFrame:
    """The rows distributed so that those of one partition meet in one worker, or each worker has a range of the order;
    columns are named by position, since Spark's mapInArrow resolves columns by name, and fails for names with a dot.

    Adaptive execution may split a partition that is far larger than others, and coalesces small ones.
    """
    places = Names(frame.columns)
    rows = frame.toDF(*(f"{_COLUMN}{i}" for i in range(len(frame.columns))))
    if spread.by == "one":
        return rows.repartition(1)
    if spread.by == "range" and (ranged := _ranged(context, places)):
        return rows.repartitionByRange(*ranged)
    keys = (
        [k for f in context.spec if (k := _key(f, places)) is not None] if spread.by in ("partition", "range") else []
    )
    if not keys:
        return rows
    names = [f"{_KEY}{i}" for i in range(len(keys))]
    keyed = rows.select("*", *(k.alias(n) for k, n in zip(keys, names, strict=True)))
    return keyed.hint("rebalance", *names).drop(*names)


def _key(field: PartitionField, places: Names) -> Column | None:
    """A distribution key that rows of one partition share; rows of two partitions may share it too. None for void."""
    source = _source(field.source, places)
    if source is None:
        return None
    match field.transform.name:
        case "void":
            return None
        case "truncate":
            return _truncated(source, field)
        case "year":
            return F.year(source)
        case "month":
            return F.trunc(source, "month")
        case "day":
            return F.to_date(source)
        case "hour":
            return F.date_trunc("hour", source)
    return source


def _source(path: tuple[str, ...], places: Names) -> Column | None:
    """The column at a path; one that is missing in the rows is null."""
    found = places.at(path[0])
    return F.col(".".join([f"{_COLUMN}{found[0]}", *(quoted(p) for p in path[1:])])) if found else None


def _ranged(context: WriteContext, places: Names) -> list[Column]:
    """What Spark divides rows by so that each range has a part of the order, inside of partitions: the columns as far
    as their own order is that of the transforms, up to the first that several values of a column share."""
    parts = [(f.source, f.transform.name, False, True) for f in context.spec]
    parts += [(f.source, f.transform.name, f.descending, f.nulls_first) for f in context.order]
    found = []
    for path, transform, descending, nulls_first in parts:
        column = _source(path, places)
        if transform == "bucket":
            break
        if column is not None and transform != "void":
            found.append(_directed(column, descending, nulls_first))
            if transform != "identity":
                break
    return found


def _directed(column: Column, descending: bool, nulls_first: bool) -> Column:
    if descending:
        return column.desc_nulls_first() if nulls_first else column.desc_nulls_last()
    return column.asc_nulls_first() if nulls_first else column.asc_nulls_last()


def _truncated(source: Column, field: PartitionField) -> Column:
    width = field.transform.parameter or 1
    if isinstance(field.type, StringType):
        return F.substring(source, 1, width)
    return F.floor(source / F.lit(width)) if _numeric(field) else source


def _numeric(field: PartitionField) -> bool:
    return str(field.type) in ("tinyint", "smallint", "int", "bigint")
