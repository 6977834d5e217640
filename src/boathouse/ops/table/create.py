"""Create: a new table, empty or with its first rows, in one commit."""

from __future__ import annotations

from dataclasses import replace

from boathouse.bits import system
from boathouse.errors import AlreadyExistsError, BoathouseError, CommitConflictError, CommitUnknownError, StorageError
from boathouse.ops.handle import check_read_only
from boathouse.ops.options import WriteOptions
from boathouse.ops.outcomes import data_files
from boathouse.ops.result import WriteResult, metrics_of, result_of
from boathouse.ops.run import new_write_id
from boathouse.ops.write import Done, Planned, RowWork, Source, new_change, spread_of, writing
from boathouse.table.change import Change
from boathouse.table.commit import Committed, Unknown, commit
from boathouse.table.context import TableContext
from boathouse.table.edits import AddFiles, CreateTable, Edit
from boathouse.table.engine import Engine
from boathouse.table.format import TableFormat
from boathouse.table.location import Location
from boathouse.table.snapshot import Snapshot, Target


def first_rows(target: Target, source: Source, options: WriteOptions) -> RowWork:
    """The work that writes the first rows of a table."""
    context = writing(target, new_write_id(), options)
    return RowWork(source, context, spread_of(context))


def create(
    format: TableFormat,
    context: TableContext,
    table: CreateTable,
    options: WriteOptions = WriteOptions(),
    source: Source | None = None,
    engine: Engine | None = None,
    written: Done | None = None,
) -> tuple[Snapshot | None, WriteResult]:
    """Creates the table, with the rows of `source` if given (then its schema is `table.schema`).

    `written` are the files of these rows, if the host has written them. The snapshot is None if it could not be read
    after the commit. Raises AlreadyExistsError, UnsupportedTypeError and UnsupportedFeatureError before anything is
    written.
    """
    started = system.current().monotonic()
    try:
        check_read_only(str(context))
        if format.detect(context):
            raise already_there(context.location)
        target = format.create(context, table)
        done = _first(target, options, source, engine, written)
    except BaseException:
        if written is not None:
            written.discard()
        raise
    edits: tuple[Edit, ...] = (table,) if done is None else (table, AddFiles(data_files(done.outcomes)))
    outcomes = [] if done is None else [done.outcomes]
    change = new_change(target, new_write_id(), "create", edits, options)
    planned = Planned(replace(change, metrics=metrics_of("create", Planned(change), outcomes)))
    assert planned.change is not None
    outcome = commit_new(target, planned.change, done)
    result = result_of("create", planned, outcomes, outcome.commit)
    seconds = system.current().monotonic() - started
    return outcome.after, replace(result, seconds=seconds, retries=outcome.attempts - 1)


def _first(
    target: Target, options: WriteOptions, source: Source | None, engine: Engine | None, written: Done | None
) -> Done | None:
    if source is None:
        return None
    work = first_rows(target, source, options)
    if written is not None:
        if not written.serves(work):
            raise CommitConflictError(
                "the rows were written for another table", where=str(target.context), advice="run the write again"
            )
        return written
    assert engine is not None
    return Done(work.context, work.perform(engine), work.fixed)


def opened(format: TableFormat, context: TableContext) -> Snapshot:
    """A table that was just created. If it cannot be read now, the StorageError says that it exists."""
    try:
        return format.open(context)
    except Exception as error:
        raise StorageError(
            f"the table was created, but could not be read again: {error}",
            where=str(context),
            advice="open it once the store responds; do not create it again",
        ) from error


def commit_new(target: Target, change: Change, done: Done | None) -> Committed:
    """Commits a new table; the files of `done` are removed if nothing can have been committed. Raises
    AlreadyExistsError, CommitUnknownError."""
    try:
        outcome = commit(target, change)
    except BoathouseError:
        if done is not None:
            done.discard()
        raise
    if isinstance(outcome, Unknown):
        raise CommitUnknownError(
            "the table may or may not have been created: the store did not respond, or it could not be read after it",
            where=str(change.location),
            advice="try to open it once the store responds",
        )
    if not isinstance(outcome, Committed):
        if done is not None:
            done.discard()
        raise already_there(change.location)
    return outcome


def already_there(location: Location) -> AlreadyExistsError:
    return AlreadyExistsError(
        "a table already exists",
        where=str(location),
        advice="open it, or write with mode='append' or mode='overwrite'",
    )
