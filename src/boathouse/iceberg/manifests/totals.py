"""Compares the totals in a snapshot's summary with its manifests: an Avro file that is truncated between two blocks
reads without an error, with fewer files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from boathouse.errors import CorruptTableError
from boathouse.iceberg.manifests.records import ADVICE, DATA, ManifestFile
from boathouse.iceberg.metadata.document import TableMetadata

_DUPLICATES: Final = "deleted-duplicate-files"
_NUMBER = re.compile(r"-?[0-9]{1,19}")


def recorded(metadata: TableMetadata, snapshot: Mapping[str, Any]) -> Mapping[int, int]:
    """Content -> the number of live files in the summary; nothing if its writer is known to count incorrectly.

    - DuckDB (to 1.5) counts delete manifests as data files. It writes no `total-files-size`, so later writers cannot
      either.
    - Java subtracts a file that is listed twice only once when it removes it, and records that in
      `deleted-duplicate-files`.
    """
    summary = snapshot.get("summary") or {}
    if number(summary.get("total-files-size")) is None or _duplicates(metadata, snapshot):
        return {}
    found = {0: number(summary.get("total-data-files")), 1: number(summary.get("total-delete-files"))}
    return {content: total for content, total in found.items() if total is not None}


def _duplicates(metadata: TableMetadata, snapshot: Mapping[str, Any]) -> bool:
    counted = [s for s in metadata.snapshots.values() if _DUPLICATES in (s.get("summary") or ())]
    if not counted:
        return False
    line = metadata.ancestors(snapshot["snapshot-id"])
    return any((number((s.get("summary") or {}).get(_DUPLICATES)) or 0) > 0 for s in line)


def check_list(metadata: TableMetadata, snapshot: Mapping[str, Any], sources: Sequence[ManifestFile], uri: str) -> None:
    """Raises CorruptTableError for a manifest list whose manifests have fewer files than the summary."""
    for content, expected in recorded(metadata, snapshot).items():
        counts = [m.live_files for m in sources if (m.content == DATA) == (content == DATA)]
        listed = sum(c for c in counts if c is not None)
        if None not in counts and listed < expected:
            what = "data" if content == DATA else "delete"
            raise CorruptTableError(
                f"the manifest list names manifests of {listed:,} live {what} files, "
                f"but the summary of snapshot {snapshot['snapshot-id']} counts {expected:,}",
                where=uri,
                advice=ADVICE,
            )


def check_plan(metadata: TableMetadata, snapshot: Mapping[str, Any], content: int, live: int, uri: str) -> None:
    """Raises CorruptTableError for manifests with fewer files in total than the summary: the check if the manifest list
    has no counts."""
    expected = recorded(metadata, snapshot).get(content, 0)
    if live < expected:
        raise CorruptTableError(
            f"the manifests have {live:,} live files, "
            f"but the summary of snapshot {snapshot['snapshot-id']} counts {expected:,}",
            where=uri,
            advice=ADVICE,
        )


def number(text: object) -> int | None:
    """A number of a summary; None for any other value."""
    return int(text) if isinstance(text, str) and _NUMBER.fullmatch(text) else None
