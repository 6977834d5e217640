"""The engine: runs row programs and knows no operation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse.expr.values import Sql, Value
from boathouse.table.plan import ScanPlan
from boathouse.table.tasks import WriteContext
from boathouse.types import Schema

__all__ = ["Agg", "Engine", "JoinType", "Rel", "RowOrder", "Spread", "Sql", "Value"]

Rel = Any
"""Opaque to operations: a DataFrame, or lazy batches."""
JoinType = Literal["inner", "left", "right", "full", "semi", "anti"]
Agg = Literal["count", "count_all", "sum", "min", "max"]


class RowOrder(Protocol):
    """An order of rows by integer keys, picklable. `starts` are the first keys of all files but the first, `steps`, of
    which they are some, those of the parts that are sorted one at a time; both ascending."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that decide the order."""

    @property
    def starts(self) -> npt.NDArray[np.int64]: ...
    @property
    def steps(self) -> npt.NDArray[np.int64]: ...

    def keys(self, rows: pa.RecordBatch) -> npt.NDArray[np.int64]:
        """The key of each row of these columns."""


@dataclass(frozen=True, slots=True)
class Spread:
    """How rows are distributed before the sink: unchanged, so that one partition's rows meet in one worker, all in one
    worker, each worker with a range of the context's order, or sorted by `order`, each worker with the keys of one
    file."""

    by: Literal["none", "partition", "one", "range", "order"] = "none"
    order: RowOrder | None = None


class Engine(Protocol):
    """Eleven methods; `name` is `local` or `spark`."""

    name: str

    @property
    def timezone(self) -> str | None:
        """The time zone of conditions if the user names none; None if it is unknown."""

    @property
    def replaces_partitions(self) -> bool:
        """Whether an overwrite replaces only the partitions of its rows where the user says nothing: Spark's session
        may be set so."""

    def covers(self, sql: Sequence[Sql]) -> list[Sql]:
        """Those of the expressions that this engine cannot evaluate; asked before anything is written."""

    def source(self, data: object) -> Rel:
        """The user's data as a relation."""

    def schema(self, rel: Rel) -> Schema:
        """The columns of a relation."""

    def pin(self, rel: Rel) -> Rel:
        """The same rows at every use, also when the operation is planned again."""

    def scan(self, *plans: ScanPlan) -> Rel:
        """Every row of the plans, of which there is at least one and which give the same columns, or failure."""

    def project(
        self,
        rel: Rel,
        columns: Sequence[tuple[str, Value]],
        where: Value | None = None,
        let: Sequence[tuple[str, Value]] = (),
    ) -> Rel:
        """Named values over a relation, in Spark SQL text, or trees with such text, with Spark's ANSI semantics.

        Over the result of a join, columns are named as in its condition. `let` are values that `columns` and `where`
        name as further columns, and those after them: each is computed once for a row, before `where`.
        """

    def join(self, left: Rel, right: Rel, on: Sql, how: JoinType, sides: tuple[str, str] = ("target", "source")) -> Rel:
        """The pairs of rows that satisfy `on`: two struct columns, named by `sides`, each null where its side has no
        match. A semi or anti join returns rows of `left`, with its columns.

        `on` names columns as `target.id`; without a side if only one side has such a column.
        In process, `right` is held in memory and `left` streams.
        """

    def union(self, rels: Sequence[Rel]) -> Rel:
        """All rows of relations with the same columns, at least one relation; in process one after the other."""

    def subtract(self, left: Rel, right: Rel, columns: Sequence[str]) -> Rel:
        """The rows of `left` but for as many equal ones as `right` has, of which these columns are returned.

        Rows are compared in all columns, which are the same in both: nulls are equal, NaN is NaN, 0.0 is -0.0. In
        process, the distinct rows of `right` are held in memory and `left` streams.
        """

    def summary(self, rel: Rel, aggregates: Sequence[tuple[str, Agg, Sql]]) -> pa.Table:
        """One row of (name, aggregate, expression)."""

    def sink(self, rel: Rel, context: WriteContext, spread: Spread) -> pa.Table:
        """Writes every row once; returns OUTCOMES. A frame runs exactly once. Raises the first task error, typed."""

    def map(
        self, fn: Callable[[Any], Iterable[pa.RecordBatch]], tasks: Sequence[Any], cost: Sequence[int] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Runs a picklable function over tasks; results in the order of the tasks."""
