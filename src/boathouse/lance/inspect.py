"""The metadata tables of Lance: those that every format has, and its refs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from boathouse.lance.manifests.versions import list_versions
from boathouse.lance.refs import MAIN, list_branches, list_tags, of_branch
from boathouse.table.context import TableContext
from boathouse.table.inspection import REFS, CommonTables
from boathouse.table.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class LanceTables:
    """See `table.features.MetadataTables`. There are no `readable_metrics`: manifests have no statistics."""

    snapshot: Snapshot

    def inspect(self, name: str) -> pa.Table:
        if name == "refs":
            return refs(self.snapshot.context)
        return CommonTables(self.snapshot, metrics=False, offered=("refs",)).inspect(name)


def refs(context: TableContext) -> pa.Table:
    """The main line and the branches, each at its newest version, and the tags; `snapshot_id` is the version."""
    rows = [_branch(context, MAIN)]
    for name in sorted(list_branches(context)):
        rows.append(_branch(of_branch(context, name), name))
    for tag in sorted(list_tags(context).values(), key=lambda t: t.name):
        rows.append({"name": tag.name, "type": "TAG", "snapshot_id": tag.version})
    return pa.Table.from_pylist([r for r in rows if r["snapshot_id"] is not None], REFS)


def _branch(context: TableContext, name: str) -> dict[str, Any]:
    found = list_versions(context)
    return {"name": name, "type": "BRANCH", "snapshot_id": found[0].version if found else None}
