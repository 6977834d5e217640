"""One version of a table: protocol and metadata are read when it is opened, files on request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

import pyarrow as pa

from boathouse.delta.actions import Metadata, Protocol
from boathouse.delta.checkpoint.reader import OpenCheckpoint, open_checkpoint
from boathouse.delta.features.support import check_read, maps_columns, writer_features
from boathouse.delta.features.type_changes import check_changes
from boathouse.delta.files import list_files
from boathouse.delta.log.commit_times import ENABLED, file_times, in_commit_time, version_at
from boathouse.delta.log.entry import Entry, parse_entry
from boathouse.delta.log.folder import Checkpoint, Listing, Log, Segment, segment
from boathouse.delta.log.replay import read_entries, read_entry
from boathouse.delta.log.tail import Replayed, Tail, replay
from boathouse.delta.log.version_checksum import VersionChecksum, compare
from boathouse.delta.schema import physical_name
from boathouse.delta.sizes import FEW, action_counts, checkpoint_counts
from boathouse.errors import CorruptTableError, InvalidArgumentError, NotFoundError, VersionNotFoundError
from boathouse.storage import ObjectInfo, Stores
from boathouse.table.context import TableContext
from boathouse.table.location import NEWEST, At, Location
from boathouse.table.missing_files import listed_again
from boathouse.table.sizes import SMALL_FILE, FileCounts, Sizes, counts_of
from boathouse.table.snapshot import Capabilities, MapFunction
from boathouse.table.tally import Tally
from boathouse.types import PartitionField, Partitioning, PartitionSpec, Schema
from boathouse.types.partitioning import IDENTITY

if TYPE_CHECKING:
    from boathouse.expr.tree import Expr
    from boathouse.table.attempt import Attempt

FIRST_PARTITION_ID = 1000
CAPABILITIES: Final = Capabilities(partitions=True)


@dataclass(frozen=True)
class DeltaSnapshot:
    """Pinned at `version`. `entries` are those after the checkpoint, of which compactions stand for several; `commit`
    is the newest entry's file."""

    context: TableContext
    version: int
    timestamp_ms: int
    protocol: Protocol
    metadata: Metadata
    entries: tuple[Entry, ...] = field(repr=False)
    checkpoint: OpenCheckpoint | None = field(repr=False)
    commit: ObjectInfo | None = None
    has_checksum: bool = False
    checksum: VersionChecksum | None = field(default=None, repr=False, compare=False)
    """The version's checksum, if it is known without reading it."""
    ref: None = None
    format: str = "delta"
    capabilities: ClassVar[Capabilities] = CAPABILITIES

    @property
    def location(self) -> Location:
        return self.context.location

    @property
    def stores(self) -> Stores:
        return self.context.stores

    @property
    def log(self) -> Log:
        return Log(self.context.location.uri, self.context.stores)

    @property
    def identity(self) -> str:
        return self.metadata.id

    @property
    def token(self) -> str:
        return str(self.version)

    @property
    def schema(self) -> Schema:
        return self.metadata.schema

    @property
    def properties(self) -> Mapping[str, str]:
        return self.metadata.configuration

    @cached_property
    def partitioning(self) -> Partitioning:
        return Partitioning((partition_spec(self.schema, self.metadata.partition_columns),))

    @cached_property
    def tail(self) -> Tail:
        """The replayed entries as Arrow columns."""
        return self._replayed().tail()

    def _replayed(self) -> Replayed:
        base = (self.checkpoint.entry,) if self.checkpoint and self.checkpoint.entry else ()
        names = [physical_name(self.schema.field(n)) for n in self.metadata.partition_columns]
        return replay([*base, *self.entries], self.location.uri, names)

    @cached_property
    def transactions(self) -> Mapping[str, int]:
        """The last version of every application."""
        found: dict[str, int] = {}
        for action in self.all_of("txn"):
            app, version = action.get("appId"), action.get("version")
            if not isinstance(app, str) or not isinstance(version, int) or isinstance(version, bool):
                raise CorruptTableError(f"{action} is not an application transaction", where=self.location.uri)
            found[app] = version
        return found

    def all_of(self, kind: str) -> Iterator[dict[str, Any]]:
        """Actions of a small kind, oldest first."""
        if self.checkpoint:
            yield from self.checkpoint.small.get(kind, ())
        for entry in self.entries:
            yield from entry.actions.get(kind, ())

    def files(
        self,
        columns: Sequence[tuple[str, ...]] = (),
        where: Expr | None = None,
        map: MapFunction | None = None,
        tally: Tally | None = None,
    ) -> Iterator[pa.RecordBatch]:
        return list_files(self, columns, where, tally)

    def sizes(self, small: int = SMALL_FILE) -> Sizes:
        counts = self._counts()
        found = Sizes.of(counts_of(self.files()) if counts is None else counts, small)
        compare(self, found.files, found.bytes)
        return found

    def _counts(self) -> Iterable[FileCounts] | None:
        """Without Arrow columns; None if those are needed, or are faster."""
        checkpoint = self.checkpoint
        if checkpoint is not None and checkpoint.rows > FEW:
            return None
        replayed = self._replayed()
        counts = action_counts(replayed.adds.values())
        if counts is None or checkpoint is None:
            return counts
        replaced = replayed.adds.keys() | replayed.removes.keys()
        return chain(checkpoint_counts(checkpoint, replaced, self.location.uri), counts)

    def detail(self) -> Mapping[str, Any]:
        engine = self.entries[-1].info.get("engineInfo") if self.entries else None
        checkpoint = self.checkpoint.version if self.checkpoint else None
        found: dict[str, Any] = {
            "id": self.metadata.id,
            "minReaderVersion": self.protocol.min_reader,
            "minWriterVersion": self.protocol.min_writer,
            "readerFeatures": list(self.protocol.reader_features),
            "writerFeatures": list(self.protocol.writer_features),
            "checkpoint": checkpoint,
            "engineInfo": engine,
            "features": sorted({*writer_features(self.protocol), *self.protocol.reader_features}),
        }
        described = {key: self.metadata.raw.get(key) for key in ("name", "description", "createdTime")}
        return {k: v for k, v in described.items() if v is not None} | found


