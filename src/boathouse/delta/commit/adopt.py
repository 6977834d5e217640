"""Parquet files that no table wrote, as files of a new table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from boathouse.delta.data_writer import DeltaFiles
from boathouse.delta.partition_values import text_of
from boathouse.table.found_files import FoundFiles
from boathouse.table.snapshot import Target
from boathouse.table.tasks import WriteContext
from boathouse.types import DataType, DateType, TimestampType


@dataclass(frozen=True, slots=True)
class DeltaAdoption:
    """See `table.features.Adoption`."""

    table: Target

    def adopted(self, files: FoundFiles) -> pa.Table:
        """OUTCOMES of the files."""
        return _outcomes(self.table.write_context(""), files)


def _outcomes(context: WriteContext, files: FoundFiles) -> pa.Table:
    described = DeltaFiles(context)
    spelled = [_strings(values, f.type) for values, f in zip(files.partitions, described.fields, strict=True)]
    strings = [list(zip(described.keys, row, strict=True)) for row in zip(*spelled, strict=True)]
    return described.described(
        files.paths,
        files.sizes,
        files.rows,
        files.modified_ms,
        files.partitions,
        strings or [[]] * len(files.paths),
        files.leaves,
    )


def _strings(values: pa.Array, type: DataType) -> Sequence[str | None]:
    return [text_of(value, type) for value in _physical(values, type)]


def _physical(values: pa.Array, type: DataType) -> list[Any]:
    """Days and microseconds as integers: Python's own dates and times are narrower."""
    match type:
        case DateType():
            values = values.cast(pa.int32())
        case TimestampType():
            values = values.view(pa.int64())
    return list(values.to_pylist())
