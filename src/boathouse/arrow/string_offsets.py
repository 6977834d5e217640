"""Casts large_string and large_binary (64-bit offsets) to string and binary (32-bit offsets), at any depth; the bytes
are shared."""

from __future__ import annotations

from collections.abc import Container

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.memory import read_pool

_NARROW = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}


def narrowed(table: pa.Table, but: Container[str] = ()) -> pa.Table:
    """The table with string and binary instead of their large variants, except in the columns `but`.

    Raises ArrowInvalid for 2 GiB in one array.
    """
    if all(name in but for name in table.column_names):
        return table
    fields, columns = list(table.schema), table.columns
    for i, field in enumerate(fields):
        type = None if field.name in but else narrow_type(field.type)
        if type is not None:
            fields[i], columns[i] = field.with_type(type), pc.cast(columns[i], type, memory_pool=read_pool())
    return pa.Table.from_arrays(columns, schema=pa.schema(fields, table.schema.metadata))


def narrow_type(type: pa.DataType) -> pa.DataType | None:
    """The type with string and binary instead of their large variants; None if it has neither."""
    if not type.num_fields:
        return _NARROW.get(type)
    map = pa.types.is_map(type)
    fields = [type.key_field, type.item_field] if map else [type.field(i) for i in range(type.num_fields)]
    narrow = [narrow_type(f.type) for f in fields]
    if all(new is None for new in narrow):
        return None
    fields = [f if new is None else f.with_type(new) for f, new in zip(fields, narrow)]
    if pa.types.is_struct(type):
        return pa.struct(fields)
    return pa.map_(*fields, keys_sorted=type.keys_sorted) if map else pa.list_(fields[0])
