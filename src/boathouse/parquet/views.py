"""Strings, bytes and lists in the layout of views, as some writers declare them in a file's Arrow schema, in the
ordinary layouts: Arrow cannot take, filter or compare views."""

from __future__ import annotations

from functools import partial

import pyarrow as pa

from boathouse.arrow.layouts import is_list_view, plain_list
from boathouse.parquet.convert import null_mask, rebuild_list

_TEXTS = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}


def has_views(type: pa.DataType) -> bool:
    """Whether there are views at any depth."""
    if type in _TEXTS or is_list_view(type):
        return True
    return any(has_views(type.field(i).type) for i in range(type.num_fields))


def without_views(type: pa.DataType) -> pa.DataType:
    """The type in the ordinary layouts; fields keep their names and metadata."""
    if not has_views(type):
        return type
    if type in _TEXTS:
        return _TEXTS[type]
    below = [f.with_type(without_views(f.type)) for f in (type.field(i) for i in range(type.num_fields))]
    if pa.types.is_struct(type):
        return pa.struct(below)
    if pa.types.is_map(type):
        entries = below[0].type
        return pa.map_(entries.field(0), entries.field(1), type.keys_sorted)
    if pa.types.is_fixed_size_list(type):
        return pa.list_(below[0], type.list_size)
    return pa.large_list(below[0]) if pa.types.is_large_list(type) else pa.list_(below[0])


def plain_table(table: pa.Table) -> pa.Table:
    """The table with its columns in the ordinary layouts."""
    columns = [_column(c) if has_views(c.type) else c for c in table.columns]
    return pa.Table.from_arrays(columns, schema=plain_schema(table.schema))


def plain_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([f.with_type(without_views(f.type)) for f in schema], schema.metadata)


def _column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    want = without_views(column.type)
    return pa.chunked_array([_plain(chunk, want) for chunk in column.chunks], want)


def _plain(array: pa.Array, want: pa.DataType) -> pa.Array:
    if not has_views(array.type):
        return array
    if array.type in _TEXTS:
        return array.cast(want)
    if pa.types.is_struct(want):
        children = [_plain(array.field(i), want.field(i).type) for i in range(want.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(want), mask=null_mask(array))
    if pa.types.is_map(want):
        return rebuild_list(array, want, partial(_plain, want=pa.struct([want.key_field, want.item_field])))
    if pa.types.is_fixed_size_list(want):
        child = _plain(array.values, want.value_type)
        bitmap = array.buffers()[:1]
        return pa.Array.from_buffers(want, len(array), bitmap, array.null_count, array.offset, [child])
    return rebuild_list(
        plain_list(array) if is_list_view(array.type) else array, want, partial(_plain, want=want.value_type)
    )
