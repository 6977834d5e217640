"""The `_delta_log` folder: which files make up a version (PROTOCOL.md, "Delta Log Entries" and "Checkpoints")."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from boathouse.bits.text import json_value
from boathouse.delta.checkpoint.canonical import checksum
from boathouse.errors import CorruptTableError, NotFoundError, TableNotFoundError, VersionNotFoundError
from boathouse.storage import ObjectInfo, Storage, Stores
from boathouse.table.location import CommitId

LOG = "_delta_log"
HINT = "_last_checkpoint"
SIDECARS = "_sidecars"
_COMMIT = re.compile(r"(\d{20})\.json")
_CLASSIC = re.compile(r"(\d{20})\.checkpoint\.parquet")
_PART = re.compile(r"(\d{20})\.checkpoint\.(\d{10})\.(\d{10})\.parquet")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\..*(?:json|parquet)")
_UUID = re.compile(r"(\d{20})\.checkpoint\.([0-9a-fA-F-]{36})\.(json|parquet)")
_COMPACTED = re.compile(r"(\d{20})\.(\d{20})\.compacted\.json")
_CRC = re.compile(r"(\d{20})\.crc")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A complete checkpoint: its files, in the order of their parts."""

    version: int
    files: tuple[ObjectInfo, ...]
    uuid_named: bool = False


@dataclass(frozen=True, slots=True)
class Hint:
    """The checkpoint that `_last_checkpoint` names: one in several parts, or the file `name` of version 2."""

    version: int
    parts: int | None = None
    name: str | None = None

    def is_of(self, checkpoint: Checkpoint) -> bool:
        if checkpoint.version != self.version:
            return False
        name = checkpoint.files[0].key.rpartition("/")[2]
        if self.name is not None:
            return name == self.name
        if self.parts is not None:
            return len(checkpoint.files) == self.parts and _PART.fullmatch(name) is not None
        return _CLASSIC.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class Compaction:
    """The entries of versions `first` to `last` as one."""

    first: int
    last: int
    file: ObjectInfo


@dataclass(frozen=True, slots=True)
class Listing:
    """The result of listing the log, checkpoints newest first. `start` is the version at which it began."""

    commits: dict[int, ObjectInfo]
    checkpoints: tuple[Checkpoint, ...]
    start: int = 0
    partial: ObjectInfo | None = None
    """A file of the newest incomplete checkpoint: empty, or a part of which others are missing."""
    partial_version: int = -1
    compactions: tuple[Compaction, ...] = ()
    checksums: frozenset[int] = frozenset()
    """The versions that have a checksum."""

    @property
    def newest(self) -> int:
        """The newest version, -1 if there is none."""
        checkpoint = self.checkpoints[0].version if self.checkpoints else -1
        return max(max(self.commits, default=-1), checkpoint)

    def preferring(self, hint: Hint) -> Listing:
        """With the checkpoint of the hint before others of its version."""
        ordered = sorted(self.checkpoints, key=lambda c: (-c.version, not hint.is_of(c)))
        return replace(self, checkpoints=tuple(ordered))


@dataclass(frozen=True, slots=True)
class Segment:
    """The files that make up `version`: a checkpoint if there is one, and every commit after it.

    Each of `compactions` stands for some of `commits` but the last, whose own entry says when it was made.
    """

    version: int
    checkpoint: Checkpoint | None
    commits: tuple[tuple[int, ObjectInfo], ...]
    compactions: tuple[Compaction, ...] = ()


