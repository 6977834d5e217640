"""A scan planned: which units are read, which are skipped and by which test, and how they split into tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.filesystem import ChosenFiles
from boathouse.expr.tree import Expr
from boathouse.table.tasks import ReadSpec, ScanTask

if TYPE_CHECKING:
    from boathouse.table.format import Snapshot


@dataclass(slots=True)
class Tally:
    """Counts, while files are planned, what was skipped and by which test (`partition p = 3`, `bounds x > 5`)."""

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
    """The survivors of pruning. `units` are FILES rows without statistics; `deletes` holds inline vectors only."""

    snapshot: Snapshot
    read: ReadSpec
    units: pa.Table
    deletes: pa.Table
    where: Expr | None
    tally: Tally

    def __post_init__(self) -> None:
        """Whatever engine opens the files, and in which process: those of another kind of store are refused here."""
        if isinstance(self.read.files, ChosenFiles):
            self.read.files.check(self.units.column("path"))
            parts = pc.list_flatten(self.units.column("parts"))
            if len(parts):
                self.read.files.check(pc.struct_field(parts, "path"))

    @property
    def rows(self) -> int | None:
        """Rows that the units hold, deleted ones not counted; None if some file does not say."""
        rows, deleted = self.units.column("rows"), self.units.column("deleted")
        if rows.null_count or deleted.null_count:
            return None
        return (pc.sum(rows).as_py() or 0) - (pc.sum(deleted).as_py() or 0)

    @property
    def bytes(self) -> int:
        return pc.sum(self.units.column("size")).as_py() or 0

    def tasks(self, target_bytes: int = 128 << 20, at_least: int = 1) -> list[ScanTask]:
        """Bundles neighbours up to about `target_bytes`, in order; `at_least` tasks if there are so many units."""
        count = self.units.num_rows
        if count == 0:
            return []
        sizes = [size or 1 << 20 for size in self.units.column("size").to_pylist()]
        limit = min(target_bytes, max(1, sum(sizes) // max(1, at_least)))
        return [self.task(range(a, b)) for a, b in bundles(sizes, limit)]

    def task(self, rows: range) -> ScanTask:
        """The units of these rows of `units` as one task, carrying only the vectors that they need."""
        units = compact(self.units.slice(rows.start, len(rows)))
        return ScanTask(self.read, units, deletes_of(units, self.deletes))


def deletes_of(units: pa.Table, deletes: pa.Table) -> pa.Table:
    """The DELETES rows that the units name."""
    wanted = pc.unique(pc.list_flatten(units.column("deletes")))
    if len(wanted) == 0:
        return deletes.slice(0, 0)
    return compact(deletes.filter(pc.is_in(deletes.column("delete"), wanted)))


def compact(table: pa.Table) -> pa.Table:
    """A copy that owns only its own rows: a slice would carry its parent's buffers when pickled."""
    return table.take(pa.array(range(table.num_rows), pa.int64()))


def bundles(sizes: Iterable[int], limit: int) -> Iterator[tuple[int, int]]:
    """Half-open ranges of neighbours whose sizes add up to at most `limit`, or of one that is larger alone."""
    start = total = 0
    end = 0
    for end, size in enumerate(sizes, 1):
        if total and total + size > limit:
            yield start, end - 1
            start, total = end - 1, 0
        total += size
    if end > start:
        yield start, end
