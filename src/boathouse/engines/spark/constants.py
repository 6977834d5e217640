"""Constants of files, partition values and unit ids, in foldable maps by `_metadata.file_path`: one for the few files
that have the same hash.

Spark folds the maps when it plans, so filters on these columns that a user adds later still prune files. Dates are
passed as days, timestamps as micros, decimals and floats as strings, binaries as base64, so that the session's zone has
no effect.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F

from boathouse.arrow.schema import to_arrow_type
from boathouse.engines.spark.schema import spark_type
from boathouse.storage.hadoop import hadoop_uri
from boathouse.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    FixedType,
    FloatType,
    IntegerType,
    NullType,
    StringType,
    TimestampType,
)

MISSED = "boathouse: Spark read a file that is not in the plan, or spells its path differently: "


def input_file(uri: str) -> str:
    """What `DataFrame.inputFiles()` prints for a raw URI."""
    key = hadoop_uri(uri)
    return "file:///" + key.removeprefix("file:/") if key.startswith("file:/") else key


def lookup(entries: Mapping[str, Mapping[str, Any]], ddl: Mapping[str, str], file_path: Column) -> Column:
    """The struct of a row's file; a file without an entry fails the query, and never gives nulls."""
    struct = ",".join(f"{name}:{type}" for name, type in ddl.items())
    buckets: list[dict[str, Mapping[str, Any]]] = [{} for _ in range(max(1, len(entries)))]
    for key, entry in entries.items():
        buckets[crc32(key.encode()) % len(buckets)][key] = entry
    literal = F.lit(json.dumps(buckets, ensure_ascii=False, separators=(",", ":")))
    constants = F.from_json(literal, f"array<map<string,struct<{struct}>>>", {"mode": "FAILFAST"})
    # Spark searches a map from its beginning, for every row.
    bucket = F.get(constants, (F.crc32(file_path.cast("binary")) % len(buckets)).cast("int"))
    return F.coalesce(F.element_at(bucket, file_path), F.raise_error(F.concat(F.lit(MISSED), file_path)))


def carrier(type: DataType) -> str | None:
    """The type that represents values in the map; None if there is none."""
    match type:
        case BooleanType():
            return "boolean"
        case IntegerType(_, True) | TimestampType(_, "us"):
            return "bigint"
        case DateType():
            return "int"
        case FloatType() | DecimalType() | StringType() | BinaryType() | FixedType():
            return "string"
        case NullType():
            return "string"
    return None


def carried(values: pa.ChunkedArray, type: DataType) -> list[Any]:
    """Partition values in the form of `carrier`."""
    match type:
        case DateType():
            return values.cast(pa.date32()).cast(pa.int32()).to_pylist()
        case TimestampType():
            return values.cast(to_arrow_type(type)).cast(pa.int64()).to_pylist()
        case FloatType():
            return [None if v is None else _float_text(v) for v in values.to_pylist()]
        case DecimalType():
            return [None if v is None else format(v, "f") for v in values.to_pylist()]
        case BinaryType() | FixedType():
            return [None if v is None else base64.b64encode(v).decode() for v in values.to_pylist()]
        case NullType():
            return [None] * len(values)
    return values.to_pylist()


def _float_text(value: float) -> str:
    return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(str(value), repr(value))


def restored(value: Column, type: DataType, column: str) -> Column:
    """The expression that restores the value in its own type."""
    target = spark_type(type, column)
    match type:
        case DateType():
            return F.date_from_unix_date(value)
        case TimestampType(True):
            return F.timestamp_micros(value)
        case TimestampType(False):
            return _wall_clock(value)
        case BinaryType() | FixedType():
            return F.unbase64(value)
        case BooleanType() | StringType():
            return value
    return value.cast(target)


def _wall_clock(micros: Column) -> Column:
    """Micros as TIMESTAMP_NTZ; a cast from TIMESTAMP would go through the session's zone."""
    whole = F.floor(micros / F.lit(86_400_000_000).cast("decimal(20,0)")).cast("int")
    rest = micros - whole.cast("bigint") * F.lit(86_400_000_000)
    seconds = (rest.cast("decimal(20,0)") / F.lit(1_000_000)).cast("decimal(18,6)")
    zero = F.lit(0)
    return F.lit("1970-01-01 00:00:00").cast("timestamp_ntz") + F.make_dt_interval(whole, zero, zero, seconds)


def partition_values(units: pa.Table, field_id: int) -> pa.ChunkedArray:
    """The values of one partition field, one row per unit."""
    return pc.struct_field(units.column("partition"), str(field_id))


def table_of(columns: Sequence[tuple[str, list[Any]]], keys: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The entries of the map: file key -> {name: value}; nulls are left out, absent means null."""
    return {key: {name: values[i] for name, values in columns if values[i] is not None} for i, key in enumerate(keys)}
