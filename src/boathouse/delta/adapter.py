"""Delta behind the interface of tables: a snapshot, a table that is not created yet, and the format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from boathouse.delta.actions import text_of
from boathouse.delta.features.support import ICEBERG_COMPAT
from boathouse.delta.log.folder import Log
from boathouse.delta.snapshot import DeltaSnapshot, load, newest
from boathouse.table.context import TableContext
from boathouse.table.location import NEWEST, At, Version
from boathouse.table.snapshot import Capabilities, Feature, HistoryEntry, MapFunction, RowDeletes
from boathouse.table.version import TableVersion
from boathouse.types import Partitioning, PartitionSpec, Schema

if TYPE_CHECKING:
    from boathouse.expr.tree import Expr
    from boathouse.table import features
    from boathouse.table.attempt import Attempt, Committer, Published, Winner
    from boathouse.table.change import Change
    from boathouse.table.edits import CreateTable, SchemaEdit
    from boathouse.table.format import TableFormat
    from boathouse.table.plan import ScanPlan
    from boathouse.table.tasks import WriteContext
    from boathouse.table.verdict import Verdict

    Offered = (
        features.ChangeFiles
        | features.Clonable
        | features.Clustering
        | features.CommitRecords
        | features.CompactableLog
        | features.Examination
        | features.LiveFiles
        | features.MetadataTables
        | features.PropertySteps
        | features.ProtocolFeatures
        | features.Restorable
        | features.Retention
    )
    """The features of a version of a table."""


# What only reading rows, history or commits need is imported by the methods that need it: without those modules a table
# is opened in half the time.

CAPABILITIES = Capabilities(partitions=True)


class DeltaTable(DeltaSnapshot):
    """One version of a Delta table; see `table.snapshot.Snapshot`."""

    @property
    def capabilities(self) -> Capabilities:
        return CAPABILITIES

    def plan(
        self,
        columns: Sequence[str] | None = None,
        where: Expr | None = None,
        hidden: Sequence[str] = (),
        map: MapFunction | None = None,
        classify: bool = False,
    ) -> ScanPlan:
        from boathouse.delta import scan

        return scan.plan(self, columns, where, hidden, classify)

    def check_writable(self) -> None:
        from boathouse.delta import write

        write.writable(self)

    def row_deletes(self, operation: str) -> RowDeletes:
        from boathouse.delta import write

        return "vectors" if write.marks_rows(self) else "rewrite"

    def detail(self) -> Mapping[str, Any]:
        from boathouse.delta.features import domains
        from boathouse.delta.features import support as features

        found = dict(super().detail())
        found["features"] = sorted({*features.writer_features(self.protocol), *self.protocol.reader_features})
        clustered = domains.clustering(self)
        return found | {"clusteringColumns": [".".join(path) for path in clustered]} if clustered else found

    def evolve(self, edits: Sequence[SchemaEdit]) -> Self:
        from boathouse.delta.commit import transaction

        return transaction.evolve(self, edits)

    def write_context(self, write_id: str) -> WriteContext:
        from boathouse.delta import write
        from boathouse.delta.features import change_data, computed, domains, iceberg_compat, identity, row_ids

        spec, conditions = self.partitioning.current, write.conditions(self)
        context = write.write_context(self.context, self.schema, spec, self.properties, write_id, conditions)
        shred = write.shreds_variants(self)
        options = {**context.options, "clustered": domains.clustering(self), "shred": shred}
        context = replace(context, options=options, computed=computed.computed(self))
        materialized = iceberg_compat.is_active(self)
        identities, carried = identity.identities(self), row_ids.carried(self)
        context = replace(context, identities=identities, materialized=materialized, carried=carried)
        return change_data.recording(context) if change_data.is_recorded(self) else context

    def newest(self) -> DeltaTable:
        return newest(self)

    def winners(self, since: TableVersion) -> Sequence[Winner] | None:
        from boathouse.delta.commit import transaction

        return transaction.winners(self, since)

    def check(self, change: Change, winners: Sequence[Winner]) -> Verdict:
        from boathouse.delta.commit import conflict

        return conflict.check(change, winners, self)

    def prepare(self, change: Change) -> Attempt:
        from boathouse.delta.commit import transaction

        return transaction.prepare(change, self.context, self)

    def committer(self) -> Committer:
        from boathouse.table.commit import FileCommitter

        return FileCommitter(self.stores)

    def look_back(self, attempt: Attempt, change: Change) -> tuple[Published | None, DeltaTable | None]:
        from boathouse.delta.commit import landed

        return landed.look_back(attempt, self.context, lambda: newest(self, attempt), self)

    def published(self, attempt: Attempt, change: Change) -> None:
        from boathouse.delta.commit import transaction

        transaction.published(attempt, self.context, self)

    def find_write(self, write_id: str) -> Version | None:
        from boathouse.delta import history

        return history.find_write(self.context, write_id)

    def history(self, limit: int | None = None) -> Iterator[HistoryEntry]:
        from boathouse.delta import history

        return history.history(self, limit)

    def app_version(self, app: str) -> int | None:
        return self.transactions.get(app)

    def offers(self, feature: type[Feature]) -> Feature | None:
        from boathouse.table import features

        found: Offered | None = None
        match feature:
            case features.ChangeFiles:
                from boathouse.delta.features.change_data import DeltaChangeFiles

                found = DeltaChangeFiles(self)
            case features.Clonable:
                from boathouse.delta.commit.clone import DeltaClone

                found = DeltaClone(self, NewDelta)
            case features.Clustering:
                from boathouse.delta.features.domains import clustered

                found = clustered(self)
            case features.CommitRecords:
                from boathouse.delta.log.commit_files import DeltaCommitRecords

                found = DeltaCommitRecords(self)
            case features.CompactableLog:
                from boathouse.delta.log.compaction import DeltaLogFiles

                found = DeltaLogFiles(self)
            case features.Examination:
                from boathouse.delta.examine import DeltaExamination

                found = DeltaExamination(self)
            case features.LiveFiles:
                from boathouse.delta.history import DeltaLiveFiles

                found = DeltaLiveFiles(self.context)
            case features.MetadataTables:
                from boathouse.table.inspection import CommonTables

                found = CommonTables(self, metrics=True)
            case features.PropertySteps:
                from boathouse.delta.features.row_tracking import DeltaPropertySteps

                found = DeltaPropertySteps(self)
            case features.ProtocolFeatures:
                from boathouse.delta.features.drop import DeltaProtocolFeatures

                found = DeltaProtocolFeatures(self)
            case features.Restorable:
                from boathouse.delta.commit.restore import DeltaRestore

                found = DeltaRestore(self)
            case features.Retention:
                from boathouse.delta.retention import DeltaRetention

                found = DeltaRetention(self)
        return cast("Feature | None", found)


@dataclass(frozen=True)
class NewDelta:
    """A Delta table that is not created yet; see `table.snapshot.Target`."""

    context: TableContext
    schema: Schema
    spec: PartitionSpec
    create: CreateTable
    format: str = "delta"
    capabilities: ClassVar[Capabilities] = CAPABILITIES

    @property
    def partitioning(self) -> Partitioning:
        return Partitioning((self.spec,))

    @property
    def properties(self) -> dict[str, str]:
        return {k: text_of(v) for k, v in self.create.properties.items()}

    def write_context(self, write_id: str) -> WriteContext:
        from boathouse.delta import write

        context = write.write_context(self.context, self.schema, self.spec, self.create.properties, write_id)
        asked = any(self.properties.get(key, "").lower() == "true" for key in ICEBERG_COMPAT)
        return replace(context, materialized=asked)

    def newest(self) -> DeltaTable:
        return FORMAT.open(self.context)

    def prepare(self, change: Change) -> Attempt:
        from boathouse.delta.commit import transaction

        return transaction.prepare(change, self.context, None)

    def committer(self) -> Committer:
        from boathouse.table.commit import FileCommitter

        return FileCommitter(self.context.stores)

    def look_back(self, attempt: Attempt, change: Change) -> tuple[Published | None, DeltaTable | None]:
        from boathouse.delta.commit import landed

        return landed.look_back(attempt, self.context, self.newest, None)

    def published(self, attempt: Attempt, change: Change) -> None:
        from boathouse.delta.commit import transaction

        transaction.published(attempt, self.context, None)

    def find_write(self, write_id: str) -> Version | None:
        from boathouse.delta import history

        return history.find_write(self.context, write_id)

    def offers(self, feature: type[Feature]) -> Feature | None:
        from boathouse.table import features

        found: features.Adoption | None = None
        match feature:
            case features.Adoption:
                from boathouse.delta.commit.adopt import DeltaAdoption

                found = DeltaAdoption(self)
        return cast("Feature | None", found)


class DeltaFormat:
    """Delta Lake."""

    name = "delta"
    capabilities = CAPABILITIES

    def detect(self, context: TableContext) -> bool:
        return context.location.metadata is None and Log(context.location.uri, context.stores).exists()

    def open(self, context: TableContext, at: At = NEWEST) -> DeltaTable:
        return load(context, at, DeltaTable)

    def create(self, context: TableContext, create: CreateTable) -> NewDelta:
        from boathouse.delta import write

        create = write.profiled(create, context.location.uri)
        schema, spec = write.create(context.location.uri, create)
        return NewDelta(context, schema, spec, create)


FORMAT = DeltaFormat()
_: TableFormat = FORMAT
