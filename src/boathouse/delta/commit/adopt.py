"""Parquet files that no table wrote, as files of a new table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from boathouse.delta.data_writer import DeltaFiles
from boathouse.delta.partition_values import text_of
from boathouse.parquet.stats import schema_leaves
from boathouse.table.edits import Edit
from boathouse.table.found_files import FooterGroup, FoundFiles, Places
from boathouse.table.snapshot import Target
from boathouse.table.tasks import WriteContext
from boathouse.types import DataType, DateType, TimestampType


@dataclass(frozen=True, slots=True)
class DeltaAdoption:
    """See `table.features.Adoption`."""

    table: Target

    @property
    def edits(self) -> Sequence[Edit]:
        return ()

    def places(self, group: FooterGroup) -> Places:
        """The names are the table's; partition columns have the values that the log says, whatever is in a file."""
        return {
            leaf.path: leaf.path if leaf.path in group.leaves else None
            for leaf in schema_leaves(self.table.schema)
            if leaf.path[0] not in self._partitions
        }

    def adopted(self, files: FoundFiles) -> pa.Table:
        """OUTCOMES of the files."""
        stored = [leaf for leaf in files.leaves if leaf.path[0] not in self._partitions]
        return _outcomes(self.table.write_context(""), replace(files, leaves=stored))

    @property
    def _partitions(self) -> frozenset[str]:
        return frozenset(f.source[0] for f in self.table.partitioning.current)


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
