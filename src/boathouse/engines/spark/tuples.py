"""Tuples of the values that are constant in files: partition columns of Spark's."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as S

from boathouse.arrow.schema import to_arrow_type
from boathouse.engines.spark.catalyst import Numbers
from boathouse.engines.spark.constants import carried, partition_values, restored
from boathouse.table.tasks import ReadColumn
from boathouse.types import BooleanType, DataType, DateType, IntegerType, StringType, TimestampType


@dataclass(frozen=True, slots=True)
class Tuples:
    """The different tuples of some files, in plain values: a row a tuple; and of each file the number of its own."""

    values: pa.Table
    numbers: Numbers

    @property
    def digest(self) -> str:
        """Equal for the same values."""
        if not self.values.num_columns:
            return ""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.values.schema) as writer:
            writer.write_table(self.values.combine_chunks())
        return sha256(sink.getvalue().to_pybytes()).hexdigest()


@dataclass(frozen=True, slots=True)
class Constants:
    """Columns that are constant in files, each with its partition field, under the names `fields`; and, with another
    field, the unit."""

    columns: tuple[ReadColumn, ...]
    ids: tuple[int, ...]
    fields: tuple[S.StructField, ...]

    @property
    def with_unit(self) -> bool:
        return len(self.fields) > len(self.columns)

    def of(self, units: pa.Table) -> Tuples:
        """The tuples of these units."""
        plain = [_plain(partition_values(units, i), c.type) for i, c in zip(self.ids, self.columns, strict=True)]
        if self.with_unit:
            plain.append(units.column("unit").combine_chunks())
        values = pa.table(plain, names=[f"c{i}" for i in range(len(plain))])
        numbers, first = _numbered(values, units.num_rows)
        return Tuples(values.take(pa.array(first)) if plain else values, numbers)

    def restored(self, spark: SparkSession, tuples: Tuples) -> DataFrame | None:
        """The tuples with the columns' own types, in their order; None without columns."""
        values = tuples.values
        if not values.num_columns:
            return None
        columns: list[Column] = [restored(F.col(f"c{i}"), c.type, c.name) for i, c in enumerate(self.columns)]
        columns += [F.col(f"c{i}") for i in range(len(columns), values.num_columns)]
        named = [c.alias(f.name) for c, f in zip(columns, self.fields, strict=True)]
        return spark.createDataFrame(values).select(*named)


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
    return _texts(found, type)


def _texts(values: pa.Array, type: DataType) -> pa.Array:
    """The values as texts, each different one made once; floats are told apart by their bits, as 0.0 and -0.0 are."""
    bits = values.view(f"int{values.type.bit_width}") if pa.types.is_floating(values.type) else values
    coded = bits.dictionary_encode()
    different = pa.chunked_array([coded.dictionary.view(values.type)])
    return pa.array(carried(different, type), pa.string()).take(coded.indices)


def _numbered(values: pa.Table, count: int) -> tuple[Numbers, Numbers]:
    """For each of `count` rows the number of its tuple of values, and the first row of each tuple."""
    found = np.zeros(count, np.int64)
    for column in values.columns:
        codes = column.combine_chunks().dictionary_encode(null_encoding="encode").indices.to_numpy()
        _, found = np.unique(found * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)
    _, first, numbers = np.unique(found, return_index=True, return_inverse=True)
    return numbers, first
