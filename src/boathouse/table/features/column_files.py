"""Columns of rows that are there already, in files beside those that have the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from boathouse.table.tasks import WriteContext


class ColumnFiles(Protocol):
    """Of a snapshot, which may be one under a future schema. A change adds the files by `AddColumnFiles`."""

    def column_context(self, write_id: str, columns: Sequence[tuple[str, ...]]) -> WriteContext:
        """How files of these columns, or fields of structs, alone are written: one for each unit, with a row for each
        physical row of the unit, deleted ones too.

        Raises UnsupportedFeatureError, UnsupportedTypeError for columns that the table's files cannot hold.
        """
