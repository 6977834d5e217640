"""Indices on columns of vectors, which find most of the rows nearest to a vector without comparing all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from boathouse.table.features.random_access import Numbers

Candidates = tuple[npt.NDArray[np.float32], Numbers, Numbers]
"""Distances as far as the index knows them, and `_unit` and `_pos` of the rows."""


class VectorIndex(Protocol):
    """One that is read."""

    @property
    def units(self) -> frozenset[int]:
        """The `_unit` of those of whose rows it has every vector as it is now; rows of others are not among its
        candidates."""

    def candidates(self, vector: npt.NDArray[Any], partitions: int) -> Iterator[Candidates]:
        """The rows of so many partitions whose centroids are nearest to the vector, in each of its parts, without
        deleted ones. Raises CorruptTableError for whatever is damaged in it, or missing."""


class VectorIndices(Protocol):
    """Of a snapshot."""

    def vector_index(self, column: str, metric: str) -> VectorIndex | None:
        """The index on a column whose distances are of this metric; None if there is none, or none that is read."""
