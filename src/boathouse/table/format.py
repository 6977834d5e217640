"""A format: finds, opens and creates tables. Everything else is the snapshot's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from boathouse.table.context import TableContext
from boathouse.table.location import NEWEST, At
from boathouse.table.snapshot import Capabilities, Snapshot, Target

if TYPE_CHECKING:
    from boathouse.table.edits import CreateTable


class TableFormat(Protocol):
    """One table format; `name` is the one that users write, `capabilities` are those of new tables."""

    name: str
    capabilities: Capabilities

    def detect(self, context: TableContext) -> bool:
        """Whether there is a table of this format at the location; cheap: at most two listings."""

    def open(self, context: TableContext, at: At = NEWEST) -> Snapshot:
        """Opens. Raises TableNotFoundError, VersionNotFoundError, CorruptTableError, UnsupportedFeatureError."""

    def create(self, context: TableContext, create: CreateTable) -> Target:
        """The table as it will be once it is committed; nothing is written.

        Raises UnsupportedTypeError, UnsupportedFeatureError, SchemaError and InvalidArgumentError where the format does
        not support what is requested.
        """
