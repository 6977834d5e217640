"""What one version gives to a stream: the units that its commit added, or the changes of the commit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.errors import StreamError
from boathouse.ops.stream.changes import (
    INSERT,
    CommitChanges,
    Plans,
    RecordedChanges,
    check_readable,
    commit_changes,
    plan_end,
    reads_of,
)
from boathouse.ops.stream.unit_changes import Rows, compare
from boathouse.ops.tasks.difference import Difference
from boathouse.table.features import CommitRecords
from boathouse.table.location import Version
from boathouse.table.plan import ScanPlan
from boathouse.table.snapshot import HistoryEntry, Snapshot
from boathouse.table.tally import Tally
from boathouse.table.tasks import ScanTask, version_words

StreamTask = ScanTask | Difference
_UNKNOWN_BYTES: Final = 1 << 20
_TASK_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class Portion:
    """Scans, and of each, whose rows are subtracted from it. With `divisible`, there is at most one, and a batch may
    end after any of its units; if not, a batch has all or nothing."""

    scans: tuple[tuple[ScanPlan, ScanPlan | None], ...] = ()
    divisible: bool = True
    columns: tuple[str, ...] = ()

    @property
    def sizes(self) -> list[int]:
        """The bytes of each piece that a batch can end after, in their order."""
        sizes = [size or _UNKNOWN_BYTES for plan, _ in self.scans for size in plan.units.column("size").to_pylist()]
        return sizes if self.divisible or not sizes else [sum(sizes)]

    @property
    def files_in_piece(self) -> int:
        return 1 if self.divisible else sum(plan.units.num_rows for plan, _ in self.scans)

    def tasks(self, first: int, last: int) -> Iterator[StreamTask]:
        """The work of the pieces from `first` up to, but not, `last`."""
        if first == last:
            return
        for plan, without in self.scans:
            found = plan
            if self.divisible:
                found = plan.narrowed(plan.units.slice(first, last - first), plan.read)
            if without is None:
                yield from found.tasks(_TASK_BYTES)
            else:
                yield Difference(tuple(found.tasks(_TASK_BYTES)), tuple(without.tasks(_TASK_BYTES)), self.columns)


NOTHING: Final = Portion()


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a stream gives: of `columns`, the rows that commits add, or with `changes` all that they change.

    A commit that removes or changes rows ends a stream of rows, unless `ignore_deletes` (it only removed units) or
    `skip_changes` lets it pass; then none of its rows is given.
    """

    columns: tuple[str, ...] | None = None
    changes: bool = False
    ignore_deletes: bool = False
    skip_changes: bool = False


@dataclass(frozen=True, slots=True)
class _Commit:
    """What a commit added to a version under this layout; `changed`: it did not only remove whole units."""

    layout: Snapshot
    rows: Rows
    removed: bool
    changed: bool