class Log:
    """The log folder of one table."""

    def __init__(self, root: str, stores: Stores) -> None:
        self.root = root
        self.storage: Storage
        self.storage, key = stores.resolve(root)
        self.key = f"{key}/{LOG}" if key else LOG

    @staticmethod
    def commit_id(version: int) -> CommitId:
        return CommitId(version, f"{version:020d}")

    def commit_key(self, version: int) -> str:
        return f"{self.key}/{version:020d}.json"

    def checksum_key(self, version: int) -> str:
        return f"{self.key}/{version:020d}.crc"

    def compacted_key(self, first: int, last: int) -> str:
        return f"{self.key}/{first:020d}.{last:020d}.compacted.json"

    def uri(self, key: str) -> str:
        return self.storage.uri(key)

    def commit_uri(self, version: int) -> str:
        return f"{self.root}/{LOG}/{version:020d}.json"

    def listing(self, start: int = 0) -> Listing:
        """Commits and checkpoints of version `start` and later."""
        after = f"{self.key}/{start:020d}" if start else None
        if after is None:
            _, found = self.storage.list_dir(self.key)
            return read_listing(found)
        return read_listing(self.storage.list(self.key, after), start)

    def newest(self) -> Listing:
        """A listing that contains the newest version; it begins at the checkpoint of the hint, if that exists."""
        hint = self.hint()
        if hint is not None:
            listing = self.listing(hint.version)
            if listing.checkpoints:
                return listing.preferring(hint)
        return self.listing()

    def whole(self) -> Listing:
        """Everything that the log has."""
        listing, hint = self.listing(), self.hint()
        return listing if hint is None else listing.preferring(hint)

    def hint(self) -> Hint | None:
        """What `_last_checkpoint` says; None if it is absent, unreadable, or its checksum is wrong."""
        try:
            text = self.storage.get(f"{self.key}/{HINT}")
        except NotFoundError:
            return None
        try:
            document = json_value(text, self.uri(HINT))
            stored = document.get("checksum")
            if stored is not None and stored != checksum(text):
                return None
            version, parts, v2 = document["version"], document.get("parts"), document.get("v2Checkpoint")
        except (KeyError, AttributeError, TypeError, CorruptTableError):
            return None
        if not isinstance(version, int) or isinstance(version, bool) or not 0 <= version < 1 << 63:
            return None
        name = v2.get("path") if isinstance(v2, dict) else None
        return Hint(version, parts if isinstance(parts, int) else None, name if isinstance(name, str) else None)

    def exists(self) -> bool:
        """Whether there is a log with at least one commit or checkpoint."""
        found = []
        for info in self.storage.list(self.key):
            name = info.key[len(self.key) + 1 :]
            if _COMMIT.fullmatch(name):
                return True
            if "/" not in name:
                found.append(info)
        return read_listing(found).newest >= 0

    def absent(self) -> TableNotFoundError:
        """The error for a location without a log, naming what was found instead and what to open."""
        found, advice = _what_is_there(self)
        return TableNotFoundError(found, where=self.root, advice=advice)


def read_listing(found: Iterable[ObjectInfo], start: int = 0) -> Listing:
    """Sorts a listing's files. Empty checkpoint files and incomplete multi-part ones are ignored."""
    commits: dict[int, ObjectInfo] = {}
    single: list[Checkpoint] = []
    parts: dict[tuple[int, int], dict[int, ObjectInfo]] = {}
    partial: tuple[int, ObjectInfo | None] = (-1, None)
    compactions: list[Compaction] = []
    checksums: set[int] = set()
    for info in found:
        name = info.key.rpartition("/")[2]
        if match := _COMMIT.fullmatch(name):
            commits[int(match[1])] = info
        elif match := _CRC.fullmatch(name):
            checksums.add(int(match[1]))
        elif info.size == 0:
            if match := _CHECKPOINT.match(name):
                partial = max(partial, (int(match[1]), info), key=lambda p: p[0])
        elif match := _CLASSIC.fullmatch(name):
            single.append(Checkpoint(int(match[1]), (info,)))
        elif match := _PART.fullmatch(name):
            parts.setdefault((int(match[1]), int(match[3])), {})[int(match[2])] = info
        elif match := _UUID.fullmatch(name):
            single.append(Checkpoint(int(match[1]), (info,), True))
        elif (match := _COMPACTED.fullmatch(name)) and int(match[1]) < int(match[2]):
            compactions.append(Compaction(int(match[1]), int(match[2]), info))
    for (version, count), files in parts.items():
        if len(files) == count and min(files) == 1 and max(files) == count:
            single.append(Checkpoint(version, tuple(files[i] for i in range(1, count + 1))))
        else:
            partial = max(partial, (version, min(files.values(), key=lambda f: f.key)), key=lambda p: p[0])
    single.sort(key=lambda c: (c.version, not c.uuid_named, -len(c.files)), reverse=True)
    return Listing(commits, tuple(single), start, partial[1], partial[0], tuple(compactions), frozenset(checksums))


