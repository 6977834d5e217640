"""Files in a table's folder that nothing names, as writers leave them that were killed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa


class Orphans(Protocol):
    """Of the newest snapshot of a table. Paths are raw and relative to the table's root."""

    @property
    def guard_ms(self) -> int:
        """The age below which such a file stays: a writer may be about to commit it."""

    def kept(self) -> Iterator[pa.Array]:
        """Every file that the table needs now, paths below its root and other URIs; with those of its metadata."""

    def searched(self, folder: str) -> bool:
        """Whether a folder below the root ("" is the root) may hold files of the table."""

    def own(self, path: str) -> bool:
        """Whether a file of a searched folder is one that the table's writers make."""
