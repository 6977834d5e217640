"""The context of a table: where it is, and how its files are reached."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from boathouse.storage import Stores
from boathouse.table.location import Location

if TYPE_CHECKING:
    from boathouse.table.attempt import Attempt, Published


class TableCatalog(Protocol):
    """One table as its catalog knows it."""

    @property
    def name(self) -> str:
        """The catalog's name and the table's, for messages."""

    def head(self) -> str:
        """The URI of the current metadata document. Raises TableNotFoundError, StorageError."""

    def document(self, uri: str) -> Any | None:
        """The format's metadata document of this URI, if it was read when the table was placed, and not asked for
        since."""

    def takes_documents(self, version: int) -> bool:
        """Whether a commit on a table of this format version brings its metadata document with it, since the client
        cannot make one. Raises UnsupportedFeatureError if the client can do neither."""

    def publish(self, attempt: Attempt) -> Published | Attempt:
        """`Commits.publish`: asks the catalog for the swap from the head that the attempt follows."""


@dataclass(frozen=True, slots=True, eq=False)
class TableContext:
    """Made once when a table is opened or created, and held by every snapshot of it.

    `allow_mixed_writers` lets this process write beside a library that does not put-if-absent (docs/writers.md).
    `catalog` is that of a table whose newest version only a catalog knows.
    """

    location: Location
    stores: Stores
    allow_mixed_writers: bool = False
    catalog: TableCatalog | None = None

    def __str__(self) -> str:
        return str(self.location) if self.catalog is None else self.catalog.name
