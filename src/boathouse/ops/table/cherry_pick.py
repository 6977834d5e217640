"""Cherry-pick: what another version did to the rows is done on the branch that the table is open at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.ops.write import Planned, Start, WritePlan
from boathouse.table.change import Operation, ReadSet
from boathouse.table.edits import SetRef
from boathouse.table.features import CherryPicks, required
from boathouse.table.location import Version


@dataclass(frozen=True, slots=True)
class CherryPicked:
    """The changes of a version, or of the one that is staged under a name."""

    version: Version | None = None
    staged: str | None = None
    operation: ClassVar[Operation] = "cherry-pick"

    def plan(self, start: Start) -> WritePlan:
        picks = required(start.snapshot, CherryPicks, "cherry_pick")
        version = self.version
        if version is None:
            assert self.staged is not None
            version = picks.staged(self.staged)
        found = picks.pick(version)
        moves = any(isinstance(e, SetRef) for e in found.edits)

        def finish(outcomes: Sequence[pa.Table]) -> Planned:
            change = start.change(
                "cherry-pick", found.edits, ReadSet(whole=True), {"version": str(version)}, data_change=not moves
            )
            return Planned(
                change,
                files_removed=found.removed.num_rows,
                rows_removed=pc.sum(found.removed.column("rows")).as_py() or 0,
                files_added=found.added.num_rows,
                bytes_added=pc.sum(found.added.column("size")).as_py() or 0,
            )

        return WritePlan((), finish)
