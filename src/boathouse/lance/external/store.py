"""What an external manifest store is asked: a map from (table, version) to a manifest, with conditional puts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Entry:
    """What the store says of a version: the URI of its manifest, staged (`...manifest-{uuid}`) or final, and its size
    in bytes if that was recorded. No e-tag: copying a manifest twice gives it two."""

    version: int
    uri: str
    size: int | None = None


class ManifestStore(Protocol):
    """`base` is the URI of a table, or of a branch. Reads see every put that was answered before. Safe to share between
    threads. Every method may raise StorageError, or UndecidedError: a put may or may not have taken effect;
    CorruptTableError for an entry that cannot be understood."""

    @property
    def name(self) -> str:
        """As users write it, for messages."""
        ...

    def latest(self, base: str) -> Entry | None:
        """The entry of the highest version."""
        ...

    def get(self, base: str, version: int) -> Entry | None:
        """The entry of one version."""
        ...

    def put_if_absent(self, base: str, entry: Entry) -> bool:
        """Whether there was none of this version, so that this is it now: atomic between processes."""
        ...

    def put_if_exists(self, base: str, entry: Entry) -> bool:
        """Whether there was one of this version, which this replaces."""
        ...

    def forget(self, base: str) -> None:
        """Removes all entries of a table."""
        ...
