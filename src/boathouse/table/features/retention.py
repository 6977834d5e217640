"""Which files a table needs; which of those that it no longer needs it retains, and how long."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa


class LiveFiles(Protocol):
    """Of a table, whatever the version of the snapshot that is asked."""

    def uris(self) -> Iterator[str]:
        """Every file that a retained version, ref, tag, index or log needs; some more than once."""


class Retention(Protocol):
    """The rules of vacuum, of one snapshot, which is the newest. Paths are raw and relative to the table's root."""

    @property
    def ms(self) -> int:
        """How long the table retains files that were removed from it."""

    def kept(self, before_ms: int) -> Iterator[pa.Array]:
        """Every file that the snapshot needs, or that was removed from the table at `before_ms` or later, deletes and
        columns of a unit included. Files elsewhere are absolute URIs."""

    def expired(self, before_ms: int) -> Iterator[str]:
        """The files that the metadata records as removed before then, without any listing of data; it may name some
        that are still needed, or gone. Raises VersionNotFoundError if older records have been cleaned."""

    def searched(self, folder: str) -> bool:
        """Whether a folder holds nothing but files of the table's rows, so that a file there that nothing refers to
        is garbage. "" is the root."""

    def vacuumed(self, before_ms: int) -> None:
        """Notes that every file that was removed before then is deleted, where the format has a place for it."""
