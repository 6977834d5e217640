"""Files in which commits recorded the rows that they changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

    from boathouse.table.location import Version


class ChangeFiles(Protocol):
    """Of a snapshot, under whose schema the files are read."""

    def change_files(self, version: Version) -> pa.Table | None:
        """FILES of the rows that the commit of a version recorded as changed, `_change_type` in the files; None if that
        commit recorded none."""
