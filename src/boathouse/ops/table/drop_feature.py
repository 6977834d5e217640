"""Features of a format that a table no longer needs are dropped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from boathouse.ops.files.compact import copy_task, marked
from boathouse.ops.outcomes import data_files
from boathouse.ops.tasks.unit_rows import write_units
from boathouse.ops.write import Planned, Start, TaskWork, WritePlan
from boathouse.table.change import Operation, ReadSet
from boathouse.table.edits import AddFiles, ClearFeature, Edit, RemoveFiles, SetFeature, SetProperties
from boathouse.table.features import FeatureDrop, ProtocolFeatures, required


@dataclass(frozen=True, slots=True)
class FeatureDropped:
    """The table no longer has the feature `name`, which is turned off, and its traces removed, if need be in a commit
    before. Raises InvalidArgumentError, and UnsupportedFeatureError for a feature that is used or never goes."""

    name: str
    operation: ClassVar[Operation] = "drop-feature"

    def plan(self, start: Start) -> WritePlan:
        left = required(start.snapshot, ProtocolFeatures, "drop_feature").feature_drop(self.name)
        off: tuple[Edit, ...] = (SetProperties(left.properties),) if left.properties else ()
        if left.purge or left.clear or (left.separate and off):
            return self._undone(start, left, off)
        change = start.change(self.operation, (*off, SetFeature(self.name, False)), parameters={"name": self.name})
        return WritePlan((), lambda _: Planned(change))

    def _undone(self, start: Start, left: FeatureDrop, off: tuple[Edit, ...]) -> WritePlan:
        """Turns the feature off, and rewrites the files that have to be; the rest follows."""
        clear: tuple[ClearFeature, ...] = (ClearFeature(self.name),) if left.clear else ()
        context = start.context(clear, copies=True)
        scan = start.snapshot.plan(None, None, context.hidden, start.engine.map)
        chosen = range(scan.units.num_rows) if left.clear else marked(scan.units) if left.purge else []
        units = scan.units.take(pa.array(chosen, pa.int64()))
        tasks = [copy_task(scan, [i], context) for i in chosen]
        work = TaskWork(write_units, tasks, [t.scan.cost for t in tasks], context)

        def finish(outcomes: Sequence[pa.Table]) -> Planned:
            added = data_files(outcomes[0])
            files: list[Edit] = [RemoveFiles(units)] if units.num_rows else []
            files += [AddFiles(added)] if added.num_rows else []
            # A file that comes meanwhile, too, is under the schema that goes.
            reads = ReadSet(whole=left.clear, units=frozenset(units.column("path").to_pylist()))
            parameters = {"name": self.name}
            change = start.change(self.operation, (*off, *clear, *files), reads, parameters, data_change=False)
            return Planned(change, units.num_rows, then=self)

        return WritePlan((work,), finish, dry=Planned(None, files_removed=units.num_rows))
