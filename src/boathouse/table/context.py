"""The context of a table: where it is, and how its files are reached."""

from __future__ import annotations

from dataclasses import dataclass

from boathouse.storage import Stores
from boathouse.table.location import Location


@dataclass(frozen=True, slots=True, eq=False)
class TableContext:
    """Made once when a table is opened or created, and held by every snapshot of it.

    `allow_mixed_writers` lets this process write beside a library that does not put-if-absent (docs/writers.md).
    """

    location: Location
    stores: Stores
    allow_mixed_writers: bool = False

    def __str__(self) -> str:
        return str(self.location)
