"""What maintenance asks of a table: for vacuum, which files it retains, how long, and where its files are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from boathouse.errors import UnsupportedFeatureError
from boathouse.table.version import TableVersion

if TYPE_CHECKING:
    from boathouse.table.snapshot import Target


class Retention(Protocol):
    """The rules of one snapshot, which is the newest. Paths are raw and relative to the table's root."""

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


def not_offered(operation: str, table: TableVersion | Target) -> UnsupportedFeatureError:
    """The error of a format that does not have the operation."""
    return UnsupportedFeatureError(
        f"{operation} is not offered for {table.format} tables",
        where=str(table.context.location),
        advice="use the format's own library for it",
    )
