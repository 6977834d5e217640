"""Iceberg behind the interface of tables: one version of a table, and the format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from boathouse.iceberg import snapshot
from boathouse.iceberg.snapshot import CAPABILITIES, IcebergSnapshot
from boathouse.table.context import TableContext
from boathouse.table.location import NEWEST, At
from boathouse.table.snapshot import Feature, MapFunction, RowDeletes

if TYPE_CHECKING:
    from boathouse.expr.tree import Expr
    from boathouse.iceberg.commit.commits import IcebergSnapshotCommits
    from boathouse.iceberg.history import IcebergHistory
    from boathouse.iceberg.new_table import NewIceberg
    from boathouse.table.attempt import Attempt
    from boathouse.table.edits import CreateTable, SchemaEdit
    from boathouse.table.format import TableFormat
    from boathouse.table.plan import ScanPlan
    from boathouse.table.tasks import WriteContext


# What only reading rows, history or commits need is imported by the methods that need it: without those modules a table
# is opened in half the time.


class IcebergTable(IcebergSnapshot):
    """One version of an Iceberg table; see `table.snapshot.Snapshot`."""

    def plan(
        self,
        columns: Sequence[str] | None = None,
        where: Expr | None = None,
        hidden: Sequence[str] = (),
        map: MapFunction | None = None,
        classify: bool = False,
    ) -> ScanPlan:
        from boathouse.iceberg import scan

        return scan.plan(self, columns, where, hidden, map, classify)

    def newest(self, put: Attempt | None = None) -> IcebergTable:
        return snapshot.newest(self, put)

    @property
    def history(self) -> IcebergHistory:
        from boathouse.iceberg.history import IcebergHistory

        return IcebergHistory(self)

    @property
    def commits(self) -> IcebergSnapshotCommits[IcebergTable]:
        from boathouse.iceberg.commit.commits import IcebergSnapshotCommits

        return IcebergSnapshotCommits(self.context, self.newest, self)

    def check_writable(self) -> None:
        from boathouse.iceberg.write import check_writable

        check_writable(self)

    def row_deletes(self, operation: str) -> RowDeletes:
        from boathouse.iceberg.row_modes import row_deletes

        return row_deletes(self.metadata, operation)

    def evolve(self, edits: Sequence[SchemaEdit]) -> IcebergTable:
        from boathouse.iceberg.commit.evolve import evolve

        return evolve(self, edits)

    def write_context(self, write_id: str) -> WriteContext:
        from boathouse.iceberg.write import table_context

        return table_context(self, write_id)

    def offers(self, feature: type[Feature]) -> Feature | None:
        from boathouse.iceberg.offered import offered

        return offered(self, feature)


class IcebergFormat:
    """Iceberg tables in file systems and of catalogs."""

    name = "iceberg"
    capabilities = CAPABILITIES

    def detect(self, context: TableContext) -> bool:
        return snapshot.detect(context)

    def open(self, context: TableContext, at: At = NEWEST) -> IcebergTable:
        return snapshot.load(context, at, IcebergTable)

    def create(self, context: TableContext, create: CreateTable) -> NewIceberg[IcebergTable]:
        from boathouse.iceberg.new_table import NewIceberg

        return NewIceberg.of(context, create, IcebergTable)


FORMAT: TableFormat = IcebergFormat()
