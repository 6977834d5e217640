"""Variant columns at the boundary of Spark's Arrow functions (`mapInArrow`, `arrow_udf`, `createDataFrame`).

Spark sends a variant as `struct<value, metadata>`, the field `metadata` marked `variant: true`, and reads the columns
that come back by position: metadata first would be taken for the value. Every kernel of this package reads Spark's
layout directly; `to_spark` is for columns that are sent back, `from_spark` for columns that are kept.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.schema import VARIANT_STORAGE
from boathouse.errors import MalformedVariant
from boathouse.variant.columns.layout import storage_of

SPARK_VARIANT = pa.struct(
    [pa.field("value", pa.binary(), False), pa.field("metadata", pa.binary(), False, {b"variant": b"true"})]
)


def to_spark(column: Any) -> pa.Array | pa.ChunkedArray:
    """A column of variants, of any layout, as Spark expects it: value first, marked. Chunked stays chunked.

    For functions that give Arrow data to Spark themselves (`mapInArrow`); `Table.to_spark` does it for you. Raises
    SchemaMismatchError for what is not a column of variants, or is shredded; MalformedVariant for a row that lacks its
    value or metadata.
    """
    return _each(column, SPARK_VARIANT)


def from_spark(column: Any) -> pa.Array | pa.ChunkedArray:
    """A column that Spark sent as `struct<metadata, value>`, the layout used everywhere else here; chunked stays
    chunked.

    Raises SchemaMismatchError for what is not a column of variants, or is shredded; MalformedVariant for a row that
    lacks its value or metadata.
    """
    return _each(column, VARIANT_STORAGE)


def is_spark_variant(type: pa.DataType) -> bool:
    """Whether an Arrow type is Spark's layout of a variant: `struct<value, metadata>`, the latter marked."""
    if not pa.types.is_struct(type):
        return False
    return any(f.name == "metadata" and (f.metadata or {}).get(b"variant") == b"true" for f in type)


def _each(column: Any, to: pa.DataType) -> pa.Array | pa.ChunkedArray:
    source = storage_of(column)
    if not isinstance(source, pa.ChunkedArray):
        return _as(source, to, 0)
    chunks, first = [], 0
    for chunk in source.chunks:
        chunks.append(_as(chunk, to, first))
        first += len(chunk)
    return pa.chunked_array(chunks, to)


def _as(array: pa.StructArray, to: pa.DataType, first_row: int) -> pa.Array:
    parts = [_binary(array.field(array.type.get_field_index(f.name))) for f in to]
    for f, part in zip(to, parts):
        missing = pc.and_(part.is_null(), array.is_valid()).index(True).as_py() if part.null_count else -1
        if missing >= 0:
            raise MalformedVariant(f"the {f.name} is null in a row that is not", row=first_row + missing)
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(parts, fields=list(to), mask=mask)


def _binary(array: pa.Array) -> pa.Array:
    return array if array.type == pa.binary() else array.cast(pa.binary())
