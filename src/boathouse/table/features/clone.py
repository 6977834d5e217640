"""Shallow clones: a new table of the files of another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol

if TYPE_CHECKING:
    from boathouse.table.context import TableContext
    from boathouse.table.edits import CloneTable
    from boathouse.table.snapshot import Target


class Clonable(Protocol):
    """Of a snapshot. `alters`: the clone may replace a table, and have properties of its own."""

    alters: ClassVar[bool]

    def cloning(self, context: TableContext) -> tuple[Target, CloneTable]:
        """A table at `context` that is not created yet, and the edit that makes it a shallow clone of this version.

        Raises UnsupportedFeatureError if this table has something that a clone does not keep safe.
        """
