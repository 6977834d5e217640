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
    ChangesPlan,
    CommitChanges,
    Compared,
    RecordedChanges,
    VersionPlan,
    check_readable,
    compare_commit,
    opened,
    plan_end,
    reads_of,
    recorded_changes,
)
from boathouse.ops.stream.offset import Position
from boathouse.ops.stream.unit_changes import Rows
from boathouse.ops.tasks.difference import Difference
from boathouse.table.features import CommitRecords
from boathouse.table.history import HistoryEntry
from boathouse.table.location import Version
from boathouse.table.plan import ScanPlan
from boathouse.table.snapshot import Snapshot
from boathouse.table.tally import Tally
from boathouse.table.tasks import ScanTask, version_words

StreamTask = ScanTask | Difference
BEFORE_THE_FIRST: Final = 0
"""The version of a table that has none, as an Iceberg table without any snapshot."""
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
class CommitRows:
    """What a commit added to a version, which has the schema and partitioning of `layout`; `removed`: it took rows
    away, and `changed`: it did not only remove whole units. `compared` if versions were."""

    layout: Snapshot
    rows: Rows
    removed: bool
    changed: bool
    compared: Compared | None = None


def commits_between(newest: Snapshot, at: Position) -> list[HistoryEntry] | None:
    """The commits after a position up to a version, oldest first, that of its own version among them if that was read
    in part; None if the table no longer has all of them."""
    partly = at.open and not at.snapshot
    if newest.version == at.version and not partly:
        return []
    found: list[HistoryEntry] = []
    for entry in newest.history.entries():
        if entry.metadata_only:
            continue
        if found and found[-1].parent != entry.version:
            break
        if entry.version != at.version or partly:
            found.append(entry)
        if entry.version == at.version or (entry.parent == at.version and not partly):
            return found[::-1]
    return found[::-1] if found and found[-1].parent is None and at.version == BEFORE_THE_FIRST else None


def rows_of(
    newest: Snapshot, entry: HistoryEntry, before: Snapshot | None = None, known: Sequence[VersionPlan] = ()
) -> CommitRows:
    """What a commit up to `newest` brought: from its own record, where the format has one and it says that; else by
    comparing the version with the one before, of which some plans may be `known`.

    `before` may be a version with the layout of the one before the commit, so that none is opened.
    """
    records = newest.offers(CommitRecords)
    if records is not None:
        layout = opened(newest, entry.version) if before is None else before
        found = records.commit_files(entry.version, layout)
        if found is not None and found.layout_changed and before is not None:
            layout = opened(newest, entry.version)
            found = records.commit_files(entry.version, layout)
        if found is not None:
            rows = Rows(found.units, found.deletes, version_words(entry.version, layout.context.location.uri))
            return CommitRows(layout, rows, found.removed, found.removed and rows.any)
    compared = compare_commit(newest, entry, known)
    lost, gained = compared.lost, compared.gained
    kept = set(compared.after.plan.units.column("path").to_pylist()) if lost.any else set()
    in_place = not kept.isdisjoint(lost.units.column("path").to_pylist())
    changed = lost.any and (gained.any or in_place)
    return CommitRows(compared.after.snapshot, gained, lost.any, changed, compared)


@dataclass(frozen=True, slots=True)
class Reading:
    """How a stream reads versions of one table: all with the schema of `base`."""

    base: Snapshot
    wanted: Wanted
    reads: ChangesPlan

    @staticmethod
    def of(base: Snapshot, wanted: Wanted) -> Reading:
        plan = plan_end(base) if wanted.changes else base.plan()
        return Reading(base, wanted, reads_of(base, wanted.columns, plan, next(plan.parts())))

    @property
    def output(self) -> tuple[str, ...]:
        """The columns of the rows."""
        return (*self.reads.output, *self.reads.read.hidden)

    def initial(self, newest: Snapshot, version: Version) -> Portion:
        """All rows of a version, as inserts if changes are wanted. Raises VersionNotFoundError."""
        snapshot = self.base if version == self.base.version else opened(newest, version)
        plan = snapshot.plan()
        if not _laid_out_alike(snapshot, self.base):
            check_readable(snapshot, self.base, _specs(plan.units))
        rows = _in_order(Rows.of(plan))
        if not self.wanted.changes:
            return self._added(rows)
        entry = HistoryEntry(version, None, snapshot.timestamp_ms, "")
        return Portion(((self.reads.scan(entry, INSERT, rows), None),))

    def commits(
        self, newest: Snapshot, entries: Sequence[HistoryEntry], layout: Snapshot | None = None
    ) -> Iterator[tuple[Portion, Snapshot | None]]:
        """What each commit gives, and the layout of its version if that is known; `layout` is that of the version
        before the first. They are looked at one by one.

        A commit after `base` must leave the schema as it is. Raises StreamError, and UnsupportedFeatureError for an
        older version that cannot be read so.
        """
        versions = [e.version for e in entries]
        later = versions.index(self.base.version) + 1 if self.base.version in versions else 0
        known: tuple[VersionPlan, ...] = ()
        for i, entry in enumerate(entries):
            if not entry.data_change:
                layout = None
                yield NOTHING, layout
                continue
            commit = rows_of(newest, entry, layout, known)
            self._check_layout(commit, entry, i >= later)
            if self.wanted.changes:
                portion, known = self._changes(newest, commit, entry, known)
            else:
                portion = NOTHING if commit.removed else self._added(commit.rows)
                known = () if commit.compared is None else commit.compared.plans
                if commit.removed:
                    self._check_removed(commit, entry)
            layout = commit.layout
            yield portion, layout

    def _added(self, rows: Rows) -> Portion:
        if not rows.any:
            return NOTHING
        rows = _in_order(rows)
        read = replace(self.reads.spec(self.reads.output, rows.keys), version=rows.version)
        return Portion(((ScanPlan.of(read, rows.units, rows.deletes, None, Tally()), None),))

    def _changes(
        self, newest: Snapshot, commit: CommitRows, entry: HistoryEntry, known: tuple[VersionPlan, ...]
    ) -> tuple[Portion, tuple[VersionPlan, ...]]:
        """The changes of a commit, and the plans that its comparison made."""
        found: CommitChanges | RecordedChanges | None
        compared = commit.compared
        if not commit.removed:  # what it added is what it changed: no version is compared
            found = CommitChanges(entry, _none(commit.rows), commit.rows)
        elif (found := recorded_changes(self.base, entry)) is None:
            compared = compared or compare_commit(newest, entry, known)
            found = compared.changes(self.base)
        portion = NOTHING if found is None else Portion(tuple(self.reads.scans(found)), False, self.output)
        return portion, () if compared is None else compared.plans

    def _check_layout(self, commit: CommitRows, entry: HistoryEntry, later: bool) -> None:
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

    def _check_removed(self, commit: CommitRows, entry: HistoryEntry) -> None:
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
