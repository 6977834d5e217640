"""Opens a table: finds the head metadata document, and the requested snapshot in it."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar, cast

import pyarrow as pa

from boathouse.errors import (
    AmbiguousFormatError,
    InvalidArgumentError,
    NotFoundError,
    TableNotFoundError,
    VersionNotFoundError,
)
from boathouse.iceberg.files import Listing
from boathouse.iceberg.metadata.document import TableMetadata
from boathouse.iceberg.metadata.updates import MAIN
from boathouse.iceberg.paths import MetadataFiles, Paths, list_metadata, read_bytes
from boathouse.storage import ObjectInfo, Stores, basename
from boathouse.table.context import TableContext
from boathouse.table.location import At, Location
from boathouse.table.sizes import SMALL_FILE, Sizes
from boathouse.table.snapshot import Capabilities, MapFunction
from boathouse.table.tally import Tally
from boathouse.types import Partitioning, Schema

if TYPE_CHECKING:
    from boathouse.expr.tree import Expr
    from boathouse.table.attempt import Attempt

log = logging.getLogger("boathouse")

CAPABILITIES: Final = Capabilities(partitions=True, transforms=True, lasting_ids=True)
NO_SNAPSHOT = 0
"""The version of a table that has no snapshot yet; snapshot ids are positive."""


S = TypeVar("S", bound="IcebergSnapshot")


@dataclass(frozen=True, eq=False)
class IcebergSnapshot:
    """One snapshot of a table under one metadata document.

    `snapshot` is its JSON, None for a table without one. `token` is the URI of the metadata document.
    """

    context: TableContext
    metadata: TableMetadata
    snapshot: Mapping[str, Any] | None
    ref: str | None
    schema: Schema
    format: str = "iceberg"
    capabilities: ClassVar[Capabilities] = CAPABILITIES

    @property
    def location(self) -> Location:
        return self.context.location

    @property
    def stores(self) -> Stores:
        return self.context.stores

    @property
    def version(self) -> int:
        return NO_SNAPSHOT if self.snapshot is None else int(self.snapshot["snapshot-id"])

    @property
    def timestamp_ms(self) -> int:
        document = self.metadata.document
        return int(document["last-updated-ms"] if self.snapshot is None else self.snapshot["timestamp-ms"])

    @property
    def identity(self) -> str:
        return self.metadata.uuid

    @property
    def token(self) -> str:
        return self.metadata.uri

    @property
    def partitioning(self) -> Partitioning:
        return self.metadata.partitioning

    @property
    def properties(self) -> Mapping[str, str]:
        return self.metadata.properties

    @cached_property
    def paths(self) -> Paths:
        metadata = self.metadata
        elsewhere = metadata.properties.get("write.metadata.path")
        return Paths.of(metadata.location, self.location.uri, metadata.uri, elsewhere, self.location.relocated)

    @cached_property
    def listing(self) -> Listing:
        return Listing(self.metadata, self.snapshot, self.schema, self.paths, self.stores, self.location.verify)

    def files(
        self,
        columns: Sequence[tuple[str, ...]] = (),
        where: Expr | None = None,
        map: MapFunction | None = None,
        tally: Tally | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """FILES; `deleted` is null if the snapshot has row deletes other than vectors, until `plan` resolves them."""
        for batch in self.listing.files(columns, where, tally, map):
            yield self.listing.counted(batch)

    def sizes(self, small: int = SMALL_FILE) -> Sizes:
        return Sizes.of(self.listing.counts(), small)

    def detail(self) -> Mapping[str, Any]:
        metadata = self.metadata
        summary = {} if self.snapshot is None else dict(self.snapshot.get("summary") or {})
        return {
            "format-version": metadata.version,
            "table-uuid": metadata.uuid,
            "location": metadata.location,
            "metadata": metadata.uri,
            "last-sequence-number": metadata.last_sequence_number,
            "snapshots": len(metadata.snapshots),
            "refs": {name: int(ref["snapshot-id"]) for name, ref in metadata.refs.items()},
            "operation": summary.pop("operation", None),
            "engine": engine_of(summary),
            "summary": summary,
        }


def engine_of(summary: Mapping[str, Any]) -> str | None:
    """The engine that wrote a snapshot, as far as its summary records it."""
    name = summary.get("engine-name")
    if name is None:
        return f"spark/{summary['spark.app.id']}" if "spark.app.id" in summary else None
    version = summary.get("engine-version")
    return f"{name}/{version}" if version else str(name)


def detect(context: TableContext) -> bool:
    """Whether there is a metadata document at the location."""
    named = context.location.metadata
    if named is not None:
        return ".metadata.json" in named
    found = list_metadata(context)
    return bool(found.file_system or found.catalog)


def load(context: TableContext, at: At, cls: type[S]) -> S:
    """Opens a table, as a snapshot of class `cls`.

    Raises TableNotFoundError, VersionNotFoundError, CorruptTableError, UnsupportedFeatureError.
    """
    found = at_point(context, head_metadata(context), at, cls)
    # A table that was moved is refused when it is opened, not when a file of it is missing.
    _ = found.paths
    return found


def newest(snapshot: S, put: Attempt | None = None) -> S:
    """The newest snapshot of the same ref. It is `snapshot` itself, with what that has read, if nothing changed.

    `put` is an attempt that was prepared on `snapshot` and put.
    """
    metadata = head_metadata(snapshot.context, snapshot.metadata, put)
    found = at_point(snapshot.context, metadata, At(ref=snapshot.ref), type(snapshot))
    same = found.token == snapshot.token and (
        metadata is snapshot.metadata or metadata.document == snapshot.metadata.document
    )
    return snapshot if same and (found.version, found.schema) == (snapshot.version, snapshot.schema) else found


def head_metadata(
    context: TableContext, known: TableMetadata | None = None, put: Attempt | None = None
) -> TableMetadata:
    """The named metadata document, or the newest of the table's folder.

    It is not read if a listing shows that it is `known`, or the attempt `put` on top of it, nor if a catalog's answer
    to the attempt said what it made.
    """
    if context.catalog is not None:
        if put is not None and put.state is not None:
            return cast(TableMetadata, put.state)
        current = context.catalog.head()
        if known is not None and known.uri == current:
            return known
        context.stores.resolve(current)
        return context.catalog.document(current) or read_metadata(current, context.stores)
    named = context.location.metadata
    if named is not None:
        try:
            return read_metadata(named, context.stores)
        except NotFoundError:
            raise TableNotFoundError("there is no metadata file", where=named) from None
    # A writer that cleans up old metadata may remove what was just listed: then there is a newer one.
    for _ in range(3):
        found = list_metadata(context, None if known is None else known.uri)
        try:
            return _newest(found, context, known, put)
        except TableNotFoundError:
            raise
        except NotFoundError:
            continue
    raise TableNotFoundError("metadata files keep disappearing while they are read", where=context.location.uri)


def _newest(
    found: MetadataFiles, context: TableContext, known: TableMetadata | None, put: Attempt | None
) -> TableMetadata:
    head = found.newest()
    if head is not None and found.catalog:
        raise AmbiguousFormatError(
            f"the metadata folder has files of a file-system table ({basename(head[1])}) "
            f"and of a catalog ({basename(found.catalog[-1][1])})",
            where=context.location.uri,
            advice="open the intended *.metadata.json",
        )
    if head is not None:
        return _unread(found, head[1], known, put) or read_metadata(head[1], context.stores, found.infos.get(head[1]))
    if not found.catalog:
        raise TableNotFoundError("there is no Iceberg metadata", where=context.location.uri)
    number = found.catalog[-1][0]
    rivals = [read_metadata(uri, context.stores) for n, uri in found.catalog if n == number]
    newest = max(rivals, key=lambda m: int(m.document["last-updated-ms"]))
    log.warning(
        "%s belongs to a catalog, and only the catalog knows its current metadata: reading %s",
        context.location.uri,
        basename(newest.uri),
    )
    return newest


def _unread(found: MetadataFiles, uri: str, known: TableMetadata | None, put: Attempt | None) -> TableMetadata | None:
    """The document of the head if the listing shows that its content is known."""
    if known is None or known.file is None or not known.file.certainly(found.infos.get(known.uri)):
        return None
    if known.uri == uri:
        return known
    info = found.infos.get(uri)
    if info is None or put is None or put.replaces != known.uri or not put.shown_as(uri, info.size):
        return None
    return cast(TableMetadata, put.state).listed_as(info)


def read_metadata(uri: str, stores: Stores, file: ObjectInfo | None = None) -> TableMetadata:
    """One metadata document. NotFoundError, CorruptTableError, UnsupportedFeatureError."""
    return TableMetadata.parse(read_bytes(stores, uri), uri, file)


def at_point(context: TableContext, metadata: TableMetadata, at: At, cls: type[S]) -> S:
    """The snapshot at a version, a time or a ref: a branch has the table's schema, others the snapshot's own."""
    if at.version is not None and at.timestamp_ms is not None:
        raise InvalidArgumentError("both a version and a timestamp are given", advice="give one of them")
    if at.ref is not None and at.ref not in metadata.refs and at.ref != MAIN:
        raise VersionNotFoundError(
            f"no branch or tag {at.ref!r}", where=metadata.uri, advice=f"there are {', '.join(sorted(metadata.refs))}"
        )
    ref = metadata.refs.get(at.ref or MAIN)
    head = None if ref is None else int(ref["snapshot-id"])
    if at.version is not None:
        return _pinned(context, metadata, at, _listed(metadata, at.version), cls)
    if at.timestamp_ms is not None:
        return _pinned(context, metadata, at, as_of(metadata, at.timestamp_ms, at.ref, head), cls)
    if head is None:
        return cls(context, metadata, None, at.ref, metadata.schema)
    snapshot = _listed(metadata, head)
    branch = at.ref is None or at.ref == MAIN or (ref or {}).get("type") == "branch"
    schema = metadata.schema if branch else metadata.schema_of(snapshot)
    return cls(context, metadata, snapshot, at.ref, schema)


def _pinned(
    context: TableContext, metadata: TableMetadata, at: At, snapshot: Mapping[str, Any] | None, cls: type[S]
) -> S:
    return cls(context, metadata, snapshot, at.ref, metadata.schema_of(snapshot))


def _listed(metadata: TableMetadata, snapshot_id: int) -> Mapping[str, Any] | None:
    if snapshot_id == NO_SNAPSHOT:
        return None
    found = metadata.snapshots.get(snapshot_id)
    if found is None:
        raise VersionNotFoundError(
            f"snapshot {snapshot_id} does not exist",
            where=metadata.uri,
            advice="it may have expired; history() lists the retained ones",
        )
    return found


def as_of(metadata: TableMetadata, timestamp_ms: int, ref: str | None, head: int | None) -> Mapping[str, Any] | None:
    """The current snapshot at a time: by the snapshot log for `main`, by the ancestors for other branches."""
    if ref in (None, MAIN) and metadata.document.get("snapshot-log"):
        entries = [(int(e["timestamp-ms"]), int(e["snapshot-id"])) for e in metadata.document["snapshot-log"]]
    else:
        entries = [(int(s["timestamp-ms"]), int(s["snapshot-id"])) for s in metadata.ancestors(head)][::-1]
    current = None
    for when, snapshot_id in entries:
        if when <= timestamp_ms:
            current = snapshot_id
    if current is None:
        first = f"; the first retained is of {entries[0][0]}" if entries else ""
        raise VersionNotFoundError(f"no snapshot was current at {timestamp_ms}{first}", where=metadata.uri)
    return _listed(metadata, current)
