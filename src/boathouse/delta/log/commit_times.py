"""When commits were made: by the times of their files, or as they record it (PROTOCOL.md, "In-Commit Timestamps").

Recorded times increase with the version, so that one of them is found by halving.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from typing import Any, Final

from boathouse.delta.actions import Metadata
from boathouse.delta.log.entry import Entry
from boathouse.delta.log.folder import Listing

ENABLED: Final = "delta.enableInCommitTimestamps"
SINCE_VERSION: Final = "delta.inCommitTimestampEnablementVersion"
SINCE_TIME: Final = "delta.inCommitTimestampEnablementTimestamp"


def file_times(listing: Listing) -> dict[int, int]:
    """The time of each commit: the files' times, adjusted to increase by at least a millisecond each."""
    found: dict[int, int] = {}
    before = -1
    for version in sorted(listing.commits):
        before = max(before + 1, listing.commits[version].modified_ms)
        found[version] = before
    return found


def in_commit_time(entry: Entry) -> int | None:
    """The time that the commit itself records; None if it records none."""
    value = entry.info.get("inCommitTimestamp")
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def version_at(listing: Listing, newest: Metadata, time_ms: int, read: Callable[[int], Entry]) -> int | None:
    """The newest version made at or before the time, None if the oldest that is retained is younger.

    `newest` is the metadata of the newest version, and `read` gives a commit.
    """
    times = file_times(listing)
    recorded: list[int] = []
    if newest.flag(ENABLED):
        since = newest.number(SINCE_VERSION, 0)
        recorded = sorted(v for v in times if v >= since)

    def made(version: int) -> int:
        stored = in_commit_time(read(version))
        return times[version] if stored is None else stored

    at = bisect_right(recorded, time_ms, key=made)
    if at:
        return recorded[at - 1]
    return max((v for v, t in times.items() if t <= time_ms and v not in recorded), default=None)


def next_time(now_ms: int, before_ms: int | None) -> int:
    """What a commit records: later than the version before it, whatever the clocks of the writers."""
    return now_ms if before_ms is None else max(now_ms, before_ms + 1)


def records_times(raw: Mapping[str, Any]) -> bool:
    """Whether commits under this metaData record their time."""
    return str((raw.get("configuration") or {}).get(ENABLED, "")).strip().lower() == "true"


def with_enablement(raw: Mapping[str, Any], before: Metadata, version: int, time_ms: int) -> Mapping[str, Any]:
    """The metaData of a commit; if it begins to record times, it says since when, and if it ends to, no longer."""
    configuration, on = dict(raw.get("configuration") or {}), records_times(raw)
    if on and not before.flag(ENABLED):
        configuration |= {SINCE_VERSION: str(version), SINCE_TIME: str(time_ms)}
    elif not on:
        configuration = {k: v for k, v in configuration.items() if k not in (SINCE_VERSION, SINCE_TIME)}
    return {**raw, "configuration": configuration}
