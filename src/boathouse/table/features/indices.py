"""Indices on columns, which scans with conditions read less by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

if TYPE_CHECKING:
    from boathouse.table.edits import SetIndex


@dataclass(frozen=True, slots=True)
class WantedIndex:
    """An index that is to be made of a column; `hidden` are the metadata columns that it is made of beside its values,
    `detail` is the format's own."""

    name: str
    column: str
    kind: str
    hidden: tuple[str, ...]
    detail: int | None = None


class Indices(Protocol):
    """Of a snapshot."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """Those that can be made here."""

    def recorded(self) -> pa.Table:
        """A row an index: `name`, `columns` (list of strings), `kind`, the number of `units` that it covers, and of
        those that it does not, `uncovered`."""

    def covering(self, units: pa.Table) -> Sequence[frozenset[bytes]]:
        """The indices that cover each unit."""

    def wanted(self, column: str, kind: str, name: str | None, replace: bool) -> WantedIndex:
        """Raises ColumnNotFoundError, UnsupportedTypeError for a column that can have no such index,
        InvalidArgumentError for another kind, and for a name that there is, unless it is to `replace` that index."""

    def set(self, wanted: WantedIndex, rows: Iterable[pa.RecordBatch]) -> SetIndex:
        """The edit that makes the index of all rows of the snapshot: the column, then `hidden`."""
