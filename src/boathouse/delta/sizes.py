"""Counts of a version's files from its actions as they were parsed."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa

from boathouse.delta.checkpoint.reader import OpenCheckpoint, Wanted, read_files
from boathouse.delta.log.entry import ADD
from boathouse.delta.log.tail import file_key
from boathouse.delta.stats.bounds import natural, row_count
from boathouse.delta.stats.parsed import PARSED, ROWS, leaves
from boathouse.table.sizes import FileCounts

FEW: Final = 100_000
"""The files of a checkpoint with more rows are counted by columns, those of a smaller one one by one, which is faster
than loading what Arrow needs to convert Python values."""
_COUNTED: Final = pa.schema([f for f in ADD if f.name in ("path", "size", "deletionVector", "stats")])


def action_counts(adds: Iterable[Mapping[str, Any]]) -> list[FileCounts] | None:
    """The counts of add actions; None if a value is not what it should be: Arrow converts or refuses it."""
    found: list[FileCounts] = []
    for action in adds:
        size, stats = action.get("size"), action.get("stats")
        if (size is not None and natural(size) is None) or not isinstance(stats, str | None):
            return None
        found.append((size, row_count(stats), _deleted(action)))
    return found


def checkpoint_counts(checkpoint: OpenCheckpoint, replaced: Container[str], root: str) -> Iterator[FileCounts]:
    """The counts of a checkpoint's files, except those that later entries replaced."""
    for _, adds in read_files(checkpoint, Wanted("add", _COUNTED, parsed=leaves(()))):
        for action in adds.to_pylist():
            if file_key(action, root) not in replaced:
                stats, parsed = action["stats"], action.get(PARSED)
                rows = natural(parsed.get(ROWS)) if stats is None and parsed is not None else row_count(stats)
                yield action["size"], rows, _deleted(action)


def _deleted(action: Mapping[str, Any]) -> int:
    return (action.get("deletionVector") or {}).get("cardinality") or 0
