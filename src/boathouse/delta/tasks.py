"""The code that runs on executors: reading units of a Delta table, and writing its data files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from boathouse.delta.data_writer import DeltaFiles, outcomes
from boathouse.parquet.write import CODEC
from boathouse.table.parquet_units import read_parquet_unit
from boathouse.table.reading import read_units
from boathouse.table.tasks import FileWriters, ScanTask, WriteContext
from boathouse.table.units import PARQUET


def read(task: ScanTask) -> Iterator[pa.RecordBatch]:
    """The rows of the task's units, in order, with the schema `task.read.schema`."""
    return read_units(task, {PARQUET: read_parquet_unit})


def outcomes_schema(context: WriteContext) -> pa.Schema:
    """OUTCOMES for this context."""
    return outcomes(context)


def writers(context: WriteContext) -> FileWriters:
    """The data files of this context."""
    return DeltaFiles(context)


def settings(properties: Mapping[str, str], tight: bool) -> dict[str, Any]:
    """The options of a WriteContext from a table's properties."""
    codec = properties.get("delta.parquet.compression.codec") or properties.get("parquet.compression.codec")
    indexed = properties.get("delta.dataSkippingNumIndexedCols", "32")
    named = properties.get("delta.dataSkippingStatsColumns")
    return {
        "codec": (codec or CODEC).lower(),
        "indexed": int(indexed) if indexed.lstrip("-").isdigit() else 32,
        "stats_columns": named,
        "tight": tight,
    }
