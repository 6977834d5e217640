"""What separates the head of a branch from another retained snapshot, to be undone by moving the branch there.

The snapshot itself becomes the head again. A new one with its files would add paths again that a snapshot deleted,
which the specification advises against: a writer that expires that snapshot removes what it deleted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.errors import UnsupportedFeatureError, VersionNotFoundError
from boathouse.iceberg.commit.written_columns import check_branch
from boathouse.iceberg.metadata.document import TableMetadata
from boathouse.iceberg.metadata.draft import Draft
from boathouse.iceberg.metadata.updates import MAIN, SetCurrentSchema, SetSnapshotRef
from boathouse.iceberg.refs import ref_json, ref_of
from boathouse.iceberg.snapshot import IcebergSnapshot, at_point
from boathouse.table.edits import RestoreTo
from boathouse.table.location import At
from boathouse.types import Schema


@dataclass(frozen=True, slots=True)
class IcebergRestore:
    """See `table.features.Restorable`."""

    snapshot: IcebergSnapshot

    def restoration(self, at: At) -> RestoreTo | None:
        """Raises VersionNotFoundError, UnsupportedFeatureError for a schema that other branches or the partitioning
        stand against."""
        head = self.snapshot
        target = at_point(head.context, head.metadata, At(at.version, at.timestamp_ms, head.ref), type(head))
        if target.snapshot is None:
            raise VersionNotFoundError(
                "a table that had snapshots cannot be without one again", where=head.token, advice="delete() every row"
            )
        if target.version == head.version and target.schema == head.metadata.schema:
            return None
        check_schema(head, target.schema)
        before, after = _units(head), _units(target)
        added = after.filter(pc.invert(pc.is_in(after.column("path"), before.column("path").combine_chunks())))
        removed = before.filter(pc.invert(pc.is_in(before.column("path"), after.column("path").combine_chunks())))
        needed = (*added.column("path").to_pylist(), *_deletes(target, head))
        size = pc.sum(after.column("size")).as_py() or 0
        return RestoreTo(target, added, removed, tuple(dict.fromkeys(needed)), after.num_rows, size)


def restore(draft: Draft, edit: RestoreTo, ref: str | None, where: str) -> None:
    """The branch moves to the snapshot, whose schema becomes the table's."""
    metadata, name = draft.view(where), ref or MAIN
    before = metadata.refs[name]
    if int(before["snapshot-id"]) != edit.target.version:
        moved = ref_of(name, before, where).at(edit.target.version)
        draft.make(SetSnapshotRef(name, ref_json(moved, before)))
    id = _schema_id(metadata, edit.target.version)
    if id is not None and id != draft.document["current-schema-id"]:
        draft.make(SetCurrentSchema(id))


def _schema_id(metadata: TableMetadata, version: int) -> int | None:
    found = metadata.snapshots[version].get("schema-id")
    return int(found) if found is not None and int(found) in metadata.schemas else None


def check_schema(head: IcebergSnapshot, schema: Schema) -> None:
    """A dropped column comes back if it may be null, or if no branch has rows that were written without it (spec,
    "Schema Evolution"); and every partition field must have its column."""
    metadata = head.metadata
    there = {f.id for _, f in schema.walk()}
    for spec in metadata.partitioning.specs:
        for field in spec:
            if field.source_id not in (None, *there) and field.transform.name != "void":
                raise UnsupportedFeatureError(
                    f"that version lacks the column by which the partition field `{field.name}` is made",
                    where=head.token,
                    advice="refs.rollback() or refs.set_current() keep the present schema",
                )
    for name, ref in metadata.refs.items():
        if ref.get("type", "branch") == "branch" and name != (head.ref or MAIN):
            check_branch(metadata, name, int(ref["snapshot-id"]), schema, head.token)


def _units(snapshot: IcebergSnapshot) -> pa.Table:
    return pa.Table.from_batches(snapshot.files(), snapshot.listing.schema_of_files())


def _deletes(target: IcebergSnapshot, head: IcebergSnapshot) -> Iterator[Any]:
    """The files of row deletes that the target needs, from manifests that the head does not have."""
    target.listing.reader.adopt(head.listing.reader)
    there = {m.path for m in head.listing.delete_manifests}
    for source in target.listing.delete_manifests:
        if source.path not in there:
            yield from target.listing.live_uris(source)
