"""Versions that stay readable until they are expired, and the files that go with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from boathouse.table.edits import ExpireVersions
    from boathouse.table.location import Version
    from boathouse.table.snapshot import Snapshot

HeldKind = Literal[
    "data", "position deletes", "equality deletes", "manifest", "manifest list", "statistics", "transaction", "index"
]


@dataclass(frozen=True, slots=True)
class ExpiryRule:
    """Versions that are older than `before_ms` expire, except the newest `keep` of each branch; None: the table's own
    settings. What a branch or tag says of itself goes before both. `versions` expire however young they are."""

    before_ms: int | None = None
    keep: int | None = None
    versions: frozenset[Version] = frozenset()


@dataclass(frozen=True, slots=True)
class HeldFile:
    """`size` is None where no metadata records it."""

    kind: HeldKind
    size: int | None


class Expiry(Protocol):
    """Of the newest snapshot of a table."""

    @property
    def ms(self) -> int:
        """The age from which versions expire, as the table has it."""

    def due(self, rule: ExpiryRule, now_ms: int) -> ExpireVersions:
        """The versions that expire, and the branches and tags that are too old themselves.

        Raises VersionNotFoundError for a version that is not there, InvalidArgumentError for one that a branch or tag
        needs, or for settings of the table that are no numbers, UnsupportedFeatureError if the table's files are not to
        be removed.
        """

    def held_by(self, expired: ExpireVersions, after: Snapshot) -> Mapping[str, HeldFile]:
        """The files, by URI, that these versions of this snapshot's table need, and no other version, branch or tag of
        `after`, which is this snapshot or a later one. Raises what reading the metadata of retained versions raises;
        what cannot be read of an expired one stays.
        """


class VersionFiles(Protocol):
    """Of the newest snapshot of a table of which each version is a file of its own: a version expires as its file is
    removed, and no commit says so."""

    def documents(self, expired: ExpireVersions) -> Mapping[Version, str]:
        """The files of these versions, by URI, oldest first, without those that a branch or tag needs by now."""

    def unneeded(self, held: Mapping[str, HeldFile], expired: ExpireVersions) -> Mapping[str, HeldFile]:
        """Of the files that `Expiry.held_by` gave for these versions those that nothing needs either that came since,
        nor one of the versions that is still there. Raises what reading the metadata raises."""
