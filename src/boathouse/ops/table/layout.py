"""How new files are laid out: what they are partitioned by, and in which order their rows should be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from boathouse.ops.write import Planned, Start, WritePlan
from boathouse.table.change import Operation
from boathouse.table.edits import SetPartitioning, SetSortOrder
from boathouse.types import PartitionField, Schema, SortField


@dataclass(frozen=True, slots=True)
class PartitioningSet:
    """New files are partitioned by the fields that `by` makes of the table's schema. Raises UnsupportedFeatureError."""

    by: Callable[[Schema], tuple[PartitionField, ...]]
    operation: ClassVar[Operation] = "set-properties"

    def plan(self, start: Start) -> WritePlan:
        edit = SetPartitioning(self.by(start.snapshot.schema))
        start.evolved((edit,))
        parameters = {"partitioning": ", ".join(f"{f.name}: {f.transform}" for f in edit.fields)}
        return WritePlan((), lambda _: Planned(start.change("set-properties", (edit,), parameters=parameters)))


@dataclass(frozen=True, slots=True)
class SortOrderSet:
    """New files should be ordered by the fields that `by` makes of the table's schema. Raises
    UnsupportedFeatureError."""

    by: Callable[[Schema], tuple[SortField, ...]]
    operation: ClassVar[Operation] = "set-properties"

    def plan(self, start: Start) -> WritePlan:
        edit = SetSortOrder(self.by(start.snapshot.schema))
        start.evolved((edit,))
        return WritePlan((), lambda _: Planned(start.change("set-properties", (edit,))))
