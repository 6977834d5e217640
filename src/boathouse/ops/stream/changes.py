"""Changes between versions: the rows that each commit recorded as changed; where it recorded none, those that it
inserted or deleted, from the files of neighbouring versions.

Rows that a commit only carried over to another file are an insert and a delete of the same row in one commit: they
cancel out. A commit that is known to change no row, such as a compaction, is not read at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from boathouse import registry
from boathouse.bits.names import Names
from boathouse.errors import UnsupportedFeatureError, VersionNotFoundError
from boathouse.expr.tree import Expr
from boathouse.expr.tree import columns as columns_of
from boathouse.ops.schema.evolve import wider
from boathouse.ops.stream.unit_changes import Rows, compare
from boathouse.table.engine import Engine, Rel
from boathouse.table.equality import key_name
from boathouse.table.features import ChangeFiles
from boathouse.table.history import HistoryEntry
from boathouse.table.location import At, Version
from boathouse.table.metadata_columns import CHANGE_TYPE, CHANGES, COMMIT_TIMESTAMP, COMMIT_VERSION
from boathouse.table.plan import PlannedUnits, ScanPlan
from boathouse.table.snapshot import MapFunction, Snapshot
from boathouse.table.tally import Tally
from boathouse.table.tasks import ReadColumn, ReadSpec
from boathouse.types import STRING, DataType, FixedSizeListType, ListType, MapType, StructType

DELETE, INSERT = "delete", "insert"
_SHOWN = 10


@dataclass(frozen=True, slots=True)
class CommitChanges:
    """The rows that one commit removed and added, before those that are in both cancel out."""

    entry: HistoryEntry
    lost: Rows
    gained: Rows


@dataclass(frozen=True, slots=True)
class RecordedChanges:
    """The rows that one commit recorded as changed: `units` are FILES with `_change_type` as a column."""

    entry: HistoryEntry
    units: pa.Table


@dataclass(frozen=True, slots=True)
class ChangesPlan:
    """The changes of some commits, oldest first. `read` reads all columns; `output` are those to return."""

    read: ReadSpec
    output: tuple[str, ...]
    empty: ScanPlan
    commits: tuple[CommitChanges | RecordedChanges, ...]

    def rows(self, engine: Engine) -> Rel:
        """The changed rows with the columns of CHANGES, commit by commit, deletes first. Of one commit at a time, rows
        to compare with are held."""
        parts = [part for commit in self.commits for part in self._of(commit, engine)]
        return engine.union(parts) if parts else engine.scan(self._nothing())

    def together(self, engine: Engine) -> Rel:
        """The same rows in no order, by the same few relations whatever the number of commits: rows of different
        commits differ in their version, so all commits are compared at once."""
        pairs = [pair for commit in self.commits for pair in self.scans(commit)]
        parts = []
        if plain := [plan for plan, without in pairs if without is None]:
            parts.append(engine.scan(*plain))
        if compared := [(plan, without) for plan, without in pairs if without is not None]:
            left, right = (engine.scan(*plans) for plans in zip(*compared))
            parts.append(engine.subtract(left, right, (*self.output, *CHANGES)))
        return engine.union(parts) if parts else engine.scan(self._nothing())

    def _of(self, commit: CommitChanges | RecordedChanges, engine: Engine) -> Iterator[Rel]:
        for plan, without in self.scans(commit):
            rows = engine.scan(plan)
            yield rows if without is None else engine.subtract(rows, engine.scan(without), (*self.output, *CHANGES))

    def scans(self, commit: CommitChanges | RecordedChanges) -> Iterator[tuple[ScanPlan, ScanPlan | None]]:
        """The scans that give the commit's changes, deletes first, and of each, whose rows are subtracted from it.

        Of a pair, both give all columns, of which `output` and those of CHANGES are left.
        """
        if isinstance(commit, RecordedChanges):
            yield self._recorded(commit), None
            return
        lost, gained = commit.lost, commit.gained
        if lost.any and gained.any:
            whole = tuple(c.name for c in self.read.columns if c.name in self.read.output)
            for kind, rows, others in ((DELETE, lost, gained), (INSERT, gained, lost)):
                left, right = (self.scan(commit.entry, kind, found, whole) for found in (rows, others))
                yield left, right
        else:
            for kind, rows in ((DELETE, lost), (INSERT, gained)):
                if rows.any:
                    yield self.scan(commit.entry, kind, rows), None

    def scan(self, entry: HistoryEntry, kind: str, rows: Rows, output: tuple[str, ...] | None = None) -> ScanPlan:
        """The rows of a commit as changes of this kind."""
        known = {
            CHANGE_TYPE: kind,
            COMMIT_VERSION: entry.version,
            COMMIT_TIMESTAMP: entry.timestamp_ms * 1000,
        }
        output = self.output if output is None else output
        read = replace(self.spec(output, rows.keys), constants=known, version=rows.version)
        return ScanPlan.of(read, rows.units, rows.deletes, read.where, Tally())

    def _recorded(self, commit: RecordedChanges) -> ScanPlan:
        entry = commit.entry
        read = self.spec(self.output)
        kind = ReadColumn(CHANGE_TYPE, STRING, False, (CHANGE_TYPE,))
        known = {COMMIT_VERSION: entry.version, COMMIT_TIMESTAMP: entry.timestamp_ms * 1000}
        read = replace(
            read,
            columns=(*read.columns, kind),
            output=(*self.output, CHANGE_TYPE),
            hidden=(COMMIT_VERSION, COMMIT_TIMESTAMP),
            constants=known,
        )
        return ScanPlan.of(read, commit.units, self.empty.deletes, read.where, Tally())

    def _nothing(self) -> ScanPlan:
        return self.empty.narrowed(self.empty.units, self.spec(self.output))

    def spec(self, output: tuple[str, ...], keys: Sequence[ReadColumn] = ()) -> ReadSpec:
        """How these columns are read, with `keys` also those by which equality deletes find their rows."""
        where = self.read.where
        needed = {*output, *(path[0] for path in (columns_of(where) if where is not None else ()))}
        ids = {k.field_id for k in keys}
        found = [c for c in self.read.columns if c.name in needed or c.field_id in ids - {None}]
        there = {c.field_id for c in found}
        taken = Names(c.name for c in self.read.columns)
        for key in keys:
            if key.field_id not in there:  # the newest version lacks it, and may have another column of its name
                found.append(replace(key, name=key_name(key.field_id, taken)))
        return replace(self.read, columns=tuple(found), output=output)


def plan_changes(
    end: Snapshot,
    start: Version,
    columns: Sequence[str] | None = None,
    where: Expr | None = None,
    map: MapFunction | None = None,
    appends_only: bool = False,
) -> ChangesPlan:
    """The changes of the commits from `start` to the snapshot `end`, both included; `where` is bound to its schema.
    With `appends_only`, those of commits that did nothing but insert rows.

    Every version is read with the schema of `end`: columns that it lacks are null. Raises VersionNotFoundError if one
    of the versions, or the one before `start`, is gone, and UnsupportedFeatureError if its files cannot be read so.
    """
    last = plan_end(end, map)
    whole = last.whole
    found = _changes(end, _entries(end, start), VersionPlan(end, last), map)
    commits = tuple(c for c in found if not appends_only or _inserts_only(c))
    return replace(reads_of(end, columns, last, whole, where), commits=commits)


def _changes(
    end: Snapshot, entries: Sequence[HistoryEntry], last: VersionPlan, map: MapFunction | None
) -> Iterator[CommitChanges | RecordedChanges]:
    """The changes of commits that changed rows, one after the other."""
    known: tuple[VersionPlan, ...] = (last,)
    for entry in entries:
        if not entry.data_change:
            continue
        found: CommitChanges | RecordedChanges | None = recorded_changes(end, entry)
        if found is None:
            compared = compare_commit(end, entry, known, map)
            known = (last, *compared.plans)
            found = compared.changes(end)
        if found is not None:
            yield found


def _inserts_only(commit: CommitChanges | RecordedChanges) -> bool:
    """Commits record their changes where they did more than that."""
    return isinstance(commit, CommitChanges) and not commit.lost.any


def plan_end(end: Snapshot, map: MapFunction | None = None) -> ScanPlan:
    """The plan of a snapshot with whose schema changes are read.

    Raises UnsupportedFeatureError if the table has a column with a name of changes.
    """
    taken = Names(end.schema.names)
    for name in CHANGES:
        if taken.at(name):
            raise UnsupportedFeatureError(
                f"the table has a column `{name}`, which is a name of changes",
                where=str(end.context.location),
                advice="rename the column",
            )
    return end.plan(None, None, CHANGES, map)


def reads_of(
    end: Snapshot, columns: Sequence[str] | None, plan: ScanPlan, part: PlannedUnits, where: Expr | None = None
) -> ChangesPlan:
    """How rows of any version are read with the schema of `end`, of which `plan` is a plan of all columns, and `part`
    some of its units; without any commit."""
    output = end.schema.names if columns is None else tuple(columns)
    empty = ScanPlan.of(plan.read, part.units.slice(0, 0), part.deletes.slice(0, 0), None, Tally())
    return ChangesPlan(replace(plan.read, where=where), tuple(output), empty, ())


def recorded_changes(end: Snapshot, entry: HistoryEntry) -> RecordedChanges | None:
    """The changes that a commit recorded, for reading with the schema of `end`; None if it recorded none."""
    recording = end.offers(ChangeFiles)
    recorded = None if recording is None else recording.change_files(entry.version)
    return None if recorded is None else RecordedChanges(entry, recorded)


@dataclass(frozen=True, slots=True)
class VersionPlan:
    """A plan of every column of a version."""

    snapshot: Snapshot
    plan: ScanPlan


@dataclass(frozen=True, slots=True)
class Compared:
    """A commit by comparing the version `before` it, None for the first, with the one `after` it: the rows that each
    has and the other has not."""

    entry: HistoryEntry
    before: VersionPlan | None
    after: VersionPlan
    lost: Rows
    gained: Rows

    @property
    def plans(self) -> tuple[VersionPlan, ...]:
        return (self.after,) if self.before is None else (self.before, self.after)

    def changes(self, end: Snapshot) -> CommitChanges | None:
        """The changes for reading with the schema of `end`; None if there are none. Raises UnsupportedFeatureError."""
        for version, rows in ((self.before, self.lost), (self.after, self.gained)):
            if rows.any and version is not None:
                check_readable(version.snapshot, end, set(rows.units.column("spec").to_pylist()))
        return CommitChanges(self.entry, self.lost, self.gained) if self.lost.any or self.gained.any else None


def compare_commit(
    end: Snapshot, entry: HistoryEntry, known: Sequence[VersionPlan] = (), map: MapFunction | None = None
) -> Compared:
    """Compares the versions around a commit up to `end`, of which `known` were planned. Raises VersionNotFoundError."""
    before = None if entry.parent is None else _planned(end, entry.parent, known, map)
    after = _planned(end, entry.version, known, map)
    lost, gained = compare(None if before is None else before.plan, after.plan)
    return Compared(entry, before, after, lost, gained)


def _planned(end: Snapshot, version: Version, known: Sequence[VersionPlan], map: MapFunction | None) -> VersionPlan:
    for one in known:
        if one.snapshot.version == version:
            return one
    snapshot = opened(end, version)
    return VersionPlan(snapshot, snapshot.plan((), None, (), map))


def opened(end: Snapshot, version: Version) -> Snapshot:
    """A version up to `end`, from which changes are read. Raises VersionNotFoundError."""
    if version == end.version:
        return end
    try:
        return registry.load(end.format).open(end.context, At(version=version))
    except VersionNotFoundError as error:
        raise VersionNotFoundError(
            f"version {version}, which the changes start from, is gone: {error.message}",
            where=error.where or str(end.context.location),
            advice=f"{retained_words(list(end.history.entries()))}: start after the first of them",
        ) from error


def _entries(end: Snapshot, start: Version) -> list[HistoryEntry]:
    """The commits from `start` on, oldest first; all of them if it is 0, the version before the first."""
    found: list[HistoryEntry] = []
    for entry in end.history.entries():
        if entry.metadata_only:
            continue
        found.append(entry)
        if entry.version == start:
            return found[::-1]
    if start == 0 and (not found or found[-1].parent is None):
        return found[::-1]
    raise VersionNotFoundError(
        f"version {start} is not among those up to version {end.version}",
        where=str(end.context.location),
        advice=retained_words(found),
    )


def retained_words(entries: Sequence[HistoryEntry]) -> str:
    """Which versions these are, newest first, for messages."""
    versions = [str(e.version) for e in reversed(entries) if not e.metadata_only]
    if not versions:
        return "no version with rows is retained"
    shown = versions if len(versions) <= _SHOWN else [*versions[:2], "...", *versions[-2:]]
    return f"the retained versions are {', '.join(shown)}"


def check_readable(snapshot: Snapshot, end: Snapshot, used: Iterable[int]) -> None:
    """Raises UnsupportedFeatureError if units of these partition specs cannot be read with the schema of `end`.

    Names and ids of columns stay together, and types only become wider: where a schema was replaced, most formats give
    ids and names to other columns. Where they do not, columns may be renamed.
    """
    if snapshot.version == end.version:
        return
    problem, lasting = None, end.capabilities.lasting_ids
    names, ids = {f.name: f for f in snapshot.schema}, {f.id: f for f in snapshot.schema if f.id is not None}
    for f in end.schema:
        same = ids.get(f.id) if f.id is not None else names.get(f.name)
        if same is not None and same.name != f.name and not lasting:
            problem = f"column `{f.name}` is `{same.name}` there"
        elif same is not None and not _fits(same.type, f.type, lasting):
            problem = f"column `{f.name}` is {same.type} there, and {f.type} in version {end.version}"
    for spec in used:
        now = {s.id: s.fields for s in end.partitioning.specs}
        then = {s.id: s.fields for s in snapshot.partitioning.specs}
        if now.get(spec) != then.get(spec):
            problem = "the table is partitioned in another way there"
    if problem is not None:
        raise UnsupportedFeatureError(
            f"version {snapshot.version} cannot be read with the schema of version {end.version}: {problem}",
            where=str(end.context.location),
            advice="ask for the changes before and after that one by one, with end=",
        )


def _fits(old: DataType, new: DataType, lasting: bool) -> bool:
    """Whether values of the old type are read as the new one; fields of structs are the same by their ids if these are
    lasting, else by their names."""
    match old, new:
        case StructType(a), StructType(b):
            by_id = lasting and all(f.id is not None for f in (*a, *b))
            then = {f.id if by_id else f.name: f.type for f in a}
            keys = [f.id if by_id else f.name for f in b]
            return all(k not in then or _fits(then[k], f.type, lasting) for k, f in zip(keys, b, strict=True))
        case (ListType(a), ListType(b)) | (FixedSizeListType(a, _), FixedSizeListType(b, _)):
            return _fits(a.type, b.type, lasting)
        case MapType(k, v), MapType(m, w):
            return _fits(k.type, m.type, lasting) and _fits(v.type, w.type, lasting)
    return old == new or wider(old, new)
