"""Arrow batches in the layout that Spark exchanges, and errors as bytes. Runs on executors: does not import pyspark."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import pyarrow as pa

from boathouse.arrow.schema import VARIANT_MARKS, from_arrow
from boathouse.types import (
    DataType,
    DurationType,
    Field,
    FixedSizeListType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    MapType,
    StructType,
    TimestampType,
    TimeType,
    UUIDType,
    VariantType,
)
from boathouse.variant.spark import from_spark, is_spark_variant, to_spark

_UNSIGNED = {8: pa.int16(), 16: pa.int32(), 32: pa.int64(), 64: pa.decimal128(20, 0)}


def to_spark_batch(batch: pa.RecordBatch, types: Sequence[DataType] | None = None) -> pa.RecordBatch:
    """The batch as Spark expects it: widened (see `schema`), every field nullable, columns in the same order.

    `types` are the library's types of the columns, by default from their Arrow fields.
    """
    if types is None:
        types = [f.type for f in from_arrow(batch.schema)]
    arrays = [to_spark_array(column, type) for column, type in zip(batch.columns, types, strict=True)]
    fields = [pa.field(name, array.type, True) for name, array in zip(batch.schema.names, arrays, strict=True)]
    if not arrays:
        return batch
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def to_spark_array(array: pa.Array, type: DataType) -> pa.Array:
    """One column of the library's `type` as Spark expects it."""
    match type:
        case IntegerType(bits, False):
            return array.cast(_UNSIGNED[bits])
        case FloatType(16):
            return array.cast(pa.float32())
        case FixedType():
            return array.cast(pa.binary())
        case UUIDType():
            return pa.array([None if v is None else str(uuid.UUID(bytes=v)) for v in array.to_pylist()], pa.string())
        case TimeType():
            return array.cast(pa.string())
        case TimestampType(unit="ns") | DurationType("ns"):
            return array.cast(pa.int64())
        case TimestampType(utc, _):
            return array.cast(pa.timestamp("us", "UTC" if utc else None))
        case DurationType():
            return array.cast(pa.duration("us"))
        case VariantType():
            return to_spark(array)
        case StructType(fields):
            return _spark_struct(array, fields)
        case FixedSizeListType(element, _):
            plain = array.cast(pa.list_(array.type.value_field))
            return to_spark_array(plain, ListType(element))
        case ListType(element):
            values = to_spark_array(array.values, element.type)
            return _over(array, pa.list_(pa.field("element", values.type)), values)
        case MapType(key, value):
            return _spark_map(array, key, value)
    return array


def _spark_struct(array: pa.StructArray, fields: Sequence[Field]) -> pa.Array:
    children = [to_spark_array(_child(array, i), f.type) for i, f in enumerate(fields)]
    return _struct(children, [pa.field(f.name, c.type) for f, c in zip(fields, children)], array)


def _spark_map(array: pa.MapArray, key: Field, value: Field) -> pa.Array:
    keys, items = to_spark_array(array.keys, key.type), to_spark_array(array.items, value.type)
    return _entries(array, pa.map_(keys.type, items.type), keys, items)


def _child(array: pa.StructArray, i: int) -> pa.Array:
    """A struct's child with only its own nulls, sliced like the struct."""
    return array.field(i)


def _struct(children: list[pa.Array], fields: list[pa.Field], like: pa.StructArray) -> pa.Array:
    mask = like.is_null() if like.null_count else None
    if not children:
        return like
    return pa.StructArray.from_arrays(children, fields=fields, mask=mask)


def _over(array: pa.ListArray, type: pa.DataType, values: pa.Array) -> pa.Array:
    """A list of `type` with the offsets and nulls of `array`."""
    return pa.Array.from_buffers(
        type, len(array), array.buffers()[:2], null_count=array.null_count, offset=array.offset, children=[values]
    )


def _entries(array: pa.MapArray, type: pa.MapType, keys: pa.Array, items: pa.Array) -> pa.Array:
    entries = pa.StructArray.from_arrays([keys, items], fields=[type.key_field, type.item_field])
    return _over(array, type, entries)


def from_spark_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch in the library's layout: instants in UTC whatever the session's zone, variants as (metadata, value)."""
    made = [_from_spark(f, column) for f, column in zip(batch.schema, batch.columns, strict=True)]
    if not made:
        return batch
    return pa.RecordBatch.from_arrays([a for a, _ in made], schema=pa.schema([f for _, f in made]))


def _from_spark(field: pa.Field, array: pa.Array) -> tuple[pa.Array, pa.Field]:
    t = pa.types
    type = field.type
    metadata = None
    if t.is_timestamp(type) and type.tz not in (None, "UTC"):
        array = array.cast(pa.timestamp(type.unit, "UTC"))
    elif is_spark_variant(type):
        array = from_spark(array)
        metadata = VARIANT_MARKS
    elif t.is_struct(type):
        made = [_from_spark(type.field(i), _child(array, i)) for i in range(type.num_fields)]
        array = _struct([a for a, _ in made], [f for _, f in made], array)
    elif t.is_map(type):
        keys, key = _from_spark(type.key_field, array.keys)
        items, item = _from_spark(type.item_field, array.items)
        array = _entries(array, pa.map_(key.with_nullable(False), item), keys, items)
    elif t.is_list(type):
        values, element = _from_spark(type.value_field, array.values)
        array = _over(array, pa.list_(element), values)
    return array, pa.field(field.name, array.type, field.nullable, metadata)


def encode(batch: pa.RecordBatch) -> bytes:
    """One batch as an Arrow IPC stream: types that Spark does not have are passed as bytes."""
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, batch.schema) as writer:
        writer.write_batch(batch)
    return out.getvalue().to_pybytes()


def decode(data: bytes) -> list[pa.RecordBatch]:
    """The argument of `encode`."""
    with pa.ipc.open_stream(data) as reader:
        return list(reader)
