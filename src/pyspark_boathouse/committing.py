"""The driver's side of a write: the write context of the rows, and the commit of what tasks wrote.

The operation runs twice: once up to its sink, to get the write context, and once after the tasks, with a sink that
returns what they wrote. So modes, checks and conflicts are those of `boathouse.write`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

import boathouse as bh
from boathouse import registry
from boathouse.engines.local import LocalEngine
from boathouse.errors import CommitConflictError
from boathouse.ops.outcomes import discard, settle
from boathouse.table.engine import Spread
from boathouse.table.tasks import WriteContext
from boathouse.types import Schema
from pyspark_boathouse.options import WriteTarget


@dataclass
class Rows:
    """Data with its own engine (see `api.engines.engine_for`)."""

    schema: Schema
    boathouse_engine: HandOver | Learn


class _Captured(Exception):
    def __init__(self, context: WriteContext) -> None:
        self.context = context


class _Engine(LocalEngine):
    """Has the schema of the rows, but not the rows."""

    @property
    def timezone(self) -> str | None:
        """Spark does not pass its session's time zone to a Python source: a condition that needs one is refused."""
        return None

    def source(self, data: Any) -> Any:
        return data

    def pin(self, rel: Any) -> Any:
        return rel

    def schema(self, rel: Any) -> Schema:
        found: Schema = rel.schema
        return found


class Learn(_Engine):
    """Stops an operation where it would write, and keeps the write context."""

    def sink(self, rel: Any, context: WriteContext, spread: Spread) -> pa.Table:
        raise _Captured(context)


class HandOver(_Engine):
    """Passes the files that were written for it to an operation, once."""

    def __init__(self, context: WriteContext, outcomes: pa.Table) -> None:
        self.context = context
        self.outcomes = outcomes
        self.taken = False

    def sink(self, rel: Any, context: WriteContext, spread: Spread) -> pa.Table:
        if self.taken or _layout(context) != _layout(self.context):
            raise CommitConflictError(
                "the table changed while the rows were written, and they would have to be written again",
                where=context.directory,
                advice="run the write again",
            )
        self.taken = True
        return self.outcomes


def _layout(context: WriteContext) -> tuple[object, ...]:
    """The properties of a context that decide whether files written under it are valid under another."""
    return (context.format, context.schema, context.spec, context.directory, context.must_hold)


def learn(target: WriteTarget, schema: Schema) -> WriteContext | None:
    """The write context of the operation. Raises what the operation raises before it writes anything."""
    try:
        bh.write(Rows(schema, Learn()), target.path, **target.arguments)
    except _Captured as found:
        return found.context
    return None


def commit(target: WriteTarget, schema: Schema, context: WriteContext, batches: Sequence[pa.RecordBatch]) -> None:
    """Commits what tasks wrote. Raises their first error, and those of the operation; then no file is left behind."""
    outcomes = settle(iter(batches), registry.tasks(context.format).outcomes_schema(context), context)
    engine = HandOver(context, outcomes)
    try:
        bh.write(Rows(schema, engine), target.path, **target.arguments)
    except Exception:
        if not engine.taken:
            discard(outcomes, context)
        raise


def remove(context: WriteContext, batches: Sequence[pa.RecordBatch]) -> None:
    """Removes files that no commit will refer to."""
    if batches:
        discard(pa.Table.from_batches(batches), context)
