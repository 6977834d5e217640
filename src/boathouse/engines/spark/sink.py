"""Frames to data files: one `mapInArrow` over the common sink, executed exactly once."""

from __future__ import annotations

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from boathouse import registry
from boathouse.engines.spark.errors import typed
from boathouse.engines.spark.frames import in_order
from boathouse.engines.spark.session import settings
from boathouse.engines.spark.shape import quoted
from boathouse.engines.spark.ship import ship
from boathouse.engines.spark.work import RESULT_DDL, SinkRows
from boathouse.ops.outcomes import settle
from boathouse.table.engine import Spread
from boathouse.table.tasks import UNIT, WriteContext
from boathouse.types import PartitionField, StringType

BATCH_ROWS = 1 << 16
_KEY = "__key"


def write(frame: DataFrame, context: WriteContext, spread: Spread) -> pa.Table:
    """Writes every row once; OUTCOMES. Raises the first task's error with its own type."""
    spark = frame.sparkSession
    ship(spark)
    rows = spread_rows(frame, context, spread)
    schema = registry.tasks(context.format).outcomes_schema(context)
    with settings(spark, {"spark.sql.execution.arrow.maxRecordsPerBatch": BATCH_ROWS}):
        try:
            results = rows.mapInArrow(SinkRows(context), RESULT_DDL).toArrow()
        except PySparkException as error:
            raise typed(error) from error
    return settle(in_order(results), schema, context)


def spread_rows(frame: DataFrame, context: WriteContext, spread: Spread) -> DataFrame:
    """The rows laid so that those of one partition, or of one unit, meet in one worker.

    Adaptive execution may cut a partition that is far larger than others, and joins small ones.
    """
    if spread.by == "unit":
        return frame.repartition(F.col(UNIT))
    keys = [k for f in context.spec if (k := _key(f)) is not None] if spread.by == "partition" else []
    if not keys:
        return frame
    names = [f"{_KEY}{i}" for i in range(len(keys))]
    columns = frame.columns
    keyed = frame.select(*(quoted(c) for c in columns), *(k.alias(n) for k, n in zip(keys, names, strict=True)))
    return keyed.hint("rebalance", *names).drop(*names)


def _key(field: PartitionField) -> Column | None:
    """What rows of one partition have in common; rows of two partitions may share it too. None for void."""
    source = F.col(".".join(quoted(p) for p in field.source))
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


def _truncated(source: Column, field: PartitionField) -> Column:
    width = field.transform.parameter or 1
    if isinstance(field.type, StringType):
        return F.substring(source, 1, width)
    return F.floor(source / F.lit(width)) if _numeric(field) else source


def _numeric(field: PartitionField) -> bool:
    return str(field.type) in ("tinyint", "smallint", "int", "bigint")
