"""Conflict checks: concurrent commits, and whether a change may be rebased onto them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from boathouse.errors import BoathouseError, NotFoundError
from boathouse.expr.tree import any_of
from boathouse.iceberg.commit.expired import expiry_conflicts
from boathouse.iceberg.commit.key_deletes import key_conflicts
from boathouse.iceberg.commit.ref_edits import ref_conflicts
from boathouse.iceberg.commit.summaries import APP, APP_VERSION, METADATA_EDIT, WRITE_ID
from boathouse.iceberg.deletes.planned import newly_deleted
from boathouse.iceberg.files import Listing, new_files
from boathouse.iceberg.manifests.records import DATA
from boathouse.iceberg.manifests.totals import number
from boathouse.iceberg.metadata.document import TableMetadata, files_of_snapshots
from boathouse.iceberg.metadata.draft import written_by
from boathouse.iceberg.metadata.schema_rules import promotes
from boathouse.iceberg.paths import list_metadata, version_of
from boathouse.iceberg.row_modes import isolation
from boathouse.iceberg.snapshot import NO_SNAPSHOT, IcebergSnapshot, read_metadata
from boathouse.storage import basename
from boathouse.table.attempt import Winner
from boathouse.table.change import Change
from boathouse.table.edits import (
    AddColumn,
    AddDeletes,
    AddFiles,
    DropColumn,
    MoveColumn,
    RenameColumn,
    ReplaceDeletes,
    ReplaceSchema,
    SetDefault,
    SetDeletes,
    SetIdentifiers,
    SetNullable,
    SetPartitioning,
    SetProperties,
    SetSortOrder,
)
from boathouse.table.location import CommitId
from boathouse.table.verdict import Conflict, Rebase, Replan, Stop, Verdict
from boathouse.table.version import TableVersion
from boathouse.types import DataType, Field, ListType, MapType, Schema, StructType

_ASSIGNED: Final = (
    "last-column-id",
    "schemas",
    "current-schema-id",
    "last-partition-id",
    "default-spec-id",
    "partition-specs",
)
"""What ids of columns, partition fields and specs are assigned from."""
_OF_WHAT_IS_THERE: Final = (
    RenameColumn, DropColumn, MoveColumn, SetDefault, SetIdentifiers, SetNullable, SetPartitioning, SetSortOrder,
)  # fmt: skip
"""Edits that name columns by what they were called when the change was planned."""
_NEW_ROWS = frozenset({"append", "overwrite"})


def winners(since: TableVersion, head: IcebergSnapshot) -> Sequence[Winner] | None:
    """The ancestors of the ref's head down to the snapshot `since`, oldest first; None if it is not an ancestor."""
    if since.token == head.token:
        return []
    found: list[Winner] = []
    files = files_of_snapshots(head.metadata)
    reached = since.version == NO_SNAPSHOT and head.snapshot is None
    last: Mapping[str, Any] | None = None
    for snapshot in head.metadata.ancestors(head.version or None):
        if int(snapshot["snapshot-id"]) == since.version:
            reached = True
            break
        last = snapshot
        write_id = (snapshot.get("summary") or {}).get(WRITE_ID)
        id = int(snapshot["snapshot-id"])
        found.append(Winner(CommitId(id, basename(files.get(id, ""))), write_id, snapshot))
    if since.version == NO_SNAPSHOT and last is not None:
        reached = last.get("parent-snapshot-id") is None
    if not reached:
        return None
    found.reverse()
    planned, newest = version_of(since.token), version_of(head.token)
    if planned is not None and newest is not None and newest - planned > len(found):
        found += _metadata_winners(planned, newest, head)
    return found


def _metadata_winners(first: int, last: int, head: IcebergSnapshot) -> Iterator[Winner]:
    """One for each metadata file of these versions that still exists: some of them created no snapshot."""
    for version_number, uri in list_metadata(head.context).file_system:
        if first < version_number <= last:
            try:
                metadata = head.metadata if uri == head.token else read_metadata(uri, head.stores)
            except NotFoundError:
                continue
            yield Winner(CommitId(None, basename(uri)), written_by(metadata.document), {"operation": METADATA_EDIT})


def check(change: Change, winners: Sequence[Winner], head: IcebergSnapshot) -> Verdict:
    """The verdict on the change after the concurrent commits."""
    planned = change.planned
    if not isinstance(planned, IcebergSnapshot) or planned.token == head.token:
        return Rebase()
    head.listing.reader.adopt(planned.listing.reader)
    stops = [*_transaction(change, winners), *_metadata_conflicts(change, planned, head)]
    if stops:
        return Stop(tuple(stops))
    again = [*_schema_conflicts(change, planned, head), *_version_conflicts(change, planned, head)]
    again += [*ref_conflicts(change, planned, head), *key_conflicts(change, head), *expiry_conflicts(change, head)]
    again += _row_conflicts(change, planned, winners, head)
    return Replan(tuple(again)) if again else Rebase()


