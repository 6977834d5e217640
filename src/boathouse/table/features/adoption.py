"""Files that no table wrote become units of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

    from boathouse.table.edits import Edit
    from boathouse.table.found_files import FooterGroup, FoundFiles, Places


class Adoption(Protocol):
    """Of a table that is not created yet, and of one that goes on taking such files."""

    @property
    def edits(self) -> Sequence[Edit]:
        """What the table needs before it can read them."""

    def places(self, group: FooterGroup) -> Places:
        """Where the table's leaves are in these files.

        Raises SchemaMismatchError, naming a file, for columns that are not the table's.
        """

    def adopted(self, files: FoundFiles) -> pa.Table:
        """OUTCOMES of the files: they become units, and stay as they are. A new table's are Parquet files below its
        root.

        Raises UnsupportedFeatureError if the table cannot have them, SchemaMismatchError for one whose rows do not have
        the partition's value.
        """
