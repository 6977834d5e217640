"""A table as a stream: what is new in it since an offset, in batches of limited size.

A stream begins with all rows of the newest version, after that version, or with the commits from a version or time on.
Each commit that followed is looked at once; the versions of the table are not compared where the commits list their
files. What cannot be given ends the stream when everything before it has been read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from boathouse.errors import BoathouseError, StreamError, VersionNotFoundError
from boathouse.ops.stream.changes import retained_words
from boathouse.ops.stream.commits import Portion, Portions, StreamTask, Wanted
from boathouse.ops.stream.offset import Offset, Position
from boathouse.table.location import Version
from boathouse.table.snapshot import HistoryEntry, Snapshot

_BEFORE_THE_FIRST: Final = 0
"""The version of an Iceberg table without any snapshot."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """With the commit of a version, with the first at or after a time, after the newest, or, if nothing is given, with
    all rows of the newest version."""

    version: Version | None = None
    timestamp_ms: int | None = None
    latest: bool = False


@dataclass(slots=True)
class Room:
    """What a batch may still take; None: no limit. It takes a piece as long as there is any room, so that a piece
    larger than the limit is read too."""

    files: int | None = None
    bytes: int | None = None

    @property
    def any(self) -> bool:
        return (self.files is None or self.files > 0) and (self.bytes is None or self.bytes > 0)

    def take(self, sizes: Sequence[int], files: int = 1) -> int:
        """How many of these pieces, each of so many files, are taken."""
        for i, size in enumerate(sizes):
            if not self.any:
                return i
            if self.files is not None:
                self.files -= files
            if self.bytes is not None:
                self.bytes -= size
        return len(sizes)


class TableStream:
    """Follows one table. `base` is the version whose schema the rows have: the newest one when the query started."""

    def __init__(self, base: Snapshot, wanted: Wanted = Wanted(), beginning: Beginning = Beginning()) -> None:
        self._base, self._newest = base, base
        self._wanted, self._beginning = wanted, beginning
        self._portions = Portions(base, wanted)
        self._seen: dict[tuple[Version, bool], Portion] = {}
        self._walked: tuple[tuple[str, Position], list[HistoryEntry]] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that the tasks give."""
        return self._portions.output

    def newest(self) -> Snapshot:
        """The newest version; one listing if nothing is new. Raises StreamError if it is that of another table."""
        newest = self._newest.newest()
        if newest.identity != self._base.identity:
            raise self._recreated(self._base.format, self._base.identity, newest)
        self._newest = newest
        return newest

    def latest(self, start: Offset | None, room: Room, newest: Snapshot | None = None) -> Offset:
        """How far the next batch reads from `start` (None: the beginning), at most up to `newest`.

        It is `start` itself if nothing is new. Raises StreamError, VersionNotFoundError.
        """
        newest = self.newest() if newest is None else newest
        start = self._first(newest) if start is None else self._checked(start)
        self._seen = {key: portion for key, portion in self._seen.items() if key[0] == start.at.version}
        at = start.at
        try:
            for version, snapshot, done, portion in self._ahead(newest, start.at):
                sizes = portion.sizes
                taken = done + room.take(sizes[done:], portion.files_in_piece)
                at = Position(version) if taken == len(sizes) else Position(version, taken, snapshot)
                if not room.any:
                    break
        except BoathouseError:
            # What comes before it is given first; without progress the next call raises the same.
            if at == start.at:
                raise
        return start.moved(at)

    def tasks(self, start: Offset | None, end: Offset) -> Iterator[StreamTask]:
        """The work of reading the rows between two offsets: the same rows at every call.

        Raises StreamError, VersionNotFoundError.
        """
        at, to = self._checked(end).begin if start is None else self._checked(start).at, end.at
        if at == to:
            return
        for version, _, done, portion in self._ahead(self._newest, at):
            yield from portion.tasks(done, to.units if version == to.version and to.open else len(portion.sizes))
            if version == to.version:
                return
        raise VersionNotFoundError(
            f"version {to.version}, up to which the checkpoint says that the stream reads, does not follow "
            f"version {at.version}",
            where=str(self._base.context.location),
            advice="start the query with a checkpoint of its own",
        )

    def _ahead(self, newest: Snapshot, at: Position) -> Iterator[tuple[Version, bool, int, Portion]]:
        """(version, whether it is read as a snapshot, how many pieces were read, what it gives) from a position on."""
        self._portions.follow(newest)
        if at.snapshot:
            yield at.version, True, at.units, self._portion(at.version, None, False)
        entries = self._commits(newest, at)
        versions = [e.version for e in entries]
        later = versions.index(self._base.version) + 1 if self._base.version in versions else 0
        for i, entry in enumerate(entries):
            done = at.units if entry.version == at.version else 0
            yield entry.version, False, done, self._portion(entry.version, entry, i >= later)

    def _portion(self, version: Version, entry: HistoryEntry | None, later: bool) -> Portion:
        key = version, entry is None
        if key not in self._seen:
            made = self._portions.initial(version) if entry is None else self._portions.of(entry, later)
            self._seen[key] = made
        return self._seen[key]

    def _commits(self, newest: Snapshot, at: Position) -> list[HistoryEntry]:
        """The commits after a position, oldest first, that of its own version among them if that was read in part."""
        key = newest.token, at
        if self._walked is None or self._walked[0] != key:
            self._walked = key, self._walk(newest, at)
        return self._walked[1]

    def _walk(self, newest: Snapshot, at: Position) -> list[HistoryEntry]:
        partly = at.open and not at.snapshot
        if newest.version == at.version and not partly:
            return []
        found: list[HistoryEntry] = []
        for entry in newest.history():
            if entry.metadata_only:
                continue
            if found and found[-1].parent != entry.version:
                break
            if entry.version != at.version or partly:
                found.append(entry)
            if entry.version == at.version or (entry.parent == at.version and not partly):
                return found[::-1]
        if found and found[-1].parent is None and at.version == _BEFORE_THE_FIRST:
            return found[::-1]
        raise VersionNotFoundError(
            f"the stream has read up to version {at.version}, and the table no longer has all commits between it and "
            f"version {newest.version}: their rows cannot be read",
            where=str(self._base.context.location),
            advice=f"{retained_words(found)}: start the query with a checkpoint of its own, with startingVersion or "
            "with all rows",
        )

    def _first(self, newest: Snapshot) -> Offset:
        at = self._begin(newest)
        return Offset(newest.format, newest.identity, self._wanted.changes, at, at)

    def _begin(self, newest: Snapshot) -> Position:
        beginning = self._beginning
        if beginning.latest:
            return Position(newest.version)
        if beginning.version is None and beginning.timestamp_ms is None:
            return Position(newest.version, 0, True)
        entries: list[HistoryEntry] = []
        for entry in newest.history():
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
        if (offset.format, offset.table) != (self._base.format, self._base.identity):
            raise self._recreated(offset.format, offset.table, self._base)
        if offset.changes != self._wanted.changes:
            raise StreamError(
                f"the checkpoint is of a stream with readChangeFeed={str(offset.changes).lower()}",
                where=str(self._base.context.location),
                advice="keep the option, or start the query with a checkpoint of its own",
            )
        return offset

    def _recreated(self, format: str, identity: str, now: Snapshot) -> StreamError:
        return StreamError(
            f"the stream reads the {format} table {identity}, but here is now the {now.format} table {now.identity}: "
            "the table was dropped and created again",
            where=str(now.context.location),
        )
