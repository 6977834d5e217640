"""The user's data as a DataFrame."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from boathouse.arrow.schema import from_arrow
from boathouse.engines.sources import from_data
from boathouse.engines.spark.exchange import to_spark_batch
from boathouse.engines.spark.schema import to_spark
from boathouse.errors import InvalidArgumentError


def to_frame(spark: SparkSession, data: object) -> DataFrame:
    """A DataFrame as it is; Arrow data (pyarrow, pandas, polars, duckdb, PyCapsule) sent to Spark.

    Raises InvalidArgumentError, UnsupportedTypeError.
    """
    if isinstance(data, DataFrame) or type(data).__module__.startswith("pyspark.sql.connect"):
        return data
    if type(data).__module__.startswith("pandas") or isinstance(data, list):
        data = from_data(data).table()
    if hasattr(data, "to_reader") and hasattr(data, "schema"):
        data = data.to_reader()
    if hasattr(data, "__arrow_c_stream__"):
        return _from_arrow(spark, pa.table(data))
    if hasattr(data, "__arrow_c_array__"):
        return _from_arrow(spark, pa.Table.from_batches([pa.record_batch(data)]))
    raise InvalidArgumentError(
        f"cannot read rows from a {type(data).__module__}.{type(data).__qualname__}",
        advice="pass a PySpark DataFrame, or anything that exports Arrow data (pyarrow, pandas, polars, duckdb)",
    )


def _from_arrow(spark: SparkSession, table: pa.Table) -> DataFrame:
    schema = from_arrow(table.schema)
    struct = to_spark(schema)
    if table.num_rows == 0:
        return spark.createDataFrame([], struct)
    types = [f.type for f in schema]
    batches = [to_spark_batch(plain(b), types) for b in table.to_batches()]
    return spark.createDataFrame(pa.Table.from_batches(batches), struct)


def plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Dictionaries decoded, extension types as their storage."""
    columns = [_plain(c) for c in batch.columns]
    if not columns:
        return batch
    fields = [pa.field(f.name, c.type, f.nullable) for f, c in zip(batch.schema, columns, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def _plain(array: pa.Array) -> pa.Array:
    if isinstance(array.type, pa.BaseExtensionType):
        return _plain(array.storage)
    return array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array
