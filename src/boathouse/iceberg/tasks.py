"""The code that runs on executors: reading units of a scan, writing data files. It imports no object store
and no parser but those of the data files."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa

from boathouse.iceberg.data_files.reading import READERS
from boathouse.iceberg.data_files.writer import DataFiles, outcomes
from boathouse.iceberg.deletes.keys import load_keys
from boathouse.table.reading import read_units
from boathouse.table.tasks import FileWriters, ScanTask, WriteContext

__all__ = ["load_keys", "outcomes_schema", "read", "writers"]


def read(task: ScanTask) -> Iterator[pa.RecordBatch]:
    """The rows of the task's units in order, as `task.read.schema`; deleted rows are dropped, `where` is applied."""
    return read_units(task, READERS, partial(load_keys, task.read))


def writers(context: WriteContext) -> FileWriters:
    """New data files for this context."""
    return DataFiles(context)


def outcomes_schema(context: WriteContext) -> pa.Schema:
    """The schema of OUTCOMES for this context."""
    return outcomes(context)
