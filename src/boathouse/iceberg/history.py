"""The history of a table: its commits, the version of a write, and every file that is still needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from boathouse.errors import CorruptTableError, NotFoundError, UnsupportedFeatureError
from boathouse.iceberg.commit.summaries import (
    APP,
    APP_VERSION,
    MESSAGE,
    METADATA_EDIT,
    OPERATION,
    PARAMETERS,
    WRITE_ID,
    counts_of,
    own_json,
    user_metadata,
)
from boathouse.iceberg.files import Listing
from boathouse.iceberg.manifests.totals import number
from boathouse.iceberg.metadata.document import TableMetadata, files_of_snapshots, logged_files
from boathouse.iceberg.metadata.draft import summary_of, written_by
from boathouse.iceberg.metadata.updates import MAIN
from boathouse.iceberg.paths import HINT, METADATA_FOLDER, list_metadata
from boathouse.iceberg.snapshot import NO_SNAPSHOT, IcebergSnapshot, engine_of, head_metadata, load, read_metadata
from boathouse.storage import Stores, absolute, basename, join
from boathouse.table.attempt import undecided
from boathouse.table.history import HistoryEntry
from boathouse.table.location import NEWEST, Version


@dataclass(frozen=True, slots=True)
class IcebergHistory:
    """See `table.history.History`."""

    snapshot: IcebergSnapshot

    def entries(self, limit: int | None = None) -> Iterator[HistoryEntry]:
        """The snapshot and its ancestors, and the commits of metadata between them, newest first, as far as they are
        listed. A metadata file with the time of no snapshot is a commit of its own."""
        return islice(_commits(self.snapshot), limit)

    def find_write(self, write_id: str) -> Version | None:
        """The version that a write created: searched in the snapshots, then in the remaining metadata files.

        Raises CommitUnknownError for a file that has the name of one from which the table descends, but another time.
        """
        context = self.snapshot.context
        head = head_metadata(context)
        for id, snapshot in head.snapshots.items():
            if (snapshot.get("summary") or {}).get(WRITE_ID) == write_id:
                return id
        for metadata, time in _versions(head, context.stores):
            if written_by(metadata.document) == write_id:
                found = metadata.current_snapshot_id or NO_SNAPSHOT
                if int(metadata.document["last-updated-ms"]) != time:
                    raise undecided(write_id, found, metadata.uri)
                return found
        return None

    def app_version(self, app: str) -> int | None:
        """The newest version that an application recorded, as far as its snapshots are retained."""
        snapshot = self.snapshot
        found = None
        for document in snapshot.metadata.ancestors(snapshot.version or None):
            summary = document.get("summary") or {}
            if summary.get(APP) == app:
                version = number(summary.get(APP_VERSION))
                if version is None:
                    text = summary.get(APP_VERSION)
                    raise CorruptTableError(
                        f"a snapshot's summary has {APP_VERSION} {text!r:.80}", where=snapshot.token
                    )
                found = version if found is None else max(found, version)
        return found


def _commits(snapshot: IcebergSnapshot) -> Iterator[HistoryEntry]:
    metadata = snapshot.metadata
    files = files_of_snapshots(metadata)
    logged = logged_files(metadata)
    places = {uri: i for i, (uri, _) in enumerate(logged)}
    taken = set(files.values())
    others = [(i, uri, time) for i, (uri, time) in enumerate(logged) if uri not in taken]
    until = _until(snapshot)
    if until is not None:
        others = [o for o in others if o[2] <= until]
    version = NO_SNAPSHOT
    for document in metadata.ancestors(snapshot.version or None):
        version = int(document["snapshot-id"])
        uri = files.get(version)
        place = None if uri is None else places[uri]
        while others and (others[-1][2] > int(document["timestamp-ms"]) if place is None else others[-1][0] > place):
            yield _metadata_entry(snapshot, version, *others.pop()[1:])
        yield _entry(document, snapshot.token, None if uri is None else basename(uri))
        version = document.get("parent-snapshot-id") or NO_SNAPSHOT
    while others:
        yield _metadata_entry(snapshot, version, *others.pop()[1:])


def _until(snapshot: IcebergSnapshot) -> int | None:
    """The time after which commits of metadata are not of this version; None of the newest."""
    if snapshot.snapshot is None:
        began = snapshot.metadata.refs.get(snapshot.ref or MAIN) is not None
        times = [int(s["timestamp-ms"]) for s in snapshot.metadata.snapshots.values()] if began else []
        return min(times) - 1 if times else None
    return None if _is_head(snapshot) else snapshot.timestamp_ms


def _is_head(snapshot: IcebergSnapshot) -> bool:
    ref = snapshot.metadata.refs.get(snapshot.ref or MAIN)
    return ref is not None and int(ref["snapshot-id"]) == snapshot.version


def _metadata_entry(snapshot: IcebergSnapshot, version: Version, uri: str, time: int) -> HistoryEntry:
    """A commit of metadata alone, which left `version` the current one; its file is read, if it is still there, for
    what this library recorded in it."""
    summary: Mapping[str, Any] = {}
    try:
        here = uri == snapshot.token
        read = snapshot.metadata if here else read_metadata(snapshot.paths.uri(uri), snapshot.stores)
        summary = summary_of(read.document)
    except (NotFoundError, CorruptTableError, UnsupportedFeatureError):
        pass
    document = {"timestamp-ms": time, "summary": {"operation": METADATA_EDIT, **summary}}
    return replace(_entry(document, uri, basename(uri)), version=version, data_change=False, metadata_only=True)


def _entry(document: Mapping[str, Any], where: str, commit: str | None) -> HistoryEntry:
    summary = dict(document.get("summary") or {})
    return HistoryEntry(
        version=int(document.get("snapshot-id", NO_SNAPSHOT)),
        commit=commit,
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


def _versions(head: TableMetadata, stores: Stores) -> Iterator[tuple[TableMetadata, int]]:
    """The metadata from which the table descends, newest first, each with the time that its successor logged."""
    yield head, int(head.document["last-updated-ms"])
    for entry in reversed(head.document.get("metadata-log") or []):
        try:
            yield read_metadata(absolute(entry["metadata-file"]), stores), int(entry["timestamp-ms"])
        except NotFoundError:
            continue


@dataclass(frozen=True, slots=True)
class IcebergLiveFiles:
    """See `table.features.LiveFiles`."""

    snapshot: IcebergSnapshot

    def uris(self) -> Iterator[str]:
        """URIs of every file that a retained snapshot, a ref or a log of the table needs now."""
        context = self.snapshot.context
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
            if retained.get("manifest-list") is not None:
                yield paths.uri(retained["manifest-list"])
            listing = Listing(head.metadata, retained, head.schema, paths, context.stores)
            for source in listing.manifest_files:
                if source.path in seen:
                    continue
                seen.add(source.path)
                yield paths.uri(source.path)
                yield from listing.live_uris(source)
