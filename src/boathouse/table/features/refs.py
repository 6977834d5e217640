"""Branches and tags that a table has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from boathouse.table.location import Version
    from boathouse.table.refs import Ancestor, Ref


class Refs(Protocol):
    """Of a snapshot: those of its table when it was read. Its edits are `SetRef` and `DropRef`."""

    def named(self) -> Mapping[str, Ref]:
        """Every branch and tag, by name."""

    def ancestors(self, version: Version) -> Sequence[Ancestor]:
        """A version and those that it was made from, newest first, as far as they are retained.

        Raises VersionNotFoundError for one that is not retained.
        """