def _transaction(change: Change, winners: Sequence[Winner]) -> Iterator[Conflict]:
    if change.txn is None:
        return
    app, version = change.txn
    for winner in winners:
        summary = winner.document.get("summary") or {}
        written = number(summary.get(APP_VERSION))
        if summary.get(APP) == app and written is not None and written >= version:
            yield Conflict("transaction", winner.version, f"application {app!r} wrote version {written}")


def _metadata_conflicts(change: Change, planned: IcebergSnapshot, head: IcebergSnapshot) -> Iterator[Conflict]:
    for edit in change.edits:
        if isinstance(edit, SetProperties) and not _takes_files(change):
            for key in edit.properties:
                if planned.properties.get(key) != head.properties.get(key):
                    message = f"property {key} was concurrently set to {head.properties.get(key)!r}"
                    yield Conflict("metadata-changed", head.version, message)
        elif isinstance(edit, AddColumn) and _added_twice(edit, change, planned, head):
            message = f"column `{edit.name}` was added concurrently"
            yield Conflict("schema-changed", head.version, message)
        elif isinstance(edit, _OF_WHAT_IS_THERE) and _assignments_changed(planned.metadata, head.metadata):
            # The name may be another column's by now.
            yield Conflict("schema-changed", head.version, "schema or partitioning changed concurrently")


def _added_twice(edit: AddColumn, change: Change, planned: IcebergSnapshot, head: IcebergSnapshot) -> bool:
    """Whether a column exists now that did not; one that comes with rows is planned again instead."""
    before, now = (_names(s.metadata.schema, edit.parent) for s in (planned, head))
    return not change.evolves and edit.name in now - before


def _names(schema: Schema, parent: tuple[str, ...]) -> set[str]:
    fields = schema.fields
    for name in parent:
        found = next((f for f in fields if f.name == name), None)
        fields = found.type.fields if found is not None and isinstance(found.type, StructType) else ()
    return {f.name for f in fields}


def _schema_conflicts(change: Change, planned: IcebergSnapshot, head: IcebergSnapshot) -> Iterator[Conflict]:
    """Whether files written with the planned schema and spec are still valid."""
    before, after = planned.metadata, head.metadata
    if change.edit(ReplaceSchema) is not None or change.evolves:
        if _assignments_changed(before, after):
            yield Conflict("schema-changed", head.version, "schema or partitioning changed concurrently")
    elif change.edit(AddFiles) is not None:
        if _takes_files(change) and _properties_changed(change, before, after):
            yield Conflict(
                "metadata-changed", head.version, "a property that comes with the files changed concurrently"
            )
        elif not _readable(planned.schema.fields, after.schema.fields):
            yield Conflict("schema-changed", head.version, "the schema changed in a way that the new files do not fit")
        elif _spec(before) != _spec(after):
            yield Conflict("partitioning-changed", head.version, "the partitioning changed concurrently")


def _takes_files(change: Change) -> bool:
    """Whether the files were there before: then what is set with them follows from the table, and is planned again."""
    return any(edit.found for edit in change.all(AddFiles))


def _properties_changed(change: Change, before: TableMetadata, after: TableMetadata) -> bool:
    keys = {key for edit in change.all(SetProperties) for key in edit.properties}
    return any(before.properties.get(key) != after.properties.get(key) for key in keys)


def _version_conflicts(change: Change, planned: IcebergSnapshot, head: IcebergSnapshot) -> Iterator[Conflict]:
    """Row deletes of a kind that another version of the format has no place for."""
    before, after = planned.metadata.format, head.metadata.format
    if before != after and any(isinstance(e, SetDeletes | AddDeletes | ReplaceDeletes) for e in change.edits):
        message = f"the table was concurrently upgraded to format version {after}, whose row deletes are others"
        yield Conflict("metadata-changed", head.version, message)


def _assignments_changed(before: TableMetadata, after: TableMetadata) -> bool:
    return any(before.document[key] != after.document[key] for key in _ASSIGNED)


def _spec(metadata: TableMetadata) -> object:
    return metadata.document["default-spec-id"]


