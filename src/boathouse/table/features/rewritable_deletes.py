"""Row deletes that can be written in a better form without writing a data file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

if TYPE_CHECKING:
    from boathouse.table.plan import ScanPlan
    from boathouse.table.snapshot import RowDeletes


@dataclass(frozen=True, slots=True)
class Rewritable:
    """The planned FILES rows whose row deletes would be others if they were written now, and how many files of deletes
    go when they are; `way` is how they are written."""

    units: pa.Table
    files: int
    way: RowDeletes


class RewritableDeletes(Protocol):
    """Of a snapshot."""

    def rewritable(self, plan: ScanPlan) -> Rewritable:
        """What to rewrite of a plan of all units."""
