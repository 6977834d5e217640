"""How new files are laid out: what they are partitioned or clustered by, and in which order their rows should be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from boathouse.ops.schema.alter_columns import column_path
from boathouse.ops.write import Planned, Start, WritePlan
from boathouse.table.change import Operation
from boathouse.table.edits import SetClustering, SetPartitioning, SetProperties, SetSortOrder
from boathouse.types import PartitionField, PartitionSpec, Schema, SortField


@dataclass(frozen=True, slots=True)
class PartitioningSet:
    """New files are partitioned by the fields that `by` makes of the table's schema and the present partitioning.
    Raises UnsupportedFeatureError."""

    by: Callable[[Schema, PartitionSpec], tuple[PartitionField, ...]]
    operation: ClassVar[Operation] = "set-properties"

    def plan(self, start: Start) -> WritePlan:
        edit = SetPartitioning(self.by(start.snapshot.schema, start.snapshot.partitioning.current))
        start.evolved((edit,))
        parameters = {"partitioning": ", ".join(f"{f.name}: {f.transform}" for f in edit.fields)}
        return WritePlan((), lambda _: Planned(start.change("set-properties", (edit,), parameters=parameters)))


@dataclass(frozen=True, slots=True)
class ClusteringSet:
    """The table wants its rows clustered by these columns, paths through structs as text; none: by none. Raises
    ColumnNotFoundError, InvalidArgumentError, UnsupportedFeatureError."""

    columns: tuple[str, ...]
    operation: ClassVar[Operation] = "set-properties"

    def plan(self, start: Start) -> WritePlan:
        schema = start.snapshot.schema
        edit = SetClustering(tuple(column_path(name, schema) for name in self.columns))
        parameters = {"clustering": ", ".join(".".join(path) for path in edit.columns)}
        return WritePlan((), lambda _: Planned(start.change("set-properties", (edit,), parameters=parameters)))


@dataclass(frozen=True, slots=True)
class SortOrderSet:
    """New files are ordered by the fields that `by` makes of the table's schema; `properties` are set with it. Raises
    UnsupportedFeatureError."""

    by: Callable[[Schema], tuple[SortField, ...]]
    properties: Mapping[str, str] = field(default_factory=dict)
    operation: ClassVar[Operation] = "set-properties"

    def plan(self, start: Start) -> WritePlan:
        edit = SetSortOrder(self.by(start.snapshot.schema))
        start.evolved((edit,))
        edits = (edit, SetProperties(self.properties)) if self.properties else (edit,)
        return WritePlan((), lambda _: Planned(start.change("set-properties", edits)))
