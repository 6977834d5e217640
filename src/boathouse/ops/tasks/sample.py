"""Samples some columns of units: rows at even distances, of which each stands for the same number of bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa

from boathouse.registry import tasks
from boathouse.table.plan import deletes_of
from boathouse.table.tasks import ScanTask

BYTES: Final = "boathouse:bytes"
"""The column of a sample with the bytes that a row stands for."""
_UNKNOWN_SIZE: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class SampleTask:
    """`scan` reads the columns of some units; a sample has a row for every `bytes_each`, and at least a few of each
    unit."""

    scan: ScanTask
    bytes_each: int
    at_least: int = 4


def sample_rows(task: SampleTask) -> Iterator[pa.RecordBatch]:
    """A batch of rows, with BYTES, for each unit that has any."""
    for i in range(task.scan.units.num_rows):
        units = task.scan.units.slice(i, 1)
        scan = replace(task.scan, units=units, deletes=deletes_of(units, task.scan.deletes))
        rows = pa.Table.from_batches(tasks(scan.read.format).read(scan), scan.read.schema)
        if not rows.num_rows:
            continue
        size = units.column("size")[0].as_py() or _UNKNOWN_SIZE
        count = min(rows.num_rows, max(task.at_least, -(-size // task.bytes_each)))
        at = ((np.arange(count) + 0.5) * rows.num_rows / count).astype(np.int64)
        sample = rows.take(pa.array(at)).append_column(BYTES, pa.array(np.full(count, size / count)))
        yield from sample.combine_chunks().to_batches()
