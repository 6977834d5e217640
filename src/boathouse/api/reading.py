"""Methods of a table that read its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from boathouse.api.conditions import Condition
from boathouse.api.scan import Scan
from boathouse.api.selected import Columns
from boathouse.ops.handle import Handle

if TYPE_CHECKING:
    import pyarrow.dataset as pa_dataset


class Reading:
    """The part of Table that reads the version that it is pinned to."""

    _handle: Handle
    _spark: Any
    _timezone: str | None

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in order."""
        return list(self._handle.snapshot.schema.names)

    def scan(self, columns: Columns | None = None, where: Condition | None = None, *, limit: int | None = None) -> Scan:
        """Some columns of the rows for which `where`, Spark SQL text or an expression, is true; lazy.

        `columns` are names, of columns or of fields of structs, which the result calls by their last names (`s.a` is
        `a`); or a mapping of names to values in Spark SQL text, or as expressions, which mean what they mean in Spark
        with ANSI on. At most `limit` rows are returned; which ones is not said.

        Metadata columns, which a column of the same name hides: `_file`, `_pos`, `_spec_id`, `_sequence`; of Lance
        tables with stable row ids `_row_id` and `_row_version`; of Iceberg tables `_partition`, `_row_id`,
        `_last_updated_sequence_number`, and `_deleted`, with which the scan returns deleted rows too, as far as their
        files still have them.

        Raises ColumnNotFoundError, ExpressionError, InvalidArgumentError.

        >>> t.scan(columns=["city"], where="price > 20 AND city LIKE 'B%'").to_arrow().to_pylist()
        [{'city': 'Bergen'}]
        >>> t.scan({"id": "id", "cents": "CAST(price * 100 AS BIGINT)"}, limit=1).columns
        ['id', 'cents']
        """
        return Scan(self._handle, columns, where, self._spark, self._timezone, limit)

    def head(self, n: int = 5) -> pa.Table:
        """At most `n` rows, in process; no more files are read than they need.

        Raises InvalidArgumentError, MissingFileError, CorruptTableError, UnsupportedFeatureError, ForeignPathError,
        StorageError.

        >>> t.head(2).num_rows
        2
        """
        return self.scan().head(n)

    def to_arrow(self) -> pa.Table:
        """The whole table in process, as an Arrow table; `scan` gives parts of it.

        Raises MissingFileError, CorruptTableError, UnsupportedFeatureError, ForeignPathError, StorageError.
        """
        return self.scan().to_arrow()

    def to_pandas(self) -> Any:
        """The whole table as a pandas DataFrame.

        Raises MissingRequirementError if pandas is not installed, MissingFileError, CorruptTableError,
        UnsupportedFeatureError, ForeignPathError, StorageError.
        """
        return self.scan().to_pandas()

    def to_spark(self, spark: Any = None) -> Any:
        """The whole table as a Spark DataFrame, lazy; of the session `spark`, or of the one that the table was opened
        with.

        Raises InvalidArgumentError without a session, CorruptTableError, UnsupportedFeatureError, ForeignPathError,
        StorageError; reading the rows raises Spark's own errors.
        """
        return self.scan().to_spark(spark)

    def to_dataset(self) -> pa_dataset.Dataset:
        """The whole table as an Arrow dataset; see `Scan.to_dataset`.

        Raises CorruptTableError, UnsupportedFeatureError, ForeignPathError, StorageError.
        """
        return self.scan().to_dataset()

    def to_duckdb(self, connection: Any = None) -> Any:
        """The whole table as a relation of DuckDB, lazy; a query's columns and conditions are passed on to the scan.

        Raises MissingRequirementError if DuckDB is not installed, CorruptTableError, UnsupportedFeatureError,
        ForeignPathError, StorageError.

        >>> t.to_duckdb().filter("price > 20").project("id").fetchall()
        [(2,), (3,)]
        """
        return self.scan().to_duckdb(connection)

    def to_polars(self) -> Any:
        """The whole table as a LazyFrame of polars; a query's columns, conditions and limits are passed on to the scan.

        Raises MissingRequirementError if polars is not installed, CorruptTableError, UnsupportedFeatureError,
        ForeignPathError, StorageError.

        >>> import polars as pl
        >>> t.to_polars().filter(pl.col("price") > 20).select("id").collect().to_series().to_list()
        [2, 3]
        """
        return self.scan().to_polars()

    def count(self) -> int:
        """How many rows this version has; from metadata alone if every file records it.

        Raises MissingFileError, CorruptTableError, UnsupportedFeatureError, ForeignPathError, StorageError.
        """
        return self.scan().count()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.scan().__arrow_c_stream__(requested_schema)
