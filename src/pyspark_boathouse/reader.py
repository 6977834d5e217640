"""Reading through the Python Data Source: planned in Spark's planning worker, read in tasks."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from boathouse.engines.spark.schema import spark_type
from boathouse.engines.spark.worker import scan_rows
from boathouse.errors import SchemaMismatchError
from boathouse.expr.tree import Expr, all_of
from boathouse.table.metadata_columns import METADATA_COLUMNS
from boathouse.types import Schema
from pyspark_boathouse.options import ReadOptions
from pyspark_boathouse.told_errors import told_plainly

_TASK_BYTES = 64 << 20
_AT_LEAST = 4


class Bundle(InputPartition):
    """One pickled `ScanTask`."""

    def __init__(self, task: bytes) -> None:
        self.task = task


@told_plainly
class TableReader(DataSourceReader):
    """Reads the columns of `schema`, in its order."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self.options = options
        self.columns = [f.name for f in schema.fields]
        self.nullable = [f.nullable for f in schema.fields]
        self.where: list[Expr] = []
        check_types(schema, options.open().schema, options.path)

    def partitions(self) -> list[Bundle]:
        """One task per Spark partition; planned now, at the newest version unless one is requested."""
        scan = self.options.open().scan(self.columns, all_of(self.where) if self.where else None)
        tasks = list(scan.plan().tasks(_TASK_BYTES, _AT_LEAST))
        # Without partitions, Spark reads one that does not exist.
        return [Bundle(pickle.dumps(t)) for t in tasks] or [Bundle(b"")]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        assert isinstance(partition, Bundle)
        if not partition.task:
            return
        for batch in scan_rows(pickle.loads(partition.task)):
            fields = [
                pa.field(f.name, f.type, nullable) for f, nullable in zip(batch.schema, self.nullable, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(batch.columns, schema=pa.schema(fields))


def check_types(asked: StructType, schema: Schema, where: str, hidden: Sequence[str] = ()) -> None:
    """Raises ColumnNotFoundError, or SchemaMismatchError for a column requested with another type. `hidden` are
    metadata columns that may be requested too."""
    for f in asked.fields:
        type = METADATA_COLUMNS[f.name].type if f.name in hidden else schema.field(f.name).type
        have = spark_type(type, f.name)
        if have.simpleString().lower() != f.dataType.simpleString().lower():
            raise SchemaMismatchError(
                f"column `{f.name}` is {have.simpleString()}, and was requested as {f.dataType.simpleString()}",
                where=where,
                advice="keep the types in .schema(...), and cast afterwards",
            )
