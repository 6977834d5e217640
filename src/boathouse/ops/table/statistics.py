"""Statistics of columns: how many distinct values they have, counted by reading the table's version once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from boathouse.ops.write import Planned, Start, WritePlan
from boathouse.table.change import Operation
from boathouse.table.features import ColumnStatistics, required


@dataclass(frozen=True, slots=True)
class StatisticsComputed:
    """Records the distinct values of these columns, or of all that can be counted. No row changes. Raises
    UnsupportedFeatureError for other formats, ColumnNotFoundError, UnsupportedTypeError, InvalidArgumentError."""

    columns: tuple[str, ...] | None
    operation: ClassVar[Operation] = "statistics"

    def plan(self, start: Start) -> WritePlan:
        statistics = required(start.snapshot, ColumnStatistics, "statistics of columns")
        paths = statistics.countable(self.columns)
        if start.options.dry_run:
            return WritePlan((), lambda _: Planned(None))
        top = list(dict.fromkeys(path[0] for path in paths))
        tasks = list(start.snapshot.plan(top, None, (), start.engine.map).tasks())
        counted = start.engine.map(statistics.task(paths), tasks, [task.cost for task in tasks])
        edit = statistics.edit(paths, counted)
        parameters = {"columns": ", ".join(".".join(path) for path in paths)}
        change = start.change("statistics", (edit,), parameters=parameters, data_change=False)
        return WritePlan((), lambda _: Planned(change))


@dataclass(frozen=True, slots=True)
class PartitionStatisticsComputed:
    """Records what the files of each partition add up to; no file is read for it. Raises UnsupportedFeatureError for
    other formats, InvalidArgumentError for a table without partitions."""

    operation: ClassVar[Operation] = "statistics"

    def plan(self, start: Start) -> WritePlan:
        edit = required(start.snapshot, ColumnStatistics, "statistics of partitions").partitions()
        change = start.change("statistics", (edit,), parameters={"partitions": "true"}, data_change=False)
        return WritePlan((), lambda _: Planned(change))
