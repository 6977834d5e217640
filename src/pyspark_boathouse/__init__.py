"""`spark.read.format("boathouse")` and `df.write.format("boathouse")`: found by PySpark without registering.

Reads by rows through Spark's Python Data Source: the columns that are read are those of `.schema(...)`, all by
default; `t.to_spark()` of the library reads natively and is the fast way. Options of a read: `versionAsOf`,
`timestampAsOf`, `branch`, `tag`, `tableFormat`, `pushFilters`, `timeZone`; of a write: `tableFormat`, `partitionBy`
(names, with commas between), `mergeSchema`, `overwriteSchema`, `replaceWhere`, `txnAppId`, `txnVersion`,
`userMetadata`, `timeZone`. Spark does not tell a Python source the zone of its session: `timeZone` does, for a
`timestampAsOf` without an offset (else UTC) and for a `replaceWhere` that depends on it (else refused). Options
called `storage.<name>` go to the store. The mode must be append or overwrite: Spark refuses others for every Python
source. The Python that runs Spark's workers plans the read and commits the write: it needs boathouse installed, where
the library's own API needs it in the user's Python only.
"""

from __future__ import annotations

from importlib import import_module

from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, DataSourceReader
from pyspark.sql.types import StructType

from boathouse.engines.spark.schema import to_spark
from boathouse.errors import UnsupportedFeatureError
from pyspark_boathouse.options import ReadOptions, WriteTarget
from pyspark_boathouse.reader import TableReader
from pyspark_boathouse.writer import TableWriter

__all__ = ["DefaultSource"]


class DefaultSource(DataSource):
    """Tables of every format that the library knows, by path."""

    @classmethod
    def name(cls) -> str:
        return "boathouse"

    def schema(self) -> StructType:
        """The table's columns at the version that is asked for."""
        return to_spark(ReadOptions.of(self.options).open().schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of the columns of `schema`; one that takes Spark's filters if `pushFilters` is true.

        Spark fails on a reader that defines `pushFilters` while spark.sql.python.filterPushdown.enabled is off,
        which it is by default: so it has to be asked for.
        """
        options = ReadOptions.of(self.options)
        if not options.push_filters:
            return TableReader(options, schema)
        try:
            filtering = import_module("pyspark_boathouse.filtering")
        except ImportError as error:
            raise UnsupportedFeatureError(
                "this PySpark has no filter push-down for Python sources",
                advice="leave pushFilters out, or use PySpark 4.1 or later",
            ) from error
        reader: DataSourceReader = filtering.FilteringReader(options, schema)
        return reader

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """A writer whose tasks write data files, and whose commit is one commit of the table."""
        return TableWriter(WriteTarget.of(self.options, overwrite), schema)
