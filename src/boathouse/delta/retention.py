"""What vacuum may remove: files that neither the newest version nor a young tombstone names."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.bits import system
from boathouse.bits.text import json_value
from boathouse.delta import paths
from boathouse.delta.checkpoint.reader import Wanted, read_files
from boathouse.delta.checkpoint.writer import retention_ms
from boathouse.delta.features.deletion_vectors import file_uri
from boathouse.delta.log.entry import ADD, REMOVE, Entry
from boathouse.delta.log.folder import Log
from boathouse.delta.log.replay import read_entry
from boathouse.delta.log.tail import file_key, file_keys
from boathouse.delta.schema import physical_name
from boathouse.delta.snapshot import DeltaSnapshot
from boathouse.errors import CorruptTableError, NotFoundError, VersionNotFoundError
from boathouse.storage import uris

LAST_VACUUM: Final = "_last_vacuum_info"
"""A file of the log: every file that commits up to a version removed is deleted, as the reference implementation
records it."""
_UP_TO: Final = "latestCommitVersionOutsideOfRetentionWindow"

_NOT_OURS: Final = "metadata"
"""Iceberg's metadata, where a table is of both formats."""
_ADDED: Final = pa.schema([ADD.field(n) for n in ("path", "deletionVector")])
_REMOVED: Final = pa.schema([REMOVE.field(n) for n in ("path", "deletionTimestamp", "deletionVector")])


