"""Branches and tags that a table has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from boathouse.table.location import Version
    from boathouse.table.refs import Ancestor, Ref, RefType


class Refs(Protocol):
    """Of a snapshot: those of its table, with the refs when it was read or newer ones. Its edits are `SetRef` and
    `DropRef`."""

    @property
    def shared(self) -> bool:
        """Whether all branches are of the same versions, so that one can be moved to any of them, and says how long
        they are retained. Otherwise each branch has versions of its own."""

    def named(self) -> Mapping[str, Ref]:
        """Every branch and tag, by name."""

    def ancestors(self, version: Version) -> Sequence[Ancestor]:
        """A version and those that it was made from, newest first, as far as they are retained.

        Raises VersionNotFoundError for one that is not retained.
        """

    def at(self, name: str, type: RefType, version: Version) -> Ref:
        """A branch or tag of this name at a version of the branch that the table is open at.

        Raises VersionNotFoundError for one that is not retained, InvalidArgumentError for a name that is not possible.
        """

    def check_drop(self, ref: Ref) -> None:
        """Raises InvalidArgumentError for a branch that others need."""
