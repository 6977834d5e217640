"""Counts of the files that the log adds, from its actions as they were parsed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from boathouse.delta.stats import natural, row_count
from boathouse.table.sizes import FileCounts


def action_counts(adds: Iterable[Mapping[str, Any]]) -> list[FileCounts] | None:
    """The counts of add actions; None if a value is not what it should be: Arrow converts or refuses it."""
    found: list[FileCounts] = []
    for action in adds:
        size, stats = action.get("size"), action.get("stats")
        if (size is not None and natural(size) is None) or not isinstance(stats, str | None):
            return None
        vector = action.get("deletionVector") or {}
        found.append((size, row_count(stats), vector.get("cardinality") or 0))
    return found
