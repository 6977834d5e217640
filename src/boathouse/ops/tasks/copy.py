"""Copies the rows of units that are left when some of them are deleted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.conform import conform
from boathouse.arrow.prefetch import read_ahead
from boathouse.arrow.schema import to_arrow
from boathouse.bits.roaring import Bitmap, deserialize64
from boathouse.ops.tasks.change_files import DELETED, ChangeFiles
from boathouse.ops.tasks.partitioned import PartitionedWriter
from boathouse.ops.tasks.sink import pickle_error
from boathouse.registry import tasks
from boathouse.table.metadata_columns import POSITION
from boathouse.table.plan import bundles, deletes_of
from boathouse.table.tasks import ScanTask, WriteContext
from boathouse.table.units import plain_rows

AHEAD_BYTES: Final = 48 << 20
"""Arrow memory that is read while a row group is written."""
RUN_BYTES: Final = 16 << 20
"""Files of this size together are read as one piece of the work ahead."""


@dataclass(frozen=True, slots=True)
class CopyTask:
    """`scan` reads every column of some units; `vectors` are the positions to leave out of each, in their order
    (portable 64-bit roaring bitmaps; None: no row is left out)."""

    scan: ScanTask
    vectors: tuple[bytes | None, ...]
    context: WriteContext


def copy_rows(task: CopyTask) -> Iterator[pa.RecordBatch]:
    """OUTCOMES: the new data files, and the number of copied rows. Reads ahead of the writer, in a thread."""
    schema = tasks(task.context.format).outcomes_schema(task.context)
    writer = PartitionedWriter(task.context)
    copied = 0
    runs = bundles([size or 0 for size in task.scan.units.column("size").to_pylist()], RUN_BYTES)
    try:
        with closing(read_ahead(partial(_rows_of, task), runs, 1, AHEAD_BYTES)) as batches:
            for batch in batches:
                writer.write(batch)
                copied += batch.num_rows
        metrics = plain_rows(schema, [{"kind": "metrics", "copied": copied}])
        yield from pa.concat_tables([*writer.finish(), metrics]).to_batches()
    except Exception as error:
        writer.abort()
        failed = plain_rows(schema, [{"kind": "error", "error": pickle_error(error)}])
        yield from pa.concat_tables([*writer.closed(), failed]).to_batches()


def _rows_of(task: CopyTask, run: tuple[int, int]) -> Iterator[pa.RecordBatch]:
    """The rows to copy of the units from the first to the one before the last."""
    for i in range(*run):
        units, vector = task.scan.units.slice(i, 1), task.vectors[i]
        scan = replace(task.scan, units=units, deletes=deletes_of(units, task.scan.deletes))
        yield from kept_rows(scan, None if vector is None else deserialize64(vector), task.context)


def kept_rows(
    scan: ScanTask, gone: Bitmap | None, context: WriteContext, changes: ChangeFiles | None = None
) -> Iterator[pa.RecordBatch]:
    """The live rows whose positions are not in `gone`, as they are written; the others go to `changes` as deleted.

    By position, since an expression may not be deterministic.
    """
    lost = None if gone is None else pa.array(gone.positions())
    read = replace(scan.read, hidden=(*context.hidden, *(() if lost is None else (POSITION,))))
    wanted = to_arrow(context.rows)
    for batch in tasks(scan.read.format).read(replace(scan, read=read)):
        names = list(scan.read.output)
        leaves = None if lost is None else pc.is_in(batch.column(POSITION), lost)
        if changes is not None and changes.wanted and leaves is not None:
            changes.write(conform(batch.filter(leaves).select(names), context.schema), DELETED)
        rows = (batch if leaves is None else batch.filter(pc.invert(leaves))).select([*names, *context.hidden])
        # A change may add columns with its rows: copies are written under the same schema.
        yield rows if rows.schema.equals(wanted) else conform(rows, context.rows)
