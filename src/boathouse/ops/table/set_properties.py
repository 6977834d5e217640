"""Set properties: the table's own configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa

from boathouse.errors import InvalidArgumentError
from boathouse.ops.write import Planned, Start, WritePlan
from boathouse.table.change import Operation
from boathouse.table.edits import SetProperties
from boathouse.table.features import PropertySteps


@dataclass(frozen=True, slots=True)
class PropertiesSet:
    """Sets the properties; None removes one. Raises InvalidArgumentError for values that are not strings."""

    properties: Mapping[str, str | None]
    operation: ClassVar[Operation] = "set-properties"

    def plan(self, start: Start) -> WritePlan:
        for key, value in self.properties.items():
            if not isinstance(key, str) or not (value is None or isinstance(value, str)):
                raise InvalidArgumentError(f"property {key!r}: {value!r} is not a string", advice="pass strings")

        steps = start.snapshot.offers(PropertySteps)
        first = None if steps is None else steps.before(self.properties)

        def finish(outcomes: Sequence[pa.Table]) -> Planned:
            if not self.properties:
                return Planned(None)
            if first is None:
                return Planned(start.change("set-properties", (SetProperties(dict(self.properties)),)))
            # The application's transaction is that of the last commit: one that was interrupted is not done.
            early = replace(start, options=replace(start.options, txn=None))
            return Planned(early.change(first.operation, (first.edit,), data_change=False), then=self)

        return WritePlan((), finish)
