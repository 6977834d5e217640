"""Rows of files that Spark's planner asks for: constants of files are partition columns of Spark, and conditions that
come later choose files when each query is planned. Classic sessions only."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as S

from boathouse.arrow.schema import to_arrow_type
from boathouse.engines.spark.catalyst import Catalyst, Numbers
from boathouse.engines.spark.constants import carried, carrier, partition_values, restored
from boathouse.engines.spark.file_index import FileIndex, Files, Pruning
from boathouse.engines.spark.groups import Group, Rows
from boathouse.engines.spark.read_schema import Shape, quoted
from boathouse.engines.spark.reader import OPTIONS, SKIPS_NOTHING
from boathouse.engines.spark.schema import spark_type
from boathouse.expr.tree import Column as Name
from boathouse.expr.tree import Expr
from boathouse.table.metadata_columns import UNIT
from boathouse.table.plan import ScanPlan
from boathouse.table.tasks import ReadColumn
from boathouse.types import INT64, BooleanType, DataType, DateType, IntegerType, StringType, TimestampType

_UNIT = "__unit"
_PREFIX = "__p"
_ARROW = {"boolean": pa.bool_(), "bigint": pa.int64(), "int": pa.int32(), "string": pa.string()}
_FOUND: WeakKeyDictionary[SparkSession, str | None] = WeakKeyDictionary()


def asking_obstacle(spark: SparkSession, units: pa.Table) -> str | None:
    """Why Spark does not ask for these files in this session; None if it does. Tried once per session."""
    if units.column("size").null_count:
        return "the sizes of some are unknown"
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        return "a Connect session has no way for its planner to ask"
    if spark not in _FOUND:
        _FOUND[spark] = _fault(spark)
    return _FOUND[spark]


def _fault(spark: SparkSession) -> str | None:
    """Asks for the files of a relation that has none, with a filter on each kind of column."""
    asked: list[Expr] = []

    def ask(where: Expr) -> pa.ChunkedArray:
        asked.append(where)
        return pa.chunked_array([], pa.string())

    try:
        catalyst = Catalyst.of(spark)
        partition = S.StructType([S.StructField("p", S.LongType())])
        none = Files(pa.array([], pa.string()), pa.array([], pa.string()), np.zeros(0, np.int64), np.zeros(0, np.int64))
        rows = catalyst.rows(spark.createDataFrame(pa.table({"p": [1]})))
        known = {"x": Name(("x",), type=INT64), "p": Name(("p",), type=INT64)}
        schema = catalyst.schema(partition)
        index = FileIndex(catalyst, none, schema, rows, known, Pruning(ask), "a probe", "")
        frame = catalyst.frame(spark, index, partition, S.StructType([S.StructField("x", S.LongType())]), OPTIONS)
        found = frame.where("x = 5 AND p = 1").collect()
    except (Py4JError, PySparkException, AttributeError, TypeError) as error:
        return f"Spark {spark.version} does not ask for files: {str(error).strip().splitlines()[0][:200]}"
    if found or not asked:
        return f"Spark {spark.version} does not ask for files"
    return None


class Asked:
    """A source of rows for `native_frame`: relations whose files Spark asks for."""

    def __init__(self, spark: SparkSession, plan: ScanPlan) -> None:
        self._spark = spark
        self._catalyst = Catalyst.of(spark)
        self._read = plan.read
        self._pruning = None if plan.later is None else Pruning(plan.later)

    def rows(self, group: Group, stored: Sequence[ReadColumn], shape: Shape, skips: bool) -> Rows:
        """The rows of one group; `stored` are its columns that its files have."""
        constants = [c for c in self._read.columns if c.name in group.constants]
        with_unit = group.deleted or UNIT in self._read.hidden
        partition = [S.StructField((c.physical or (c.name,))[0], spark_type(c.type, c.name)) for c in constants]
        table = _values(group, constants, with_unit)
        numbers, first = _tuples(table, group.units.num_rows)
        if with_unit:
            partition.append(S.StructField(_UNIT, S.LongType(), False))
        distinct = table.take(pa.array(first)) if table.num_columns else None
        rows = self._catalyst.rows(None if distinct is None else self._restored(distinct, constants, partition))
        for i, c in enumerate(constants):
            partition[i].nullable = c.nullable or distinct is None or distinct.column(i).null_count > 0
        named = {f.name: Name((c.name,), type=c.type) for f, c in zip(partition, constants, strict=False)}
        named |= {shape.names[c.name]: Name((c.name,), type=c.type) for c in stored if c.name not in shape.casts}
        files = Files(
            group.paths.combine_chunks(),
            group.units.column("path").combine_chunks(),
            group.units.column("size").to_numpy(),
            numbers,
        )
        struct = S.StructType(partition)
        index = FileIndex(
            self._catalyst,
            files,
            self._catalyst.schema(struct),
            rows,
            named,
            self._pruning,
            self._read.version,
            "" if distinct is None else _digest(distinct, struct),
        )
        data = S.StructType([_required(c, shape, f) for c, f in zip(stored, shape.fields, strict=True)])
        frame = self._catalyst.frame(self._spark, index, struct, data, OPTIONS if skips else OPTIONS | SKIPS_NOTHING)
        kept = [F.col(quoted(f.name)).alias(f"{_PREFIX}{i}") for i, f in enumerate(partition)]
        values = {c.name: F.col(f"{_PREFIX}{i}") for i, c in enumerate(constants)}
        unit = F.col(f"{_PREFIX}{len(constants)}") if with_unit else None
        return Rows(frame, tuple(kept), values, unit, unit, group.units.column("unit").combine_chunks())

    def _restored(
        self, values: pa.Table, constants: Sequence[ReadColumn], partition: Sequence[S.StructField]
    ) -> DataFrame:
        columns: list[Column] = [restored(F.col(f"c{i}"), c.type, c.name) for i, c in enumerate(constants)]
        columns += [F.col(f"c{i}") for i in range(len(constants), values.num_columns)]
        named = [c.alias(f.name) for c, f in zip(columns, partition, strict=True)]
        return self._spark.createDataFrame(values).select(*named)


def _required(c: ReadColumn, shape: Shape, f: S.StructField) -> S.StructField:
    """The field, not nullable where the table says so and no file can lack the column; a cast allows nulls."""
    if c.nullable or c.default is not None or c.name in shape.casts:
        return f
    return S.StructField(f.name, f.dataType, False, f.metadata)


def _values(group: Group, constants: Sequence[ReadColumn], with_unit: bool) -> pa.Table:
    """A column of plain values for each constant of the files, one row a file."""
    plain = [_plain(partition_values(group.units, group.constants[c.name]), c.type) for c in constants]
    if with_unit:
        plain.append(group.units.column("unit").combine_chunks())
    return pa.table(plain, names=[f"c{i}" for i in range(len(plain))])


def _plain(values: pa.ChunkedArray, type: DataType) -> pa.Array:
    """The values in the form of `carrier`."""
    found = values.combine_chunks()
    match type:
        case StringType() | BooleanType():
            return found
        case IntegerType():
            return found.cast(pa.int64())
        case DateType():
            return found.cast(pa.date32()).cast(pa.int32())
        case TimestampType():
            return found.cast(to_arrow_type(type)).cast(pa.int64())
    return pa.array(carried(values, type), _ARROW[str(carrier(type))])


def _tuples(values: pa.Table, count: int) -> tuple[Numbers, Numbers]:
    """For each of `count` rows the number of its tuple of values, and the first row of each tuple."""
    found = np.zeros(count, np.int64)
    for column in values.columns:
        codes = column.combine_chunks().dictionary_encode(null_encoding="encode").indices.to_numpy()
        _, found = np.unique(found * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)
    _, first, numbers = np.unique(found, return_index=True, return_inverse=True)
    return numbers, first


def _digest(values: pa.Table, struct: S.StructType) -> str:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, values.schema) as writer:
        writer.write_table(values.combine_chunks())
    return sha256(sink.getvalue().to_pybytes() + struct.json().encode()).hexdigest()
