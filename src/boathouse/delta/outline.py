"""What a version's files have in common, by the footers of its checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow.compute as pc

from boathouse.delta.checkpoint.part import Part
from boathouse.delta.snapshot import DeltaSnapshot
from boathouse.parquet.errors import damage
from boathouse.table.features import Outline


@dataclass(frozen=True, slots=True)
class DeltaOutline:
    """See `table.features.Outlined`."""

    snapshot: DeltaSnapshot

    def outline(self, more_than: int) -> Outline | None:
        adds = self.snapshot.tail.adds
        parts = self.snapshot.checkpoint.parts if self.snapshot.checkpoint else ()
        files = adds.num_rows + sum(p.rows - max(0, p.nulls("add", "path")) for p in parts)
        vectors = pc.struct_field(adds.column("deletionVector"), "storageType")
        if files <= more_than or vectors.null_count < len(vectors) or not all(map(_without_vectors, parts)):
            return None
        size = (pc.sum(adds.column("size")).as_py() or 0) + sum(map(_bytes, parts))
        return Outline(files, size, self.snapshot.partitioning.current.id)


def _without_vectors(part: Part) -> bool:
    """Whether the statistics of the part show that none of its files has deleted rows."""
    leaf = ("add", "deletionVector", "storageType")
    return part.leaf(*leaf) is None or part.nulls(*leaf) == part.rows


def _bytes(part: Part) -> int:
    """The sizes of all files that the part adds, also of those that later commits removed."""
    with part.open() as file, damage("corrupt checkpoint data", part.uri):
        sizes = file.read(columns=["add.size"]).column("add")
    return pc.sum(pc.struct_field(sizes, "size")).as_py() or 0
