"""What a plan does not show by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from boathouse.table.plan import ScanPlan


class PlanNotes(Protocol):
    """Of a snapshot."""

    def notes(self, plan: ScanPlan) -> Sequence[str]:
        """How files of a plan are read that are not as they should be, for `explain()`. At most one data file is
        opened, and none read."""
