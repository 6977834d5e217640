"""Which row deletes of a snapshot would be others if they were written now: deletion vectors in version 3, in version 2
one file of positions for each data file."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from boathouse.iceberg.deletes.equality import applies_to
from boathouse.iceberg.deletes.index import Units
from boathouse.iceberg.deletes.planned import Collector
from boathouse.iceberg.manifests.columns import are_vectors
from boathouse.iceberg.snapshot import IcebergSnapshot
from boathouse.table.features import Rewritable
from boathouse.table.plan import ScanPlan


@dataclass(frozen=True, slots=True)
class IcebergRewritableDeletes:
    """See `table.features.RewritableDeletes`."""

    snapshot: IcebergSnapshot

    def rewritable(self, plan: ScanPlan) -> Rewritable:
        """Whether a unit is among them follows from the entries alone, so that some may turn out to have no deleted
        row."""
        index = Units.of(plan.units, self.snapshot.partitioning)
        found = Collector(self.snapshot, index).found(self.snapshot.listing.delete_manifests)
        to_vectors = "vectors" in self.snapshot.metadata.format.deletes
        alone = Counter(index.at(f.only, f.place) for f in found.positions if f.only is not None)
        rows = {row for row, files in alone.items() if row is not None and (to_vectors or files > 1)}
        for file in found.positions:
            if file.only is None:
                rows.update(np.flatnonzero(index.not_after(file.place)).tolist())
        if to_vectors:
            rows -= found.vectors.keys()  # what else there is of a file with a vector is not applied
        for equality in found.equality:
            rows.update(applies_to(equality, index, None))
        kept = 0 if to_vectors else sum(1 for row in alone if row is not None and row not in rows)
        units = plan.units.take(pa.array(sorted(rows), pa.int64()))
        return Rewritable(units, self._files(to_vectors) - kept, "vectors" if to_vectors else "positions")

    def _files(self, to_vectors: bool) -> int:
        """The live files of row deletes; those that are vectors do not count where these are written."""
        listing = self.snapshot.listing
        live = [listing.live(source) for source in listing.delete_manifests]
        if not to_vectors:
            return sum(map(len, live))
        return sum(len(entries) - are_vectors(entries).true_count for entries in live)
