"""Preparing a commit: the updates that a change makes of the metadata, and the files that they name."""

from __future__ import annotations

import gzip
from typing import Final, get_args

from boathouse.bits import system
from boathouse.errors import UnsupportedFeatureError
from boathouse.iceberg.commit import readback
from boathouse.iceberg.commit.column_edits import with_defaults
from boathouse.iceberg.commit.evolve import edit_schema
from boathouse.iceberg.commit.expired import expire_versions
from boathouse.iceberg.commit.key_deletes import add_spec
from boathouse.iceberg.commit.ref_edits import edit_refs
from boathouse.iceberg.commit.restore import restore
from boathouse.iceberg.commit.snapshot_builder import METADATA_PATH, SnapshotBuilder
from boathouse.iceberg.commit.staging import is_staged
from boathouse.iceberg.commit.statistics_files import write_statistics
from boathouse.iceberg.commit.summaries import described
from boathouse.iceberg.metadata.document import TableMetadata, dump
from boathouse.iceberg.metadata.draft import (
    Draft,
    add_snapshot,
    begun,
    created,
    finished,
    set_properties,
    settle_sort_order,
)
from boathouse.iceberg.metadata.schema_rules import check_lineage_names
from boathouse.iceberg.metadata.updates import requirements, to_json
from boathouse.iceberg.metadata.versions import PROPERTY, FormatVersion
from boathouse.iceberg.paths import METADATA_FOLDER, compressed, next_of_catalog, next_uri
from boathouse.iceberg.snapshot import IcebergSnapshot
from boathouse.storage import PutMode, basename, join
from boathouse.table.attempt import Attempt
from boathouse.table.change import Change
from boathouse.table.commit import discard
from boathouse.table.context import TableContext
from boathouse.table.edits import (
    AddColumn,
    AddDeletes,
    AddFiles,
    AddKeyDeletes,
    CherryPick,
    CreateTable,
    DropColumn,
    DropRef,
    ExpireVersions,
    FileEdit,
    MoveColumn,
    RemoveAll,
    RemoveFiles,
    RenameColumn,
    ReplaceDeletes,
    ReplaceSchema,
    RestoreTo,
    RewriteManifests,
    SetColumnStatistics,
    SetComment,
    SetDefault,
    SetDeletes,
    SetIdentifiers,
    SetNullable,
    SetPartitioning,
    SetPartitionStatistics,
    SetProperties,
    SetRef,
    SetSortOrder,
    SetTransaction,
    SetType,
)
from boathouse.table.location import CommitId
from boathouse.types import PartitionSpec, Schema

OFFERED: Final = (
    AddFiles, RemoveFiles, RemoveAll, SetDeletes, AddDeletes, AddKeyDeletes, ReplaceDeletes, ReplaceSchema, AddColumn,
    RenameColumn, DropColumn, MoveColumn, SetType, SetNullable, SetDefault, SetIdentifiers, SetComment, SetPartitioning,
    SetSortOrder, SetProperties, SetTransaction, SetRef, DropRef, RestoreTo, CherryPick, ExpireVersions,
    SetColumnStatistics, SetPartitionStatistics, RewriteManifests,
)  # fmt: skip


def prepare(change: Change, head: IcebergSnapshot) -> Attempt:
    """Writes the manifests and the list of the commit that follows `head`, and returns its metadata document.

    Raises if the commit is impossible; then nothing of it is left behind.
    """
    change.require(*OFFERED)
    draft = begun(head.metadata, _now(head.metadata))
    for properties in change.all(SetProperties):
        set_properties(draft, properties)
    for edit in change.schema_edits:
        edit_schema(draft, edit, head.token)
    for back in change.all(RestoreTo):
        restore(draft, back, change.ref, head.token)
    add_spec(draft, change, head.token)
    edit_refs(draft, change, head.token)
    expire_versions(draft, change)
    settle_sort_order(draft)
    after = draft.view(head.token)
    if after.format.row_lineage:
        check_lineage_names(after.schema, head.token)
    _check_transactions(change)
    if head.context.catalog is None:
        uri = next_uri(head.token)
    else:
        uri = next_of_catalog(head.token, after.properties.get(METADATA_PATH))
    return _attempt(change, head.context, draft, uri, head)


