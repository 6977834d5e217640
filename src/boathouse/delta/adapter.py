"""Delta behind the interface of tables: one version of a table, and the format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from boathouse.delta import snapshot
from boathouse.delta.log.folder import Log
from boathouse.delta.snapshot import CAPABILITIES, DeltaSnapshot
from boathouse.table.context import TableContext
from boathouse.table.location import NEWEST, At
from boathouse.table.snapshot import Feature, MapFunction, RowDeletes

if TYPE_CHECKING:
    from boathouse.delta.commit.commits import DeltaSnapshotCommits
    from boathouse.delta.history import DeltaHistory
    from boathouse.delta.new_table import NewDelta
    from boathouse.expr.tree import Expr
    from boathouse.table.attempt import Attempt
    from boathouse.table.edits import CreateTable, SchemaEdit
    from boathouse.table.format import TableFormat
    from boathouse.table.plan import ScanPlan
    from boathouse.table.tasks import WriteContext


# What only reading rows, history or commits need is imported by the methods that need it: without those modules a table
# is opened in half the time.


class DeltaTable(DeltaSnapshot):
    """One version of a Delta table; see `table.snapshot.Snapshot`."""

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

    def detail(self) -> Mapping[str, Any]:
        from boathouse.delta.features.domains import clustering_detail

        return {**super().detail(), **clustering_detail(self)}

    def newest(self, put: Attempt | None = None) -> DeltaTable:
        return snapshot.newest(self, put)

    @property
    def history(self) -> DeltaHistory:
        from boathouse.delta.history import DeltaHistory

        return DeltaHistory(self)

    @property
    def commits(self) -> DeltaSnapshotCommits[DeltaTable]:
        from boathouse.delta.commit.commits import DeltaSnapshotCommits

        return DeltaSnapshotCommits(self.context, self.newest, self)

    def check_writable(self) -> None:
        from boathouse.delta.write import check_writable

        check_writable(self)

    def row_deletes(self, operation: str) -> RowDeletes:
        from boathouse.delta.write import marks_rows

        return "vectors" if marks_rows(self) else "rewrite"

    def evolve(self, edits: Sequence[SchemaEdit]) -> DeltaTable:
        from boathouse.delta.commit.transaction import evolve

        return evolve(self, edits)

    def write_context(self, write_id: str) -> WriteContext:
        from boathouse.delta.write import table_context

        return table_context(self, write_id)

    def offers(self, feature: type[Feature]) -> Feature | None:
        from boathouse.delta.offered import offered

        return offered(self, feature)


class DeltaFormat:
    """Delta Lake."""

    name = "delta"
    capabilities = CAPABILITIES

    def detect(self, context: TableContext) -> bool:
        return context.location.metadata is None and Log(context.location.uri, context.stores).exists()

    def open(self, context: TableContext, at: At = NEWEST) -> DeltaTable:
        return snapshot.load(context, at, DeltaTable)

    def create(self, context: TableContext, create: CreateTable) -> NewDelta[DeltaTable]:
        from boathouse.delta.new_table import NewDelta

        return NewDelta.of(context, create, DeltaTable)


FORMAT: TableFormat = DeltaFormat()
