"""The handle that every operation works on: an opened table at one of its versions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from boathouse.bits.environment import switched_on
from boathouse.errors import ReadOnlyError

if TYPE_CHECKING:
    from boathouse.table.context import TableContext
    from boathouse.table.location import Location
    from boathouse.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Handle:
    """A table at one of its versions. `pinned` handles were opened at a version and refuse writes.

    `zone` is the time zone of conditions; None if it is unknown. `loaded` is when the call that writes loaded the
    snapshot as the newest one, on the monotonic clock; None for a handle of the user's.
    """

    snapshot: Snapshot
    pinned: bool = False
    zone: str | None = "UTC"
    loaded: float | None = None

    @property
    def context(self) -> TableContext:
        return self.snapshot.context

    @property
    def location(self) -> Location:
        return self.snapshot.context.location

    def check_writable(self) -> None:
        """Raises if writes are disabled, or this table may not be written."""
        self.check_open()
        self.snapshot.check_writable()

    def check_open(self) -> None:
        """Raises, without any request, if writes are disabled or the handle is pinned."""
        check_read_only(str(self.location))
        if self.pinned:
            raise ReadOnlyError(
                f"the table was opened at version {self.snapshot.version}",
                where=str(self.location),
                advice="open it without version= or timestamp= to write",
            )


def check_read_only(where: str) -> None:
    """Raises ReadOnlyError if BOATHOUSE_READ_ONLY is set to anything but 0, false or nothing."""
    if switched_on("BOATHOUSE_READ_ONLY"):
        raise ReadOnlyError(
            "BOATHOUSE_READ_ONLY is set: every write is refused", where=where, advice="unset it to write"
        )
