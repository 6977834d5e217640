"""The positions of the deleted rows of units, whatever deletes them, as a task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.bits.roaring import Bitmap, serialize64
from boathouse.registry import tasks
from boathouse.table.metadata_columns import DELETED, POSITION, UNIT
from boathouse.table.tasks import ScanTask, WriteContext
from boathouse.table.units import DELETE_FILE, plain_rows


@dataclass(frozen=True, slots=True)
class DeletedRowsTask:
    """`scan` reads no column but UNIT, POSITION and DELETED, and the keys of equality deletes."""

    scan: ScanTask
    context: WriteContext


def find_deleted(task: DeletedRowsTask) -> Iterator[pa.RecordBatch]:
    """OUTCOMES: a row of kind delete for each unit with deleted rows (`vector` null: all are). The units are read
    together: what they share of deletes by keys is loaded once."""
    module = tasks(task.context.format)
    found: dict[int, list[np.ndarray]] = {}
    totals: dict[int, int] = {}
    for batch in module.read(task.scan):
        units, positions, deleted = (batch.column(name) for name in (UNIT, POSITION, DELETED))
        for counted in pc.value_counts(units).to_pylist():
            unit = counted["values"]
            totals[unit] = totals.get(unit, 0) + counted["counts"]
            mine = deleted if counted["counts"] == batch.num_rows else pc.and_(deleted, pc.equal(units, unit))
            found.setdefault(unit, []).append(positions.filter(mine).to_numpy())
    rows: list[dict[str, Any]] = []
    for unit, parts in found.items():
        gone = np.concatenate(parts)
        if len(gone):
            row: dict[str, Any] = {"kind": DELETE_FILE, "unit": unit}
            if len(gone) < totals[unit]:
                row |= {"vector": serialize64(Bitmap.of(gone)), "rows": len(gone)}
            rows.append(row)
    yield from plain_rows(module.outcomes_schema(task.context), rows).to_batches()
