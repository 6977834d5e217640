"""The results of a write: errors of tasks are raised in the user's process, with their types."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.errors import BoathouseError
from boathouse.table.tasks import WriteContext
from boathouse.table.units import CHANGE_FILE, DATA_FILE, DELETE_FILE

_ENGINE: Final = b"boathouse.engine"


def signed(outcomes: pa.Table, engine: str) -> pa.Table:
    """The OUTCOMES of a sink with the name of the engine that wrote the rows."""
    return outcomes.replace_schema_metadata({**(outcomes.schema.metadata or {}), _ENGINE: engine.encode()})


def writer(outcomes: pa.Table) -> str | None:
    """The engine that wrote these rows; None for the work of tasks, and for the files of another program."""
    name = (outcomes.schema.metadata or {}).get(_ENGINE)
    return None if name is None else str(name.decode())


def collect_outcomes(batches: Iterable[pa.RecordBatch], schema: pa.Schema, context: WriteContext) -> pa.Table:
    """OUTCOMES without error rows; on an error removes the files that were finished, and raises it.

    If the work itself fails, its tasks have told nothing of what they wrote, and their files are found by their names.
    """
    try:
        outcomes = pa.Table.from_batches(list(batches), schema)
    except BaseException:
        sweep(context)
        raise
    errors = outcomes.column("error").drop_null()
    if len(errors) == 0:
        return outcomes
    discard(outcomes, context)
    raise pickle.loads(errors[0].as_py())


def data_files(outcomes: pa.Table) -> pa.Table:
    """The OUTCOMES rows of data files."""
    return _of_kind(outcomes, DATA_FILE)


def change_files(outcomes: pa.Table) -> pa.Table:
    """The OUTCOMES rows of files of changed rows."""
    return _of_kind(outcomes, CHANGE_FILE)


def deletions(outcomes: pa.Table) -> pa.Table:
    """The deleted rows of each unit, `unit`, `vector` and their number `rows`, of OUTCOMES."""
    found = _of_kind(outcomes.select(["kind", "unit", "vector", "rows"]), DELETE_FILE)
    return found.filter(pc.is_valid(found.column("unit")))


def delete_files(outcomes: pa.Table) -> pa.Table:
    """The OUTCOMES rows of files of deletes."""
    found = _of_kind(outcomes, DELETE_FILE)
    return found.filter(pc.is_valid(found.column("path")))


def _of_kind(outcomes: pa.Table, kind: str) -> pa.Table:
    """The rows of one kind; adjacent ones without a copy, since `stats` may be a struct of thousands of fields."""
    found = pc.equal(outcomes.column("kind"), kind)
    count = pc.sum(found).as_py() or 0
    first = found.index(True).as_py() if count else 0
    if count == (pc.sum(found.slice(first, count)).as_py() or 0):
        return outcomes.slice(first, count)
    return outcomes.filter(found)


def total(outcomes: pa.Table | None, column: str) -> int:
    """The sum of a column of OUTCOMES, nulls not counted."""
    return 0 if outcomes is None else pc.sum(outcomes.column(column)).as_py() or 0


def discard(outcomes: pa.Table, context: WriteContext) -> None:
    """Removes files that no commit refers to; one that cannot be removed is a harmless orphan."""
    files = outcomes.filter(pc.is_valid(outcomes.column("path"))).select(["path", "parts"])
    parts = (part["path"] for row in files.column("parts").to_pylist() for part in row or ())
    _remove({*files.column("path").to_pylist(), *parts}, context)


def sweep(context: WriteContext) -> None:
    """Removes every file that this write has made so far, by a listing of the table's folder.

    Only before its commit is tried: after that, the files may be the table's. A file that a lost task makes later, or
    that cannot be removed, is a harmless orphan.
    """
    with suppress(BoathouseError, OSError):
        _remove(context.files.named(context.directory, f"{context.ending}."), context)


def _remove(uris: Iterable[str], context: WriteContext) -> None:
    for uri in uris:
        with suppress(BoathouseError, OSError):
            for other in context.files.named(uri.rpartition(".")[0], "") if context.beside else ():
                context.files.delete(other)
        with suppress(BoathouseError, OSError):
            context.files.delete(uri)


def concat(*parts: pa.Table) -> pa.Table:
    """OUTCOMES of several steps of one operation."""
    return pa.concat_tables(parts)
