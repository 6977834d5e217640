"""Whether an entry that was put is part of the log that readers replay.

Put-if-absent succeeds below a log that was cleaned: then there is a newer checkpoint above our entry that was made
without it. Readers begin at that checkpoint, so what matters is whether it contains our entry's changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from boathouse.delta import paths
from boathouse.delta.actions import plain
from boathouse.delta.checkpoint import Wanted, read_files
from boathouse.delta.commits import ADD, REMOVE, Entry, parse_entry
from boathouse.delta.log import Log
from boathouse.delta.snapshot import DeltaSnapshot, S
from boathouse.errors import CorruptTableError, TableNotFoundError
from boathouse.table.attempt import Attempt, Published
from boathouse.table.context import TableContext

_TOMBSTONES_KEPT = "delta.deletedFileRetentionDuration"


def look_back(attempt: Attempt, context: TableContext, newest: Callable[[], S]) -> tuple[Published | None, S | None]:
    """`Target.look_back`; `newest` reads the newest snapshot."""
    try:
        found = newest()
    except TableNotFoundError:
        return None, None
    except CorruptTableError:
        if _above_a_gap(attempt, Log(context.location.uri, context.stores)):
            # The table was recreated: our entry is far above its log, where no writer can have built on it.
            return "lost", None
        raise
    uri = found.log.commit_uri(found.version)
    if found.commit is not None and attempt.shown_as(uri, found.commit.size):
        found = replace(found, checksum=attempt.state)
    return includes(attempt, found), found


def _above_a_gap(attempt: Attempt, log: Log) -> bool:
    listing = log.listing()
    version = _number(attempt)
    return version > 0 and version - 1 not in listing.commits and not listing.checkpoints


def _number(attempt: Attempt) -> int:
    assert attempt.version is not None, "every commit of a Delta table makes a version"
    return attempt.version


def includes(attempt: Attempt, newest: DeltaSnapshot) -> Published | None:
    """`won` or `lost`, `unknown` if the log cannot decide; None while the listing does not show the entry yet."""
    version = _number(attempt)
    if newest.version < version:
        return None
    checkpoint = newest.checkpoint
    if checkpoint is None or checkpoint.version < version:
        # Readers replay every entry after a checkpoint, and no other writer could take our entry's number.
        return "won"
    ours = parse_entry(version, attempt.uri, attempt.body)
    return _by_files(ours, newest) or _by_small_actions(ours, newest)


def _by_files(ours: Entry, newest: DeltaSnapshot) -> Published | None:
    """Whether the checkpoint contains our files; None if the entry has none."""
    root = newest.location.uri
    files = [(is_add, paths.key_of(a["path"], root), a.get("deletionTimestamp")) for is_add, a in ours.files()]
    if not files:
        return None
    live, gone = _known(newest, "add"), _known(newest, "remove")
    added = [key for is_add, key, _ in files if is_add]
    if any(key in live or key in gone for key in added):
        return "won"
    if added:
        # Files that a later commit removed leave a tombstone, for as long as the table retains them.
        return "unknown" if _TOMBSTONES_KEPT in newest.metadata.configuration else "lost"
    removed = {key: time for is_add, key, time in files if not is_add}
    if any(gone.get(key) == time for key, time in removed.items()):
        return "won"
    return "lost" if any(key in live for key in removed) else "unknown"


def _known(newest: DeltaSnapshot, kind: str) -> dict[str, int | None]:
    """Files that the checkpoint and the entries after it add, or remove and when."""
    root = newest.location.uri
    found: dict[str, int | None] = {}
    assert newest.checkpoint is not None
    for _, batch in read_files(newest.checkpoint, Wanted(kind, ADD if kind == "add" else REMOVE)):
        keys = paths.keys_of(batch.column("path"), root).to_pylist()
        times = [None] * len(keys) if kind == "add" else batch.column("deletionTimestamp").to_pylist()
        found.update(zip(keys, times, strict=True))
    entries = [newest.checkpoint.entry] if newest.checkpoint.entry is not None else []
    for entry in (*entries, *newest.entries):
        for is_add, action in entry.files():
            if is_add is (kind == "add"):
                found[paths.key_of(action["path"], root)] = action.get("deletionTimestamp")
    return found


def _by_small_actions(ours: Entry, newest: DeltaSnapshot) -> Published:
    for txn in ours.actions.get("txn", ()):
        return "won" if _at_least(newest.transactions.get(txn["appId"]), txn["version"]) else "lost"
    metadata = ours.last("metaData")
    if metadata is not None and plain(metadata) == plain(newest.metadata.raw):
        return "won"
    return "unknown"


def _at_least(found: int | None, version: int) -> bool:
    return found is not None and found >= version
