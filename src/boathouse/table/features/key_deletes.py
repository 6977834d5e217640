"""Rows that are deleted by the values of their key columns, without being looked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from boathouse.types import PartitionSpec, Schema


@dataclass(frozen=True, slots=True)
class Keys:
    """What files of keys hold: the table's columns `schema`, under `spec`, which has no fields where the keys apply to
    rows of every partition."""

    schema: Schema
    spec: PartitionSpec


class KeyDeletes(Protocol):
    """Of a snapshot."""

    def keys(self, columns: Sequence[tuple[str, ...]]) -> Keys:
        """How deletes by these columns, paths as the schema has them, are written.

        Raises UnsupportedFeatureError for columns by whose values the format deletes no rows, and for a version of it
        that has no such deletes.
        """
