"""Rows by their number or by their id, of which nothing else is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from boathouse.table.plan import ScanPlan

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Places:
    """Where rows are: the number of a unit among those of the version, and the position in it, of each row that there
    is; `asked` are their numbers in what was asked for, ascending."""

    unit: Numbers
    position: Numbers
    asked: Numbers


class RandomAccess(Protocol):
    """Of one version, whichever."""

    @property
    def rows(self) -> int:
        """How many rows it has."""

    def by_number(self, numbers: Numbers) -> Places:
        """The places of rows by their numbers from 0 to `rows`, in the order of a scan."""

    def by_id(self, ids: Numbers) -> Places:
        """The places of rows by their ids; an id that no row has any more, or yet, has none. Raises CorruptTableError
        for ids that two rows have."""

    def by_place(self, units: Numbers, positions: Numbers) -> Places:
        """The places of rows by their `_unit` and `_pos`, as a scan of the version gives them."""

    def plan(self, units: Numbers, columns: Sequence[str] | None, hidden: Sequence[str]) -> ScanPlan:
        """These units alone, with every row; places do not name deleted ones."""
