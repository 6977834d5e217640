"""Create: a new table, empty or with its first rows, in one commit."""

from __future__ import annotations

import pyarrow as pa

from boathouse.bits import entropy
from boathouse.errors import AlreadyExistsError, BoathouseError, CommitUnknownError, StorageError
from boathouse.ops.changes import sized
from boathouse.ops.handle import WriteOptions, check_read_only
from boathouse.ops.outcomes import data_files, discard, total
from boathouse.ops.result import FIGURES, WriteResult
from boathouse.ops.run import new_write_id
from boathouse.storage import Stores
from boathouse.table.change import AddFiles, Change, Committed, CreateTable, Edit, Unknown
from boathouse.table.commit import commit
from boathouse.table.engine import Engine, Rel, Spread
from boathouse.table.format import Snapshot, TableFormat
from boathouse.table.location import Location
from boathouse.table.tasks import WriteContext


def create(
    format: TableFormat,
    location: Location,
    stores: Stores,
    table: CreateTable,
    options: WriteOptions = WriteOptions(),
    data: Rel | None = None,
    engine: Engine | None = None,
) -> tuple[Snapshot | None, WriteResult]:
    """Creates the table, with the rows of `data` if given (then its schema is `table.schema`).

    The snapshot is None if it could not be read after the commit. Raises AlreadyExistsError,
    UnsupportedTypeError and UnsupportedFeatureError before anything is written.
    """
    check_read_only(str(location))
    started = entropy.current().monotonic()
    if format.detect(location, stores):
        raise already_there(location)
    schema, spec = format.create(location, table)
    write_id = new_write_id()
    edits: list[Edit] = [table]
    outcomes = None
    context = sized(format.write_context(location, stores, schema, spec, table.properties, write_id), options)
    if data is not None and engine is not None and not options.dry_run:
        outcomes = engine.sink(data, context, Spread("partition" if spec.fields else "none"))
        edits.append(AddFiles(data_files(outcomes)))
    added = None if outcomes is None else data_files(outcomes)
    rows, files = total(outcomes, "inserted"), 0 if added is None else added.num_rows
    change = Change(
        format=format.name,
        location=location,
        planned=None,
        write_id=write_id,
        operation="create",
        edits=tuple(edits),
        message=options.message,
        metadata=dict(options.metadata),
        txn=options.txn,
        metrics={} if outcomes is None else {**dict.fromkeys(FIGURES, 0), "rows_added": rows, "files_added": files},
    )
    outcome = _commit(format, change, stores, outcomes, context)
    result = WriteResult(
        "create",
        outcome.version,
        files_added=files,
        rows_added=rows,
        bytes_added=0 if added is None else total(added, "size"),
        seconds=entropy.current().monotonic() - started,
        retries=outcome.turns - 1,
        write_id=write_id,
    )
    return outcome.after, result


def opened(format: TableFormat, location: Location, stores: Stores) -> Snapshot:
    """A table that was just created. If it cannot be read now, the StorageError says that it exists."""
    try:
        return format.load(location, stores)
    except Exception as error:
        raise StorageError(
            f"the table was created, but could not be read again: {error}",
            where=str(location),
            advice="open it once the store responds; do not create it again",
        ) from error


def _commit(
    format: TableFormat, change: Change, stores: Stores, outcomes: pa.Table | None, context: WriteContext
) -> Committed:
    """Commits; data files are removed if nothing can have been committed. Raises AlreadyExistsError,
    CommitUnknownError."""
    try:
        outcome = commit(format, change, stores)
    except BoathouseError:
        if outcomes is not None:
            discard(outcomes, context)
        raise
    if isinstance(outcome, Unknown):
        raise CommitUnknownError(
            "the table may or may not have been created: the store did not respond",
            where=str(change.location),
            advice="try to open it once the store responds",
        )
    if not isinstance(outcome, Committed):
        if outcomes is not None:
            discard(outcomes, context)
        raise already_there(change.location)
    return outcome


def already_there(location: Location) -> AlreadyExistsError:
    return AlreadyExistsError(
        "a table already exists",
        where=str(location),
        advice="open it, or write with mode='append' or mode='overwrite'",
    )
