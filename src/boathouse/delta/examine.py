"""Everything that is wrong with a version of a Delta table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from boathouse.delta.log.version_checksum import contradictions
from boathouse.delta.scan import plan
from boathouse.delta.snapshot import DeltaSnapshot
from boathouse.table.examined import lost_files, unplanned
from boathouse.table.features import Depth
from boathouse.table.findings import Finding


@dataclass(frozen=True, slots=True)
class DeltaExamination:
    """See `table.features.Examination`."""

    snapshot: DeltaSnapshot

    def examine(self, depth: Depth = "metadata") -> Iterator[Finding]:
        found = list(unplanned(self.snapshot.format, lambda: plan(self.snapshot)))
        yield from found
        if found:
            return
        yield from contradictions(self.snapshot)
        if depth == "files":
            yield from lost_files(self.snapshot)
