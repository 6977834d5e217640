"""Files that no table wrote become those of a new one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

    from boathouse.table.found_files import FoundFiles


class Adoption(Protocol):
    """Of a table that is not created yet."""

    def adopted(self, files: FoundFiles) -> pa.Table:
        """OUTCOMES of Parquet files below the table's root: they become its units, and stay as they are.

        Raises UnsupportedFeatureError if such a table cannot have them.
        """
