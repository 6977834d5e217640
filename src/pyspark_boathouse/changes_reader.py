"""Reading the changes between two versions as a batch: what a stream of them would give, at once."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from importlib import import_module

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from pyspark_boathouse.change_options import ChangeOptions
from pyspark_boathouse.reader import Bundle
from pyspark_boathouse.stream_reader import StreamReader
from pyspark_boathouse.told_errors import told_plainly


@told_plainly
class ChangesReader(DataSourceReader):
    """Reads the columns of `schema`, in its order, `_change_type` and its sisters among them."""

    def __init__(self, options: ChangeOptions, schema: StructType) -> None:
        self.options = options
        self.rows = StreamReader(options.stream, schema)

    def partitions(self) -> list[Bundle]:
        """One task per Spark partition."""
        driver = import_module("pyspark_boathouse.following")
        tasks = driver.changes_between(self.options, self.rows.schema)
        # Without partitions, Spark reads one that does not exist.
        return [Bundle(pickle.dumps(t)) for t in tasks] or [Bundle(b"")]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        assert isinstance(partition, Bundle)
        if partition.task:
            yield from self.rows.read(partition)
