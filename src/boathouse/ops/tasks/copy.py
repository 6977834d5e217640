"""Copies the rows of units that are left when some of them are deleted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.conform import conform
from boathouse.arrow.schema import to_arrow
from boathouse.bits.roaring import Bitmap, deserialize64
from boathouse.ops.tasks.change_files import DELETED, ChangeFiles
from boathouse.ops.tasks.partitioned import PartitionedWriter
from boathouse.ops.tasks.sink import pickle_error
from boathouse.registry import tasks
from boathouse.table.metadata_columns import POSITION
from boathouse.table.plan import deletes_of
from boathouse.table.tasks import ScanTask, WriteContext


@dataclass(frozen=True, slots=True)
class CopyTask:
    """`scan` reads every column of some units; `vectors` are the positions to leave out of each, in their order
    (portable 64-bit roaring bitmaps; None: no row is left out)."""

    scan: ScanTask
    vectors: tuple[bytes | None, ...]
    context: WriteContext


def copy_rows(task: CopyTask) -> Iterator[pa.RecordBatch]:
    """OUTCOMES: the new data files, and the number of copied rows."""
    schema = tasks(task.context.format).outcomes_schema(task.context)
    writer = PartitionedWriter(task.context)
    copied = 0
    try:
        for i, vector in enumerate(task.vectors):
            units = task.scan.units.slice(i, 1)
            scan = replace(task.scan, units=units, deletes=deletes_of(units, task.scan.deletes))
            gone = None if vector is None else deserialize64(vector)
            copied += copy_unit(scan, gone, task.context, writer)
        metrics = pa.Table.from_pylist([{"kind": "metrics", "copied": copied}], schema)
        yield from pa.concat_tables([*writer.finish(), metrics]).to_batches()
    except Exception as error:
        writer.abort()
        failed = pa.Table.from_pylist([{"kind": "error", "error": pickle_error(error)}], schema)
        yield from pa.concat_tables([*writer.closed(), failed]).to_batches()


def copy_unit(
    scan: ScanTask,
    gone: Bitmap | None,
    context: WriteContext,
    writer: PartitionedWriter,
    changes: ChangeFiles | None = None,
) -> int:
    """Writes the live rows whose positions are not in `gone`, and counts them; the others go to `changes` as deleted.

    By position, since an expression may not be deterministic.
    """
    lost = None if gone is None else pa.array(gone.positions())
    wanted = to_arrow(context.schema)
    copied = 0
    for batch in tasks(scan.read.format).read(replace(scan, read=replace(scan.read, hidden=(POSITION,)))):
        names = list(scan.read.output)
        leaves = None if lost is None else pc.is_in(batch.column(POSITION), lost)
        if changes is not None and changes.wanted and leaves is not None:
            changes.write(conform(batch.filter(leaves).select(names), context.schema), DELETED)
        stay = batch if leaves is None else batch.filter(pc.invert(leaves))
        rows = stay.select(names)
        # A change may add columns with its rows: copies are written under the same schema.
        writer.write(rows if rows.schema.equals(wanted) else conform(rows, context.schema))
        copied += stay.num_rows
    return copied
