"""Everything that is wrong with a version of an Iceberg table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from boathouse.iceberg.metadata import rules
from boathouse.iceberg.scan import plan
from boathouse.iceberg.snapshot import IcebergSnapshot
from boathouse.table.examined import lost_files, unplanned
from boathouse.table.features import Depth
from boathouse.table.findings import Finding


@dataclass(frozen=True, slots=True)
class IcebergExamination:
    """See `table.features.Examination`."""

    snapshot: IcebergSnapshot

    def examine(self, depth: Depth = "metadata") -> Iterator[Finding]:
        metadata = self.snapshot.metadata
        yield from rules.findings(metadata.document, metadata.uri)
        found = list(unplanned(self.snapshot.format, lambda: plan(self.snapshot)))
        yield from found
        if depth == "files" and not found:
            yield from lost_files(self.snapshot)
