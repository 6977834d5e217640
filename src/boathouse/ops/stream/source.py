"""A table as a stream: what is new in it since an offset, in batches of limited size.

A stream begins with all rows of the newest version, after that version, or with the commits from a version or time on.
Each commit that followed is looked at once; the versions of the table are not compared where the commits list their
files. What cannot be given ends the stream when everything before it has been read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from boathouse.errors import BoathouseError, StreamError, VersionNotFoundError
from boathouse.ops.stream.changes import retained_words
from boathouse.ops.stream.commits import Portion, Reading, StreamTask, Wanted, commits_between
from boathouse.ops.stream.offset import Offset, Position
from boathouse.table.history import HistoryEntry
from boathouse.table.location import Version
from boathouse.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Beginning:
    """With the commit of a version, with the first at or after a time, after the newest, or, if nothing is given, with
    all rows of the newest version."""

    version: Version | None = None
    timestamp_ms: int | None = None
    latest: bool = False


@dataclass(frozen=True, slots=True)
class ReadLimit:
    """What a batch may still take; None: no limit. It takes a piece as long as anything is left of it, so that a
    piece larger than the limit is read too."""

    files: int | None = None
    bytes: int | None = None

    @property
    def any(self) -> bool:
        return (self.files is None or self.files > 0) and (self.bytes is None or self.bytes > 0)

    def take(self, sizes: Sequence[int], files: int = 1) -> tuple[int, ReadLimit]:
        """How many of these pieces, each of so many files, are taken, and the limit that is left."""
        left = self
        for i, size in enumerate(sizes):
            if not left.any:
                return i, left
            left = ReadLimit(
                None if left.files is None else left.files - files, None if left.bytes is None else left.bytes - size
            )
        return len(sizes), left


@dataclass(frozen=True, slots=True)
class Piece:
    """What a version gives, as a snapshot or by its commit: all of it in `portion`, in the batch that from `first` up
    to, but not, `last`. `layout` is a version with the schema and partitioning of this one, if one is known."""

    version: Version
    snapshot: bool
    portion: Portion
    layout: Snapshot | None
    first: int
    last: int

    @property
    def end(self) -> Position:
        """Where the stream is after it."""
        whole = self.last == len(self.portion.sizes)
        return Position(self.version) if whole else Position(self.version, self.last, self.snapshot)


@dataclass(frozen=True, slots=True)
class Batch:
    """The pieces between two offsets (`start` None: the beginning), as a table was at `newest`; and the last piece that
    was `read`, in it or in one before."""

    start: Offset | None
    end: Offset
    newest: Snapshot
    pieces: tuple[Piece, ...] = ()
    read: Piece | None = None

    def tasks(self) -> Iterator[StreamTask]:
        """The work of reading the rows."""
        for piece in self.pieces:
            yield from piece.portion.tasks(piece.first, piece.last)


@dataclass(frozen=True, slots=True)
class TableStream:
    """Follows one table. `reading` has the version whose schema the rows have: the newest when the query started."""

    reading: Reading
    beginning: Beginning

    @staticmethod
    def of(base: Snapshot, wanted: Wanted = Wanted(), beginning: Beginning = Beginning()) -> TableStream:
        return TableStream(Reading.of(base, wanted), beginning)

    @property
    def base(self) -> Snapshot:
        return self.reading.base

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that the tasks give."""
        return self.reading.output

    def newest(self, known: Snapshot | None = None) -> Snapshot:
        """The newest version, from one that is known; one listing if nothing is new. Raises StreamError if it is that
        of another table."""
        newest = (known or self.base).newest()
        if newest.identity != self.base.identity:
            raise self._recreated(self.base.format, self.base.identity, newest)
        return newest

    def next(self, start: Offset | None, limit: ReadLimit, newest: Snapshot, before: Batch | None = None) -> Batch:
        """What the next batch reads from `start` (None: the beginning) on, at most up to `newest`; it ends at `start`
        if nothing is new. What the batch `before` looked at is not looked at again.

        Raises StreamError, VersionNotFoundError.
        """
        begin = self._first(newest) if start is None else self._checked(start)
        pieces: list[Piece] = []
        try:
            for piece in self._ahead(newest, begin.at, before):
                taken, limit = limit.take(piece.portion.sizes[piece.first :], piece.portion.files_in_piece)
                pieces.append(replace(piece, last=piece.first + taken))
                if not limit.any:
                    break
        except BoathouseError:
            # What comes before it is given first; without progress the next call raises the same.
            if not pieces or pieces[-1].end == begin.at:
                raise
        if not pieces:
            return Batch(start, begin, newest, read=None if before is None else before.read)
        return Batch(start, begin.moved(pieces[-1].end), newest, tuple(pieces), pieces[-1])

    def between(self, start: Offset | None, end: Offset, newest: Snapshot) -> Batch:
        """The batch between two offsets of a checkpoint: the same rows at every call.

        Raises StreamError, VersionNotFoundError.
        """
        at, to = self._checked(end).begin if start is None else self._checked(start).at, end.at
        if at == to:
            return Batch(start, end, newest)
        pieces: list[Piece] = []
        for piece in self._ahead(newest, at):
            last = to.version == piece.version
            pieces.append(replace(piece, last=to.units) if last and to.open else piece)
            if last:
                return Batch(start, end, newest, tuple(pieces), pieces[-1])
        raise VersionNotFoundError(
            f"version {to.version}, up to which the checkpoint says that the stream reads, does not follow "
            f"version {at.version}",
            where=str(self.base.context.location),
            advice="start the query with a checkpoint of its own",
        )

    def _ahead(self, newest: Snapshot, at: Position, before: Batch | None = None) -> Iterator[Piece]:
        """What versions give from a position on, without what was read of the first."""
        done = at.units if at.open else 0
        read = None if before is None or before.read is None or before.read.version != at.version else before.read
        again = read if read is not None and at.open and read.snapshot == at.snapshot else None
        if at.snapshot:
            portion = self.reading.initial(newest, at.version) if again is None else again.portion
            yield Piece(at.version, True, portion, None, done, len(portion.sizes))
        entries = commits_between(newest, at)
        if entries is None:
            raise self._gone(newest, at)
        layout = None if read is None else read.layout
        if not at.snapshot and at.open:  # the first is the commit of the version itself
            if again is None:
                layout = None
            else:
                yield replace(again, first=done, last=len(again.portion.sizes))
                entries = entries[1:]
        for entry, (portion, now) in zip(entries, self.reading.commits(newest, entries, layout), strict=True):
            first = done if entry.version == at.version else 0
            yield Piece(entry.version, False, portion, now, first, len(portion.sizes))

    def _gone(self, newest: Snapshot, at: Position) -> VersionNotFoundError:
        return VersionNotFoundError(
            f"the stream has read up to version {at.version}, and the table no longer has all commits between it and "
            f"version {newest.version}: their rows cannot be read",
            where=str(self.base.context.location),
            advice=f"{retained_words(list(newest.history.entries()))}: start the query with a checkpoint of its own, "
            "with startingVersion or with all rows",
        )

    def _first(self, newest: Snapshot) -> Offset:
        at = self._begin(newest)
        return Offset(newest.format, newest.identity, self.reading.wanted.changes, at, at)

    def _begin(self, newest: Snapshot) -> Position:
        beginning = self.beginning
        if beginning.latest:
            return Position(newest.version)
        if beginning.version is None and beginning.timestamp_ms is None:
            return Position(newest.version, 0, True)
        entries: list[HistoryEntry] = []
        for entry in newest.history.entries():
            if beginning.timestamp_ms is not None and entry.timestamp_ms < beginning.timestamp_ms:
                break
            if entry.metadata_only:
                continue
            entries.append(entry)
            if entry.version == beginning.version:
                return Position(entry.version, 0)
        if beginning.version is None and entries:
            return Position(entries[-1].version, 0)
        wanted = (
            f"version {beginning.version}, with which the stream is to start,"
            if beginning.version is not None
            else (f"a version as late as {beginning.timestamp_ms} ms, with which the stream is to start,")
        )
        raise VersionNotFoundError(
            f"{wanted} is not among those up to version {newest.version} of {newest.timestamp_ms} ms",
            where=str(newest.context.location),
            advice=f"{retained_words(entries)}; to start after the newest, set startingVersion to latest",
        )

    def _checked(self, offset: Offset) -> Offset:
        if (offset.format, offset.table) != (self.base.format, self.base.identity):
            raise self._recreated(offset.format, offset.table, self.base)
        if offset.changes != self.reading.wanted.changes:
            raise StreamError(
                f"the checkpoint is of a stream with readChangeFeed={str(offset.changes).lower()}",
                where=str(self.base.context.location),
                advice="keep the option, or start the query with a checkpoint of its own",
            )
        return offset

    def _recreated(self, format: str, identity: str, now: Snapshot) -> StreamError:
        return StreamError(
            f"the stream reads the {format} table {identity}, but here is now the {now.format} table {now.identity}: "
            "the table was dropped and created again",
            where=str(now.context.location),
        )
