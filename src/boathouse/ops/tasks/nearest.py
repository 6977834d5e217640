"""The rows of some units whose vectors are nearest to one, as their places, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse.compute.distances import distances
from boathouse.registry import tasks
from boathouse.table.tasks import ScanTask

FOUND: Final = pa.schema([("distance", pa.float32()), ("unit", pa.int64()), ("position", pa.int64())])
_ELEMENTS: Final = 1 << 20
"""So many of vectors are compared at once."""


@dataclass(frozen=True, slots=True)
class Query:
    """The `k` rows of which a vector is nearest to this one, of the column's own type."""

    vector: npt.NDArray[Any]
    metric: str
    k: int


@dataclass(frozen=True, slots=True)
class NearestTask:
    """`scan` reads a column of vectors, and of each row its unit and its position in it."""

    scan: ScanTask
    query: Query


def nearest(task: NearestTask) -> Iterator[pa.RecordBatch]:
    """FOUND of the nearest rows, if there are any."""
    best = Nearest(task.query.k)
    rows = max(1, _ELEMENTS // max(1, len(task.query.vector)))
    for batch in tasks(task.scan.read.format).read(task.scan):
        for start in range(0, batch.num_rows, rows):
            vectors, unit, position = batch.slice(start, rows).columns
            found = distances(vectors, task.query.vector, task.query.metric)
            best.add(found, np.asarray(unit), np.asarray(position))
    if len(best.distance):
        yield best.batch()


@dataclass
class Nearest:
    """The nearest of all rows that were added, nearest first; of those as far the ones that were added first."""

    k: int
    distance: npt.NDArray[np.float32] = field(default_factory=lambda: np.empty(0, np.float32))
    unit: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    position: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

    def add(self, distance: npt.NDArray[Any], unit: npt.NDArray[Any], position: npt.NDArray[Any]) -> None:
        """Rows with their distances; those without one (NaN) are left out."""
        nearer = ~np.isnan(distance) if len(self.distance) < self.k else distance < self.distance[-1]
        if not nearer.any():
            return
        together = np.concatenate((self.distance, distance[nearer]))
        order = _first(together, self.k)
        self.distance = together[order]
        self.unit = np.concatenate((self.unit, unit[nearer]))[order]
        self.position = np.concatenate((self.position, position[nearer]))[order]

    def batch(self) -> pa.RecordBatch:
        return pa.record_batch([self.distance, self.unit, self.position], schema=FOUND)


def _first(distance: npt.NDArray[np.float32], k: int) -> npt.NDArray[np.int64]:
    """Where the `k` smallest are, in order; of equal ones the first."""
    if len(distance) <= k:
        return np.argsort(distance, kind="stable")
    candidates = np.flatnonzero(distance <= np.partition(distance, k - 1)[k - 1])
    return candidates[np.argsort(distance[candidates], kind="stable")][:k]
