"""Replace a table by an empty one: rows, schema, partitioning, properties and comment, in one commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from boathouse.ops.schema.stored_types import held
from boathouse.ops.write import Planned, Start, WritePlan
from boathouse.table.change import Operation, ReadSet
from boathouse.table.edits import CreateTable, Edit, RemoveAll, ReplaceSchema, SchemaEdit, SetComment, SetProperties
from boathouse.table.snapshot import Snapshot

_KEPT = "delta.columnMapping."
"""Properties of how the table's files are read, old versions included."""


@dataclass(frozen=True, slots=True)
class TableReplaced:
    """The versions before stay. Raises UnsupportedFeatureError, and what creating such a table raises."""

    table: CreateTable
    operation: ClassVar[Operation] = "overwrite"

    def plan(self, start: Start) -> WritePlan:
        def evolved(table: CreateTable) -> Snapshot:
            return start.evolved(_described(table))

        properties = self._properties(start.snapshot)
        described = _described(held(evolved, self.table))
        files = sum(batch.num_rows for batch in start.snapshot.files())

        def finish(outcomes: Sequence[pa.Table]) -> Planned:
            edits: tuple[Edit, ...] = (RemoveAll(), *described)
            edits += (SetProperties(properties),) if properties else ()
            return Planned(start.change("overwrite", edits, ReadSet(whole=True)), files)

        return WritePlan((), finish)

    def _properties(self, snapshot: Snapshot) -> dict[str, str | None]:
        """What must be set, and None for what the new table does not have."""
        before, asked = snapshot.properties, self.table.properties
        gone = [k for k in before if k not in asked and not k.startswith(_KEPT)]
        return dict.fromkeys(gone) | {k: v for k, v in asked.items() if before.get(k) != v}


def _described(table: CreateTable) -> tuple[SchemaEdit, ...]:
    return (ReplaceSchema(table.schema, table.partition_by, table.generated), SetComment((), table.comment))
