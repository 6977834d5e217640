"""The history of a table: its commits, newest first, and the files that it still needs."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from boathouse.delta import paths
from boathouse.delta.checkpoint.reader import Wanted, open_checkpoint, read_files
from boathouse.delta.commit.commit_info import METADATA, WRITE_ID
from boathouse.delta.commit.confirmation import contains
from boathouse.delta.features.deletion_vectors import file_uri
from boathouse.delta.log.commit_times import file_times, in_commit_time
from boathouse.delta.log.entry import ADD, Entry
from boathouse.delta.log.folder import Listing, Log, segment
from boathouse.delta.log.replay import read_entry, read_info
from boathouse.delta.snapshot import DeltaSnapshot, load
from boathouse.errors import CorruptTableError, NotFoundError, VersionNotFoundError
from boathouse.table.attempt import Published, undecided
from boathouse.table.context import TableContext
from boathouse.table.history import HistoryEntry
from boathouse.table.location import Version

_REWRITES: Final = ("OPTIMIZE", "REORG", "VACUUM START", "VACUUM END")
"""Operations of the reference implementation that change no row."""


@dataclass(frozen=True, slots=True)
class DeltaHistory:
    """See `table.history.History`."""

    snapshot: DeltaSnapshot

    def entries(self, limit: int | None = None) -> Iterator[HistoryEntry]:
        """Commits up to the snapshot, as far as retained; those without commitInfo have only version and time."""
        snapshot = self.snapshot
        log = snapshot.log
        listing = log.listing()
        times = file_times(listing)
        versions = sorted((v for v in listing.commits if v <= snapshot.version), reverse=True)
        for version in versions if limit is None else versions[:limit]:
            try:
                entry = read_info(log, version)
            except NotFoundError:
                continue
            yield _shown(version, times[version], entry)

    def find_write(self, write_id: str) -> Version | None:
        """The version whose commitInfo names the write, if readers see it; searches every retained entry, newest first.

        Raises CommitUnknownError if the log does not tell whether that version was ever replayed.
        """
        context = self.snapshot.context
        log = Log(context.location.uri, context.stores)
        listing = log.listing()
        doubtful: Version | None = None
        for version in sorted(listing.commits, reverse=True):
            try:
                if read_info(log, version).info.get(WRITE_ID) != write_id:
                    continue
                replayed = _replayed(context, log, listing, version)
            except (NotFoundError, CorruptTableError):
                continue
            if replayed == "won":
                return version
            doubtful = version if replayed == "unknown" else doubtful
        if doubtful is not None:
            raise undecided(write_id, doubtful, log.commit_uri(doubtful))
        return None

    def app_version(self, app: str) -> int | None:
        return self.snapshot.transactions.get(app)


def _shown(version: int, time_ms: int, entry: Entry) -> HistoryEntry:
    info = entry.info
    message = info.get("userMetadata")
    metadata = info.get(METADATA)
    operation = info.get("operation")
    engine = info.get("engineInfo")
    write_id = info.get(WRITE_ID)
    return HistoryEntry(
        version,
        Log.commit_id(version).token,
        in_commit_time(entry) or time_ms,
        operation if isinstance(operation, str) else "",
        _mapping(info.get("operationParameters")),
        {k: _number(v) for k, v in _mapping(info.get("operationMetrics")).items()},
        engine if isinstance(engine, str) else None,
        write_id if isinstance(write_id, str) else None,
        message if message is None or isinstance(message, str) else json.dumps(message),
        metadata if isinstance(metadata, dict) else {},
        version - 1 if version else None,
        operation not in _REWRITES,
        info,
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(value: Any) -> Any:
    """A metric, which is stored as a string, as a number."""
    return int(value) if isinstance(value, str) and len(value) < 20 and value.isdecimal() else value


def _replayed(context: TableContext, log: Log, listing: Listing, version: Version) -> Published:
    """Whether readers see an entry of ours: a later checkpoint may have been made without it.

    A version that can still be opened is seen. An entry without the one before it and without a checkpoint is what a
    put below a cleaned log leaves, but also the oldest entry of some.
    """
    if not listing.checkpoints or listing.checkpoints[0].version < version:
        return "won"
    with contextlib.suppress(CorruptTableError, VersionNotFoundError):
        segment(listing, version, log.root)
        return "won"
    newest: DeltaSnapshot = load(context)
    if newest.checkpoint is None or newest.checkpoint.version < version:
        return "won"
    return contains(newest, read_entry(log, version))


@dataclass(frozen=True, slots=True)
class DeltaLiveFiles:
    """See `table.features.LiveFiles`."""

    context: TableContext

    def uris(self) -> Iterator[str]:
        """Files of the log, and the data and deletion vector files of every version that can still be opened."""
        context = self.context
        log = Log(context.location.uri, context.stores)
        listing = log.listing()
        for info in log.storage.list(log.key):
            yield log.uri(info.key)
        root = context.location.uri
        for found in listing.checkpoints:
            try:
                checkpoint = open_checkpoint(log, found)
            except (CorruptTableError, NotFoundError):
                continue
            for _, batch in read_files(checkpoint, Wanted("add", ADD)):
                yield from paths.uris_of(paths.keys_of(batch.column("path"), root), root).to_pylist()
                vectors = batch.column("deletionVector")
                if vectors.null_count < len(vectors):
                    yield from _vector_files(vectors.to_pylist(), root)
            if checkpoint.entry is not None:
                yield from _files_of(checkpoint.entry, root)
        for version in sorted(listing.commits):
            yield from _files_of(read_entry(log, version), root)


def _files_of(entry: Entry, root: str) -> Iterator[str]:
    for _, action in entry.files():
        yield paths.decode(action["path"], root)
        yield from _vector_files([action.get("deletionVector")], root)


def _vector_files(vectors: list[dict[str, Any] | None], root: str) -> Iterator[str]:
    for vector in vectors:
        if vector and vector.get("storageType") is not None and (uri := file_uri(vector, root)) is not None:
            yield uri
