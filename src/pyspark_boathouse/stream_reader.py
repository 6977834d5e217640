"""Reading a stream through the Python Data Source: followed in one worker of the driver, read in tasks."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from boathouse.engines.spark.exchange import to_spark_batch
from boathouse.engines.spark.worker import output_types, scan_rows
from boathouse.ops.tasks.difference import Difference, difference_rows
from boathouse.table.tasks import ScanTask
from pyspark_boathouse.reader import Bundle
from pyspark_boathouse.stream_options import StreamOptions
from pyspark_boathouse.told_errors import told_plainly

if TYPE_CHECKING:
    from boathouse.ops.stream.source import Batch, ReadLimit, TableStream
    from boathouse.table.snapshot import Snapshot


@told_plainly
class StreamReader(DataSourceStreamReader):
    """Reads the columns of `schema`, in its order. For PySpark 4.0 and 4.1, which ask for the latest offset without
    saying from where, or how much a batch may take."""

    def __init__(self, options: StreamOptions, schema: StructType) -> None:
        self.options = options
        self.schema = schema
        self.last: Mapping[str, Any] | None = None
        self.target: Snapshot | None = None
        self.batch: Batch | None = None
        self._following: TableStream | None = None

    def following(self) -> TableStream:
        """The table, opened at the first call. Executors, which only read, never call this."""
        if self._following is None:
            self._following = _driver().follow(self.options, self.schema)
        return self._following

    def newest(self) -> Snapshot:
        """The newest version, from the one that the last batch was planned with."""
        return self.following().newest(None if self.batch is None else self.batch.newest)

    def initialOffset(self) -> dict[str, Any]:
        return dict(_offsets().INITIAL)

    def latestOffset(self) -> dict[str, Any]:
        self.last = self.offset_after(self.last or self.initialOffset(), None, None)
        return dict(self.last)

    def offset_after(self, start: Mapping[str, Any], files: int | None, bytes: int | None) -> dict[str, Any]:
        """How far a batch that begins at `start` reads."""
        limit: ReadLimit = import_module("boathouse.ops.stream.source").ReadLimit(files, bytes)
        newest = self.newest() if self.target is None else self.target
        self.batch = self.following().next(_offsets().Offset.of(start), limit, newest, self.batch)
        document: dict[str, Any] = self.batch.end.document()
        return document

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[Bundle]:
        """One task per Spark partition. PySpark 4.0 and 4.1 also call this, with both the same, to say where a query
        that was restarted is."""
        self.last = end
        if start == end:
            return []
        asked = _offsets().Offset.of(start), _offsets().Offset.of(end)
        batch, stream = self.batch, self.following()
        if batch is None or (batch.start, batch.end) != asked:
            batch = self.batch = stream.between(*asked, stream.base if batch is None else batch.newest)
        return [Bundle(pickle.dumps(t)) for t in batch.tasks()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        assert isinstance(partition, Bundle)
        fields = self.schema.fields
        for batch in _rows(pickle.loads(partition.task)):
            columns = [batch.column(_place(f.name, batch.schema.names)) for f in fields]
            typed = [pa.field(f.name, c.type, f.nullable) for f, c in zip(fields, columns, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, schema=pa.schema(typed))


def _place(name: str, names: list[str]) -> int:
    """Where a column is; a requested name may differ in case."""
    return names.index(name) if name in names else [n.lower() for n in names].index(name.lower())


def _rows(task: ScanTask | Difference) -> Iterator[pa.RecordBatch]:
    if isinstance(task, ScanTask):
        yield from scan_rows(task)
        return
    read = task.left[0].read
    types = dict(zip((*read.output, *read.hidden), output_types(read), strict=True))
    for batch in difference_rows(task):
        yield to_spark_batch(batch, [types[n] for n in batch.schema.names])


def _driver() -> Any:
    """The driver's side, which executors must not load: it needs parsers and stores."""
    return import_module("pyspark_boathouse.following")


def _offsets() -> Any:
    return import_module("boathouse.ops.stream.offset")