class Portions:
    """The portions of the versions of one table, all read with the schema of `base`."""

    def __init__(self, base: Snapshot, wanted: Wanted) -> None:
        self.base, self.wanted = base, wanted
        plan = plan_end(base) if wanted.changes else base.plan()
        self._reads = reads_of(base, wanted.columns, plan, next(plan.parts()))
        self._plans = Plans(base)
        self._layout: tuple[Version, Snapshot] | None = None

    @property
    def output(self) -> tuple[str, ...]:
        """The columns of the rows."""
        return (*self._reads.output, *self._reads.read.hidden)

    def follow(self, newest: Snapshot) -> None:
        """Commits up to a newer version are asked for from now on."""
        self._plans.follow(newest)
        self._newest = newest

    def initial(self, version: Version) -> Portion:
        """All rows of a version, as inserts if changes are wanted. Raises VersionNotFoundError."""
        snapshot = self.base if version == self.base.version else self._plans.opened(version)
        plan = snapshot.plan()
        if not _laid_out_alike(snapshot, self.base):
            check_readable(snapshot, self.base, _specs(plan.units))
        rows = _in_order(Rows.of(plan))
        if not self.wanted.changes:
            return self._added(rows)
        entry = HistoryEntry(version, None, snapshot.timestamp_ms, "")
        return Portion(((self._reads.scan(entry, INSERT, rows), None),))

    def of(self, entry: HistoryEntry, later: bool) -> Portion:
        """What a commit gives. `later`: it followed `base`, so that its schema must still be that of the stream.

        Raises StreamError, and UnsupportedFeatureError for an older version that cannot be read so.
        """
        if not entry.data_change:
            return NOTHING
        commit = self._commit(entry)
        self._check_layout(commit, entry, later)
        if self.wanted.changes:
            return self._changes(commit, entry)
        if not commit.removed:
            return self._added(commit.rows)
        self._check_removed(commit, entry)
        return NOTHING

    def _added(self, rows: Rows) -> Portion:
        if not rows.any:
            return NOTHING
        rows = _in_order(rows)
        read = replace(self._reads.spec(self._reads.output, rows.keys), version=rows.version)
        return Portion(((ScanPlan.of(read, rows.units, rows.deletes, None, Tally()), None),))

    def _changes(self, commit: _Commit, entry: HistoryEntry) -> Portion:
        found: CommitChanges | RecordedChanges | None
        if commit.removed:
            found = commit_changes(self.base, entry, self._plans)
        else:  # what it added is what it changed: no version is compared
            found = CommitChanges(entry, _none(commit.rows), commit.rows)
        return NOTHING if found is None else Portion(tuple(self._reads.scans(found)), False, self.output)

    def _commit(self, entry: HistoryEntry) -> _Commit:
        """From the commit's own record where it has one; else by comparing the version with the one before."""
        version = entry.version
        known = self._layout is not None and self._layout[0] == entry.parent
        layout = self._layout[1] if self._layout is not None and known else self._plans.opened(version)
        records = self._newest.offers(CommitRecords)
        found = None if records is None else records.commit_files(version, layout)
        if records is not None and found is not None and found.relaid and known:
            layout = self._plans.opened(version)
            found = records.commit_files(version, layout)
        if found is None:
            return self._compared(entry)
        self._layout = version, layout
        where = version_words(version, layout.context.location.uri)
        rows = Rows(found.units, found.deletes, where)
        return _Commit(layout, rows, found.removed, found.removed and rows.any)

    def _compared(self, entry: HistoryEntry) -> _Commit:
        before = None if entry.parent is None else self._plans.at(entry.parent)
        after = self._plans.at(entry.version)
        lost, gained = compare(before, after)
        kept = set(after.units.column("path").to_pylist()) if lost.any else set()
        in_place = not kept.isdisjoint(lost.units.column("path").to_pylist())
        return _Commit(self._plans.snapshot(entry.version), gained, lost.any, lost.any and (gained.any or in_place))

    def _check_layout(self, commit: _Commit, entry: HistoryEntry, later: bool) -> None:
        if _laid_out_alike(commit.layout, self.base):
            return
        if not later:
            check_readable(commit.layout, self.base, _specs(commit.rows.units))
            return
        raise StreamError(
            f"version {entry.version} ({entry.operation}) changed the table: {_difference(self.base, commit.layout)}; "
            "the stream has read everything before it",
            where=str(self.base.context.location),
            advice="restart the query, with the same checkpoint: it then reads with the new schema",
        )

    def _check_removed(self, commit: _Commit, entry: HistoryEntry) -> None:
        wanted = self.wanted
        if wanted.skip_changes or (wanted.ignore_deletes and not commit.changed):
            return
        did = "changed or deleted rows" if commit.changed else "deleted rows"
        ways = "skipChangeCommits" if commit.changed else "ignoreDeletes"
        raise StreamError(
            f"version {entry.version} ({entry.operation}) {did} that the stream may have given",
            where=str(self.base.context.location),
            advice=f"set the option {ways} to true to pass over such commits, or readChangeFeed to true to get the "
            "changes as rows",
        )


def _none(rows: Rows) -> Rows:
    return replace(rows, units=rows.units.slice(0, 0), deletes=rows.deletes.slice(0, 0))


def _in_order(rows: Rows) -> Rows:
    """The units by their paths, an order that does not depend on which metadata files list them."""
    order = pc.sort_indices(rows.units.column("path"))
    if pc.all(pc.equal(order, pa.array(range(len(order)), pa.uint64()))).as_py():
        return rows
    return replace(rows, units=rows.units.take(order))


def _specs(units: pa.Table) -> set[int]:
    return set(units.column("spec").to_pylist())


def _laid_out_alike(one: Snapshot, other: Snapshot) -> bool:
    """Whether rows of both are read and typed in the same way."""
    return _columns(one) == _columns(other) and one.partitioning.current.fields == other.partitioning.current.fields


def _columns(snapshot: Snapshot) -> Sequence[object]:
    return [(f.name, f.type, f.nullable, f.id) for f in snapshot.schema]


def _difference(before: Snapshot, after: Snapshot) -> str:
    """In which columns two versions differ."""
    old, new = ({f.name: f for f in s.schema} for s in (before, after))
    parts = [f"column `{n}` is new" for n in new if n not in old]
    parts += [f"column `{n}` is gone" for n in old if n not in new]
    parts += [f"`{old[n]}` is now `{new[n]}`" for n in new if n in old and str(new[n]) != str(old[n])]
    if not parts and _columns(before) != _columns(after):
        parts = ["columns were replaced by others of the same name or order"]
    return ", ".join(parts) or "it is partitioned in another way"
