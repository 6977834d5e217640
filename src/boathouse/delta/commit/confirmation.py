"""Whether an entry that was put is part of the log that readers replay.

Put-if-absent succeeds below a log that was cleaned: then there is a newer checkpoint above our entry that was made
without it. Readers begin at that checkpoint, so what matters is whether it contains our entry's changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.delta import paths
from boathouse.delta.actions import plain
from boathouse.delta.checkpoint.reader import OpenCheckpoint, Wanted, read_files
from boathouse.delta.commit.operations import BACKFILL
from boathouse.delta.log.entry import ADD, REMOVE, Entry, parse_entry
from boathouse.delta.log.folder import Log
from boathouse.delta.log.tail import file_key, file_keys
from boathouse.delta.snapshot import DeltaSnapshot, S
from boathouse.errors import CorruptTableError, NotFoundError, TableNotFoundError
from boathouse.table.attempt import Attempt, Published
from boathouse.table.context import TableContext

_TOMBSTONES_KEPT: Final = "delta.deletedFileRetentionDuration"
_KNOWN_FILES: Final = frozenset(("RESTORE", "DROP FEATURE", BACKFILL, "SET TBLPROPERTIES"))
"""Our operations that add files which the table has, or had before: such a file alone proves nothing."""
_ADDED: Final = pa.schema([ADD.field(n) for n in ("path", "deletionVector")])
_REMOVED: Final = pa.schema([REMOVE.field(n) for n in ("path", "deletionTimestamp", "deletionVector")])
_IDS: Final = ("path", "deletionVector", "baseRowId", "defaultRowCommitVersion")

States = Mapping[str, tuple[bool, int | None]]
"""The last action on each file, by `file_key`: whether it adds it, and when it was removed."""


def confirm(
    attempt: Attempt, context: TableContext, newest: Callable[[], S], head: DeltaSnapshot | None
) -> tuple[Published | None, S | None]:
    """`Commits.confirm`; `newest` reads the newest snapshot, `head` is the one that the attempt follows."""
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
    return _includes(attempt, found, head), found


def _above_a_gap(attempt: Attempt, log: Log) -> bool:
    listing = log.listing()
    version = _number(attempt)
    return version > 0 and version - 1 not in listing.commits and not listing.checkpoints


def _number(attempt: Attempt) -> int:
    assert attempt.version is not None, "every commit of a Delta table makes a version"
    return attempt.version


def _includes(attempt: Attempt, newest: DeltaSnapshot, head: DeltaSnapshot | None) -> Published | None:
    """`won` or `lost`, `unknown` if the log cannot decide; None while the listing does not show the entry yet."""
    version = _number(attempt)
    if newest.version < version:
        return None
    if newest.checkpoint is None or newest.checkpoint.version < version:
        # Readers replay every entry after a checkpoint, and no other writer could take our entry's number.
        return "won"
    return contains(newest, parse_entry(version, attempt.uri, attempt.body), head)


def contains(newest: DeltaSnapshot, ours: Entry, head: DeltaSnapshot | None = None) -> Published:
    """Whether the newest checkpoint, which is not older than this entry of ours, was made of it too.

    `head` is the snapshot that the entry follows, if it is known.
    """
    metadata = ours.last("metaData")
    if metadata is not None and metadata.get("id") != newest.identity:
        return "lost"
    if (given := _ids_given(ours, newest.location.uri)) and ours.info.get("operation") in _KNOWN_FILES:
        return _by_row_ids(given, ours, newest)
    return _by_files(ours, newest, head) or _by_small_actions(ours, newest)


def _ids_given(ours: Entry, root: str) -> dict[str, int]:
    """The first row id of each file whose rows our entry gave ids."""
    added = (action for is_add, action in ours.files() if is_add)
    fresh = (a for a in added if a.get("baseRowId") is not None and a.get("defaultRowCommitVersion") == ours.version)
    return {paths.key_of(a["path"], root): a["baseRowId"] for a in fresh}


def _by_row_ids(given: Mapping[str, int], ours: Entry, newest: DeltaSnapshot) -> Published:
    """By the ids that the checkpoint's files have. Another writer's ids are the same only if they were given in a
    version of the same number: then the files are as we meant them to be, but properties need not be."""
    assert newest.checkpoint is not None
    root = newest.location.uri
    wanted = pa.array(list(given), pa.string())
    found = set()
    for kind, schema in (("add", ADD), ("remove", REMOVE)):
        for _, batch in read_files(newest.checkpoint, Wanted(kind, pa.schema([schema.field(n) for n in _IDS]))):
            keys = paths.keys_of(batch.column("path"), root)
            rows = batch.append_column("key", keys).filter(pc.is_in(keys, wanted)).to_pylist()
            with_ids = (r for r in rows if kind == "add" or r["baseRowId"] is not None)
            found |= {
                (r["baseRowId"], r["defaultRowCommitVersion"]) == (given[r["key"]], ours.version) for r in with_ids
            }
    if False in found:
        return "lost"
    return _by_small_actions(ours, newest) if not found or "metaData" in ours.actions else "won"


def _by_files(ours: Entry, newest: DeltaSnapshot, head: DeltaSnapshot | None) -> Published | None:
    """By what the checkpoint says of our files; None if the entry has none."""
    root = newest.location.uri
    added: list[str] = []
    removed: dict[str, int | None] = {}
    for is_add, action in ours.files():
        key = file_key(action, root)
        if is_add:
            added.append(key)
        else:
            removed[key] = action.get("deletionTimestamp")
    if not added and not removed:
        return None
    assert newest.checkpoint is not None
    states = _states(newest.checkpoint, [*added, *removed], root)
    if any(time is not None and states.get(key) == (False, time) for key, time in removed.items()):
        return "won"
    known = ours.info.get("operation") in _KNOWN_FILES
    if added and not known and any(key in states for key in added):
        return "won"
    if any(key not in states for key in added):
        # Files that a later commit removed leave a tombstone, for as long as the table retains them.
        return "unknown" if _TOMBSTONES_KEPT in newest.metadata.configuration else "lost"
    if any(key in states and states[key][0] for key in removed):
        return "lost"
    return _added_again(added, states, newest, head) if added else "unknown"


def _added_again(added: list[str], states: States, newest: DeltaSnapshot, head: DeltaSnapshot | None) -> Published:
    """By files that the table had before: those that are still removed, as they were in the head, were not added."""
    if head is None:
        return "unknown"
    gone = {key: state for key in added if not (state := states[key])[0]}
    if gone:
        before = _before(head, gone)
        return "lost" if any(before.get(key) == state for key, state in gone.items()) else "unknown"
    # Another writer could have added the same files; not where the log still has what our entry follows.
    kept = head.commit is not None and newest.log.listing().commits.get(head.version) == head.commit
    return "won" if kept else "unknown"


def _before(head: DeltaSnapshot, keys: Iterable[str]) -> States:
    """What is left of the head's state."""
    root = head.location.uri
    wanted = set(keys)
    try:
        found = dict({} if head.checkpoint is None else _states(head.checkpoint, wanted, root))
    except NotFoundError:
        found = {}
    for entry in head.entries:
        found |= _actions(entry, wanted, root)
    return found


