"""The history of a table: its commits, the version of a write, and every file that is still needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from boathouse.errors import CorruptTableError, NotFoundError
from boathouse.iceberg.documents import written_by
from boathouse.iceberg.files import Listing
from boathouse.iceberg.metadata import TableMetadata
from boathouse.iceberg.paths import HINT, METADATA_FOLDER, list_metadata
from boathouse.iceberg.snapshot import NO_SNAPSHOT, IcebergSnapshot, engine_of, head_metadata, load, read_metadata
from boathouse.iceberg.summaries import (
    APP,
    APP_VERSION,
    MESSAGE,
    OPERATION,
    PARAMETERS,
    WRITE_ID,
    counts_of,
    number,
    own_json,
    user_metadata,
)
from boathouse.storage import Stores, absolute, join
from boathouse.table.context import TableContext
from boathouse.table.location import NEWEST, Version
from boathouse.table.snapshot import HistoryEntry


def history(snapshot: IcebergSnapshot, limit: int | None = None) -> Iterator[HistoryEntry]:
    """The snapshot and its ancestors, newest first, as far as they are listed."""
    for i, document in enumerate(snapshot.metadata.ancestors(snapshot.version or None)):
        if limit is not None and i >= limit:
            return
        yield _entry(document, snapshot.token)


def _entry(document: Mapping[str, Any], where: str) -> HistoryEntry:
    summary = dict(document.get("summary") or {})
    return HistoryEntry(
        version=int(document["snapshot-id"]),
        timestamp_ms=int(document["timestamp-ms"]),
        operation=str(summary.get(OPERATION) or summary.get("operation") or "unknown"),
        parameters=own_json(summary, PARAMETERS, where),
        metrics=counts_of(summary, where),
        engine=engine_of(summary),
        write_id=summary.get(WRITE_ID),
        message=summary.get(MESSAGE),
        metadata=user_metadata(summary),
        parent=document.get("parent-snapshot-id"),
        data_change=summary.get("operation") != "replace",
    )


def find_write(context: TableContext, write_id: str) -> Version | None:
    """The version that a write created: searched in the snapshots, then in the remaining metadata files."""
    head = head_metadata(context)
    for id, snapshot in head.snapshots.items():
        if (snapshot.get("summary") or {}).get(WRITE_ID) == write_id:
            return id
    for metadata in _versions(head, context.stores):
        if written_by(metadata.document) == write_id:
            return metadata.current_snapshot_id or NO_SNAPSHOT
    return None


def _versions(head: TableMetadata, stores: Stores) -> Iterator[TableMetadata]:
    yield head
    for entry in reversed(head.document.get("metadata-log") or []):
        try:
            yield read_metadata(absolute(entry["metadata-file"]), stores)
        except NotFoundError:
            continue


def app_version(snapshot: IcebergSnapshot, app: str) -> int | None:
    """The newest version that an application recorded, as far as its snapshots are retained."""
    found = None
    for document in snapshot.metadata.ancestors(snapshot.version or None):
        summary = document.get("summary") or {}
        if summary.get(APP) == app:
            version = number(summary.get(APP_VERSION))
            if version is None:
                text = summary.get(APP_VERSION)
                raise CorruptTableError(f"a snapshot's summary has {APP_VERSION} {text!r:.80}", where=snapshot.token)
            found = version if found is None else max(found, version)
    return found


def referenced(snapshot: IcebergSnapshot) -> Iterator[str]:
    """URIs of every file that a retained snapshot, a ref or a log of the table needs now."""
    context = snapshot.context
    head = load(context, NEWEST, IcebergSnapshot)
    paths = head.paths
    yield head.token
    yield from (uri for _, uri in list_metadata(context).file_system if uri != head.token)
    yield join(context.location.uri, METADATA_FOLDER, HINT)
    document = head.metadata.document
    yield from (paths.uri(e["metadata-file"]) for e in document.get("metadata-log") or [])
    for name in ("statistics", "partition-statistics"):
        yield from (paths.uri(e["statistics-path"]) for e in document.get(name) or [])
    seen: set[str] = set()
    for retained in head.metadata.snapshots.values():
        yield paths.uri(retained["manifest-list"])
        listing = Listing(head.metadata, retained, head.schema, paths, context.stores)
        for source in listing.manifest_files:
            if source.path in seen:
                continue
            seen.add(source.path)
            yield paths.uri(source.path)
            yield from listing.live_uris(source)
