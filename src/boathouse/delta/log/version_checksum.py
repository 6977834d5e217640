"""Version checksums: what a version contains, in a file beside its entry (PROTOCOL.md, "Version Checksum File").

The first version of a table gets one, and every checkpoint; a commit whose predecessor has one continues it. Nobody
relies on them: they show that somebody changed the log behind its writers.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self

import orjson

from boathouse.bits.text import json_value
from boathouse.delta.actions import plain
from boathouse.delta.log.commit_times import records_times
from boathouse.errors import AlreadyExistsError, BoathouseError, CorruptTableError
from boathouse.storage import PutMode
from boathouse.table.findings import Finding
from boathouse.table.sizes import Sizes, counts_of

if TYPE_CHECKING:
    import pyarrow as pa

    from boathouse.delta import actions
    from boathouse.delta.log.folder import Log

logger = logging.getLogger("boathouse")


@dataclass(frozen=True, slots=True)
class VersionChecksum:
    """Number and bytes of a version's live files, its protocol and metaData actions, and when it was made, where
    commits record that."""

    files: int
    size: int
    protocol: Mapping[str, Any]
    metadata: Mapping[str, Any]
    time_ms: int | None = None

    @classmethod
    def parse(cls, body: bytes, where: str) -> Self:
        """Raises CorruptTableError."""
        found = json_value(body, where)
        try:
            files, size, protocol, metadata = (found[k] for k in ("numFiles", "tableSizeBytes", "protocol", "metadata"))
            once = found["numProtocol"] == found["numMetadata"] == 1
            time = found.get("inCommitTimestampOpt")
        except (KeyError, TypeError, AttributeError) as error:
            raise CorruptTableError(f"the version checksum is incomplete: {error}", where=where) from error
        counts = [files, size, *([] if time is None else [time])]
        if not once or any(isinstance(n, bool) or not isinstance(n, int) or n < 0 for n in counts):
            raise CorruptTableError("the version checksum has counts that cannot be", where=where)
        if not isinstance(protocol, dict) or not isinstance(metadata, dict):
            raise CorruptTableError("the version checksum has no protocol or metadata", where=where)
        return cls(files, size, protocol, metadata, time)

    def body(self) -> bytes:
        document = {
            "tableSizeBytes": self.size,
            "numFiles": self.files,
            "numMetadata": 1,
            "numProtocol": 1,
            "metadata": self.metadata,
            "protocol": self.protocol,
        }
        return orjson.dumps(document | ({} if self.time_ms is None else {"inCommitTimestampOpt": self.time_ms}))

    def differences(self, other: VersionChecksum) -> list[str]:
        """What the other one, of the same version, has differently."""
        found = [] if self.files == other.files else [f"{self.files} files, not {other.files}"]
        found += [] if self.size == other.size else [f"{self.size} bytes, not {other.size}"]
        found += [] if plain(self.protocol) == plain(other.protocol) else ["another protocol"]
        return found + ([] if plain(self.metadata) == plain(other.metadata) else ["other metadata"])


class Summed(Protocol):
    """What is asked of a snapshot."""

    @property
    def version(self) -> int: ...
    @property
    def timestamp_ms(self) -> int: ...
    @property
    def protocol(self) -> actions.Protocol: ...
    @property
    def metadata(self) -> actions.Metadata: ...
    @property
    def has_checksum(self) -> bool: ...
    @property
    def checksum(self) -> VersionChecksum | None: ...
    @property
    def log(self) -> Log: ...
    def files(self) -> Iterator[pa.RecordBatch]:
        """FILES."""


def first_checksum() -> VersionChecksum:
    """That of the table before its first version."""
    return VersionChecksum(0, 0, {}, {})


def after(before: VersionChecksum | None, updates: Iterable[Mapping[str, Any]]) -> VersionChecksum | None:
    """That of the version that a commit makes; None if it is not known without reading the table."""
    if before is None:
        return None
    files, size, protocol, metadata, time = before.files, before.size, before.protocol, before.metadata, None
    for update in updates:
        for kind, action in update.items():
            if kind in ("add", "remove"):
                if not isinstance(action.get("size"), int):
                    return None
                sign = 1 if kind == "add" else -1
                files, size = files + sign, size + sign * action["size"]
            elif kind == "protocol":
                protocol = action
            elif kind == "metaData":
                metadata = action
            elif kind == "commitInfo":
                time = action.get("inCommitTimestamp")
    return VersionChecksum(files, size, protocol, metadata, time if records_times(metadata) else None)


def checksum_of(snapshot: Summed) -> VersionChecksum | None:
    """The checksum of a version; None without one, or if it contradicts the entries, which is reported."""
    if snapshot.checksum is not None or not snapshot.has_checksum:
        return snapshot.checksum
    found = _read(snapshot.log, snapshot.version)
    if found is None:
        return None
    return None if _report(snapshot, found, checksum_from(snapshot, found.files, found.size)) else found


def checksum_from(snapshot: Summed, files: int, size: int) -> VersionChecksum:
    """That of a version with this number of live files, and these bytes of them."""
    metadata = snapshot.metadata.raw
    time = snapshot.timestamp_ms if records_times(metadata) else None
    return VersionChecksum(files, size, snapshot.protocol.raw, metadata, time)


def compare(snapshot: Summed, files: int, size: int) -> None:
    """Reports a checksum that counts other files than the log has."""
    found = checksum_of(snapshot)
    if found is not None:
        _report(snapshot, found, checksum_from(snapshot, files, size))


def contradictions(snapshot: Summed) -> Iterator[Finding]:
    """How the checksum of a version contradicts its log. Nobody relies on one, but somebody changed the log."""
    found = _read(snapshot.log, snapshot.version) if snapshot.has_checksum else None
    if found is not None:
        counted = Sizes.of(counts_of(snapshot.files()), 0)
        yield from _differences(snapshot, found, checksum_from(snapshot, counted.files, counted.bytes))


def _differences(snapshot: Summed, found: VersionChecksum, recorded: VersionChecksum) -> Iterator[Finding]:
    if problems := found.differences(recorded):
        where = snapshot.log.uri(snapshot.log.checksum_key(snapshot.version))
        text = f"the version checksum contradicts the log: it has {', '.join(problems)}"
        yield Finding("delta.checksum", "hazard", text, where, "compare the log with a copy: it was changed by hand")


def _report(snapshot: Summed, found: VersionChecksum, recorded: VersionChecksum) -> bool:
    """Logs how the checksum contradicts what the log states."""
    problems = list(_differences(snapshot, found, recorded))
    for problem in problems:
        logger.warning("%s: %s", problem.where, problem.message)
    return bool(problems)


def write(log: Log, version: int, checksum: VersionChecksum) -> None:
    """Writes the checksum of a version unless it has one; without it, nobody loses anything."""
    try:
        log.storage.put(log.checksum_key(version), checksum.body(), PutMode.CREATE)
    except AlreadyExistsError:
        return
    except BoathouseError as error:
        logger.debug("no checksum of version %d: %s", version, error)


def _read(log: Log, version: int) -> VersionChecksum | None:
    where = log.uri(log.checksum_key(version))
    try:
        return VersionChecksum.parse(log.storage.get(log.checksum_key(version)), where)
    except BoathouseError as error:
        logger.warning("%s is ignored: %s", where, error)
        return None
