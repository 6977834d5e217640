"""Delta behind the interface of tables: a snapshot, a table that is not created yet, and the format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from boathouse.delta.actions import text_of
from boathouse.delta.features import ICEBERG_COMPAT
from boathouse.delta.log import Log
from boathouse.delta.snapshot import DeltaSnapshot, load, newest
from boathouse.table.context import TableContext
from boathouse.table.location import NEWEST, At, Version
from boathouse.table.snapshot import Capabilities, Clustering, FeatureDrop, HistoryEntry, MapFunction, Target
from boathouse.table.version import TableVersion
from boathouse.types import Partitioning, PartitionSpec, Schema

if TYPE_CHECKING:
    import pyarrow as pa

    from boathouse.delta.maintain import DeltaRetention
    from boathouse.expr.tree import Expr
    from boathouse.table.attempt import Attempt, Committer, Published, Winner
    from boathouse.table.change import Change, CloneTable, CreateTable, RestoreTo, SchemaEdit
    from boathouse.table.commit_files import CommitFiles
    from boathouse.table.format import TableFormat
    from boathouse.table.found_files import FoundFiles
    from boathouse.table.plan import ScanPlan
    from boathouse.table.tasks import WriteContext
    from boathouse.table.verdict import Verdict

# What only reading rows, history or commits need is imported by the methods that need it: without those modules a table
# is opened in half the time.

COPY_ON_WRITE = Capabilities("copy-on-write", partitions=True)
VECTORS = Capabilities("vectors", partitions=True)


class DeltaTable(DeltaSnapshot):
    """One version of a Delta table; see `table.snapshot.Snapshot`."""

    @property
    def capabilities(self) -> Capabilities:
        from boathouse.delta import write

        return VECTORS if write.marks_rows(self) else COPY_ON_WRITE

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

    def notes(self, plan: ScanPlan) -> tuple[()]:
        """The plan shows everything."""
        return ()

    def check_writable(self) -> None:
        from boathouse.delta import write

        write.writable(self)

    def check_rewritable(self, operation: str) -> None:
        """No restrictions."""

    def detail(self) -> Mapping[str, Any]:
        from boathouse.delta import domains, features

        found = dict(super().detail())
        found["features"] = sorted({*features.writer_features(self.protocol), *self.protocol.reader_features})
        clustered = domains.clustering(self)
        return found | {"clusteringColumns": [".".join(path) for path in clustered]} if clustered else found

    def evolve(self, edits: Sequence[SchemaEdit]) -> Self:
        from boathouse.delta import transaction

        return transaction.evolve(self, edits)

    def write_context(self, write_id: str) -> WriteContext:
        from boathouse.delta import change_data, computed, domains, iceberg_compat, identity, write

        spec, conditions = self.partitioning.current, write.conditions(self)
        context = write.write_context(self.context, self.schema, spec, self.properties, write_id, conditions)
        shred = write.shreds_variants(self)
        options = {**context.options, "clustered": domains.clustering(self), "shred": shred}
        context = replace(context, options=options, computed=computed.computed(self))
        materialized = iceberg_compat.is_active(self)
        context = replace(context, identities=identity.identities(self), materialized=materialized)
        return change_data.recording(context) if change_data.is_recorded(self) else context

    def newest(self) -> DeltaTable:
        return newest(self)

    def winners(self, since: TableVersion) -> Sequence[Winner] | None:
        from boathouse.delta import transaction

        return transaction.winners(self, since)

    def check(self, change: Change, winners: Sequence[Winner]) -> Verdict:
        from boathouse.delta import conflict

        return conflict.check(change, winners, self)

    def prepare(self, change: Change) -> Attempt:
        from boathouse.delta import transaction

        return transaction.prepare(change, self.context, self)

    def committer(self) -> Committer:
        from boathouse.table.commit import FileCommitter

        return FileCommitter(self.stores)

    def look_back(self, attempt: Attempt, change: Change) -> tuple[Published | None, DeltaTable | None]:
        from boathouse.delta import landed

        return landed.look_back(attempt, self.context, lambda: newest(self, attempt))

    def published(self, attempt: Attempt, change: Change) -> None:
        from boathouse.delta import transaction

        transaction.published(attempt, self.context, self)

    def change_files(self, version: Version) -> pa.Table | None:
        from boathouse.delta import change_data

        return change_data.change_files(self, version)

    def commit_files(self, version: Version, layout: TableVersion) -> CommitFiles | None:
        from boathouse.delta import commit_files

        return commit_files.commit_files(self, version, layout)

    def find_write(self, write_id: str) -> Version | None:
        from boathouse.delta import history

        return history.find_write(self.context, write_id)

    def history(self, limit: int | None = None) -> Iterator[HistoryEntry]:
        from boathouse.delta import history

        return history.history(self, limit)

    def inspect(self, name: str) -> pa.Table:
        from boathouse.table import inspection

        return inspection.inspected(self, name, metrics=True)

    def app_version(self, app: str) -> int | None:
        return self.transactions.get(app)

    def referenced(self) -> Iterator[str]:
        from boathouse.delta import history

        return history.referenced(self.context)

    def restoration(self, at: At) -> RestoreTo | None:
        from boathouse.delta import restore

        return restore.restoration(self, load(self.context, at, DeltaTable))

    def compact_log(self, first: Version | None, last: Version | None) -> str:
        from boathouse.delta import log_compaction

        return log_compaction.compact_log(self, first, last)

    def identifiers(self) -> tuple[()]:
        """No table of this format names such columns."""
        return ()

    def clustering(self) -> Clustering | None:
        from boathouse.delta import domains

        return domains.clustered(self)

    def cloning(self, context: TableContext) -> tuple[NewDelta, CloneTable]:
        from boathouse.delta import clone
        from boathouse.table.change import CreateTable

        spec = self.partitioning.current
        table = CreateTable(self.schema, spec.fields, self.properties)
        return NewDelta(context, self.schema, spec, table), clone.cloning(self, context.location.uri)

    def feature_drop(self, name: str) -> FeatureDrop:
        from boathouse.delta import feature_drop

        return feature_drop.feature_drop(self, name)

    def retention(self) -> DeltaRetention:
        from boathouse.delta import maintain

        return maintain.DeltaRetention(self)


@dataclass(frozen=True)
class NewDelta:
    """A Delta table that is not created yet; see `table.snapshot.Target`."""

    context: TableContext
    schema: Schema
    spec: PartitionSpec
    create: CreateTable
    format: str = "delta"
    capabilities: ClassVar[Capabilities] = COPY_ON_WRITE

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
        from boathouse.delta import transaction

        return transaction.prepare(change, self.context, None)

    def committer(self) -> Committer:
        from boathouse.table.commit import FileCommitter

        return FileCommitter(self.context.stores)

    def look_back(self, attempt: Attempt, change: Change) -> tuple[Published | None, DeltaTable | None]:
        from boathouse.delta import landed

        return landed.look_back(attempt, self.context, self.newest)

    def published(self, attempt: Attempt, change: Change) -> None:
        from boathouse.delta import transaction

        transaction.published(attempt, self.context, None)

    def find_write(self, write_id: str) -> Version | None:
        from boathouse.delta import history

        return history.find_write(self.context, write_id)


class DeltaFormat:
    """Delta Lake."""

    name = "delta"
    capabilities = COPY_ON_WRITE

    def detect(self, context: TableContext) -> bool:
        return context.location.metadata is None and Log(context.location.uri, context.stores).exists()

    def open(self, context: TableContext, at: At = NEWEST) -> DeltaTable:
        return load(context, at, DeltaTable)

    def create(self, context: TableContext, create: CreateTable) -> NewDelta:
        from boathouse.delta import write

        create = write.profiled(create, context.location.uri)
        schema, spec = write.create(context.location.uri, create)
        return NewDelta(context, schema, spec, create)

    def adopt(self, table: Target, files: FoundFiles) -> pa.Table:
        from boathouse.delta import adopt

        return adopt.adopted(table.write_context(""), files)


FORMAT = DeltaFormat()
_: TableFormat = FORMAT
