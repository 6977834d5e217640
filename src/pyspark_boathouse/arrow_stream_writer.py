"""The writer of streams for PySpark 4.1 and later, which give Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from pyspark_boathouse.stream_writer import StreamSink
from pyspark_boathouse.told_errors import told_plainly


@told_plainly
class ArrowStreamWriter(StreamSink, DataSourceStreamArrowWriter):
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self.written(iterator)
