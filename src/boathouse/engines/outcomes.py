"""What became of a write: errors of tasks are raised in the user's process, with their types."""

from __future__ import annotations

import pickle
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.errors import BoathouseError
from boathouse.table.tasks import WriteContext
from boathouse.table.units import DATA_FILE


def settle(batches: Iterable[pa.RecordBatch], schema: pa.Schema, context: WriteContext) -> pa.Table:
    """OUTCOMES without error rows; on an error removes the files that were finished, and raises it."""
    outcomes = pa.Table.from_batches(list(batches), schema)
    errors = outcomes.column("error").drop_null()
    if len(errors) == 0:
        return outcomes
    discard(outcomes, context)
    raise pickle.loads(errors[0].as_py())


def discard(outcomes: pa.Table, context: WriteContext) -> None:
    """Removes data files that no commit refers to; one that cannot be removed is a harmless orphan."""
    files = outcomes.filter(pc.equal(outcomes.column("kind"), DATA_FILE))
    for path in files.column("path").to_pylist():
        try:
            context.files.delete(path)
        except (BoathouseError, OSError):
            continue
