"""Lance as a TableFormat: every method delegates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from boathouse.bits.lazy_import import Late
from boathouse.expr.tree import Expr
from boathouse.lance import snapshot
from boathouse.lance.snapshot import LanceSnapshot, refreshed
from boathouse.storage import Stores
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
    from boathouse.lance import conflict, evolve, history, landed, scan, transaction, write
    from boathouse.table import commit
    from boathouse.table.change import AddColumn, Change, CreateTable, SetType, Verdict
else:
    commit = Late("boathouse.table.commit")
    conflict = Late("boathouse.lance.conflict")
    evolve = Late("boathouse.lance.evolve")
    history = Late("boathouse.lance.history")
    landed = Late("boathouse.lance.landed")
    scan = Late("boathouse.lance.scan")
    transaction = Late("boathouse.lance.transaction")
    write = Late("boathouse.lance.write")


class LanceFormat:
    """Lance tables in a folder or a bucket."""

    name = "lance"
    capabilities = Capabilities(deletes="vectors", partitions=False)

    def detect(self, location: Location, stores: Stores) -> bool:
        return snapshot.detect(location, stores)

    def load(self, location: Location, stores: Stores, at: At = NEWEST) -> LanceSnapshot:
        return snapshot.load(location, stores, at)

    def newest(self, snapshot: Snapshot, stores: Stores) -> LanceSnapshot:
        return refreshed(cast(LanceSnapshot, snapshot), stores)

    def plan(
        self,
        snapshot: Snapshot,
        stores: Stores,
        columns: Sequence[str] | None = None,
        where: Expr | None = None,
        hidden: Sequence[str] = (),
        map: MapFunction | None = None,
    ) -> ScanPlan:
        return scan.plan(cast(LanceSnapshot, snapshot), stores, columns, where, hidden, map)

    def writable(self, snapshot: Snapshot, stores: Stores, allow_mixed_writers: bool = False) -> None:
        transaction.writable(cast(LanceSnapshot, snapshot), stores)

    def rewritable(self, snapshot: Snapshot, operation: str) -> None:
        """No restrictions."""

    def create(
        self, location: Location, create: CreateTable, snapshot: Snapshot | None = None
    ) -> tuple[Schema, PartitionSpec]:
        return write.created(location, create)

    def evolve(self, snapshot: Snapshot, edits: Sequence[AddColumn | SetType]) -> LanceSnapshot:
        return evolve.evolve(cast(LanceSnapshot, snapshot), edits)

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
        planned = cast(LanceSnapshot | None, snapshot)
        return write.write_context(location, stores, schema, spec, properties, write_id, planned)

    def committer(self, location: Location, stores: Stores) -> Committer:
        return commit.FileCommitter(stores)

    def head(self, change: Change, stores: Stores) -> LanceSnapshot | None:
        return transaction.head(change, stores)

    def winners(self, change: Change, head: Snapshot, stores: Stores) -> Sequence[Winner] | None:
        return conflict.winners(change, cast(LanceSnapshot, head), stores)

    def check(self, change: Change, winners: Sequence[Winner], head: Snapshot, stores: Stores) -> Verdict:
        return conflict.check(change, winners, cast(LanceSnapshot, head))

    def prepare(self, change: Change, head: Snapshot | None, stores: Stores) -> Attempt:
        return transaction.prepare(change, cast(LanceSnapshot | None, head), stores)

    def look_back(
        self, attempt: Attempt, change: Change, stores: Stores
    ) -> tuple[Published | None, LanceSnapshot | None]:
        return landed.look_back(attempt, change, stores)

    def published(self, attempt: Attempt, change: Change, stores: Stores) -> None:
        """Nothing to do: the newest manifest is found by listing, never by the hint."""

    def history(self, snapshot: Snapshot, stores: Stores, limit: int | None = None) -> Iterator[HistoryEntry]:
        return history.history(cast(LanceSnapshot, snapshot), stores, limit)

    def find_write(self, location: Location, stores: Stores, write_id: str) -> Version | None:
        return history.find_write(location, stores, write_id)

    def app_version(self, snapshot: Snapshot, stores: Stores, app: str) -> int | None:
        return history.app_version(cast(LanceSnapshot, snapshot), stores, app)

    def referenced(self, location: Location, stores: Stores) -> Iterator[str]:
        return history.referenced(location, stores)


FORMAT = LanceFormat()
