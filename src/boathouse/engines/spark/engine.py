"""The Spark engine: runs row programs as DataFrames and executor tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from boathouse.engines.local import LocalEngine
from boathouse.engines.spark import ansi
from boathouse.engines.spark import sink as sinks
from boathouse.engines.spark.errors import typed_errors
from boathouse.engines.spark.held import held_rows, is_constant
from boathouse.engines.spark.join import join, resolved, with_columns
from boathouse.engines.spark.native import native_frame
from boathouse.engines.spark.read_schema import quoted
from boathouse.engines.spark.route import Route, route
from boathouse.engines.spark.schema import from_spark
from boathouse.engines.spark.sources import to_frame
from boathouse.engines.spark.subtract import subtract
from boathouse.engines.spark.task_frames import run_tasks, scan_frame
from boathouse.engines.spark.values import named, text
from boathouse.expr.values import stages
from boathouse.ops.outcomes import signed
from boathouse.table.engine import Agg, JoinType, Spread, Sql, Value
from boathouse.table.plan import ScanPlan
from boathouse.table.tasks import ReadSpec, WriteContext
from boathouse.types import Schema

PARTITION_OVERWRITE: Final = "spark.sql.sources.partitionOverwriteMode"
_DRIVER: Final = LocalEngine()


class SparkEngine:
    """Rel is a DataFrame of the session that the engine was made with; classic or Connect."""

    name = "spark"

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self._given: list[DataFrame] = []

    @property
    def timezone(self) -> str:
        """The session's time zone, as currently set."""
        return str(self.spark.conf.get("spark.sql.session.timeZone"))

    @property
    def replaces_partitions(self) -> bool:
        """The session's setting for every source, as currently set."""
        return str(self.spark.conf.get(PARTITION_OVERWRITE, "static")).strip().lower() == "dynamic"

    def covers(self, sql: Sequence[Sql]) -> list[Sql]:
        """Spark evaluates what it parses, with its own functions; names are resolved when the frame is created."""
        return [one for one in sql if not self._known(one)]

    def _known(self, sql: Sql) -> bool:
        try:
            _ = self.spark.range(0).select(F.expr(text(sql))).schema
        except ParseException:
            return False
        except AnalysisException as error:
            return error.getCondition() != "UNRESOLVED_ROUTINE"
        return True

    def source(self, data: object) -> DataFrame:
        frame = to_frame(self.spark, data)
        if frame is data:
            self._given.append(frame)
        return frame

    def schema(self, rel: DataFrame) -> Schema:
        return from_spark(rel.schema)

    def pin(self, rel: DataFrame) -> DataFrame:
        """A local checkpoint: lost blocks fail the query, where a cache would silently compute other rows."""
        if is_constant(rel):
            return rel
        with typed_errors():
            return rel.localCheckpoint(eager=True)

    def _meant(self, make: Callable[..., DataFrame], *rels: DataFrame) -> DataFrame:
        """The frame that `make` makes of these, its expressions in ANSI mode; those of the user's frames keep theirs.

        Without that mode, Connect, which resolves expressions when they run, runs them at once.
        """
        if ansi.is_on(self.spark):
            return make(*rels)
        connect = type(self.spark).__module__.startswith("pyspark.sql.connect")
        if connect:
            rels = tuple(self.pin(r) if any(r is g for g in self._given) else r for r in rels)
        with ansi.turned_on(self.spark):
            frame = make(*rels)
            return self.pin(frame) if connect else frame

    def route(self, plan: ScanPlan) -> Route:
        """The scan strategy for this plan, and the reason."""
        return route(self.spark, plan)

    def scan(self, *plans: ScanPlan) -> DataFrame:
        """Of several plans the tasks are one relation; native relations would be one a plan, each planned by Spark."""
        native = len(plans) == 1 and self.route(plans[0]).via == "native"
        frame = native_frame(self.spark, plans[0]) if native else scan_frame(self.spark, plans)
        return _commented(frame, plans[0].read)

    def project(
        self,
        rel: DataFrame,
        columns: Sequence[tuple[str, Value]],
        where: Value | None = None,
        let: Sequence[tuple[str, Value]] = (),
    ) -> DataFrame:
        found = [named(*column) for column in columns]
        keep = None if where is None else text(where)

        def projected(rel: DataFrame) -> DataFrame:
            rows = with_columns(rel)
            given = reduce(lambda frame, stage: frame.selectExpr("*", *(named(*v) for v in stage)), stages(let), rows)
            return (given if keep is None else given.where(F.expr(keep))).selectExpr(*found)

        return self._meant(lambda rel: resolved(lambda: projected(rel)), rel)

    def join(
        self, left: DataFrame, right: DataFrame, on: Sql, how: JoinType, sides: tuple[str, str] = ("target", "source")
    ) -> DataFrame:
        return self._meant(lambda left, right: join(left, right, text(on), how, sides), left, right)

    def union(self, rels: Sequence[DataFrame]) -> DataFrame:
        return reduce(DataFrame.unionAll, rels)

    def subtract(self, left: DataFrame, right: DataFrame, columns: Sequence[str]) -> DataFrame:
        return subtract(left, right, columns)

    def summary(self, rel: DataFrame, aggregates: Sequence[tuple[str, Agg, Sql]]) -> pa.Table:
        def aggregated(rel: DataFrame) -> DataFrame:
            rows = with_columns(rel)
            return resolved(lambda: rows.agg(*(_aggregate(kind, sql).alias(name) for name, kind, sql in aggregates)))

        found = self._meant(aggregated, rel)
        with typed_errors():
            return found.toArrow()

    def sink(self, rel: DataFrame, context: WriteContext, spread: Spread) -> pa.Table:
        """Few rows that the driver holds are written by it: no worker starts, and no task."""
        rows = held_rows(rel)
        if rows is not None:
            return _DRIVER.sink(rows, context, spread)
        return signed(sinks.write(rel, context, spread), self.name)

    def map(
        self, fn: Callable[[Any], Iterable[pa.RecordBatch]], tasks: Sequence[Any], cost: Sequence[int] | None = None
    ) -> Iterator[pa.RecordBatch]:
        return run_tasks(self.spark, fn, tasks, cost)


def _commented(frame: DataFrame, read: ReadSpec) -> DataFrame:
    """The frame with the table's comments on its columns."""
    docs = {c.name: c.doc for c in read.columns if c.doc is not None}
    if not docs.keys() & set(frame.columns):
        return frame
    columns = [F.col(quoted(n)) for n in frame.columns]
    named = zip(columns, frame.columns, strict=True)
    return frame.select(*(c.alias(n, metadata={"comment": docs[n]}) if n in docs else c for c, n in named))


def _aggregate(kind: Agg, sql: Sql) -> Column:
    if kind == "count_all":
        return F.count(F.lit(1))
    functions = {"count": F.count, "sum": F.sum, "min": F.min, "max": F.max}
    return functions[kind](F.expr(text(sql)))
