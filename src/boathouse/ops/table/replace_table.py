"""Replace a table by another one: rows, schema, partitioning, properties and comment, in one commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa

from boathouse.ops.outcomes import data_files
from boathouse.ops.rows.computed import completed
from boathouse.ops.schema.stored_types import held
from boathouse.ops.write import Planned, RowWork, Source, Start, WritePlan, row_work
from boathouse.table.change import Operation, ReadSet
from boathouse.table.edits import (
    AddFiles,
    CreateTable,
    Edit,
    RemoveAll,
    ReplaceSchema,
    SchemaEdit,
    SetClustering,
    SetComment,
    SetProperties,
)
from boathouse.table.features import Clustering
from boathouse.table.snapshot import Snapshot

_KEPT = "delta.columnMapping."
"""Properties of how the table's files are read, old versions included."""


@dataclass(frozen=True, slots=True)
class TableReplaced:
    """The versions before stay. Its rows are those of `source`, of the table's schema; without one it is empty. Raises
    UnsupportedFeatureError, and what creating such a table raises."""

    table: CreateTable
    source: Source | None = None
    operation: ClassVar[Operation] = "overwrite"

    def plan(self, start: Start) -> WritePlan:
        def evolved(table: CreateTable) -> Snapshot:
            return start.evolved(_described(table, start.snapshot))

        properties = self._properties(start.snapshot)
        described = _described(held(evolved, self.table), start.snapshot)
        clustered = start.snapshot.offers(Clustering)
        before: tuple[Edit, ...] = (RemoveAll(), *described)
        after: tuple[Edit, ...] = (SetProperties(properties),) if properties else ()
        if self.table.cluster_by or (clustered is not None and clustered.columns):
            after += (SetClustering(self.table.cluster_by),)
        files = sum(batch.num_rows for batch in start.snapshot.files())
        work = self._rows(start, described)

        def finish(outcomes: Sequence[pa.Table]) -> Planned:
            added = tuple(AddFiles(data_files(found)) for found in outcomes)
            return Planned(start.change("overwrite", (*before, *added, *after), ReadSet(whole=True)), files)

        return WritePlan(work, finish)

    def _rows(self, start: Start, described: tuple[SchemaEdit, ...]) -> tuple[RowWork, ...]:
        if self.source is None:
            return ()
        context = start.context(described)
        if self.table.cluster_by:
            context = replace(context, options={**context.options, "clustered": self.table.cluster_by})
        return (row_work(completed(start.engine, self.source, context), context),)

    def _properties(self, snapshot: Snapshot) -> dict[str, str | None]:
        """What must be set, and None for what the new table does not have."""
        before, asked = snapshot.properties, self.table.properties
        gone = [k for k in before if k not in asked and not k.startswith(_KEPT)]
        return dict.fromkeys(gone) | {k: v for k, v in asked.items() if before.get(k) != v}


def _described(table: CreateTable, before: Snapshot) -> tuple[SchemaEdit, ...]:
    replaced = ReplaceSchema(table.schema, table.partition_by, table.generated, table.defaults)
    comments = table.comment is not None or before.detail().get("description") is not None
    return (replaced, SetComment((), table.comment)) if comments else (replaced,)
