"""Lance behind the interface of tables: one version of a table, and the format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from boathouse.lance import snapshot
from boathouse.lance.snapshot import CAPABILITIES, LanceSnapshot
from boathouse.table.context import TableContext
from boathouse.table.location import NEWEST, At
from boathouse.table.snapshot import Feature, MapFunction, RowDeletes

if TYPE_CHECKING:
    from boathouse.expr.tree import Expr
    from boathouse.lance.commit.commits import LanceSnapshotCommits
    from boathouse.lance.history import LanceHistory
    from boathouse.lance.new_table import NewLance
    from boathouse.table.attempt import Attempt
    from boathouse.table.edits import CreateTable, SchemaEdit
    from boathouse.table.format import TableFormat
    from boathouse.table.plan import ScanPlan
    from boathouse.table.tasks import WriteContext


# What only reading rows, history or commits need is imported by the methods that need it: without those modules a table
# is opened in half the time.


class LanceTable(LanceSnapshot):
    """One version of a Lance table; see `table.snapshot.Snapshot`."""

    def plan(
        self,
        columns: Sequence[str] | None = None,
        where: Expr | None = None,
        hidden: Sequence[str] = (),
        map: MapFunction | None = None,
        classify: bool = False,
    ) -> ScanPlan:
        from boathouse.lance import scan

        return scan.plan(self, columns, where, hidden, map, classify)

    def newest(self, put: Attempt | None = None) -> LanceTable:
        return snapshot.newest(self, put)

    @property
    def history(self) -> LanceHistory:
        from boathouse.lance.history import LanceHistory

        return LanceHistory(self)

    @property
    def commits(self) -> LanceSnapshotCommits[LanceTable]:
        from boathouse.lance.commit.commits import LanceSnapshotCommits

        return LanceSnapshotCommits(self.context, self.newest, self)

    def check_writable(self) -> None:
        from boathouse.lance.commit.transaction import check_writable

        check_writable(self)

    def row_deletes(self, operation: str) -> RowDeletes:
        return "vectors"

    def evolve(self, edits: Sequence[SchemaEdit]) -> LanceTable:
        from boathouse.lance.commit.evolve import evolve

        return evolve(self, edits)

    def write_context(self, write_id: str) -> WriteContext:
        from boathouse.lance.write import table_context

        return table_context(self, write_id)

    def offers(self, feature: type[Feature]) -> Feature | None:
        from boathouse.lance.offered import offered

        return offered(self, feature)


class LanceFormat:
    """Lance tables in a folder or a bucket."""

    name = "lance"
    capabilities = CAPABILITIES

    def detect(self, context: TableContext) -> bool:
        return snapshot.detect(context)

    def open(self, context: TableContext, at: At = NEWEST) -> LanceTable:
        return snapshot.load(context, at, LanceTable)

    def create(self, context: TableContext, create: CreateTable) -> NewLance[LanceTable]:
        from boathouse.lance.new_table import NewLance

        return NewLance.of(context, create, LanceTable)


FORMAT: TableFormat = LanceFormat()