def _states(checkpoint: OpenCheckpoint, keys: Iterable[str], root: str) -> States:
    """What a checkpoint says of these files."""
    wanted = set(keys)
    values = pa.array(list(wanted), pa.string())
    found: dict[str, tuple[bool, int | None]] = {}
    for kind, schema in (("remove", _REMOVED), ("add", _ADDED)):
        for _, batch in read_files(checkpoint, Wanted(kind, schema)):
            files = file_keys(paths.keys_of(batch.column("path"), root), batch.column("deletionVector"))
            ours = pc.is_in(files, values)
            times = [None] * len(files) if kind == "add" else batch.column("deletionTimestamp").filter(ours).to_pylist()
            found |= {key: (kind == "add", time) for key, time in zip(files.filter(ours).to_pylist(), times)}
    return found | ({} if checkpoint.entry is None else _actions(checkpoint.entry, wanted, root))


def _actions(entry: Entry, wanted: set[str], root: str) -> dict[str, tuple[bool, int | None]]:
    found = ((file_key(action, root), is_add, action) for is_add, action in entry.files())
    return {key: (add, None if add else action.get("deletionTimestamp")) for key, add, action in found if key in wanted}


def _by_small_actions(ours: Entry, newest: DeltaSnapshot) -> Published:
    for txn in ours.actions.get("txn", ()):
        return "won" if _at_least(newest.transactions.get(txn["appId"]), txn["version"]) else "lost"
    metadata = ours.last("metaData")
    if metadata is not None and plain(metadata) == plain(newest.metadata.raw):
        return "won"
    protocol = ours.last("protocol")
    if metadata is None and protocol is not None and protocol == newest.protocol.raw:
        return "won"
    return "unknown"


def _at_least(found: int | None, version: int) -> bool:
    return found is not None and found >= version
