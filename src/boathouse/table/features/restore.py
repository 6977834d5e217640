"""Older versions that can become the newest one again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from boathouse.table.edits import RestoreTo
    from boathouse.table.location import At


class Restorable(Protocol):
    """Of a snapshot, which is the newest one."""

    def restoration(self, at: At) -> RestoreTo | None:
        """The edit that makes the table what it was at an older version or time; None if it already is.

        Raises VersionNotFoundError, UnsupportedFeatureError if the table could not be written as it was.
        """
