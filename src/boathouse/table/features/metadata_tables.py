"""Tables about a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa


class MetadataTables(Protocol):
    """Of a snapshot."""

    def inspect(self, name: str) -> pa.Table:
        """A metadata table, one of `table.inspection.NAMES`, with Iceberg's names and types of columns.

        Raises UnsupportedFeatureError naming it if it has no meaning for this format.
        """
