"""One attempt at a commit, and how it is published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from boathouse.errors import CommitUnknownError, CorruptTableError
from boathouse.table.location import CommitId, Version


@dataclass(frozen=True, slots=True)
class Winner:
    """A commit after the planned snapshot. `document` is the format's own."""

    commit: CommitId
    write_id: str | None
    document: Any

    @property
    def version(self) -> Version | None:
        return self.commit.version


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a commit, in the two forms in which it can be published.

    In a file system, the document `body` is put at `uri` if absent, and then the commit exists. A catalog is sent
    `updates`, the edits of the table, and `requirements`, what must still hold of the head for them to be right, both
    in the format's own terms (Iceberg: those of the REST catalog; Delta: the actions and the version to follow; Lance:
    the transaction and the version to follow). `replaces` is the token of the head that it follows, None for a new
    table. `side` are auxiliary files, already written, that only this attempt refers to; they are removed if it is
    certainly lost. `state` is what the format knows of the version that the attempt makes.
    """

    uri: str
    body: bytes
    commit: CommitId
    side: tuple[str, ...] = ()
    replaces: str | None = None
    updates: Sequence[Any] = field(default=(), repr=False)
    requirements: Sequence[Any] = field(default=(), repr=False)
    state: Any = field(default=None, repr=False)

    @property
    def version(self) -> Version | None:
        return self.commit.version

    def shown_as(self, uri: str, size: int | None) -> bool:
        """Whether a listed object of this URI and size is the body that was put, so that it need not be read.

        Only where the same listing shows that the snapshot on which it was prepared is unchanged: it could be a version
        of a table that was recreated.
        """
        return uri == self.uri and size == len(self.body)


Published = Literal["won", "lost", "unknown"]


def undecided(write_id: str, version: Version, where: str) -> CommitUnknownError:
    """What a search for a write says of a version that may be no part of the table."""
    return CommitUnknownError(
        f"the write {write_id} is in version {version}, and what is left of the log does not tell whether that version "
        "was ever part of the table: it may have been put after older versions were cleaned away",
        where=where,
        advice="look at the rows: read the table, and write them again only if they are not there",
    )


def held_back(what: str, where: str, advice: str | None = None) -> CorruptTableError:
    """What is said of an attempt that would have left a table that cannot be read."""
    default = CorruptTableError.general
    return CorruptTableError(
        f"nothing was committed, as the table could not be read afterwards: {what}",
        where=where,
        advice="report this with the table's metadata" if advice in (None, default) else advice,
    )