def partition_spec(schema: Schema, columns: Sequence[str]) -> PartitionSpec:
    """Delta's partition columns as identity fields, numbered from 1000."""
    fields = []
    for i, name in enumerate(columns):
        f = schema.field(name)
        fields.append(PartitionField(f.name, (f.name,), IDENTITY, FIRST_PARTITION_ID + i, f.type, f.id))
    return PartitionSpec(0, tuple(fields))


S = TypeVar("S", bound=DeltaSnapshot)


def load(context: TableContext, at: At = NEWEST, kind: type[S] = DeltaSnapshot) -> S:  # type: ignore[assignment]
    """Opens a version. Raises TableNotFoundError, VersionNotFoundError, CorruptTableError, UnsupportedFeatureError."""
    root = context.location.uri
    if at.ref is not None:
        raise InvalidArgumentError("a Delta table has no branches or tags", where=root, advice="leave out ref")
    log = Log(root, context.stores)
    return listed_again(lambda: _load(log, context, at, kind), root)


def _load(log: Log, context: TableContext, at: At, kind: type[S]) -> S:
    listing = log.whole() if at.pinned else log.newest()
    if listing.newest < 0:
        raise log.absent()
    version = at.version
    if at.timestamp_ms is not None:
        version = _version_at(log, context, listing, at.timestamp_ms)
    return load_from(log, context, listing, version, kind)


def load_from(log: Log, context: TableContext, listing: Listing, version: int | None, kind: type[S]) -> S:
    """The snapshot from a listing; a checkpoint that cannot be read is skipped for an older one, or none."""
    bad: set[Checkpoint] = set()
    problem: CorruptTableError | NotFoundError | None = None
    while True:
        try:
            found = segment(listing, version, log.root, frozenset(bad))
        except (CorruptTableError, VersionNotFoundError) as error:
            if listing.start:
                listing = log.whole()
                continue
            if problem is None:
                raise
            if isinstance(problem, NotFoundError):
                raise problem from error
            raise CorruptTableError(
                f"a checkpoint cannot be read, and the log is incomplete without it: {problem.message}",
                where=problem.where,
                advice="restore the file, or open a version that another checkpoint covers",
            ) from error
        try:
            checkpoint = open_checkpoint(log, found.checkpoint) if found.checkpoint else None
        except (CorruptTableError, NotFoundError) as error:
            assert found.checkpoint is not None
            bad.add(found.checkpoint)
            problem = error
            continue
        return _assemble(log, context, listing, found, checkpoint, kind)


def newest(snapshot: S, put: Attempt | None = None) -> S:
    """The newest version: one listing and the entries since, as long as readers still begin at the same checkpoint."""
    return follow(snapshot, put) or load(snapshot.context, kind=type(snapshot))


