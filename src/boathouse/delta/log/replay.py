"""Reads the entries of a version, those that a compaction stands for as one (PROTOCOL.md, "Log Compaction Files")."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from boathouse.delta.log.entry import Entry, parse_entry
from boathouse.delta.log.folder import Compaction, Log, Segment
from boathouse.delta.log.tail import file_key
from boathouse.errors import CorruptTableError, NotFoundError

logger = logging.getLogger("boathouse")
_FIRST_BYTES: Final = 1 << 16


def read_entry(log: Log, version: int, modified_ms: int = 0) -> Entry:
    """One commit. Raises NotFoundError, CorruptTableError."""
    return parse_entry(version, log.commit_uri(version), log.storage.get(log.commit_key(version)), modified_ms)


def read_info(log: Log, version: int) -> Entry:
    """An entry of which only commitInfo is certainly read: most writers write it as the first line."""
    head = log.storage.get_range(log.commit_key(version), 0, _FIRST_BYTES)
    first, newline, _ = head.partition(b"\n")
    if newline and first.startswith(b'{"commitInfo"'):
        return parse_entry(version, log.commit_uri(version), first)
    return read_entry(log, version)


def read_entries(log: Log, found: Segment) -> Iterator[Entry]:
    """The entries of a segment; a compaction that cannot be read, or contradicts itself, is as if it did not exist."""
    covered = -1
    standing = {c.first: c for c in found.compactions}
    for version, info in found.commits:
        compaction = standing.get(version)
        entry = None if compaction is None else _compacted(log, compaction)
        if entry is not None:
            covered = entry.version
            yield entry
        elif version > covered:
            yield read_entry(log, version, info.modified_ms)


def _compacted(log: Log, compaction: Compaction) -> Entry | None:
    file, uri = compaction.file, log.uri(compaction.file.key)
    try:
        found = parse_entry(compaction.last, uri, log.storage.get(file.key), file.modified_ms)
        _check_once(found, log.root)
    except (CorruptTableError, NotFoundError) as error:
        logger.warning("%s is ignored: %s", uri, error)
        return None
    return replace(found, first=compaction.first)


def _check_once(compaction: Entry, root: str) -> None:
    """Raises CorruptTableError for two actions on one file and vector: which of them is the last one is not stated."""
    seen: set[str] = set()
    for _, action in compaction.files():
        if (key := file_key(action, root)) in seen:
            raise CorruptTableError(f"the compaction has two actions on {action['path']}", where=compaction.uri)
        seen.add(key)