def _readable(written: Sequence[Field], wanted: Sequence[Field]) -> bool:
    """Whether files with the fields `written` are valid under `wanted`: all still exist, at most with promoted
    types."""
    if not {f.id for f in written} <= {f.id for f in wanted}:
        return False
    have = {f.id: f for f in written}
    for f in wanted:
        old = have.get(f.id)
        if old is None and not f.nullable:
            return False
        if old is not None and ((old.nullable and not f.nullable) or not _promotes(old.type, f.type)):
            return False
    return True


def _promotes(old: DataType, new: DataType) -> bool:
    match old, new:
        case StructType(a), StructType(b):
            return _readable(a, b)
        case ListType(a), ListType(b):
            return _readable([a], [b])
        case MapType(k, v), MapType(m, w):
            return _readable([k, v], [m, w])
    return old == new or promotes(old, new)


def _row_conflicts(
    change: Change, planned: IcebergSnapshot, winners: Sequence[Winner], head: IcebergSnapshot
) -> Iterator[Conflict]:
    """Concurrent changes to rows that the change read or removes."""
    snapshots = [w for w in winners if w.document.get("operation") != METADATA_EDIT]
    if not snapshots:
        return
    touched = change.touched
    if touched is not None and touched.num_rows:
        yield from _ids_began(planned, head)
        yield from _gone_units(touched, planned, head)
        yield from _new_deletes(touched, planned, head, {w.version for w in snapshots if w.version is not None})
    if isolation(head.metadata, change) != "serializable":
        return
    made = [(w.version, w.document.get("summary") or {}) for w in snapshots]
    new_rows = {v for v, summary in made if v is not None and summary.get("operation") in _NEW_ROWS}
    if change.reads.whole and snapshots:
        yield Conflict("concurrent-append", snapshots[-1].version, "the table changed since it was read")
    elif change.reads.predicates and new_rows:
        yield from _new_matches(change, planned, head, new_rows)


def _ids_began(planned: IcebergSnapshot, head: IcebergSnapshot) -> Iterator[Conflict]:
    """The first commit after an upgrade gave ids to rows that the change copied without."""
    before, after = planned.snapshot or {}, head.snapshot or {}
    if before.get("first-row-id") is None and after.get("first-row-id") is not None:
        yield Conflict("row-ids", head.version, "the rows that were read got ids concurrently")


def _gone_units(units: pa.Table, planned: IcebergSnapshot, head: IcebergSnapshot) -> Iterator[Conflict]:
    """Units to remove, or that lose rows, that are no longer live in the head."""
    there = {m.path for m in head.listing.manifest_files}
    suspects = {
        path
        for path, native in zip(units.column("path").to_pylist(), units.column("native").to_pylist())
        if native["manifest"] not in there
    }
    if not suspects:
        return
    known = {m.path for m in planned.listing.manifest_files}
    for source in head.listing.data_manifests:
        if suspects and not source.empty and source.path not in known:
            suspects -= set(head.listing.live_uris(source))
    if suspects:
        message = f"{len(suspects)} files to remove, or to delete rows of, were removed concurrently"
        yield Conflict("delete-delete", head.version, message, tuple(sorted(suspects)))


def _new_deletes(
    units: pa.Table, planned: IcebergSnapshot, head: IcebergSnapshot, versions: set[int]
) -> Iterator[Conflict]:
    """New deletes of rows of units to remove, or that lose rows: rows that the change copied, changed or counted may be
    among them, and a data file has one deletion vector."""
    known = {m.path for m in planned.listing.manifest_files}
    sources = [m for m in head.listing.delete_manifests if m.path not in known]
    found = newly_deleted(head, units, sources, versions) if sources else []
    if found:
        message = f"rows of {len(found)} files were deleted concurrently by row deletes"
        yield Conflict("concurrent-delete", head.version, message, tuple(found))


def _new_matches(
    change: Change, planned: IcebergSnapshot, head: IcebergSnapshot, versions: set[int]
) -> Iterator[Conflict]:
    """Files added concurrently that may contain rows that the change's predicates match."""
    listing = Listing(head.metadata, head.snapshot, planned.schema, head.paths, head.stores)
    listing.reader.adopt(head.listing.reader)
    where = any_of(list(change.reads.predicates))
    known = {m.path for m in planned.listing.manifest_files}
    sources = [m for m in listing.data_manifests if not m.empty and m.path not in known and m.content == DATA]
    try:
        paths = new_files(listing, sources, versions, where)
    except BoathouseError as error:
        yield Conflict(
            "concurrent-append", head.version, f"files added concurrently cannot be checked: {error.message}"
        )
        return
    if paths:
        message = f"{len(paths)} files were added concurrently that may contain rows where {where}"
        yield Conflict("concurrent-append", head.version, message, tuple(paths))