@dataclass(frozen=True)
class DeltaRetention:
    """See `table.features.Retention`."""

    snapshot: DeltaSnapshot

    @property
    def ms(self) -> int:
        return retention_ms(self.snapshot)

    @property
    def _root(self) -> str:
        return self.snapshot.location.uri

    def kept(self, before_ms: int) -> Iterator[pa.Array]:
        last = self._mentioned()
        kept = [(key, action) for key, (added, action) in last.items() if added or _time(action) >= before_ms]
        vectors = (self._vector(action.get("deletionVector")) for _, action in kept)
        yield from self._spelled(pa.array([key.partition("\0")[0] for key, _ in kept], pa.string()))
        yield pa.array([v for v in vectors if v is not None], pa.string())
        checkpoint = self.snapshot.checkpoint
        if checkpoint is not None and checkpoint.parts:
            replaced = pa.array(last, pa.string())
            for _, batch in read_files(checkpoint, Wanted("add", _ADDED)):
                yield from self._paths(batch, replaced)
            for _, batch in read_files(checkpoint, Wanted("remove", _REMOVED)):
                removed = pc.fill_null(batch.column("deletionTimestamp"), 0)
                yield from self._paths(batch.filter(pc.greater_equal(removed, before_ms)), replaced)
        yield from self._forgotten(before_ms)

    def _mentioned(self) -> dict[str, tuple[bool, dict[str, Any]]]:
        """The last action on each file that the entries after the checkpoint name, and whether it adds the file. Only
        paths and vectors matter here, so they do not become Arrow columns."""
        found: dict[str, tuple[bool, dict[str, Any]]] = {}
        checkpoint = self.snapshot.checkpoint
        first = (checkpoint.entry,) if checkpoint is not None and checkpoint.entry is not None else ()
        for entry in (*first, *self.snapshot.entries):
            for is_add, action in entry.files():
                found[file_key(action, self._root)] = (is_add, action)
        return found

    def _forgotten(self, before_ms: int) -> Iterator[pa.Array]:
        """What entries before the checkpoint removed, if that is asked for longer than the table retains it: a
        checkpoint has no older tombstones."""
        checkpoint = self.snapshot.checkpoint
        if checkpoint is None or before_ms >= system.current().now_ms() - self.ms:
            return
        log = self.snapshot.log
        for version, info in log.listing().commits.items():
            if version <= checkpoint.version and info.modified_ms >= before_ms:
                try:
                    entry = read_entry(log, version)
                except NotFoundError:
                    continue
                found = [p for action in _removes(entry) if _time(action) >= before_ms for p in self._files(action)]
                yield pa.array(found, pa.string())

    def expired(self, before_ms: int) -> Iterator[str]:
        log = self.snapshot.log
        listed = log.listing().commits
        first = _vacuumed(log) + 1
        known = {e.version: e for e in self.snapshot.entries if e.first is None}
        for version in range(first, self.snapshot.version + 1):
            if version not in listed:
                raise self._cleaned(version)
            try:
                entry = known.get(version) or read_entry(log, version)
            except NotFoundError as error:
                raise self._cleaned(version) from error
            for action in _removes(entry):
                if _time(action) < before_ms:
                    yield from (p for p in self._files(action) if "://" not in p)

    def _cleaned(self, version: int) -> VersionNotFoundError:
        return VersionNotFoundError(
            f"the log no longer has version {version}, which may have removed files that were not deleted since",
            where=self._root,
            advice="pass mode='full', which lists the table's files",
        )

    def searched(self, folder: str) -> bool:
        first, *rest = folder.split("/")
        if first == _NOT_OURS or any(name.startswith((".", "_")) for name in rest if not self._partition(name)):
            return False
        return first == paths.CHANGE_DATA or self._partition(first) or not first.startswith((".", "_"))

    def _partition(self, folder: str) -> bool:
        return folder.startswith(self._partition_names) if "=" in folder else False

    @cached_property
    def _partition_names(self) -> tuple[str, ...]:
        """How folders of partition values begin: a column's name may begin with `_`."""
        fields = [self.snapshot.schema.field(n) for n in self.snapshot.metadata.partition_columns]
        names = {n for f in fields for n in (f.name, physical_name(f))}
        return tuple(f"{spelled}=" for n in names for spelled in (n, paths.hive_escape(n)))

    def vacuumed(self, before_ms: int) -> None:
        log = self.snapshot.log
        commits = log.listing().commits.items()
        found = max((v for v, info in commits if info.modified_ms < before_ms), default=-1)
        if found > _vacuumed(log):
            log.storage.put(f"{log.key}/{LAST_VACUUM}", json.dumps({_UP_TO: found}).encode() + b"\n")

    def _paths(self, batch: pa.RecordBatch, replaced: pa.Array) -> Iterator[pa.Array]:
        """The files of a checkpoint that the entries after it do not name."""
        found, vectors = paths.keys_of(batch.column("path"), self._root), batch.column("deletionVector")
        keep = pc.invert(pc.is_in(file_keys(found, vectors), replaced))
        yield from self._spelled(found.filter(keep))
        if vectors.null_count < len(vectors):
            files = (self._vector(v) for v in vectors.filter(keep).drop_null().to_pylist())
            yield pa.array([p for p in files if p is not None], pa.string())

    def _spelled(self, found: pa.Array) -> Iterator[pa.Array]:
        """Paths as they are, and those with unusual segments also as a listing shows them."""
        yield found
        odd = found.filter(pc.match_substring_regex(found, r"(^|/)\.{0,2}(/|$)"))
        if len(odd):
            yield pa.array([self._plain(p) for p in odd.to_pylist() if "://" not in p], pa.string())

    def _plain(self, path: str) -> str:
        """The path without `.`, `..` and empty segments, as a listing shows it."""
        root = f"/{uris.split(self._root)[2]}"
        return posixpath.relpath(posixpath.normpath(f"{root}/{path}"), root)

    def _files(self, action: dict[str, Any]) -> Iterator[str]:
        yield paths.key_of(action["path"], self._root)
        vector = self._vector(action.get("deletionVector"))
        if vector is not None:
            yield vector

    def _vector(self, vector: dict[str, Any] | None) -> str | None:
        if not vector or vector.get("storageType") is None or (uri := file_uri(vector, self._root)) is None:
            return None
        inside = uris.relative(uri, self._root)
        return uri if inside is None else inside


def _removes(entry: Entry) -> Iterator[dict[str, Any]]:
    return (action for is_add, action in entry.files() if not is_add)


def _time(action: dict[str, Any]) -> int:
    """When the file was removed; a tombstone without a time has expired."""
    found = action.get("deletionTimestamp")
    return found if isinstance(found, int) else 0


def _vacuumed(log: Log) -> int:
    """The version up to which removed files are known to be deleted; -1 if nothing is known."""
    try:
        found = json_value(log.storage.get(f"{log.key}/{LAST_VACUUM}"), log.uri(LAST_VACUUM))
    except (NotFoundError, CorruptTableError):
        return -1
    version = found.get(_UP_TO) if isinstance(found, dict) else None
    return version if isinstance(version, int) and not isinstance(version, bool) else -1
