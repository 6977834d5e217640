"""A planned scan: which units are read, which are skipped by which filter, and how they are split into tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.filesystem import ChosenFiles
from boathouse.expr.tree import Expr
from boathouse.table.tasks import ReadSpec, ScanTask


@dataclass(slots=True)
class Tally:
    """Counts, during planning, the units skipped by each filter (`partition p = 3`, `bounds x > 5`)."""

    skipped: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def skip(self, test: str, units: int) -> None:
        if units:
            self.skipped[test] = self.skipped.get(test, 0) + units

    @property
    def total(self) -> int:
        return sum(self.skipped.values())


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """The result of pruning: `units` are FILES rows without statistics, `deletes` the DELETES rows that they refer to.

    `certain` holds, if planning was asked to classify, whether all rows of each unit certainly satisfy `where`.
    """

    read: ReadSpec
    units: pa.Table
    deletes: pa.Table
    where: Expr | None
    tally: Tally
    certain: pa.ChunkedArray | None = None

    def __post_init__(self) -> None:
        """Files in another kind of store are refused here, whatever engine or process opens them later."""
        if isinstance(self.read.files, ChosenFiles):
            self.read.files.check(self.units.column("path"))
            parts = pc.list_flatten(self.units.column("parts"))
            if len(parts):
                self.read.files.check(pc.struct_field(parts, "path"))

    @property
    def rows(self) -> int | None:
        """The number of live rows in the units; None if some file does not record it."""
        rows, deleted = self.units.column("rows"), self.units.column("deleted")
        if rows.null_count or deleted.null_count:
            return None
        return (pc.sum(rows).as_py() or 0) - (pc.sum(deleted).as_py() or 0)

    @property
    def bytes(self) -> int:
        return pc.sum(self.units.column("size")).as_py() or 0

    def tasks(self, target_bytes: int = 128 << 20, at_least: int = 1) -> list[ScanTask]:
        """Bundles adjacent units up to about `target_bytes`, in order; at least `at_least` tasks if there are enough
        units."""
        count = self.units.num_rows
        if count == 0:
            return []
        sizes = [size or 1 << 20 for size in self.units.column("size").to_pylist()]
        limit = min(target_bytes, max(1, sum(sizes) // max(1, at_least)))
        return [self.task(range(a, b)) for a, b in bundles(sizes, limit)]

    def task(self, rows: range) -> ScanTask:
        """The units of these rows of `units` as one task, with only the deletion vectors that they need."""
        units = compact(self.units.slice(rows.start, len(rows)))
        return ScanTask(self.read, units, deletes_of(units, self.deletes))


def deletes_of(units: pa.Table, deletes: pa.Table) -> pa.Table:
    """The DELETES rows that the units refer to."""
    wanted = pc.unique(pc.list_flatten(units.column("deletes")))
    if len(wanted) == 0:
        return deletes.slice(0, 0)
    return compact(deletes.filter(pc.is_in(deletes.column("delete"), wanted)))


def compact(table: pa.Table) -> pa.Table:
    """A copy with only its own rows: a slice would include its parent's buffers when pickled."""
    return table.take(pa.array(range(table.num_rows), pa.int64()))


def bundles(sizes: Iterable[int], limit: int) -> Iterator[tuple[int, int]]:
    """Half-open ranges of adjacent items whose sizes add up to at most `limit`, or of a single larger item."""
    start = total = 0
    end = 0
    for end, size in enumerate(sizes, 1):
        if total and total + size > limit:
            yield start, end - 1
            start, total = end - 1, 0
        total += size
    if end > start:
        yield start, end
