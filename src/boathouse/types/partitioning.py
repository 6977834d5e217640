"""How a table is partitioned: transforms of columns (Iceberg spec, "Partitioning"), identity ones in Delta."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from boathouse.types.data_types import DATE, INT32, DataType

TransformName = Literal["identity", "bucket", "truncate", "year", "month", "day", "hour", "void", "unknown"]


@dataclass(frozen=True, slots=True)
class Transform:
    """`parameter` is the number of buckets or the truncation width; `text` is the spelling of an unknown transform."""

    name: TransformName
    parameter: int | None = None
    text: str | None = None

    def __str__(self) -> str:
        if self.text is not None:
            return self.text
        return self.name if self.parameter is None else f"{self.name}[{self.parameter}]"

    def result(self, source: DataType) -> DataType:
        """The type of a partition value made from a column of type `source`."""
        if self.name in ("bucket", "year", "month", "hour"):
            return INT32
        return DATE if self.name == "day" else source


IDENTITY = Transform("identity")


@dataclass(frozen=True, slots=True)
class PartitionField:
    """`source` is the path of the column; `id` is unique across the specs of a table; `type` is the value's.

    `recorded` is the id in the table's metadata, if several specs have it for values of different types.
    """

    name: str
    source: tuple[str, ...]
    transform: Transform
    id: int
    type: DataType
    source_id: int | None = None
    recorded: int | None = None

    @property
    def recorded_id(self) -> int:
        return self.id if self.recorded is None else self.recorded


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    id: int
    fields: tuple[PartitionField, ...] = ()

    def __iter__(self) -> Iterator[PartitionField]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)


@dataclass(frozen=True, slots=True)
class Partitioning:
    """Every spec that live files may have been written with, and the one for new files."""

    specs: tuple[PartitionSpec, ...]
    current_id: int = 0

    @property
    def current(self) -> PartitionSpec:
        return next(s for s in self.specs if s.id == self.current_id)

    def spec(self, id: int) -> PartitionSpec:
        return next(s for s in self.specs if s.id == id)


UNPARTITIONED = Partitioning((PartitionSpec(0),))
