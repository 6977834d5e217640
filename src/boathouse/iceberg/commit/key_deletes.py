"""The equality deletes that a commit adds: files of keys that tasks wrote (spec, "Equality Delete Files")."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from boathouse.iceberg.deletes.written_keys import of_partition, unpartitioned
from boathouse.iceberg.manifests.columns import TYPES
from boathouse.iceberg.manifests.records import EQUALITY_DELETES
from boathouse.iceberg.metadata.document import TableMetadata
from boathouse.iceberg.metadata.draft import Draft
from boathouse.iceberg.metadata.metrics_modes import modes
from boathouse.iceberg.metadata.updates import AddSpec
from boathouse.iceberg.snapshot import IcebergSnapshot
from boathouse.iceberg.write import added_columns
from boathouse.table.change import Change
from boathouse.table.edits import AddKeyDeletes
from boathouse.table.verdict import Conflict
from boathouse.types import PartitionSpec


def add_spec(draft: Draft, change: Change, where: str) -> None:
    """A spec without fields, for deletes that apply to every partition, unless there is one."""
    if not any(edit.everywhere for edit in change.all(AddKeyDeletes)):
        return
    metadata = draft.view(where)
    spec = unpartitioned(metadata)
    if spec not in metadata.partitioning.specs:
        draft.make(AddSpec({"spec-id": spec.id, "fields": []}))


def entries(change: Change, metadata: TableMetadata) -> Iterator[tuple[PartitionSpec, pa.Table]]:
    """The manifest entries of files of keys, under the spec that says where they apply; numbers are inherited."""
    for edit in change.all(AddKeyDeletes):
        rows = edit.outcomes.num_rows
        spec = unpartitioned(metadata) if edit.everywhere else metadata.partitioning.current
        found = added_columns(edit.outcomes, edit.keys, spec, modes(edit.keys, metadata.properties), None)
        values = {
            "content": pa.repeat(pa.scalar(EQUALITY_DELETES, TYPES["content"]), rows),
            "equality_ids": pa.array([[f.id for f in edit.keys]] * rows, TYPES["equality_ids"]),
        }
        for name, column in values.items():
            found = found.set_column(found.schema.get_field_index(name), name, column)
        yield spec, found


def key_conflicts(change: Change, head: IcebergSnapshot) -> Iterator[Conflict]:
    """Deletes of one partition only, where rows with the same keys may be in another one by now."""
    for edit in change.all(AddKeyDeletes):
        if not edit.everywhere and not of_partition(head, edit.keys):
            message = "files of another partition spec were added concurrently"
            yield Conflict("partitioning-changed", head.version, message)
