"""Writes the entries of some versions as one (PROTOCOL.md, "Log Compaction Files")."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from boathouse.delta.log.entry import Entry
from boathouse.delta.log.folder import Log
from boathouse.delta.log.replay import read_entry
from boathouse.delta.log.tail import replay
from boathouse.delta.snapshot import DeltaSnapshot
from boathouse.errors import InvalidArgumentError, NotFoundError, VersionNotFoundError
from boathouse.storage import PutMode

_LAST_OF: Final = {"txn": "appId", "domainMetadata": "domain"}
"""Actions of which the last one of each application or domain remains; tombstones of domains too."""


@dataclass(frozen=True, slots=True)
class DeltaLogFiles:
    """See `table.features.CompactableLog`."""

    snapshot: DeltaSnapshot

    def compact_log(self, first: int | None = None, last: int | None = None) -> str:
        """Writes the compaction of versions `first` (None: that after the checkpoint) to `last` (None: this one), and
        returns its URI; an older one is replaced.

        Raises InvalidArgumentError for less than two versions or for one after the snapshot, VersionNotFoundError if an
        entry is gone, CorruptTableError.
        """
        snapshot, log = self.snapshot, self.snapshot.log
        if first is None:
            first = snapshot.checkpoint.version + 1 if snapshot.checkpoint is not None else 0
        last = snapshot.version if last is None else last
        if not 0 <= first < last <= snapshot.version:
            raise InvalidArgumentError(
                f"versions {first} to {last} cannot be compacted",
                where=log.root,
                advice=f"name at least two versions, from 0 to {snapshot.version}",
            )
        known = {e.version: e for e in snapshot.entries if e.first is None}
        entries = [known.get(v) or _read(log, v) for v in range(first, last + 1)]
        body = b"".join(orjson.dumps(action) + b"\n" for action in _remaining(entries, log.root))
        key = log.compacted_key(first, last)
        log.storage.put(key, body, PutMode.OVERWRITE)
        return log.uri(key)


def _read(log: Log, version: int) -> Entry:
    try:
        return read_entry(log, version)
    except NotFoundError as error:
        raise VersionNotFoundError(
            f"version {version} has no entry in the log, so it cannot be compacted",
            where=log.root,
            advice="begin at a version that is retained; history() lists them",
        ) from error


def _remaining(entries: Sequence[Entry], root: str) -> Iterator[dict[str, Any]]:
    for kind in ("protocol", "metaData"):
        if found := [action for entry in entries if (action := entry.last(kind)) is not None]:
            yield {kind: found[-1]}
    for kind, key in _LAST_OF.items():
        actions = (action for entry in entries for action in entry.actions.get(kind, ()))
        for action in {action.get(key): action for action in actions}.values():
            yield {kind: action}
    files = replay(entries, root)
    yield from ({"remove": action} for action in files.removes.values())
    yield from ({"add": action} for action in files.adds.values())
