"""Groups rows by several columns, with numpy: equal tuples get the same number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Groups:
    """`first` has the first row of each group, in their order; `which` the number of each row's group."""

    first: Rows
    which: Rows

    @classmethod
    def of(cls, columns: Sequence[pa.Array], rows: int) -> Groups:
        """The groups of rows with equal values. Null equals null, NaN equals NaN, and -0.0 is not 0.0."""
        which: Rows = np.zeros(rows, np.int64)
        for column in columns:
            codes = column.dictionary_encode(null_encoding="encode").indices.to_numpy().astype(np.int64)
            _, which = np.unique(which * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)
        _, first, which = np.unique(which, return_index=True, return_inverse=True)
        order = np.argsort(first)
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        return cls(first[order], place[which])

    def __len__(self) -> int:
        return len(self.first)

    def sums(self, values: Rows, of: npt.NDArray[np.bool_] | None = None) -> Rows:
        """The sum of the values of each group, or of those `of` its rows."""
        found = np.zeros(len(self), np.int64)
        np.add.at(found, self.which if of is None else self.which[of], values if of is None else values[of])
        return found

    def greatest(self, values: Rows) -> Rows:
        """The row of each group with its greatest value, the first one of several."""
        order = np.lexsort((np.arange(len(values)), -values, self.which))
        _, at = np.unique(self.which[order], return_index=True)
        found: Rows = order[at]
        return found
