"""How a table is partitioned: transforms of columns (Iceberg spec, "Partitioning"), identity ones in Delta."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from boathouse.types.data_types import (
    DATE,
    INT32,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    FixedType,
    FloatType,
    IntegerType,
    StringType,
    TimestampType,
    TimeType,
    UUIDType,
)

BUCKETABLE = (
    IntegerType, DecimalType, DateType, TimeType, TimestampType, StringType, UUIDType, FixedType, BinaryType,
)  # fmt: skip
TRUNCATABLE = (IntegerType, DecimalType, StringType, BinaryType)
ORDERED = (*BUCKETABLE, BooleanType, FloatType)
"""Types by whose values rows can be sorted."""

TransformName = Literal["identity", "bucket", "truncate", "year", "month", "day", "hour", "void", "unknown"]


@dataclass(frozen=True, slots=True)
class Transform:
    """How a partition value is made of a column (Iceberg spec, "Partition Transforms").

    `parameter` is the number of buckets or the truncation width; `text` is the spelling of an unknown transform.
    """

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
    """One part of a partition spec: a column, a transform, and the name and type of the value that it gives.

    `source` is the path of the column; `id` is unique across the specs of a table; `type` is the value's. `source_id`
    is the column's field id where it has one. `recorded` is the id in the table's metadata, if several specs have it
    for values of different types.
    """

    name: str
    source: tuple[str, ...]
    transform: Transform
    id: int
    type: DataType
    source_id: int | None = None
    recorded: int | None = None

    def __str__(self) -> str:
        """`country`, `month(day)`, `bucket(16, id)`."""
        column, parameter = ".".join(self.source), self.transform.parameter
        if self.transform.name == "identity":
            return column
        return f"{self.transform.name}({'' if parameter is None else f'{parameter}, '}{column})"

    @property
    def recorded_id(self) -> int:
        """The id of this field in the table's metadata."""
        return self.id if self.recorded is None else self.recorded


@dataclass(frozen=True, slots=True)
class SortField:
    """One part of a sort order: a transform of the column at the path `source`, and the direction."""

    source: tuple[str, ...]
    transform: Transform = IDENTITY
    descending: bool = False
    nulls_first: bool = True


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """The fields that files of one way of partitioning are divided by, in order; none: not partitioned."""

    id: int
    fields: tuple[PartitionField, ...] = ()

    def __iter__(self) -> Iterator[PartitionField]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)


@dataclass(frozen=True, slots=True)
class Partitioning:
    """Every spec that live files may have been written with, and the one for new files.

    >>> t.partitioning.current.fields
    ()
    """

    specs: tuple[PartitionSpec, ...]
    current_id: int = 0

    @property
    def current(self) -> PartitionSpec:
        """The spec for new files."""
        return next(s for s in self.specs if s.id == self.current_id)

    def __repr__(self) -> str:
        now = ", ".join(map(str, self.current)) or "no column"
        before = [", ".join(map(str, s)) or "no column" for s in self.specs if s.id != self.current_id]
        return f"partitioned by {now}" + (f"; files of before by {' or '.join(before)}" if before else "")

    def spec(self, id: int) -> PartitionSpec:
        """The spec with this id, which is one of `specs`."""
        return next(s for s in self.specs if s.id == id)


UNPARTITIONED = Partitioning((PartitionSpec(0),))
