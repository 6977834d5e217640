"""Variant columns as they cross the border of Spark's Arrow functions (`mapInArrow`, `arrow_udf`, `createDataFrame`).

Spark sends a variant as `struct<value, metadata>`, the field `metadata` marked `variant: true`, and reads the columns
that come back by position: metadata first would be taken for the value. Every kernel of this package reads what Spark
sends as it is; `to_spark` is for what is sent back, `from_spark` for what is kept.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from boathouse.arrow.schema import VARIANT_STORAGE
from boathouse.errors import InvalidArgumentError, SchemaMismatchError

SPARK_VARIANT = pa.struct(
    [pa.field("value", pa.binary(), False), pa.field("metadata", pa.binary(), False, {b"variant": b"true"})]
)


def to_spark(column: Any) -> pa.Array | pa.ChunkedArray:
    """A column of variants, of any layout, as Spark takes it: value first, marked. Chunked stays chunked.

    Raises SchemaMismatchError for what is no column of variants, or is shredded.
    """
    return _each(column, SPARK_VARIANT)


def from_spark(column: Any) -> pa.Array | pa.ChunkedArray:
    """A column that Spark sent as `struct<metadata, value>`, the layout of everything else here."""
    return _each(column, VARIANT_STORAGE)


def is_spark_variant(type: pa.DataType) -> bool:
    """Whether an Arrow type is how Spark sends a variant: `struct<value, metadata>`, the latter marked."""
    if not pa.types.is_struct(type):
        return False
    return any(f.name == "metadata" and (f.metadata or {}).get(b"variant") == b"true" for f in type)


def _each(column: Any, to: pa.DataType) -> pa.Array | pa.ChunkedArray:
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([_as(chunk, to) for chunk in column.chunks], to)
    if not isinstance(column, pa.Array):
        if not hasattr(column, "__arrow_c_array__"):
            raise InvalidArgumentError(f"a {type(column).__name__} is no column", advice="pass an Arrow array")
        column = pa.array(column)
    return _as(column, to)


def _as(array: pa.Array, to: pa.DataType) -> pa.Array:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    names = [f.name for f in array.type] if pa.types.is_struct(array.type) else []
    if sorted(names) != ["metadata", "value"]:
        raise SchemaMismatchError(
            f"{array.type} is no column of variants",
            advice="pass struct<metadata, value>; unshred a shredded column first",
        )
    parts = [_binary(array.field(names.index(f.name))) for f in to]
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(parts, fields=list(to), mask=mask)


def _binary(array: pa.Array) -> pa.Array:
    return array if array.type == pa.binary() else array.cast(pa.binary())
