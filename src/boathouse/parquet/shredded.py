"""Shreds variant columns for a file, at any depth of a schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from boathouse.parquet.convert import null_mask, rebuild_list
from boathouse.parquet.fields import is_list
from boathouse.variant.shredding.schema import ShreddingSchema, storage_type
from boathouse.variant.shredding.shred import shred

Place = tuple[str, ...]
"""The names that lead to a field; lists and maps have `element`, `key` and `value`."""
Shredding = Mapping[Place, ShreddingSchema]
t = pa.types


def _below(type: pa.DataType) -> list[tuple[str, pa.Field]]:
    if t.is_struct(type):
        return [(f.name, f) for f in type]
    if t.is_map(type):
        return [("key", type.key_field), ("value", type.item_field)]
    return [("element", type.value_field)] if is_list(type) else []


def shredded_schema(schema: pa.Schema, by: Shredding) -> pa.Schema:
    """The schema of a file whose variants at the paths in `by` are shredded accordingly, the others unchanged."""

    def step(field: pa.Field, place: Place) -> pa.Field:
        if place in by:
            return field.with_type(_for_parquet(storage_type(by[place])))
        if not _leads(place, by):
            return field
        below = [step(f, (*place, name)) for name, f in _below(field.type)]
        return field.with_type(_over(field.type, below))

    return pa.schema([step(f, (f.name,)) for f in schema], schema.metadata)


def _over(type: pa.DataType, below: Sequence[pa.Field]) -> pa.DataType:
    if t.is_map(type):
        return pa.map_(below[0], below[1])
    return pa.struct(below) if t.is_struct(type) else pa.list_(below[0])


def _for_parquet(type: pa.DataType) -> pa.DataType:
    """The type with the extension that makes 16 bytes a Parquet UUID: no other fixed size is a shredded type."""
    if t.is_fixed_size_binary(type):
        return pa.uuid()
    below = [f.with_type(_for_parquet(f.type)) for _, f in _below(type)]
    return _over(type, below) if below else type


def shred_batch(batch: pa.RecordBatch, by: Shredding, widen: bool = False) -> pa.RecordBatch:
    """The batch with the variants at the paths in `by` shredded, for `parquet.schema.conform` to lay out for the
    file."""
    columns = [_shred(column, (f.name,), by, widen) for f, column in zip(batch.schema, batch.columns)]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _shred(array: pa.Array, place: Place, by: Shredding, widen: bool) -> pa.Array:
    if place in by:
        return shred(array, by[place], widen=widen)
    if not _leads(place, by):
        return array
    return over_children(array, place, lambda child, at: _shred(child, at, by, widen))


def _leads(place: Place, by: Shredding) -> bool:
    """Whether there is a shredded variant below."""
    return any(place == key[: len(place)] for key in by)


def over_children(array: pa.Array, place: Place, change: Callable[[pa.Array, Place], pa.Array]) -> pa.Array:
    """A struct, list or map with each child converted; nulls of a struct are passed to its children, which may need
    them."""
    if t.is_struct(array.type):
        flat = pa.StructArray.flatten(array) if array.null_count else [array.field(i) for i in range(len(array.type))]
        made = [change(child, (*place, f.name)) for f, child in zip(array.type, flat)]
        fields = [f.with_type(child.type).with_nullable(True) for f, child in zip(array.type, made)]
        return pa.StructArray.from_arrays(made, fields=fields, mask=null_mask(array))
    if t.is_map(array.type):
        keys, items = change(array.keys, (*place, "key")), change(array.items, (*place, "value"))
        type = pa.map_(keys.type, items.type)
        # pyarrow crashes when it writes a map whose entries declare their keys nullable.
        entries = pa.StructArray.from_arrays([keys, items], fields=[type.key_field, type.item_field])
        return rebuild_list(array, type, lambda _: entries)
    values = change(array.values, (*place, "element"))
    return rebuild_list(array, pa.list_(pa.field("element", values.type)), lambda _: values)
