"""Rows that an IVF index thinks near to a vector (Vector Indices)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse.arrow.filesystem import data_files
from boathouse.bits.roaring import deserialize32
from boathouse.errors import BoathouseError, CorruptTableError
from boathouse.lance.indices.ivf import IvfPart
from boathouse.lance.indices.stored import FRAGMENT_REUSE, StoredIndex
from boathouse.lance.manifests.indices import INDICES, IndexMetadata, IndexSection
from boathouse.lance.manifests.overlays import stale
from boathouse.lance.paths import base_uri
from boathouse.lance.places import LancePlaces
from boathouse.lance.snapshot import LanceSnapshot
from boathouse.storage import join
from boathouse.table.features.vector_indices import Candidates
from boathouse.types import NULL

_KIND: Final = "VectorIndexDetails"
_VERSION: Final = 1
"""Of the files of FLAT, PQ and SQ; those of RQ have another."""
_DAMAGED = (BoathouseError, pa.ArrowException, OSError, ValueError, LookupError, TypeError, OverflowError)


@dataclass(frozen=True, slots=True)
class LanceVectorIndices:
    """See `table.features.VectorIndices`."""

    snapshot: LanceSnapshot

    def vector_index(self, column: str, metric: str) -> LanceVectorIndex | None:
        """The first index of the metric on the column, of those of its parts that are read. With a fragment reuse index
        none is, since rows were moved."""
        snapshot = self.snapshot
        if snapshot.document.index is None:
            return None
        field = snapshot.schema.field(column).id
        try:
            found = IndexSection.decode(snapshot.document.index, where=snapshot.location.uri).indices
            if any(i.kind == FRAGMENT_REUSE for i in found):
                return None
            parts: dict[str, list[StoredIndex]] = {}
            for index in found:
                stored = self._stored(index) if index.fields == (field,) else None
                if stored is not None and _metric(stored) == metric:
                    parts.setdefault(index.name, []).append(stored)
        except _DAMAGED:
            return None
        return LanceVectorIndex(snapshot, tuple(next(iter(parts.values())))) if parts else None

    def _stored(self, index: IndexMetadata) -> StoredIndex | None:
        snapshot, where = self.snapshot, self.snapshot.location.uri
        known = index.kind == _KIND and index.index_version == _VERSION
        if not known or index.id is None or index.fragment_bitmap is None:
            return None
        live = {f.id for f in snapshot.manifest.fragments}
        covered = live.intersection(deserialize32(index.fragment_bitmap, where=where).positions().tolist())
        covered -= stale(snapshot.manifest, index, where).keys()
        folder = join(base_uri(snapshot.manifest, index.base_id, where, INDICES), index.id.folder)
        files = data_files(snapshot.stores)
        return StoredIndex(index, "", NULL, pa.null(), frozenset(covered), folder, files) if covered else None


def _metric(index: StoredIndex) -> str | None:
    """None for an index that is not read."""
    with ExitStack() as stack:
        try:
            part = IvfPart.open(index, stack)
        except _DAMAGED:
            return None
        return None if part is None else part.metric


@dataclass(frozen=True, slots=True)
class LanceVectorIndex:
    """See `table.features.VectorIndex`."""

    snapshot: LanceSnapshot
    parts: tuple[StoredIndex, ...]

    @property
    def units(self) -> frozenset[int]:
        return frozenset().union(*(part.fragments for part in self.parts))

    def candidates(self, vector: npt.NDArray[Any], partitions: int) -> Iterator[Candidates]:
        try:
            done: frozenset[int] = frozenset()
            for part in self.parts:
                yield from self._of(part, part.fragments - done, vector, partitions)
                done |= part.fragments
        except _DAMAGED as error:
            raise CorruptTableError(f"an index that is not read: {error}", where=self.parts[0].folder) from error

    def _of(
        self, index: StoredIndex, fragments: frozenset[int], vector: npt.NDArray[Any], partitions: int
    ) -> Iterator[Candidates]:
        places = LancePlaces.of(self.snapshot)
        ids = np.array([f.id for f in self.snapshot.manifest.fragments], np.int64)
        covered = np.isin(ids, np.fromiter(fragments, np.int64, len(fragments)))
        with ExitStack() as stack:
            part = IvfPart.open(index, stack)
            assert part is not None
            for partition in part.nearest_partitions(vector, partitions):
                for rows, far in part.rows(partition, vector):
                    at = places.by_id(rows)
                    kept = covered[at.unit]
                    yield far[at.asked[kept]], ids[at.unit[kept]], at.position[kept]
