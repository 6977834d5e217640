"""Whole variants as nested Arrow columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from boathouse.arrow.schema import from_arrow
from boathouse.types import VARIANT, DataType, ListType, Schema, StructType
from boathouse.variant.columns.extract import extract_steps
from boathouse.variant.columns.faults import Lenient
from boathouse.variant.columns.layout import column
from boathouse.variant.columns.schema_of import schema_of
from boathouse.variant.extraction import extract

_DEPTH = 50


def to_arrow(
    data: Any,
    schema: DataType | Schema | pa.DataType | pa.Schema | str | None = None,
    *,
    safe: bool = False,
    lenient: Lenient | None = None,
) -> pa.Array | pa.ChunkedArray:
    """Every row of a variant column as a value of `schema`, by the casts of `extract`: objects as structs or maps,
    arrays as lists, fields that a row lacks as null; a Schema stands for a struct of its columns.

    Without a schema: the one that `schema_of` finds; values of mixed types, and values below 50 levels, stay variants.

    Raises EvaluationError where a cast fails, unless `safe` (then null), MalformedVariant with row and byte (null and
    counted in `lenient` if one is passed), UnsupportedTypeError, SchemaError for text that is not a type.

    >>> column = bh.variant.from_json(pa.array(['{"id": 1, "tags": ["a"]}', '{"id": 2}']))
    >>> bh.variant.to_arrow(column, "struct<id:int,tags:array<string>>").to_pylist()
    [{'id': 1, 'tags': ['a']}, {'id': 2, 'tags': None}]
    """
    if isinstance(schema, pa.Schema):
        schema = from_arrow(schema)
    if isinstance(schema, Schema):
        schema = StructType(schema.fields)
    if schema is not None:
        return extract(data, (), schema, safe=safe, lenient=lenient)
    data = data if isinstance(data, pa.ChunkedArray) else column(data)
    # Both read the rows; malformed ones are counted once.
    found = schema_of(data, lenient=None if lenient is None else Lenient())
    return extract_steps(data, (), _capped(found.type, _DEPTH), None, safe, lenient)


def _capped(type: DataType, depth: int) -> DataType:
    if isinstance(type, StructType | ListType) and not depth:
        return VARIANT
    match type:
        case StructType(fields):
            return StructType(tuple(f.with_type(_capped(f.type, depth - 1)) for f in fields))
        case ListType(element):
            return ListType(element.with_type(_capped(element.type, depth - 1)))
    return type
