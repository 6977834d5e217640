"""Replace a table by an empty one: rows, schema, partitioning, properties and comment, in one commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa

from boathouse.ops.held import held
from boathouse.ops.write import Planned, Start, WritePlan
from boathouse.table.change import (
    CreateTable,
    Edit,
    Operation,
    ReadSet,
    RemoveAll,
    ReplaceSchema,
    SchemaEdit,
    SetComment,
    SetProperties,
)
from boathouse.table.snapshot import Snapshot
from boathouse.types import PartitionField, Schema

_KEPT = "delta.columnMapping."
"""Properties of how the table's files are read, old versions included."""


@dataclass(frozen=True, slots=True)
class TableReplaced:
    """The versions before stay. Raises UnsupportedFeatureError, and what creating such a table raises."""

    schema: Schema
    partition_by: tuple[PartitionField, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    operation: ClassVar[Operation] = "overwrite"

    def plan(self, start: Start) -> WritePlan:
        def evolved(table: CreateTable) -> Snapshot:
            return start.evolved((ReplaceSchema(table.schema, table.partition_by), SetComment((), table.comment)))

        properties = self._properties(start.snapshot)
        asked = CreateTable(self.schema, self.partition_by, dict(self.properties), comment=self.comment)
        table = held(evolved, asked)
        described: tuple[SchemaEdit, ...] = (ReplaceSchema(table.schema, table.partition_by),)
        described += (SetComment((), self.comment),)
        files = sum(batch.num_rows for batch in start.snapshot.files())

        def finish(outcomes: Sequence[pa.Table]) -> Planned:
            edits: tuple[Edit, ...] = (RemoveAll(), *described)
            edits += (SetProperties(properties),) if properties else ()
            return Planned(start.change("overwrite", edits, ReadSet(whole=True)), files)

        return WritePlan((), finish)

    def _properties(self, snapshot: Snapshot) -> dict[str, str | None]:
        """What must be set, and None for what the new table does not have."""
        before = snapshot.properties
        gone = [k for k in before if k not in self.properties and not k.startswith(_KEPT)]
        return dict.fromkeys(gone) | {k: v for k, v in self.properties.items() if before.get(k) != v}