def create(
    change: Change,
    context: TableContext,
    table: CreateTable,
    schema: Schema,
    spec: PartitionSpec,
    version: FormatVersion,
) -> Attempt:
    """The first commit of a table, as `prepare`."""
    change.require(CreateTable, AddFiles, SetTransaction)
    schema = with_defaults(schema, table.defaults, version, context.location.uri)
    draft = created(table, schema, spec, context.location.uri, _now(None), version)
    codec = table.properties.get("write.metadata.compression-codec", "none").lower()
    if codec not in ("none", "gzip"):
        raise UnsupportedFeatureError(f"metadata compression {codec!r} is not offered", advice="use none or gzip")
    name = "v1.gz.metadata.json" if codec == "gzip" else "v1.metadata.json"
    return _attempt(change, context, draft, join(context.location.uri, METADATA_FOLDER, name), None)


def _now(before: TableMetadata | None) -> int:
    now = system.current().now_ms()
    return now if before is None else max(now, int(before.document["last-updated-ms"]) + 1)


def _attempt(change: Change, context: TableContext, draft: Draft, uri: str, head: IcebergSnapshot | None) -> Attempt:
    """The attempt to publish what the draft makes, completed by a snapshot if files are added or removed."""
    before = None if head is None else head.metadata
    work: SnapshotBuilder | None = None
    counted: tuple[str, ...] = ()
    makes = _makes_snapshot(change)
    staged = is_staged(change, draft.document.get("properties") or {}, makes)
    try:
        if makes:
            work = SnapshotBuilder(change, head, draft.document, context)
            add_snapshot(draft, work.snapshot(), change.ref, staged)
        if head is not None:
            counted = write_statistics(draft, change, head)
        number = int(draft.document[PROPERTY])
        own = context.catalog is None or context.catalog.takes_documents(number)
        document = draft.document
        if own:  # most catalogs write their own
            said = None if work is not None else described(change)
            document = finished(document, before, change.write_id, said)
        made = readback.check_metadata(document, uri, before, draft.updates)
        body = dump(document) if own else b""
        side = counted if work is None else (*work.side, *counted)
        if own and context.catalog is not None:
            side = (*side, _put(context, uri, body))
    except Exception:
        discard(context.stores, counted if work is None else (*work.side, *work.kept, *counted))
        raise
    return Attempt(
        uri,
        gzip.compress(body, mtime=0) if compressed(uri) else body,
        CommitId(None if work is None else work.snapshot_id, basename(uri)),
        side,
        None if head is None else head.token,
        tuple(to_json(update) for update in draft.updates),
        requirements(draft.updates, None if before is None else before.document, change.edit(AddFiles) is not None),
        made if body else None,
    )


def _put(context: TableContext, uri: str, body: bytes) -> str:
    """A document for a catalog that only swaps names."""
    storage, key = context.stores.resolve(uri)
    storage.put(key, body, PutMode.CREATE)
    return uri


def _check_transactions(change: Change) -> None:
    """A snapshot's summary records one transaction; without a snapshot there is no place for any."""
    if change.txn is not None and not _makes_snapshot(change):
        raise UnsupportedFeatureError(
            f"Iceberg keeps application transactions in snapshots, and {change.operation} creates none",
            where=str(change.location),
            advice="leave txn out",
        )
    if len(list(change.all(SetTransaction))) > 1:
        raise UnsupportedFeatureError(
            "more than one application transaction in a commit is not offered for Iceberg tables",
            where=str(change.location),
            advice="leave out all but one",
        )


def _makes_snapshot(change: Change) -> bool:
    return any(isinstance(e, get_args(FileEdit)) for e in change.edits)
