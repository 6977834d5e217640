"""Types of the library as PySpark types, and back.

Spark has no unsigned integers, half floats, vectors, uuids or fixed binaries: they widen (uint8 to smallint, uint16 to
int, uint32 to bigint, uint64 to decimal(20,0), halffloat to float, vector to array, uuid to a string, fixed and shapes
to binary). What it holds in no type at all is read as what keeps every digit, and is not written: a time of day as its
text, an instant or a span of nanoseconds as their number, a bigint. Decimals beyond 38 digits are refused, naming the
column.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import types as S

from boathouse.errors import UnsupportedTypeError
from boathouse.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT8,
    INT16,
    INT32,
    INT64,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DurationType,
    Field,
    FixedSizeListType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IntegerType,
    ListType,
    MapType,
    NullType,
    Schema,
    StringType,
    StructType,
    TimestampType,
    TimeType,
    UUIDType,
    VariantType,
)

_SIGNED = {8: S.ByteType, 16: S.ShortType, 32: S.IntegerType, 64: S.LongType}
_UNSIGNED = {8: S.ShortType, 16: S.IntegerType, 32: S.LongType}
_LEAVES: dict[type[S.DataType], DataType] = {
    S.NullType: NULL,
    S.BooleanType: BOOLEAN,
    S.ByteType: INT8,
    S.ShortType: INT16,
    S.IntegerType: INT32,
    S.LongType: INT64,
    S.FloatType: FLOAT,
    S.DoubleType: DOUBLE,
    S.StringType: STRING,
    S.CharType: STRING,
    S.VarcharType: STRING,
    S.BinaryType: BINARY,
    S.DateType: DATE,
    S.TimestampType: TIMESTAMP,
    S.TimestampNTZType: TIMESTAMP_NTZ,
    S.VariantType: VARIANT,
    S.DayTimeIntervalType: DurationType("us"),
}


def to_spark(fields: Iterable[Field]) -> S.StructType:
    """The PySpark schema of these fields with their comments, every one nullable. Raises UnsupportedTypeError naming
    the column."""
    return S.StructType([_commented(f, f.name) for f in fields])


def _commented(f: Field, column: str) -> S.StructField:
    return S.StructField(f.name, spark_type(f.type, column), True, {} if f.doc is None else {"comment": f.doc})


def spark_type(type: DataType, column: str) -> S.DataType:
    """The PySpark type that holds values of `type`; `column` is its name in errors."""
    leaf = _leaf(type)
    if leaf is not None:
        return leaf
    match type:
        case StructType(fields):
            return S.StructType([_commented(f, f"{column}.{f.name}") for f in fields])
        case ListType(element) | FixedSizeListType(element, _):
            return S.ArrayType(spark_type(element.type, f"{column}.element"))
        case MapType(key, value):
            return S.MapType(spark_type(key.type, f"{column}.key"), spark_type(value.type, f"{column}.value"))
    raise UnsupportedTypeError(
        f"column `{column}` has the type {type}, which Spark does not have",
        advice="select columns without it, or read the table in process with to_arrow()",
    )


def _leaf(type: DataType) -> S.DataType | None:
    match type:
        case NullType():
            return S.NullType()
        case BooleanType():
            return S.BooleanType()
        case IntegerType(bits, signed):
            if not signed and bits == 64:
                return S.DecimalType(20, 0)
            return (_SIGNED if signed else _UNSIGNED)[bits]()
        case FloatType(bits):
            return S.DoubleType() if bits == 64 else S.FloatType()
        case DecimalType(precision, scale) if precision <= 38:
            return S.DecimalType(precision, scale)
        case StringType() | UUIDType() | TimeType():
            return S.StringType()
        case BinaryType() | FixedType():
            return S.BinaryType()
        case DateType():
            return S.DateType()
        case TimestampType(unit="ns") | DurationType("ns"):
            return S.LongType()
        case TimestampType(utc):
            return S.TimestampType() if utc else S.TimestampNTZType()
        case DurationType():
            return S.DayTimeIntervalType()
        case VariantType():
            return S.VariantType()
    return None


def compares_otherwise(type: DataType) -> bool:
    """Whether Spark, for which values of `type` are of another kind, may compare them otherwise than we do."""
    return isinstance(type, UUIDType | TimeType) or (
        isinstance(type, TimestampType | DurationType) and type.unit == "ns"
    )


def from_spark(schema: S.StructType) -> Schema:
    """The schema of a DataFrame, every field nullable. Raises UnsupportedTypeError naming the column.

    Spark's `nullable = false` describes the result of an expression (`lit(1)`, `range`), not a requirement of a table:
    Spark's own writers drop it too.
    """
    return Schema(tuple(_field(f, f.name) for f in schema.fields))


def _field(f: S.StructField, path: str) -> Field:
    return Field(f.name, _plain(f.dataType, path), doc=(f.metadata or {}).get("comment"))


def _plain(type: S.DataType, path: str) -> DataType:
    if isinstance(type, S.UserDefinedType):
        return _plain(type.sqlType(), path)
    if isinstance(type, S.DecimalType):
        return DecimalType(type.precision, type.scale)
    if isinstance(type, S.StructType):
        return StructType(tuple(_field(f, f"{path}.{f.name}") for f in type.fields))
    if isinstance(type, S.ArrayType):
        element = _plain(type.elementType, f"{path}.element")
        return ListType(Field("element", element))
    if isinstance(type, S.MapType):
        key = Field("key", _plain(type.keyType, f"{path}.key"), False)
        return MapType(key, Field("value", _plain(type.valueType, f"{path}.value")))
    found = next((ours for theirs, ours in _LEAVES.items() if isinstance(type, theirs)), None)
    if found is None:
        raise UnsupportedTypeError(
            f"column `{path}` has Spark's type {type.simpleString()}, which no table format supports",
            advice="cast it to a plain type first",
        )
    return found


def native_obstacle(type: DataType, column: str) -> str | None:
    """Why Spark's Parquet reader cannot return values of `type` as `spark_type`; None if it can."""
    match type:
        case StructType(fields):
            return next((o for f in fields if (o := native_obstacle(f.type, f"{column}.{f.name}"))), None)
        case ListType(element):
            return native_obstacle(element.type, f"{column}.element")
        case MapType(key, value):
            return native_obstacle(key.type, f"{column}.key") or native_obstacle(value.type, f"{column}.value")
        case IntegerType(_, False) | FloatType(16) | UUIDType() | DurationType() | FixedSizeListType():
            return f"Spark's Parquet reader does not read {type} (`{column}`)"
        case GeometryType() | GeographyType() | TimeType():
            return f"Spark's Parquet reader does not read {type} (`{column}`)"
        case TimestampType(_, unit) if unit != "us":
            return f"Spark's Parquet reader does not read {type} (`{column}`)"
        case NullType():
            return f"Spark's Parquet reader does not read {type} (`{column}`)"
    return None
