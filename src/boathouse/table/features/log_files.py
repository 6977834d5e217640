"""Metadata files that stand for several others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from boathouse.table.location import Version


class CompactableLog(Protocol):
    """Of a snapshot."""

    def compact_log(self, first: Version | None, last: Version | None) -> str:
        """Writes one metadata file that readers may take instead of those of some versions; returns its URI.

        Raises InvalidArgumentError, VersionNotFoundError.
        """
