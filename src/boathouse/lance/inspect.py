"""The metadata tables of Lance: those that every format has, and its refs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import pyarrow as pa

from boathouse.lance.refs.named import LanceRefs
from boathouse.lance.snapshot import LanceSnapshot
from boathouse.table.inspection import REFS, CommonTables
from boathouse.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class LanceTables:
    """See `table.features.MetadataTables`. There are no `readable_metrics`: manifests have no statistics."""

    snapshot: LanceSnapshot

    def inspect(self, name: str) -> pa.Table:
        if name == "refs":
            return refs(self.snapshot)
        return CommonTables(cast("Snapshot", self.snapshot), metrics=False, offered=("refs",)).inspect(name)


def refs(snapshot: LanceSnapshot) -> pa.Table:
    """The main line and the branches, each at its newest version, and the tags; `snapshot_id` is the version."""
    named = LanceRefs(snapshot).named().values()
    rows = [{"name": r.name, "type": r.type.upper(), "snapshot_id": r.version} for r in named]
    return pa.Table.from_pylist(rows, REFS)
