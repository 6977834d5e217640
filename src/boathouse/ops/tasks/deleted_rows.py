"""The positions of the deleted rows of units, whatever deletes them, as a task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from boathouse.bits.roaring import Bitmap, serialize64
from boathouse.registry import tasks
from boathouse.table.metadata_columns import DELETED, POSITION
from boathouse.table.plan import deletes_of
from boathouse.table.tasks import ScanTask, WriteContext
from boathouse.table.units import DELETE_FILE, plain_rows


@dataclass(frozen=True, slots=True)
class DeletedRowsTask:
    """`scan` reads no column but POSITION and DELETED, and the keys of equality deletes."""

    scan: ScanTask
    context: WriteContext


def find_deleted(task: DeletedRowsTask) -> Iterator[pa.RecordBatch]:
    """OUTCOMES: a row of kind delete for each unit with deleted rows (`vector` null: all are)."""
    module = tasks(task.context.format)
    rows: list[dict[str, Any]] = []
    for i in range(task.scan.units.num_rows):
        units = task.scan.units.slice(i, 1)
        scan = replace(task.scan, units=units, deletes=deletes_of(units, task.scan.deletes))
        found, total = [], 0
        for batch in module.read(scan):
            total += batch.num_rows
            found.append(batch.column(POSITION).filter(batch.column(DELETED)).to_numpy())
        positions = np.concatenate(found) if found else np.empty(0, np.int64)
        if len(positions):
            row: dict[str, Any] = {"kind": DELETE_FILE, "unit": units.column("unit")[0].as_py()}
            if len(positions) < total:
                row |= {"vector": serialize64(Bitmap.of(positions)), "rows": len(positions)}
            rows.append(row)
    yield from plain_rows(module.outcomes_schema(task.context), rows).to_batches()
