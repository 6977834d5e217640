"""The sink: the one function through which rows become data files, in process and on executors.

It does everything that is not relational: routing by `_action`, a bitmap per unit, double matches; PartitionedWriter
writes the files.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.conform import conform
from boathouse.bits.roaring import Bitmap, serialize64
from boathouse.compute.evaluate import mask
from boathouse.errors import ConstraintViolationError
from boathouse.ops.tasks.partitioned import GATHERED_BYTES, PartitionedWriter
from boathouse.registry import tasks
from boathouse.table.tasks import POSITION, UNIT, WriteContext
from boathouse.table.units import DELETE_FILE

ACTION = "_action"
"""insert, update (a new image) and copy go to data files; delete marks (`_unit`, `_pos`) as deleted."""


class DeletedRows:
    """The positions deleted in each unit; the same row twice is an error (two source rows matched it)."""

    def __init__(self) -> None:
        self._positions: dict[int, list[np.ndarray]] = {}

    def add(self, units: pa.Array, positions: pa.Array) -> None:
        unit = units.to_numpy(zero_copy_only=False)
        position = positions.to_numpy(zero_copy_only=False)
        for u in np.unique(unit):
            self._positions.setdefault(int(u), []).append(position[unit == u])

    def rows(self) -> Iterator[dict[str, object]]:
        for unit, found in sorted(self._positions.items()):
            positions = np.concatenate(found)
            bitmap = Bitmap.of(positions)
            if len(bitmap) != len(positions):
                raise ConstraintViolationError(
                    "more than one source row matched the same target row",
                    advice="make the source unique on the join keys, or narrow the clauses' conditions",
                )
            yield {"kind": DELETE_FILE, "unit": unit, "vector": serialize64(bitmap), "deleted": len(positions)}


def sink_batches(
    batches: Iterable[pa.RecordBatch], context: WriteContext, gathered_bytes: int = GATHERED_BYTES, threads: int = 1
) -> Iterator[pa.RecordBatch]:
    """Writes the rows and yields OUTCOMES. For `gathered_bytes` and `threads` see PartitionedWriter.

    A failure is returned as a row whose `error` is the pickled exception, after rows for the files that were already
    finished, so that the driver can remove them and raise.
    """
    schema = tasks(context.format).outcomes_schema(context)
    writer = PartitionedWriter(context, gathered_bytes, threads)
    deleted = DeletedRows()
    inserted = copied = 0
    try:
        for batch in batches:
            new, old = _route(batch, context, writer, deleted)
            inserted, copied = inserted + new, copied + old
        counts = _rows([{"kind": "metrics", "inserted": inserted, "copied": copied}], schema)
        outcomes = [_rows(list(deleted.rows()), schema), *writer.finish(), counts]
    except Exception as error:
        writer.abort()
        outcomes = [*writer.closed(), _rows([{"kind": "error", "error": pickle_error(error)}], schema)]
    except BaseException:  # an interrupt: the files will not be reported
        writer.abort(finished=True)
        raise
    yield from pa.concat_tables(outcomes).to_batches()


def _route(
    batch: pa.RecordBatch, context: WriteContext, writer: PartitionedWriter, deleted: DeletedRows
) -> tuple[int, int]:
    """Routes the rows by their action; returns the numbers of new rows and of copies of existing rows."""
    if ACTION not in batch.schema.names:
        rows = conform(batch, context.schema)
        _check_rows(rows, context)
        writer.write(rows)
        return batch.num_rows, 0
    action = batch.column(ACTION)
    gone = pc.equal(action, "delete")
    if pc.any(gone).as_py():
        rows = batch.select([UNIT, POSITION]).filter(gone)
        deleted.add(rows.column(0), rows.column(1))
    kept = batch.filter(pc.invert(gone))
    columns = [n for n in batch.schema.names if n not in (ACTION, UNIT, POSITION)]
    writer.write(conform(kept.select(columns), context.schema))
    copies = pc.sum(pc.equal(action, "copy")).as_py() or 0
    return kept.num_rows - copies, copies


def _check_rows(rows: pa.RecordBatch, context: WriteContext) -> None:
    """Raises ConstraintViolationError with the first row for which `must_hold` is not true."""
    if context.must_hold is None:
        return
    bad = pc.invert(mask(context.must_hold, rows))
    if pc.any(bad).as_py():
        first = rows.filter(bad).slice(0, 1).to_pylist()[0]
        raise ConstraintViolationError(
            f"a row does not satisfy the overwrite condition ({context.must_hold}): {first}",
            where=context.directory,
            advice="widen the condition, or filter the data",
        )


def _rows(rows: list[dict[str, object]], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=schema)


def pickle_error(error: BaseException) -> bytes:
    """The exception as bytes; one that cannot be pickled becomes a RuntimeError with its message."""
    try:
        data = pickle.dumps(error)
        pickle.loads(data)
        return data
    except Exception:
        return pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))
