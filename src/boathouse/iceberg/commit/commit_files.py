"""What one commit did to the data files, as its summary and its own manifests say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.iceberg.files import UNITS_A_MANIFEST, Listing
from boathouse.iceberg.manifests.batches import FileRequest, read_files
from boathouse.iceberg.snapshot import IcebergSnapshot
from boathouse.table.features import CommitFiles
from boathouse.table.location import Version
from boathouse.table.units import deletes_schema
from boathouse.table.version import TableVersion

_TAKEN: Final = ("deleted-data-files", "added-delete-files", "removed-delete-files")
"""Totals of a summary that an append, as the specification has it, does not have."""


@dataclass(frozen=True, slots=True)
class IcebergCommitRecords:
    """See `table.features.CommitRecords`."""

    snapshot: IcebergSnapshot

    def commit_files(self, version: Version, layout: TableVersion) -> CommitFiles | None:
        """None for a commit that may have taken rows away, and where snapshots do not name their schemas."""
        metadata = self.snapshot.metadata
        made = metadata.snapshots.get(version)
        parent = None if made is None else made.get("parent-snapshot-id")
        before = None if parent is None else metadata.snapshots.get(parent)
        if made is None or before is None or "schema-id" not in made or "schema-id" not in before:
            return None
        operation = _operation(made)
        if operation is None:
            return None
        layout_changed = made["schema-id"] != before["schema-id"]
        listing = Listing(metadata, made, layout.schema, self.snapshot.paths, self.snapshot.stores, verify=False)
        listing.reader.adopt(self.snapshot.listing.reader)
        found = operation == "append" and not (layout_changed and layout.version != version)
        units = _added(listing, version) if found else listing.schema_of_files().empty_table()
        return CommitFiles(units, deletes_schema().empty_table(), removed=False, layout_changed=layout_changed)


def _operation(snapshot: Mapping[str, Any]) -> str | None:
    """An operation after which every row is there that was there before."""
    summary = snapshot.get("summary") or {}
    operation = summary.get("operation")
    if operation == "append" and all(summary.get(name, "0") == "0" for name in _TAKEN):
        return "append"
    return "replace" if operation == "replace" else None


def _added(listing: Listing, version: Version) -> pa.Table:
    """The live files that the snapshot added, which no row delete applies to: it would be of a later commit."""
    request = FileRequest(listing.schema, listing.metadata.partitioning, listing.paths, (), None, 0, listing.verify)
    found = []
    for i, source in enumerate(m for m in listing.data_manifests if m.snapshot_id == version):
        for batch in read_files(listing.task(request, source, i * UNITS_A_MANIFEST)):
            adders = batch.column("native").field("snapshot_id")
            found.append(batch.replace_schema_metadata(None).filter(pc.equal(adders, version)))
    return pa.Table.from_batches(found, request.files_schema)
