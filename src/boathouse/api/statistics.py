"""The methods of a table that count distinct values of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from boathouse.api.arguments import located, names
from boathouse.api.engines import LOCAL, engine_for
from boathouse.api.table_part import Part
from boathouse.ops.handle import Handle
from boathouse.ops.options import WriteOptions
from boathouse.ops.result import WriteResult
from boathouse.ops.table.statistics import PartitionStatisticsComputed, StatisticsComputed
from boathouse.table.features import ColumnStatistics, required


class Statistics(Part):
    """Statistics for planners of queries, beside those that every file has."""

    _handle: Handle
    _spark: Any

    @located
    def compute_statistics(
        self,
        columns: str | Sequence[str] | None = None,
        *,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> WriteResult:
        """Counts the distinct values of these columns, by default of every column of a simple type, in the newest
        version, and records them with it, where Spark and Trino find them: for Iceberg, as theta sketches in a Puffin
        file. The table is read once, and no row changes; numbers above 4,096 are estimates with a standard error of
        1.6 percent. What is recorded is of that version alone, and goes with it.

        Raises UnsupportedFeatureError for other formats, ColumnNotFoundError, UnsupportedTypeError for a column that is
        nested, InvalidArgumentError for a table without a version, CommitConflictError, CommitUnknownError,
        ReadOnlyError, StorageError.

        >>> trips = bh.create("lake/counted", "id bigint, city string", format="iceberg")
        >>> done = trips.append([{"id": 1, "city": "Kiel"}, {"id": 2, "city": "Kiel"}, {"id": 3, "city": None}])
        >>> done = trips.compute_statistics()
        >>> trips.statistics().to_pylist()
        [{'column': 'id', 'distinct': 3}, {'column': 'city', 'distinct': 1}]
        """
        options = WriteOptions.of(message, metadata, None, dry_run)
        wanted = (
            None if columns is None else tuple(names("columns", [columns] if isinstance(columns, str) else columns))
        )
        return self._run(engine_for(None, self._spark), StatisticsComputed(wanted), options)

    @located
    def compute_partition_statistics(
        self,
        *,
        message: str | None = None,
        metadata: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> WriteResult:
        """Records what the files of each partition of the newest version add up to (rows, files, bytes, row deletes),
        for planners of queries: for Iceberg, in a partition statistics file. Nothing is read but metadata.

        Raises UnsupportedFeatureError for other formats, InvalidArgumentError for a table without partitions or
        versions, CommitConflictError, CommitUnknownError, ReadOnlyError, StorageError.
        """
        options = WriteOptions.of(message, metadata, None, dry_run)
        return self._run(LOCAL, PartitionStatisticsComputed(), options)

    @located
    def statistics(self) -> pa.Table:
        """What is recorded of this version: `column`, and about how many `distinct` values it has, nulls not counted;
        no rows where nobody has counted.

        Raises UnsupportedFeatureError for other formats, CorruptTableError, StorageError.
        """
        return required(self._handle.snapshot, ColumnStatistics, "statistics of columns").recorded()
