"""The builder of compactions, as in `delta.tables`."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from boathouse.api import delta_commands as commands
from boathouse.api.table import Table
from boathouse.compat.arguments import column_names, of_type
from boathouse.engines.spark.user_errors import with_spark_errors


@with_spark_errors
class DeltaOptimizeBuilder:
    """A compaction that is being described; nothing happens before `executeCompaction` or `executeZOrderBy`."""

    def __init__(self, spark: SparkSession, table: Table) -> None:
        self._spark = spark
        self._table = table
        self._filters: list[str] = []

    def where(self, partitionFilter: str) -> DeltaOptimizeBuilder:
        """Only partitions for which this is true; several filters must all be."""
        self._filters.append(of_type(partitionFilter, str, "partitionFilter"))
        return self

    def executeCompaction(self) -> DataFrame:
        """Rewrites small files as larger ones; one row: the path, and figures.

        Raises InvalidArgumentError for a filter of other columns than partition columns, ExpressionError,
        CommitConflictError, CommitUnknownError, ReadOnlyError.
        """
        return commands.optimize(self._spark, self._table, self._where())

    def executeZOrderBy(self, *cols: str | list[str] | tuple[str, ...]) -> DataFrame:
        """Rewrites all files so that each has a narrow range of these columns; one row: the path, and figures.

        Raises ColumnNotFoundError, InvalidArgumentError, ExpressionError, CommitConflictError, CommitUnknownError,
        ReadOnlyError.
        """
        return commands.optimize(self._spark, self._table, self._where(), column_names(cols, "Z-order"))

    def _where(self) -> str | None:
        return " AND ".join(f"({text})" for text in self._filters) or None
