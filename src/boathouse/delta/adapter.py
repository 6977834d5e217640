"""Delta as a `TableFormat`: each method delegates to another module."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from boathouse.bits.lazy_import import Late
from boathouse.delta import snapshot
from boathouse.delta.log import Log
from boathouse.delta.snapshot import DeltaSnapshot, newest
from boathouse.errors import InvalidArgumentError
from boathouse.expr.tree import Expr
from boathouse.storage import Stores
from boathouse.table.format import (
    Attempt,
    Capabilities,
    Committer,
    HistoryEntry,
    MapFunction,
    Published,
    Snapshot,
    TableFormat,
    Winner,
)
from boathouse.table.location import NEWEST, At, Location, Version
from boathouse.table.plan import ScanPlan
from boathouse.table.tasks import WriteContext
from boathouse.types import PartitionSpec, Schema

if TYPE_CHECKING:
    from boathouse.delta import conflict, history, landed, scan, transaction, write
    from boathouse.table import commit
    from boathouse.table.change import AddColumn, Change, CreateTable, SetType, Verdict
else:
    commit = Late("boathouse.table.commit")
    conflict = Late("boathouse.delta.conflict")
    history = Late("boathouse.delta.history")
    landed = Late("boathouse.delta.landed")
    scan = Late("boathouse.delta.scan")
    transaction = Late("boathouse.delta.transaction")
    write = Late("boathouse.delta.write")


class DeltaFormat:
    """Delta Lake, written by copy-on-write."""

    name = "delta"
    capabilities = Capabilities("copy-on-write", partitions=True)

    def detect(self, location: Location, stores: Stores) -> bool:
        return location.metadata is None and Log(location.uri, stores).exists()

    def load(self, location: Location, stores: Stores, at: At = NEWEST) -> DeltaSnapshot:
        return snapshot.load(location, stores, at)

    def newest(self, snapshot: Snapshot, stores: Stores) -> DeltaSnapshot:
        return newest(_own(snapshot), stores)

    def plan(
        self,
        snapshot: Snapshot,
        stores: Stores,
        columns: Sequence[str] | None = None,
        where: Expr | None = None,
        hidden: Sequence[str] = (),
        map: MapFunction | None = None,
    ) -> ScanPlan:
        return scan.plan(_own(snapshot), stores, columns, where, hidden)

    def writable(self, snapshot: Snapshot, stores: Stores, allow_mixed_writers: bool = False) -> None:
        write.writable(_own(snapshot), stores, allow_mixed_writers)

    def rewritable(self, snapshot: Snapshot, operation: str) -> None:
        """No restrictions."""

    def create(
        self, location: Location, create: CreateTable, snapshot: Snapshot | None = None
    ) -> tuple[Schema, PartitionSpec]:
        return write.create(location, create, None if snapshot is None else _own(snapshot))

    def evolve(self, snapshot: Snapshot, edits: Sequence[AddColumn | SetType]) -> DeltaSnapshot:
        return transaction.evolve(_own(snapshot), edits)

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
        return write.write_context(location, stores, schema, spec, properties, write_id)

    def committer(self, location: Location, stores: Stores) -> Committer:
        return commit.FileCommitter(stores)

    def head(self, change: Change, stores: Stores) -> DeltaSnapshot | None:
        return transaction.head(change, stores)

    def winners(self, change: Change, head: Snapshot, stores: Stores) -> Sequence[Winner] | None:
        return transaction.winners(change, _own(head), stores)

    def check(self, change: Change, winners: Sequence[Winner], head: Snapshot, stores: Stores) -> Verdict:
        return conflict.check(change, winners, _own(head))

    def prepare(self, change: Change, head: Snapshot | None, stores: Stores) -> Attempt:
        return transaction.prepare(change, None if head is None else _own(head), stores)

    def look_back(
        self, attempt: Attempt, change: Change, stores: Stores
    ) -> tuple[Published | None, DeltaSnapshot | None]:
        return landed.look_back(attempt, change, stores)

    def published(self, attempt: Attempt, change: Change, stores: Stores) -> None:
        transaction.published(attempt, change, stores)

    def history(self, snapshot: Snapshot, stores: Stores, limit: int | None = None) -> Iterator[HistoryEntry]:
        return history.history(_own(snapshot), stores, limit)

    def find_write(self, location: Location, stores: Stores, write_id: str) -> Version | None:
        return history.find_write(location, stores, write_id)

    def app_version(self, snapshot: Snapshot, stores: Stores, app: str) -> int | None:
        return _own(snapshot).transactions.get(app)

    def referenced(self, location: Location, stores: Stores) -> Iterator[str]:
        return history.referenced(location, stores)


def _own(given: Snapshot) -> DeltaSnapshot:
    if not isinstance(given, DeltaSnapshot):
        raise InvalidArgumentError(f"a {given.format} snapshot was given to Delta")
    return given


FORMAT: TableFormat = DeltaFormat()
