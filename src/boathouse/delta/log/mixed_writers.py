"""Whether a writer that does not put-if-absent writes to the table, too (docs/writers.md)."""

from __future__ import annotations

from typing import Final

from boathouse.bits import system
from boathouse.delta.log.durations import DAY_MS
from boathouse.delta.log.entry import Entry
from boathouse.delta.log.folder import LOG, Log
from boathouse.delta.log.replay import read_info
from boathouse.delta.snapshot import DeltaSnapshot
from boathouse.errors import CorruptTableError, MixedWritersError, NotFoundError

_UNSAFE_STORES: Final = ("file", "s3")
_OURS: dict[tuple[str, str], int] = {}
"""By folder and id of a table, the version up to which no entry was made by such a writer: entries never change."""


def check_mixed_writers(snapshot: DeltaSnapshot) -> None:
    """Raises MixedWritersError if delta-spark wrote within the last day, or is writing, on a store where it does not
    put-if-absent.

    On local disks and on S3 it checks, then creates: our commit in between would be overwritten.
    """
    root = snapshot.location.uri
    if root.split(":", 1)[0] not in _UNSAFE_STORES:
        return
    since, log = system.current().now_ms() - DAY_MS, snapshot.log
    known = _OURS.get((root, snapshot.identity), -1)
    replayed = {e.version: e for e in snapshot.entries if e.first is None}
    recent = dict.fromkeys(replayed, since)
    first = min(replayed, default=snapshot.version + 1)
    if known + 1 < first or len(replayed) < len(snapshot.entries):
        # Commits before the checkpoint are as young as their files.
        recent |= {v: info.modified_ms for v, info in log.listing(known + 1).commits.items()}
    for version in sorted((v for v, time in recent.items() if v > known and time >= since), reverse=True):
        _check(replayed.get(version), version, recent[version], since, log)
    _OURS[root, snapshot.identity] = max(known, snapshot.version)
    _, files = log.storage.list_dir(f"{log.key}/.tmp")
    if any(f.modified_ms >= since for f in files):
        raise _mixed(f"{LOG}/.tmp contains commits that another writer has started", root)


def _check(entry: Entry | None, version: int, time: int, since: int, log: Log) -> None:
    try:
        info = (read_info(log, version) if entry is None else entry).info
    except (NotFoundError, CorruptTableError):
        return
    engine, made = str(info.get("engineInfo") or ""), info.get("timestamp")
    if "delta-lake/" in engine.lower() and (made if isinstance(made, int) else time) >= since:
        raise _mixed(f"version {version} was written by {engine} within the last day", log.root)


def _mixed(seen: str, root: str) -> MixedWritersError:
    return MixedWritersError(
        f"{seen}: on this store that writer can overwrite our commits",
        where=root,
        advice="stop the other writer, then open the table with allow_mixed_writers=True; for every table: "
        'spark.conf.set("spark.boathouse.allowMixedWriters", "true"), or BOATHOUSE_ALLOW_MIXED_WRITERS=1 in the '
        'environment; for format("boathouse"): .option("allowMixedWriters", "true")',
    )