def follow(planned: S, put: Attempt | None = None) -> S | None:
    """The newest version, continued from `planned`; None if it must be loaded.

    It must if the planned entry is not the one that was read, if entries are missing, or if there is a newer
    checkpoint: readers begin at that one, and entries below it are not necessarily part of the table. The entry of
    `put`, an attempt that was prepared on `planned` and put, is not read again.
    """
    log = planned.log
    known = planned.checkpoint.version if planned.checkpoint is not None else -1
    listing = log.listing(max(known, 0))
    if planned.commit is None or listing.commits.get(planned.version) != planned.commit:
        return None
    if any(c.version > known for c in listing.checkpoints):
        return None
    newest = listing.newest
    if any(v not in listing.commits for v in range(known + 1, newest + 1)):
        return None
    if newest == planned.version:
        return planned
    versions = range(planned.version + 1, newest + 1)
    try:
        new = tuple(_entry(log, v, listing.commits[v], put) for v in versions)
    except NotFoundError:
        return None
    found = Segment(newest, None, tuple((v, listing.commits[v]) for v in versions))
    before = {"protocol": [dict(planned.protocol.raw)], "metaData": [dict(planned.metadata.raw)]}
    base = OpenCheckpoint(planned.version, planned.metadata.where, before, ())
    made = _assemble_from(log, planned.context, listing, found, new, base, type(planned))
    return replace(made, entries=(*planned.entries, *new), checkpoint=planned.checkpoint)


def _entry(log: Log, version: int, info: ObjectInfo, put: Attempt | None) -> Entry:
    if put is not None and put.shown_as(log.commit_uri(version), info.size):
        return parse_entry(version, put.uri, put.body, info.modified_ms)
    return read_entry(log, version, info.modified_ms)


def _assemble(
    log: Log, context: TableContext, listing: Listing, found: Segment, checkpoint: OpenCheckpoint | None, kind: type[S]
) -> S:
    entries = tuple(read_entries(log, found))
    return _assemble_from(log, context, listing, found, entries, checkpoint, kind)


def _assemble_from(
    log: Log,
    context: TableContext,
    listing: Listing,
    found: Segment,
    entries: tuple[Entry, ...],
    checkpoint: OpenCheckpoint | None,
    kind: type[S],
) -> S:
    protocol = _last(entries, checkpoint, "protocol")
    metadata = _last(entries, checkpoint, "metaData")
    where = log.root
    if protocol is None:
        raise CorruptTableError(f"no entry up to version {found.version} has a protocol action", where=where)
    parsed = Protocol.parse(*protocol)
    check_read(parsed, where)
    if metadata is None:
        raise CorruptTableError(f"no entry up to version {found.version} has a metaData action", where=where)
    meta = Metadata.parse(*metadata, maps_columns(parsed))
    check_changes(parsed, meta)
    timestamp = _timestamp(log, listing, found, entries, meta)
    commit = listing.commits.get(found.version)
    checksum = found.version in listing.checksums
    return kind(context, found.version, timestamp, parsed, meta, entries, checkpoint, commit, checksum)


def _last(entries: Sequence[Entry], checkpoint: OpenCheckpoint | None, kind: str) -> tuple[dict[str, Any], str] | None:
    """The last action of a kind, and the file that contains it."""
    for entry in reversed(entries):
        if (action := entry.last(kind)) is not None:
            return action, entry.uri
    found = checkpoint.small.get(kind) if checkpoint else None
    return (found[-1], checkpoint.uri) if checkpoint and found else None


def _timestamp(log: Log, listing: Listing, found: Segment, entries: Sequence[Entry], metadata: Metadata) -> int:
    version = found.version
    if metadata.flag(ENABLED):
        entry = entries[-1] if entries else None
        if entry is None and version in listing.commits:
            entry = read_entry(log, version)
        if entry is not None and (stored := in_commit_time(entry)) is not None:
            return stored
    if version in listing.commits:
        return file_times(listing)[version]
    return found.checkpoint.files[0].modified_ms if found.checkpoint else 0


def _version_at(log: Log, context: TableContext, listing: Listing, timestamp_ms: int) -> int:
    """The newest version made at or before the time. Raises VersionNotFoundError before the first one."""
    newest = load_from(log, context, listing, None, DeltaSnapshot)
    found = version_at(listing, newest.metadata, timestamp_ms, lambda version: read_entry(log, version))
    if found is None:
        oldest = min(file_times(listing).values(), default=0)
        raise VersionNotFoundError(
            f"the table has no version as old as {timestamp_ms} ms; the oldest retained is of {oldest} ms",
            where=log.root,
            advice="ask for a later time",
        )
    return found
