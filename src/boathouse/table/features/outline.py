"""What is known of all units of a version before any of them is looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Outline:
    """Every unit of the version is one Parquet file, of the partition spec `spec`, without deleted rows.

    There are at most so many `files`, of at most so many `bytes`.
    """

    files: int
    bytes: int
    spec: int


class Outlined(Protocol):
    """Of a snapshot."""

    def outline(self, more_than: int) -> Outline | None:
        """Of a version of more files than that, from the metadata of metadata files and one number for each unit. None
        where that does not tell, where units differ, and for fewer files."""
