"""The local engine: Arrow batches and threads, in process."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from itertools import chain, islice
from typing import Any

import pyarrow as pa

from boathouse import registry
from boathouse.arrow.prefetch import BYTES_AHEAD, read_ahead
from boathouse.arrow.rows import subtract
from boathouse.arrow.schema import from_arrow
from boathouse.bits import progress
from boathouse.engines.join import join
from boathouse.engines.ordered import write_ordered
from boathouse.engines.projection import Projection
from boathouse.engines.sources import Batches, bind_all, from_data
from boathouse.engines.summary import summarize
from boathouse.errors import BoathouseError
from boathouse.expr.parse import parse
from boathouse.expr.tree import Expr
from boathouse.expr.values import stages
from boathouse.ops.outcomes import collect_outcomes, signed
from boathouse.ops.tasks.numbering import Lane
from boathouse.ops.tasks.partitioned import GATHERED_BYTES
from boathouse.ops.tasks.sink import sink_batches
from boathouse.table.engine import Agg, JoinType, Spread, Sql, Value
from boathouse.table.plan import ScanPlan
from boathouse.table.tasks import WriteContext
from boathouse.types import Field, Schema

TASK_BYTES = 64 << 20
SINK_BYTES = 128 << 20
"""Arrow memory worth a separate sink: below it, a second file costs readers more than the threads gain."""
PROGRAM_AHEAD = 16 << 20
"""Bytes read ahead of a row program: it is slower than the readers, so that any limit is reached."""
_WORKERS = max(2, os.cpu_count() or 2)


class LocalEngine:
    """Runs row programs with pyarrow; Rel is `Batches`."""

    name = "local"

    def __init__(self, zone: str = "UTC") -> None:
        self._zone = zone

    @property
    def timezone(self) -> str | None:
        """The time zone of expressions."""
        return self._zone

    @property
    def replaces_partitions(self) -> bool:
        return False

    def covers(self, sql: Sequence[Sql]) -> list[Sql]:
        return [text for text in sql if not _parses(text)]

    def source(self, data: object) -> Batches:
        return replace(from_data(data), zone=self._zone)

    def schema(self, rel: Batches) -> Schema:
        return from_arrow(rel.schema)

    def pin(self, rel: Batches) -> Batches:
        return rel if rel.whole is not None else replace(Batches.of(rel.table()), sides=rel.sides, zone=rel.zone)

    def scan(self, *plans: ScanPlan) -> Batches:
        def rows() -> Iterator[pa.RecordBatch]:
            return chain.from_iterable(self.batches(plan, bytes_ahead=PROGRAM_AHEAD) for plan in plans)

        return Batches(plans[0].read.schema, rows, zone=self._zone)

    def batches(
        self, plan: ScanPlan, task_bytes: int = TASK_BYTES, bytes_ahead: int = BYTES_AHEAD
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a plan in the order of its units, a few tasks ahead of the reader, within `bytes_ahead`."""
        work = plan.tasks(task_bytes, at_least=_WORKERS)
        read = registry.tasks(plan.read.format).read
        first = list(islice(work, 2))
        if len(first) == 1:
            return iter(read(first[0]))
        return read_ahead(read, chain(first, work), _WORKERS, bytes_ahead)

    def project(
        self,
        rel: Batches,
        columns: Sequence[tuple[str, Value]],
        where: Value | None = None,
        let: Sequence[tuple[str, Value]] = (),
    ) -> Batches:
        first: list[tuple[str, Expr]] = []
        beside: list[Field] = []
        for stage in stages(let):
            found = bind_all(rel, [value for _, value in stage], beside)
            first += [(name, e) for (name, _), e in zip(stage, found)]
            beside += [Field(name, e.type) for (name, _), e in zip(stage, found) if e.type is not None]
        keep = None if where is None else bind_all(rel, [where], beside)[0]
        named = list(zip((name for name, _ in columns), bind_all(rel, [value for _, value in columns], beside)))
        program = Projection(rel.schema, first, keep, named)
        return Batches(program.schema, lambda: map(program.of, rel.open()), rel.once, zone=rel.zone)

    def join(
        self, left: Batches, right: Batches, on: Sql, how: JoinType, sides: tuple[str, str] = ("target", "source")
    ) -> Batches:
        return join(left, right, on, how, sides)

    def union(self, rels: Sequence[Batches]) -> Batches:
        return Batches(rels[0].schema, lambda: (b for rel in rels for b in rel.open()), zone=self._zone)

    def subtract(self, left: Batches, right: Batches, columns: Sequence[str]) -> Batches:
        schema = pa.schema([left.schema.field(n) for n in columns])
        return Batches(schema, lambda: subtract(left.open(), right.table(), columns), zone=self._zone)

    def summary(self, rel: Batches, aggregates: Sequence[tuple[str, Agg, Sql]]) -> pa.Table:
        return summarize(rel, aggregates)

    def sink(self, rel: Batches, context: WriteContext, spread: Spread) -> pa.Table:
        return signed(self._written(rel, context, spread), LocalEngine.name)

    def _written(self, rel: Batches, context: WriteContext, spread: Spread) -> pa.Table:
        """Rows in memory for a table without partitions and order are split into contiguous ranges, one sink per
        thread: files keep the order of the rows and their narrow bounds."""
        schema = registry.tasks(context.format).outcomes_schema(context)
        if spread.order is not None:
            return write_ordered(rel, spread.order, context, self.map)
        whole = rel.whole
        alone = whole is None or context.spec.fields or context.order or spread.by == "one"
        sinks = 1 if whole is None or alone else min(_WORKERS, whole.nbytes // SINK_BYTES)
        if whole is None or sinks < 2:
            source = _Source(rel)
            try:
                gathered = GATHERED_BYTES if whole is None else sys.maxsize  # these rows are already in memory
                rows = progress.counted(source, progress.phase("rows", None if whole is None else whole.num_rows))
                return collect_outcomes(sink_batches(rows, context, gathered, _WORKERS), schema, context)
            except Exception:
                if source.error is not None:
                    raise source.error from None
                raise
        size = -(-whole.num_rows // sinks)
        starts = range(0, whole.num_rows, size)
        done = progress.phase("rows", whole.num_rows)

        def written(start: int) -> Iterator[pa.RecordBatch]:
            rows = progress.counted(whole.slice(start, size).to_batches(), done)
            return sink_batches(rows, context, lane=Lane(start))

        return collect_outcomes(_mapped(written, starts), schema, context)

    def map(
        self, fn: Callable[[Any], Iterable[pa.RecordBatch]], tasks: Sequence[Any], cost: Sequence[int] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Results in the order of the tasks; at most a few tasks' results are held."""
        return _mapped(fn, tasks, progress.phase("tasks", len(tasks)))


class _Source:
    """One pass over a relation; `error` is what it raised: the user's own error, with its type and traceback."""

    def __init__(self, rel: Batches) -> None:
        self._rel = rel
        self.error: Exception | None = None

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._rel.open()
        except Exception as error:
            self.error = error
            raise


def read_table(engine: LocalEngine, plan: ScanPlan) -> pa.Table:
    """All rows of a plan as one table. Everything is kept anyway, so prefetching is not limited."""
    return pa.Table.from_batches(list(engine.batches(plan, bytes_ahead=sys.maxsize)), plan.read.schema)


def _mapped(
    fn: Callable[[Any], Iterable[pa.RecordBatch]], tasks: Sequence[Any], done: progress.Count = progress.uncounted
) -> Iterator[pa.RecordBatch]:
    if len(tasks) <= 1:
        for task in tasks:
            yield from fn(task)
        return
    with ThreadPoolExecutor(_WORKERS, thread_name_prefix="boathouse") as pool:
        queue = iter(tasks)
        ahead: deque[Future[list[pa.RecordBatch]]] = deque(
            pool.submit(_collect, fn, task) for task in islice(queue, _WORKERS + 1)
        )
        try:
            while ahead:
                found = ahead.popleft().result()
                done(1)
                ahead.extend(pool.submit(_collect, fn, task) for task in islice(queue, 1))
                yield from found
        finally:
            for future in ahead:
                future.cancel()


def _collect(fn: Callable[[Any], Iterable[pa.RecordBatch]], task: Any) -> list[pa.RecordBatch]:
    return list(fn(task))


def _parses(text: Sql) -> bool:
    try:
        parse(text)
    except BoathouseError:
        return False
    return True
