"""Removes entries and checkpoints that the table no longer retains (PROTOCOL.md, "Metadata Cleanup")."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from boathouse.bits import system
from boathouse.delta import paths
from boathouse.delta.checkpoint.reader import open_checkpoint
from boathouse.delta.features.support import supports
from boathouse.delta.log.commit_times import version_at
from boathouse.delta.log.durations import DAY_MS, duration_ms
from boathouse.delta.log.folder import LOG, SIDECARS, Checkpoint, Log, read_listing
from boathouse.delta.log.replay import read_entry
from boathouse.delta.snapshot import DeltaSnapshot
from boathouse.errors import CorruptTableError, NotFoundError
from boathouse.storage import ObjectInfo, uris

RETAINED: Final = "delta.logRetentionDuration"
PROTECTED: Final = "delta.requireCheckpointProtectionBeforeVersion"
_DEFAULT_MS: Final = 30 * DAY_MS
_VERSIONED: Final = re.compile(r"(\d{20})\.(?:json|crc|checkpoint\..*(?:json|parquet))")
_COMPACTED: Final = re.compile(r"(\d{20})\.\d{20}\.compacted\.json")


def clean_log(snapshot: DeltaSnapshot) -> int:
    """Removes what is older than the table retains, and returns the number of files.

    The newest checkpoint that was made by the last midnight (UTC) before that remains, with its entry and everything
    since: without such a checkpoint, nothing is removed. Raises StorageError, CorruptTableError.
    """
    log = snapshot.log
    _, files = log.storage.list_dir(log.key)
    kept = _oldest_kept(snapshot, files)
    if kept is None:
        return 0
    expired = sorted(_expired(files, kept.version))
    if not expired:
        return 0
    # Oldest first: what an interrupted removal leaves is whole from some version on.
    log.storage.delete(expired)
    unused = list(_unused_sidecars(log))
    log.storage.delete(unused)
    return len(expired) + len(unused)


def _oldest_kept(snapshot: DeltaSnapshot, files: Sequence[ObjectInfo]) -> Checkpoint | None:
    """The checkpoint from which the log is retained; None to retain everything."""
    now = system.current().now_ms()
    text = snapshot.metadata.configuration.get(RETAINED)
    since = now - (_DEFAULT_MS if text is None else duration_ms(text, now))
    if since <= 0:
        return None
    log, listing = snapshot.log, read_listing(files)
    midnight = since // DAY_MS * DAY_MS
    version = version_at(listing, snapshot.metadata, midnight, lambda v: read_entry(log, v))
    found = next((c for c in listing.checkpoints if version is not None and c.version <= version), None)
    if found is None or found.version not in listing.commits:
        return None
    if supports(snapshot.protocol, "checkpointProtection") and found.version < snapshot.metadata.number(PROTECTED, 0):
        # What is below that version may only go all at once.
        return None
    open_checkpoint(log, found)
    return found


def _expired(files: Sequence[ObjectInfo], first: int) -> Iterator[str]:
    """The keys of files of versions before `first`, and of compactions that begin at it or before."""
    for info in files:
        name = info.key.rpartition("/")[2]
        versioned, compacted = _VERSIONED.fullmatch(name), _COMPACTED.fullmatch(name)
        if (versioned and int(versioned[1]) < first) or (compacted and int(compacted[1]) <= first):
            yield info.key


def _unused_sidecars(log: Log) -> Iterator[str]:
    """The keys of sidecars that no checkpoint names, but for those since yesterday's midnight: a checkpoint that is
    being written may need them. None if some checkpoint cannot be read."""
    since = system.current().now_ms() // DAY_MS * DAY_MS - DAY_MS
    old = [f.key for f in log.storage.list(f"{log.key}/{SIDECARS}") if f.modified_ms < since]
    if not old:
        return
    used: set[str] = set()
    for checkpoint in log.listing().checkpoints:
        try:
            found = open_checkpoint(log, checkpoint).small.get("sidecar", ())
        except (CorruptTableError, NotFoundError):
            return
        used |= {uris.split(paths.decode(s["path"], f"{log.root}/{LOG}/{SIDECARS}"))[2] for s in found}
    yield from (key for key in old if key not in used)
