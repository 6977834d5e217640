"""What one commit did to the files of a table, as its own record tells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

    from boathouse.table.location import Version
    from boathouse.table.version import TableVersion


@dataclass(frozen=True, slots=True)
class CommitFiles:
    """`units` are FILES rows, without statistics, of the units in which rows are new, `deletes` the DELETES rows that
    they refer to. Units that the commit only wrote again, as a compaction does, do not count.

    `removed`: units with rows that are gone, or that `units` has again with other deletes. `layout_changed`: the commit
    may have changed the schema or the partitioning; then there are units only under the layout of its own version.
    """

    units: pa.Table
    deletes: pa.Table
    removed: bool
    layout_changed: bool


class CommitRecords(Protocol):
    """Of a snapshot. Where a commit does not say it, versions are compared."""

    def commit_files(self, version: Version, layout: TableVersion) -> CommitFiles | None:
        """The units that the commit of a version added and removed, from its own record, under the schema and the
        partitioning of `layout`; None if the record does not say."""
