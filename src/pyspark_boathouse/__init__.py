"""`spark.read.format("boathouse")`, `spark.readStream`, `df.write` and `df.writeStream`: found by PySpark without
registration.

Reads through Spark's Python Data Source: the columns of `.schema(...)`, by default all; `t.to_spark()` of the library
reads natively and is faster. Options of a read: `versionAsOf`, `timestampAsOf`, `branch`, `tag`, `tableFormat`,
`pushFilters`, `timeZone`; of a write: `tableFormat`, `partitionBy` (comma-separated names), `mergeSchema`,
`overwriteSchema`, `replaceWhere`, `partitionOverwriteMode` (by default that of the session), `txnAppId`, `txnVersion`,
`userMetadata`, `timeZone`, `allowMixedWriters`, `branch`, `compression` (of the files of this write),
`maxRecordsPerFile`, and properties of a new Delta table (`delta.enableDeletionVectors`); those of streams, and of a
read of changes (`readChangeFeed`), are in docs/streams.md. Spark does not pass its session's time zone to a Python
source: `timeZone` does, for a `timestampAsOf` without an offset (else UTC) and for a `replaceWhere` that depends on
it (else refused). Options called `storage.<name>` are passed to the store. The mode must be append or overwrite:
Spark refuses others for every Python source. The Python of Spark's workers plans the read and commits the write, so
boathouse must be installed there, while the library's own API needs it only in the user's Python.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from pyspark.sql import datasource
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
)
from pyspark.sql.types import StructType

from boathouse.engines.spark.schema import to_spark
from boathouse.errors import UnsupportedFeatureError
from boathouse.table.metadata_columns import CHANGES, METADATA_COLUMNS
from boathouse.types import Field
from pyspark_boathouse.change_options import ChangeOptions, gives_changes, without_ends
from pyspark_boathouse.changes_reader import ChangesReader
from pyspark_boathouse.options import ReadOptions, WriteTarget
from pyspark_boathouse.reader import TableReader
from pyspark_boathouse.stream_options import StreamOptions, is_stream, stream_target
from pyspark_boathouse.stream_reader import StreamReader
from pyspark_boathouse.stream_writer import RowStreamWriter
from pyspark_boathouse.told_errors import told_plainly
from pyspark_boathouse.writer import TableWriter

__all__ = ["DefaultSource"]


@told_plainly
class DefaultSource(DataSource):
    """Tables of every format that the library knows, by path."""

    @classmethod
    def name(cls) -> str:
        return "boathouse"

    def schema(self) -> StructType:
        """The table's columns at the requested version; a stream has those of the newest."""
        if is_stream(self.options):
            options = StreamOptions.of(without_ends(self.options))
            found = import_module("pyspark_boathouse.following").schema_of(options)
            hidden = [METADATA_COLUMNS[n] for n in CHANGES] if options.changes else []
            return to_spark([*found, *(Field(h.name, h.type, h.nullable) for h in hidden)])
        return to_spark(ReadOptions.of(self.options).open().schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of the columns of `schema`; it accepts Spark's filters if `pushFilters` is true.

        Spark fails on a reader that defines `pushFilters` while spark.sql.python.filterPushdown.enabled is off,
        which it is by default, so it must be requested.
        """
        if gives_changes(self.options):
            return ChangesReader(ChangeOptions.of(self.options), schema)
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
        """A writer whose tasks write data files, and whose commit is a single commit of the table."""
        return TableWriter(WriteTarget.of(self.options, overwrite), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """A reader of the columns of `schema` that follows the table."""
        options = StreamOptions.of(self.options)
        if find_spec("pyspark.sql.streaming.datasource") is not None:
            limited = import_module("pyspark_boathouse.limited_stream")
            reader: DataSourceStreamReader = limited.LimitedStreamReader(options, schema)
            return reader
        if options.limited:
            raise UnsupportedFeatureError(
                "this PySpark does not pass limits to Python sources, so maxFilesPerTrigger and maxBytesPerTrigger "
                "cannot hold",
                advice="leave them out, or use PySpark 4.2 or later",
            )
        return StreamReader(options, schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """A writer that makes one commit of each batch; `overwrite` is output mode complete."""
        target = stream_target(self.options, overwrite)
        if not hasattr(datasource, "DataSourceStreamArrowWriter"):
            return RowStreamWriter(target, schema)
        arrow = import_module("pyspark_boathouse.arrow_stream_writer")
        writer: DataSourceStreamWriter = arrow.ArrowStreamWriter(target, schema)
        return writer
