"""Set properties: the table's own configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from boathouse.errors import InvalidArgumentError
from boathouse.ops.write import Planned, Start, WritePlan
from boathouse.table.change import Operation
from boathouse.table.edits import SetProperties


@dataclass(frozen=True, slots=True)
class PropertiesSet:
    """Sets the properties; None removes one. Raises InvalidArgumentError for values that are not strings."""

    properties: Mapping[str, str | None]
    operation: ClassVar[Operation] = "set-properties"

    def plan(self, start: Start) -> WritePlan:
        for key, value in self.properties.items():
            if not isinstance(key, str) or not (value is None or isinstance(value, str)):
                raise InvalidArgumentError(f"property {key!r}: {value!r} is not a string", advice="pass strings")

        def finish(outcomes: Sequence[pa.Table]) -> Planned:
            if not self.properties:
                return Planned(None)
            return Planned(start.change("set-properties", (SetProperties(dict(self.properties)),)))

        return WritePlan((), finish)
