"""Versions beside a branch whose changes can be made on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

if TYPE_CHECKING:
    from boathouse.table.edits import Edit
    from boathouse.table.location import Version


@dataclass(frozen=True, slots=True)
class Picked:
    """The edits that make the changes of a version on the planned one; FILES rows of what they add and remove."""

    edits: tuple[Edit, ...]
    added: pa.Table
    removed: pa.Table


class CherryPicks(Protocol):
    """Of a snapshot, which is the head of a branch."""

    def staged(self, name: str) -> Version:
        """The version that is staged under a name. Raises VersionNotFoundError, and InvalidArgumentError for
        several."""

    def pick(self, version: Version) -> Picked:
        """What makes the changes of another version. Where that follows the head directly, the branch moves to it.

        Raises VersionNotFoundError, and InvalidArgumentError, with the reason, where the changes cannot be made.
        """
