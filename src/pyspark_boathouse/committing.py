"""The driver's side of a write: the work of the rows, which Spark's tasks do, and the commit of what they wrote."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from boathouse import registry
from boathouse.api.arguments import errors_at
from boathouse.api.write import Place, WriteCall
from boathouse.engines.local import LocalEngine
from boathouse.engines.spark.jobs import wait_for_tasks
from boathouse.ops.handle import Handle
from boathouse.ops.options import WriteOptions
from boathouse.ops.outcomes import collect_outcomes, sweep
from boathouse.ops.write import Done, Source
from boathouse.table.tasks import WriteContext
from boathouse.types import Schema
from pyspark_boathouse.options import WriteTarget
from pyspark_boathouse.stream_options import of_batch


class HostEngine(LocalEngine):
    """Everything but the rows, which are Spark's."""

    def __init__(self, replaces_partitions: bool = False) -> None:
        super().__init__()
        self._replaces_partitions = replaces_partitions

    @property
    def replaces_partitions(self) -> bool:
        """The session's setting, which Spark tells to tasks alone."""
        return self._replaces_partitions

    @property
    def timezone(self) -> str | None:
        """Spark does not pass its session's time zone to a Python source: a condition that needs one is refused."""
        return None


def _call(target: WriteTarget) -> WriteCall:
    return WriteCall(target.path, **target.arguments, options=WriteOptions(**target.options))


def begin(target: WriteTarget, schema: Schema) -> tuple[WriteContext | None, Place]:
    """The write context of the rows, None if there is nothing to write, and what is there, for the commit. Raises what
    the write raises before it writes anything."""
    with errors_at(target.path):
        call = _call(target)
        place = call.place()
        work = call.rows(HostEngine(), Source(schema), place)
    return None if work is None else work.context, place


def commit(
    target: WriteTarget,
    schema: Schema,
    context: WriteContext,
    batches: Sequence[pa.RecordBatch],
    dynamic: bool = False,
    place: Place | None = None,
) -> None:
    """Commits what tasks wrote; `dynamic`: their session lets overwrites replace single partitions. Raises their first
    error, and those of the write; then no file is left behind."""
    outcomes = collect_outcomes(iter(batches), registry.tasks(context.format).outcomes_schema(context), context)
    with errors_at(target.path):
        done = Done(context, outcomes, fixed=True)
        _call(target).run(HostEngine(dynamic), lambda: Source(schema), done, place)


def remove(context: WriteContext) -> None:
    """Removes the files of a write that will not be committed, after the tasks of its failed job have ended."""
    wait_for_tasks()
    sweep(context)


def commit_batch(
    target: WriteTarget,
    schema: Schema,
    context: WriteContext,
    query: str,
    batch: int,
    batches: Sequence[pa.RecordBatch],
    place: Place | None,
) -> None:
    """Commits a batch of a streaming query, unless it was committed before. An append without rows commits nothing to a
    table that is there."""
    told = (b.column(name) for b in batches for name in ("path", "error"))
    nothing = all(column.null_count == len(column) for column in told)
    if nothing and target.arguments["mode"] == "append" and isinstance(place, Handle):
        return
    commit(of_batch(target, query, batch), schema, context, batches, place=place)
