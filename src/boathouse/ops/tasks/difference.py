"""Rows of some units without those of others, which are equal as whole rows, as a task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from boathouse.arrow.rows import subtract
from boathouse.registry import tasks
from boathouse.table.tasks import ScanTask


@dataclass(frozen=True, slots=True)
class Difference:
    """The rows of `left` but for as many equal ones as `right` has; of them `columns`.

    Neither is empty; all are read into the same columns. Holds the rows of `right` in memory.
    """

    left: tuple[ScanTask, ...]
    right: tuple[ScanTask, ...]
    columns: tuple[str, ...]


def difference_rows(task: Difference) -> Iterator[pa.RecordBatch]:
    """The rows of the task."""
    read = tasks(task.left[0].read.format).read
    right = pa.Table.from_batches([b for t in task.right for b in read(t)], task.right[0].read.schema)
    left = (b for t in task.left for b in read(t))
    yield from subtract(left, right, task.columns)
