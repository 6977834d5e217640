"""One attempt at a commit, and how it is published."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

from boathouse.table.location import Version


@dataclass(frozen=True, slots=True)
class Winner:
    """A commit after the planned snapshot. `document` is the format's own."""

    version: Version
    write_id: str | None
    document: Any


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a commit: `body` is put at `uri` if absent, and then `version` exists.

    `side` are auxiliary files, already written, that only this attempt refers to; they are removed if it is certainly
    lost. `replaces` is the head's token, which a catalog swaps for the new one.
    """

    uri: str
    body: bytes
    version: Version
    side: tuple[str, ...] = ()
    replaces: str | None = None

    def shown_as(self, uri: str, size: int | None) -> bool:
        """Whether a listed object of this URI and size is the body that was put, so that it need not be read.

        Only where the same listing shows that the snapshot on which it was prepared is unchanged: it could be a version
        of a table that was recreated.
        """
        return uri == self.uri and size == len(self.body)


Published = Literal["won", "lost", "unknown"]


class Committer(Protocol):
    """How a version is published: put-if-absent on a file system, or a catalog's swap."""

    def publish(self, attempt: Attempt) -> Published:
        """Makes the attempt the next version on exactly the head it was prepared on; `lost` is definite.

        Raises StorageError only if nothing can have been committed.
        """