def segment(listing: Listing, version: int | None, where: str, skip: frozenset[Checkpoint] = frozenset()) -> Segment:
    """The files of `version` (None: the newest), from the newest checkpoint not in `skip`.

    Raises VersionNotFoundError, and CorruptTableError if commits are missing in between.
    """
    newest = listing.newest
    wanted = newest if version is None else version
    if listing.partial is not None and listing.partial_version > newest and version in (None, listing.partial_version):
        raise CorruptTableError(
            f"the log ends at version {newest}, but the checkpoint of version {listing.partial_version} is incomplete, "
            "although entries are written before checkpoints",
            where=f"{where}/{LOG}/{listing.partial.key.rpartition('/')[2]}",
            advice=f"restore the file or the entries up to that version; or open version {newest}",
        )
    if not 0 <= wanted <= newest:
        raise VersionNotFoundError(
            f"version {wanted} does not exist, the newest is {newest}", where=where, advice="ask for an older version"
        )
    checkpoint = next((c for c in listing.checkpoints if c.version <= wanted and c not in skip), None)
    first = checkpoint.version + 1 if checkpoint else 0
    missing = next((v for v in range(first, wanted + 1) if v not in listing.commits), None)
    if missing is not None:
        raise _gap(listing, checkpoint, missing, wanted, version is not None, where)
    commits = tuple((v, listing.commits[v]) for v in range(first, wanted + 1))
    return Segment(wanted, checkpoint, commits, _standing_for(listing, first, wanted))


def _standing_for(listing: Listing, first: int, wanted: int) -> tuple[Compaction, ...]:
    """Compactions of some of the versions `first` to `wanted - 1`, none of which overlap."""
    longest: dict[int, Compaction] = {}
    for found in listing.compactions:
        if found.first >= first and found.last < wanted:
            known = longest.get(found.first)
            longest[found.first] = found if known is None or found.last > known.last else known
    chosen: list[Compaction] = []
    for start in sorted(longest):
        if not chosen or start > chosen[-1].last:
            chosen.append(longest[start])
    return tuple(chosen)


def _gap(
    listing: Listing, checkpoint: Checkpoint | None, missing: int, wanted: int, asked: bool, where: str
) -> VersionNotFoundError | CorruptTableError:
    oldest = min((c.version for c in listing.checkpoints), default=None)
    if asked and checkpoint is None and oldest is not None and missing == 0:
        return VersionNotFoundError(
            f"version {wanted} no longer exists: the log begins at the checkpoint of version {oldest}",
            where=where,
            advice=f"ask for version {oldest} or a later one",
        )
    since = f"after the checkpoint of version {checkpoint.version}" if checkpoint else "and there is no checkpoint"
    return CorruptTableError(
        f"the log lacks version {missing} ({missing:020d}.json) {since}, so version {wanted} cannot be read",
        where=where,
        advice="restore the missing file, or open an older version",
    )


def _what_is_there(log: Log) -> tuple[str, str]:
    folders, files = log.storage.list_dir(log.key.rpartition("/")[0])
    names = {f.rpartition("/")[2] for f in folders}
    above = log.root.rpartition("/")[0]
    if log.root.rpartition("/")[2] == LOG or read_listing(files).newest >= 0:
        return "this is the log folder of a Delta table, not the table", f"open {above}"
    if (table := _table_above(log)) is not None:
        return "not a Delta table: this is a folder inside one", f"open {table}"
    if "metadata" in names:
        return (
            "not a Delta table: the folder looks like an Iceberg table (it has metadata/)",
            "open it with format='iceberg'",
        )
    if "_versions" in names:
        return (
            "not a Delta table: the folder looks like a Lance dataset (it has _versions/)",
            "open it with format='lance'",
        )
    if LOG in names:
        return (
            f"not a Delta table: {LOG} contains neither a commit nor a checkpoint",
            "restore the log, or create the table again",
        )
    if any(f.key.endswith(".parquet") for f in files) or any("=" in n for n in names):
        return (
            "not a Delta table: the folder contains Parquet files without a log",
            "create a table and append their rows",
        )
    if not names and not files:
        return "not a Delta table: the path does not exist, or is empty", "check the path, or create the table first"
    return "not a Delta table: there is no _delta_log", "check the path, or create the table first"


def _table_above(log: Log) -> str | None:
    """The root of a Delta table up to three folders above."""
    key, uri = log.key.rpartition("/")[0], log.root
    for _ in range(3):
        key, uri = key.rpartition("/")[0], uri.rpartition("/")[0]
        if not key:
            return None
        _, files = log.storage.list_dir(f"{key}/{LOG}")
        if read_listing(files).newest >= 0:
            return uri
    return None
