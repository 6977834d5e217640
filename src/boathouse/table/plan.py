"""A planned scan: which units are read, which are skipped by which filter, and how they are split into tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.filesystem import ChosenFiles
from boathouse.expr.tree import Expr
from boathouse.table.features.outline import Outline
from boathouse.table.tally import Tally
from boathouse.table.tasks import ReadSpec, ScanTask


@dataclass(frozen=True, slots=True)
class PlannedUnits:
    """Some units of a plan: FILES rows without statistics, and the DELETES rows that they refer to.

    `certain` says, if planning was asked to classify, whether all rows of each unit certainly satisfy the predicate.
    """

    units: pa.Table
    deletes: pa.Table
    certain: pa.ChunkedArray | None = None


HELD_FILES: Final = 50_000
"""The list of more files than these is not held for queries that may come later, where there is another way."""


@dataclass(frozen=True, slots=True, eq=False)
class Later:
    """How conditions that come after planning are answered.

    `units` gives FILES of the units of the plan that may match one, which is not bound and depends on no time zone;
    `identity` tells the plan from plans of other tables, versions and conditions; `outline` is what is known of all
    units, if anything is: then more than `held` units are not collected.
    """

    units: Callable[[Expr | None], Iterator[pa.RecordBatch]]
    identity: str
    outline: Outline | None = None
    held: int = HELD_FILES


class ScanPlan:
    """The result of pruning, which may be longer than memory: `parts` and `tasks` stream it, `units` collects it.

    The `first` part is planned at once, so that what prevents reading the table is raised by planning. `tally` is
    complete once the plan has been read to its end. `later` is set by whoever planned, if conditions come after that.
    """

    def __init__(
        self, read: ReadSpec, planned: Callable[[], Iterator[PlannedUnits]], where: Expr | None, tally: Tally
    ) -> None:
        """`planned` starts planning; it is called again for every pass but the first."""
        self.read = read
        self.where = where
        self.tally = tally
        self._planned = planned
        started = planned()
        first = list(islice(started, 1))
        self.later: Later | None = None
        self.first = first[0] if first else None
        self._begun: Iterator[PlannedUnits] | None = chain(first, started)
        self._whole: PlannedUnits | None = None
        self._check(first)

    @staticmethod
    def of(
        read: ReadSpec,
        units: pa.Table,
        deletes: pa.Table,
        where: Expr | None,
        tally: Tally,
        certain: pa.ChunkedArray | None = None,
    ) -> ScanPlan:
        """A plan of these units."""
        return ScanPlan(read, lambda: iter([PlannedUnits(units, deletes, certain)]), where, tally)

    def narrowed(self, units: pa.Table, read: ReadSpec) -> ScanPlan:
        """A plan of some of the units of this one, read in another way."""
        return ScanPlan.of(read, units, self.deletes, self.where, self.tally)

    def parts(self) -> Iterator[PlannedUnits]:
        """The units, in their order, a part at a time; nothing is kept."""
        if self._whole is not None:
            yield self._whole
            return
        found, self._begun = self._begun, None
        for part in self._planned() if found is None else found:
            self._check([part])
            yield part

    def within(self, limit: int) -> bool:
        """Whether there are at most so many units, which are kept then; of more, planning goes on when it is asked."""
        if self._whole is None:
            parts: list[PlannedUnits] = []
            started = self._planned() if self._begun is None else self._begun
            for part in started:
                parts.append(part)
                if sum(p.units.num_rows for p in parts) > limit:
                    self._begun = chain(parts, started)
                    return False
            self._check(parts)
            self._whole = _joined(parts)
        return self._whole.units.num_rows <= limit

    @property
    def whole(self) -> PlannedUnits:
        """All units."""
        if self._whole is None:
            self._whole = _joined(list(self.parts()))
        return self._whole

    @property
    def units(self) -> pa.Table:
        """FILES rows of all units, without statistics."""
        return self.whole.units

    @property
    def deletes(self) -> pa.Table:
        """DELETES rows of all units."""
        return self.whole.deletes

    @property
    def certain(self) -> pa.ChunkedArray | None:
        """Of each unit, whether all of its rows certainly satisfy the predicate; None if that was not asked for."""
        return self.whole.certain

    @property
    def rows(self) -> int | None:
        """The number of live rows in the units; None if some file does not record it."""
        rows, deleted = self.units.column("rows"), self.units.column("deleted")
        if rows.null_count or deleted.null_count:
            return None
        return (pc.sum(rows).as_py() or 0) - (pc.sum(deleted).as_py() or 0)

    @property
    def bytes(self) -> int:
        """The sizes of the units' files in the store, added up."""
        return pc.sum(self.units.column("size")).as_py() or 0

    def tasks(self, target_bytes: int = 128 << 20, at_least: int = 1) -> Iterator[ScanTask]:
        """Bundles adjacent units up to about `target_bytes`, in order; at least `at_least` tasks if there are enough
        units."""
        for part in self.parts():
            sizes = [size or 1 << 20 for size in part.units.column("size").to_pylist()]
            limit = min(target_bytes, max(1, sum(sizes) // max(1, at_least)))
            for start, end in bundles(sizes, limit):
                units = compact(part.units.slice(start, end - start))
                yield ScanTask(self.read, units, deletes_of(units, part.deletes))

    def _check(self, parts: Sequence[PlannedUnits]) -> None:
        """Files in another kind of store are refused here, whatever engine or process opens them later."""
        if isinstance(self.read.files, ChosenFiles):
            for part in parts:
                self.read.files.check(part.units.column("path"))
                self.read.files.check(part.deletes.column("path").drop_null())
                files = pc.list_flatten(part.units.column("parts"))
                if len(files):
                    self.read.files.check(pc.struct_field(files, "path"))


def _joined(parts: Sequence[PlannedUnits]) -> PlannedUnits:
    """One part; the numbers of its deletes are unique."""
    if len(parts) == 1:
        return parts[0]
    units, deletes = [], []
    count = 0
    for part in parts:
        units.append(renumbered(part.units, "deletes", count))
        deletes.append(renumbered(part.deletes, "delete", count))
        count += part.deletes.num_rows
    certain = [c for part in parts if part.certain is not None for c in part.certain.chunks]
    whole = pa.chunked_array(certain, pa.bool_()) if parts[0].certain is not None else None
    return PlannedUnits(pa.concat_tables(units), pa.concat_tables(deletes), whole)


def renumbered(table: pa.Table, column: str, by: int) -> pa.Table:
    """The numbers of deletes, in FILES a list of them, made larger by `by`."""
    if by == 0:
        return table
    at = table.schema.get_field_index(column)
    moved = [_moved(chunk, by) for chunk in table.column(at).chunks]
    return table.set_column(at, table.schema.field(at), pa.chunked_array(moved, table.schema.field(at).type))


def _moved(numbers: pa.Array, by: int) -> pa.Array:
    if not pa.types.is_list(numbers.type):
        return pc.add(numbers, pa.scalar(by, numbers.type))
    lists = [None if row is None else [n + by for n in row] for row in numbers.to_pylist()]
    return pa.array(lists, numbers.type)


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
