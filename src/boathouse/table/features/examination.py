"""Everything that is wrong with a version of a table, not only what comes first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from boathouse.table.findings import Finding

Depth = Literal["metadata", "files"]
"""metadata: what reading the metadata shows; files: also whether each file is there, with its size."""


class Examination(Protocol):
    """Of a snapshot."""

    def examine(self, depth: Depth = "metadata") -> Iterator[Finding]:
        """The findings, most of which opening or planning would raise one by one. Raises StorageError."""
