"""Deletes rows of a bundle of units: finds them, and rewrites the remaining rows if the format needs that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from boathouse.bits.roaring import Bitmap, serialize64
from boathouse.compute.evaluate import mask
from boathouse.expr.tree import Expr, columns
from boathouse.ops.tasks.change_files import ChangeFiles
from boathouse.ops.tasks.copy import kept_rows
from boathouse.ops.tasks.partitioned import PartitionedWriter
from boathouse.ops.tasks.sink import pickle_error
from boathouse.registry import tasks
from boathouse.table.metadata_columns import POSITION
from boathouse.table.plan import deletes_of
from boathouse.table.tasks import ReadSpec, ScanTask, WriteContext
from boathouse.table.units import DELETE_FILE, plain_rows


@dataclass(frozen=True, slots=True)
class DeleteTask:
    """`scan` reads every column of some units, with metadata columns, without a predicate.

    `rewrite` writes the remaining rows (copy-on-write); otherwise positions are enough (deletion vectors).
    """

    scan: ScanTask
    where: Expr
    context: WriteContext
    rewrite: bool


def delete_rows(task: DeleteTask) -> Iterator[pa.RecordBatch]:
    """OUTCOMES: a row of kind delete for each unit that lost rows (`vector` null: all of them), data files, and files
    of the deleted rows if the table wants them."""
    schema = tasks(task.context.format).outcomes_schema(task.context)
    writer, changes = PartitionedWriter(task.context), ChangeFiles(task.context)
    found: list[dict[str, object]] = []
    copied = 0
    try:
        for i in range(task.scan.units.num_rows):
            row, kept = _unit(task, i, writer, changes)
            copied += kept
            if row is not None:
                found.append(row)
        found.append({"kind": "metrics", "copied": copied})
        yield from pa.concat_tables([*writer.finish(), *changes.finish(schema), plain_rows(schema, found)]).to_batches()
    except Exception as error:
        writer.abort()
        changes.abort()
        failed = plain_rows(schema, [{"kind": "error", "error": pickle_error(error)}])
        yield from pa.concat_tables([*writer.closed(), *changes.closed(schema), failed]).to_batches()


def _unit(
    task: DeleteTask, i: int, writer: PartitionedWriter, changes: ChangeFiles
) -> tuple[dict[str, object] | None, int]:
    """The deleted rows of one unit, and how many of its rows were copied."""
    units = task.scan.units.slice(i, 1)
    deletes = deletes_of(units, task.scan.deletes)
    positions, live = _matches(task, units, deletes)
    if len(positions) == 0:
        return None, 0
    row = {"kind": DELETE_FILE, "unit": units.column("unit")[0].as_py(), "deleted": len(positions)}
    if len(positions) == live and not changes.wanted:
        return {**row, "vector": None}, 0
    vector = Bitmap.of(positions)
    kept = 0
    if task.rewrite:
        scan = replace(task.scan, units=units, deletes=deletes)
        for rows in kept_rows(scan, vector, task.context, changes):
            writer.write(rows)
            kept += rows.num_rows
    return {**row, "vector": None if task.rewrite else serialize64(vector)}, kept


def _matches(task: DeleteTask, units: pa.Table, deletes: pa.Table) -> tuple[np.ndarray, int]:
    """Positions of live rows for which the predicate is true, and the number of live rows."""
    wanted = {path[0] for path in columns(task.where)}
    keys = {id for found in deletes.column("keys").to_pylist() for id in found or ()}
    read = replace(
        task.scan.read,
        columns=tuple(c for c in task.scan.read.columns if c.name in wanted or c.field_id in keys),
        output=tuple(n for n in task.scan.read.output if n in wanted),
        hidden=(POSITION,),
    )
    hits: list[np.ndarray] = []
    live = 0
    for batch in _read(read, units, deletes):
        live += batch.num_rows
        hit = batch.column(POSITION).filter(mask(task.where, batch))
        hits.append(hit.to_numpy(zero_copy_only=False))
    return (np.concatenate(hits) if hits else np.empty(0, np.int64)), live


def _read(read: ReadSpec, units: pa.Table, deletes: pa.Table) -> Iterator[pa.RecordBatch]:
    return tasks(read.format).read(ScanTask(read, units, deletes))
