"""Iceberg as a `TableFormat`: each method delegates to another module."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from boathouse.bits.lazy_import import Late
from boathouse.errors import (
    BoathouseError,
    InvalidArgumentError,
    MixedWritersError,
    TableNotFoundError,
    UnsafeStorageError,
    UnsupportedFeatureError,
)
from boathouse.expr.tree import Expr
from boathouse.iceberg import snapshot, validate
from boathouse.iceberg.partitions import unknown_transforms
from boathouse.iceberg.paths import HINT, METADATA_FOLDER, list_metadata, version_of
from boathouse.iceberg.snapshot import IcebergSnapshot
from boathouse.storage import Stores, join
from boathouse.table.format import (
    Attempt,
    Capabilities,
    Committer,
    HistoryEntry,
    MapFunction,
    Published,
    Snapshot,
    Winner,
)
from boathouse.table.location import NEWEST, At, Location, Version
from boathouse.table.plan import ScanPlan
from boathouse.table.tasks import WriteContext
from boathouse.types import PartitionSpec, Schema

if TYPE_CHECKING:
    from boathouse.iceberg import conflict, evolve, history, landed, scan, transaction, write
    from boathouse.table import commit
    from boathouse.table.change import AddColumn, Change, CreateTable, SetType, Verdict
else:
    commit = Late("boathouse.table.commit")
    conflict = Late("boathouse.iceberg.conflict")
    evolve = Late("boathouse.iceberg.evolve")
    history = Late("boathouse.iceberg.history")
    landed = Late("boathouse.iceberg.landed")
    scan = Late("boathouse.iceberg.scan")
    transaction = Late("boathouse.iceberg.transaction")
    write = Late("boathouse.iceberg.write")

log = logging.getLogger("boathouse")


def _own(found: Snapshot) -> IcebergSnapshot:
    if not isinstance(found, IcebergSnapshot):
        raise InvalidArgumentError(f"a {found.format} snapshot was given to the Iceberg format")
    return found


class IcebergFormat:
    """Writes format version 2 in file-system tables; other metadata is read only."""

    name = "iceberg"
    capabilities = Capabilities(deletes="copy-on-write", partitions=True, transforms=True)

    def detect(self, location: Location, stores: Stores) -> bool:
        if location.metadata is not None:
            return ".metadata.json" in location.metadata
        found = list_metadata(location.uri, stores)
        return bool(found.file_system or found.catalog)

    def load(self, location: Location, stores: Stores, at: At = NEWEST) -> IcebergSnapshot:
        return snapshot.load(location, stores, at)

    def newest(self, snapshot: Snapshot, stores: Stores) -> IcebergSnapshot:
        return self.load(snapshot.location, stores, At(ref=snapshot.ref))

    def plan(
        self,
        snapshot: Snapshot,
        stores: Stores,
        columns: Sequence[str] | None = None,
        where: Expr | None = None,
        hidden: Sequence[str] = (),
        map: MapFunction | None = None,
    ) -> ScanPlan:
        return scan.plan(_own(snapshot), stores, columns, where, hidden, map)

    def writable(self, snapshot: Snapshot, stores: Stores, allow_mixed_writers: bool = False) -> None:
        check_writable(_own(snapshot), stores)

    def rewritable(self, snapshot: Snapshot, operation: str) -> None:
        write.check_row_mode(_own(snapshot).metadata, operation)

    def create(
        self, location: Location, create: CreateTable, snapshot: Snapshot | None = None
    ) -> tuple[Schema, PartitionSpec]:
        return write.create(location, create, None if snapshot is None else _own(snapshot))

    def evolve(self, snapshot: Snapshot, edits: Sequence[AddColumn | SetType]) -> IcebergSnapshot:
        return evolve.evolve(_own(snapshot), edits)

    def write_context(
        self,
        location: Location,
        stores: Stores,
        schema: Schema,
        spec: PartitionSpec,
        properties: Mapping[str, str],
        write_id: str,
        snapshot: Snapshot | None = None,
    ) -> WriteContext:
        found = None if snapshot is None else _own(snapshot)
        return write.write_context(location, stores, schema, spec, properties, write_id, found)

    def committer(self, location: Location, stores: Stores) -> Committer:
        return commit.FileCommitter(stores)

    def head(self, change: Change, stores: Stores) -> IcebergSnapshot | None:
        try:
            return snapshot.load(change.location, stores, At(ref=change.ref))
        except TableNotFoundError:
            return None

    def winners(self, change: Change, head: Snapshot, stores: Stores) -> Sequence[Winner] | None:
        return conflict.winners(change, _own(head), stores)

    def check(self, change: Change, winners: Sequence[Winner], head: Snapshot, stores: Stores) -> Verdict:
        return conflict.check(change, winners, _own(head), stores)

    def prepare(self, change: Change, head: Snapshot | None, stores: Stores) -> Attempt:
        return transaction.prepare(change, None if head is None else _own(head), stores)

    def look_back(
        self, attempt: Attempt, change: Change, stores: Stores
    ) -> tuple[Published | None, IcebergSnapshot | None]:
        head = self.head(change, stores)
        return None if head is None else landed.includes(attempt, head, stores), head

    def published(self, attempt: Attempt, change: Change, stores: Stores) -> None:
        """Writes version-hint.text, where other readers start their search; a failure is harmless."""
        number = version_of(attempt.uri)
        try:
            storage, key = stores.resolve(join(change.location.uri, METADATA_FOLDER, HINT))
            storage.put(key, str(number).encode())
        except BoathouseError as error:
            log.debug("could not write %s: %s", HINT, error)

    def history(self, snapshot: Snapshot, stores: Stores, limit: int | None = None) -> Iterator[HistoryEntry]:
        return history.history(_own(snapshot), limit)

    def find_write(self, location: Location, stores: Stores, write_id: str) -> Version | None:
        return history.find_write(location, stores, write_id)

    def app_version(self, snapshot: Snapshot, stores: Stores, app: str) -> int | None:
        return history.app_version(_own(snapshot), app)

    def referenced(self, location: Location, stores: Stores) -> Iterator[str]:
        return history.referenced(location, stores)


def check_writable(found: IcebergSnapshot, stores: Stores) -> None:
    """Raises if this library may not write the table, because of its location, other writers, or its features."""
    metadata = found.metadata
    where = metadata.uri
    if found.location.metadata is not None:
        raise UnsupportedFeatureError(
            "a table opened by its metadata file is read only", where=where, advice="open the table's folder to write"
        )
    if version_of(where) is None:
        raise MixedWritersError(
            "the table belongs to a catalog, and only the catalog may make a new version current",
            where=where,
            advice="write it through its catalog",
        )
    if metadata.version != 2:
        raise UnsupportedFeatureError(f"writing Iceberg format version {metadata.version} is not offered", where=where)
    if found.paths.moved:
        raise UnsupportedFeatureError(
            f"the table was relocated from {metadata.location}, which its metadata still names",
            where=where,
            advice="copy its rows into a new table",
        )
    unknown = unknown_transforms(metadata.partitioning.current)
    if unknown:
        raise UnsupportedFeatureError(f"writing with partition transform {unknown[0]} is not offered", where=where)
    if metadata.document.get("encryption-keys") or metadata.properties.get("encryption.key-id"):
        raise UnsupportedFeatureError("Iceberg table encryption is not offered", where=where)
    format = metadata.properties.get("write.format.default", "parquet").lower()
    if format != "parquet":
        raise UnsupportedFeatureError(
            f"the table's data files are written as {format}, which is not offered",
            where=where,
            advice="set the property write.format.default to parquet with the engine that writes the table",
        )
    validate.check(metadata.document, where)
    storage, _ = stores.resolve(found.location.uri)
    if not storage.atomic_create:
        raise UnsafeStorageError("this store does not support put-if-absent", where=found.location.uri)


FORMAT = IcebergFormat()
