"""Statistics of columns that are computed when somebody asks for them, and kept for planners of queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

if TYPE_CHECKING:
    from boathouse.table.edits import SetColumnStatistics, SetPartitionStatistics
    from boathouse.table.tasks import ScanTask

Path = tuple[str, ...]


class ColumnStatistics(Protocol):
    """Of a snapshot."""

    def countable(self, names: Sequence[str] | None) -> tuple[Path, ...]:
        """The columns and fields of structs of these names; None: every column whose distinct values can be counted.
        Raises ColumnNotFoundError, UnsupportedTypeError, InvalidArgumentError without any."""

    def task(self, paths: Sequence[Path]) -> Callable[[ScanTask], Iterator[pa.RecordBatch]]:
        """A picklable function that counts the values of the units of a task."""

    def edit(self, paths: Sequence[Path], counted: Iterable[pa.RecordBatch]) -> SetColumnStatistics:
        """The edit that records what all tasks counted."""

    def partitions(self) -> SetPartitionStatistics:
        """The edit that records the sums of each partition's files. Raises InvalidArgumentError for a table that has no
        partitions, or no version."""

    def recorded(self) -> pa.Table:
        """What is recorded of this version: a row a column, `column` (string), `distinct` (int64)."""

    @property
    def file(self) -> str | None:
        """The URI of the file where it is recorded."""
