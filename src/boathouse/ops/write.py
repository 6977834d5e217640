"""The parts of every write: a plan, the work that gives OUTCOMES, and the change that they make.

`ops.run` goes through them in a loop. A host that writes the rows itself, as Spark's data source does, plans to learn
the write context, writes the rows, and passes their OUTCOMES to the same loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import pyarrow as pa

from boathouse import registry
from boathouse.arrow.conform import conform
from boathouse.arrow.schema import to_arrow
from boathouse.errors import ExpressionError, SchemaMismatchError, UnsupportedFeatureError
from boathouse.expr.parse import parse
from boathouse.expr.resolve import bind_predicate
from boathouse.ops.options import WriteOptions
from boathouse.ops.outcomes import collect_outcomes, discard
from boathouse.ops.schema.dependents import check_unnamed
from boathouse.table.change import Change, Operation, ReadSet
from boathouse.table.edits import Edit, SchemaEdit, SetTransaction, SetType
from boathouse.table.engine import Engine, Rel, Spread
from boathouse.table.features import Blobs
from boathouse.table.snapshot import Snapshot, Target
from boathouse.table.tasks import RowCondition, Rule, WriteContext
from boathouse.types import Schema
from boathouse.types.blobs import is_written


@dataclass(frozen=True, slots=True)
class Source:
    """Rows to write. `rel` None: the host writes them. `once`: they can be read a single time."""

    schema: Schema
    rel: Rel = None
    once: bool = False

    @staticmethod
    def of(engine: Engine, rel: Rel) -> Source:
        """The rows of a relation of this engine."""
        return Source(engine.schema(rel), rel, getattr(rel, "once", False) is True)


@dataclass(frozen=True, slots=True)
class RowWork:
    """Rows that go through the sink.

    `fixed` rows do not depend on the snapshot: files that were written for a lost attempt serve the next one, as long
    as they would be written the same way.
    """

    source: Source
    context: WriteContext
    spread: Spread
    fixed: bool = True

    def perform(self, engine: Engine) -> pa.Table:
        """Writes the rows; OUTCOMES."""
        return engine.sink(self.source.rel, self.context, self.spread)


@dataclass(frozen=True, slots=True)
class TaskWork:
    """A picklable function over tasks; every batch that it returns is OUTCOMES."""

    fn: Callable[[Any], Iterable[pa.RecordBatch]]
    tasks: Sequence[Any]
    cost: Sequence[int]
    context: WriteContext
    fixed: Literal[False] = False

    def perform(self, engine: Engine) -> pa.Table:
        """Runs the tasks; OUTCOMES."""
        schema = registry.tasks(self.context.format).outcomes_schema(self.context)
        return collect_outcomes(engine.map(self.fn, self.tasks, self.cost), schema, self.context)


Work = RowWork | TaskWork
LaterWork = Callable[[Sequence[pa.Table]], Work]
"""Work that depends on the OUTCOMES of the work before it."""


@dataclass(frozen=True, slots=True)
class Done:
    """Work that was performed: its files are removed if no commit refers to them."""

    context: WriteContext
    outcomes: pa.Table
    fixed: bool

    def discard(self) -> None:
        """Removes the data files; one that cannot be removed is a harmless orphan."""
        discard(self.outcomes, self.context)

    def serves(self, work: Work) -> bool:
        """Whether the files are those that the work would write."""
        return self.fixed and work.fixed and _layout(self.context) == _layout(work.context)


def _layout(context: WriteContext) -> tuple[object, ...]:
    """The properties of a context that decide whether files written under it are valid under another."""
    place = (context.format, context.content, context.schema, context.spec, context.directory, context.materialized)
    return (*place, context.rules, context.identities)


@dataclass(frozen=True, slots=True)
class Planned:
    """A change to commit, and metrics to report; `change` None: there is nothing to commit.

    `recount` gives the removed files and rows if the change follows another snapshot than the planned one. `then` is
    the rest of the operation, for another commit. `files_added`, `rows_added` and `bytes_added` are those that the
    work did not write, `bytes_removed` is of files that were rewritten.
    """

    change: Change | None
    files_removed: int = 0
    rows_removed: int = 0
    recount: Callable[[Snapshot], tuple[int, int]] | None = None
    then: Write | None = None
    files_added: int = 0
    rows_added: int = 0
    bytes_added: int = 0
    bytes_removed: int = 0


@dataclass(frozen=True, slots=True)
class WritePlan:
    """The work of a write, and `finish`, which makes a change of the OUTCOMES of each work item, in order.

    `dry` is the result of a dry run if that needs no work.
    """

    work: tuple[Work | LaterWork, ...]
    finish: Callable[[Sequence[pa.Table]], Planned]
    dry: Planned | None = None


@dataclass(frozen=True, slots=True)
class Start:
    """What a write is planned from: the newest snapshot, the engine, and the options of the call."""

    snapshot: Snapshot
    engine: Engine
    options: WriteOptions
    write_id: str
    zone: str | None

    @staticmethod
    def of(snapshot: Snapshot, engine: Engine, options: WriteOptions, write_id: str, zone: str | None) -> Start:
        """Planned from a version, whose rows have what is written of their blobs."""
        blobs = snapshot.offers(Blobs)
        return Start(snapshot if blobs is None else blobs.for_rows(), engine, options, write_id, zone)

    def evolved(self, edits: Sequence[SchemaEdit]) -> Snapshot:
        """The snapshot under its future schema.

        Raises UnsupportedFeatureError for edits that are not offered, InvalidArgumentError for another type of a column
        that a constraint names.
        """
        future = self.snapshot.evolve(edits) if edits else self.snapshot
        for edit in edits:
            if isinstance(edit, SetType):
                check_unnamed(self.snapshot, self.write_id, self.zone, edit.path, f"a {edit.type}")
        return future

    def context(
        self,
        edits: Sequence[SchemaEdit] = (),
        changes: bool = False,
        copies: bool = False,
        placed: bool = False,
    ) -> WriteContext:
        """How files for this table are written, under the schema after these edits.

        With `changes`, for an operation that rewrites files, so that they do not show which rows it changed: change
        files are written if the table wants them. With `changes` or `copies` rows carry what belongs to them, and
        with `placed` where they were.
        """
        context = writing(self.evolved(edits), self.write_id, self.options, self.zone)
        carried = context.carried if changes or copies else ()
        carried = (*carried, *context.placed) if placed else carried
        return replace(context, changes=context.changes if changes else None, carried=carried)

    def change(
        self,
        operation: Operation,
        edits: Sequence[Edit],
        reads: ReadSet = ReadSet(),
        parameters: Mapping[str, str] | None = None,
        data_change: bool = True,
    ) -> Change:
        """A change with the parts that every write has."""
        change = new_change(self.snapshot, self.write_id, operation, edits, self.options)
        return replace(
            change,
            planned=self.snapshot,
            ref=self.snapshot.ref,
            reads=reads,
            parameters=parameters or {},
            data_change=data_change,
        )


class Write(Protocol):
    """One write operation with its parameters."""

    @property
    def operation(self) -> Operation: ...

    def plan(self, start: Start) -> WritePlan:
        """Plans for the newest snapshot; called again if a concurrent commit requires it. Writes nothing."""


def writing(target: Target, write_id: str, options: WriteOptions, zone: str | None = None) -> WriteContext:
    """The write context with the file size that the call requests, and the table's constraints as rules.

    Raises UnsupportedFeatureError for a constraint that cannot be checked.
    """
    context = target.write_context(write_id)
    if options.target_file_bytes is not None:
        context = replace(context, target_bytes=options.target_file_bytes)
    if options.max_file_rows is not None:
        most = options.max_file_rows
        context = replace(context, target_rows=most if context.target_rows is None else min(most, context.target_rows))
    if options.compression is not None:
        if not context.takes_codec:
            raise UnsupportedFeatureError(
                f"compression={options.compression!r} is not offered for {context.format} tables",
                where=context.directory,
                advice="leave it out",
            )
        context = replace(context, codec=options.compression)
    if context.conditions:
        context = replace(context, rules=tuple(_rule(c, context, zone) for c in context.conditions))
    return context


def _rule(condition: RowCondition, context: WriteContext, zone: str | None) -> Rule:
    try:
        bound = bind_predicate(parse(condition.sql), context.schema, zone)
    except ExpressionError as error:
        raise UnsupportedFeatureError(
            f"the constraint `{condition.name}` ({condition.sql}) cannot be checked here: {error.message}",
            where=context.directory,
            advice="write the table with the engine that made the constraint",
        ) from error
    return Rule(condition.name, bound)


def new_change(
    target: Target, write_id: str, operation: Operation, edits: Sequence[Edit], options: WriteOptions
) -> Change:
    """A change that is not planned from a snapshot."""
    transactions = () if options.txn is None else (SetTransaction(*options.txn),)
    return Change(
        format=target.format,
        location=target.context.location,
        planned=None,
        write_id=write_id,
        operation=operation,
        edits=(*edits, *transactions),
        isolation=options.isolation,
        message=options.message,
        metadata=dict(options.metadata),
    )


def row_work(source: Source, context: WriteContext, fixed: bool = True) -> RowWork:
    """Work for these rows. Raises SchemaMismatchError if they cannot fit the table."""
    check_given(source.schema)
    empty = to_arrow(source.schema).empty_table()
    for column in context.identities:
        empty = empty.append_column(column.name, pa.array([], pa.int64()))
    conform(empty, context.schema, context.directory, context.absent)
    return RowWork(source, context, spread_of(context), fixed)


def check_given(schema: Schema) -> None:
    """Raises SchemaMismatchError for a column that says, as rows of the table do, from which file a blob is copied."""
    if own := [f.name for f in schema if is_written(f.type)]:
        raise SchemaMismatchError(f"`{own[0]}` is of the type of a table's own blobs", advice="give binary values")


def spread_of(context: WriteContext, moved: bool = True) -> Spread:
    """How the rows meet in workers: as the table says, else one partition's rows in one worker, and without partitions
    in ranges of the order, if there is one. Without `moved`, for rows that are not new, none move for the order: to
    find the ranges, they would be computed twice."""
    by = context.distribution or ("partition" if context.spec.fields else "range")
    if by == "range" and not (moved and context.order):
        by = "partition"
    return Spread(by if by != "partition" or context.spec.fields else "none")
