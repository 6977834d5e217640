"""Whole variants from shredded columns (VariantShredding.md, "Reconstructing a Shredded Variant").

How rows are read that the specification calls invalid or leaves open:
- `value` and `typed_value` are both present and no object is shredded: MalformedVariant.
- `typed_value` is an object, `value` is present and not an object: MalformedVariant.
- a shredded field in the `value` of its object: dropped, `typed_value` wins (even if the field is missing there).
- an object in `value` where objects are shredded and `typed_value` is null: the value, unchanged.
- both null: a missing field of an object; at the top and in arrays variant null, `00`.
- the group of a field or an element is null: as if both were null.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.layouts import is_list_view, plain_list
from boathouse.arrow.vector import only_where
from boathouse.bits.unaligned import Ints, Mask
from boathouse.types import DataType
from boathouse.variant.columns.byte_columns import Ragged, splits_of
from boathouse.variant.columns.byte_slices import imported
from boathouse.variant.columns.faults import Lenient
from boathouse.variant.columns.layout import _dictionaries, _plain, _struct
from boathouse.variant.columns.metadata_builder import binary
from boathouse.variant.columns.nodes import OBJECT
from boathouse.variant.shredding.masks import both, minus, pick, places, valid
from boathouse.variant.shredding.merge import merge
from boathouse.variant.shredding.plans import (
    Arrays,
    Buffer,
    Nulls,
    ObjectField,
    Objects,
    Part,
    Plan,
    Slices,
    together,
)
from boathouse.variant.shredding.primitives import encode, plain
from boathouse.variant.shredding.rows import Rows, sizes_of
from boathouse.variant.shredding.schema import ShreddedArray, ShreddedObject, ShreddingSchema, from_storage

CELLS = 1 << 21
"""Values planned at once: with fewer, the calls cost more than the bytes; with more, they do not fit into the cache."""
CONFLICT = "`value` and `typed_value` are both present, and the value is not a shredded object"
_LIMIT = (1 << 31) - 1


def unshred(shredded: Any, *, lenient: Lenient | None = None) -> pa.Array | pa.ChunkedArray:
    """The column `struct<metadata: binary, value: binary>` of a shredded one (`struct<metadata, value?, typed_value?>`,
    children by name, as pyarrow reads it, or an object that exports one); chunked if the input is. A column that is not
    shredded is returned unchanged.

    Types are exact: an int32 column gives int32. Null rows stay null; empty rows are variant null.
    Malformed rows raise MalformedVariant with their row, or become null and are counted in `lenient`.
    Raises SchemaError and UnsupportedTypeError for columns that are not shredded variants.
    """
    shredded = imported(shredded, "pass a column of struct<metadata, value, typed_value>")
    if isinstance(shredded, pa.ChunkedArray):
        chunks, first = [], 0
        for chunk in shredded.chunks:
            chunks.append(_unshred(chunk, lenient, first))
            first += len(chunk)
        return pa.chunked_array(chunks, None if chunks else _unshred(pa.nulls(0, shredded.type), None, 0).type)
    return _unshred(shredded, lenient, 0)


def _unshred(array: pa.Array, lenient: Lenient | None, first_row: int) -> pa.Array:
    while isinstance(array, pa.ExtensionArray):
        array = array.storage
    if isinstance(array, pa.DictionaryArray):
        array = _struct(array)
    schema = from_storage(array.type)
    metadata = array.field("metadata")
    if not schema.is_shredded and not minus(valid(array), valid(array.field("value")), len(array)).any():
        return variants(metadata, Ragged.from_arrow(_plain(array.field("value"), "value")), valid(array))
    step = max(1 << 10, CELLS // sum(1 for _ in schema.leaves()))
    made = Buffer(len(array))
    mask = valid(array)
    meta, plain_metadata = _dictionaries(metadata)
    whole = Rows(meta, lenient, first_row)
    for start in range(0, len(array), step):
        piece = array.slice(start, step)
        rows = whole.piece(start, start + step)
        scope = valid(piece)
        check_metadata(rows, scope)
        plan = plan_pair(rows, schema, children_of(piece), np.arange(len(piece)), scope, required=True)
        made.add(plan, len(piece))
        if rows.bad is not None and lenient is not None:
            lenient.add(np.flatnonzero(rows.bad) + rows.first_row)
            mask = np.ones(len(array), np.bool_) if mask is None else mask.copy()
            mask[start : start + step] &= ~rows.bad
    return variants(plain_metadata, made.finish(), mask)


def check_metadata(rows: Rows, scope: Mask | None) -> None:
    """MalformedVariant where a row that is not null has no metadata, or a malformed one."""
    codes = rows.meta.codes
    missing = (codes < 0) if scope is None else (codes < 0) & scope
    row = np.arange(len(codes))
    rows.refuse(missing, row, "the metadata is null")
    if rows.meta.wrong.any():
        wrong = ~missing & (rows.meta.wrong[codes] != 0)
        if scope is not None:
            wrong &= scope
        if wrong.any():
            rows.refuse(wrong, row, rows.meta.message(int(codes[int(np.argmax(wrong))])))


def variants(metadata: pa.Array, values: Ragged, mask: Mask | None) -> pa.StructArray:
    """struct<metadata, value>, null outside `mask`; large_binary where the bytes need it."""
    metadata = _plain(metadata, "metadata")
    if metadata.null_count:
        metadata = pc.fill_null(metadata, b"")
    if pa.types.is_large_binary(metadata.type) and metadata.nbytes <= _LIMIT:
        metadata = metadata.cast(pa.binary())
    value = binary(values)
    fields = [pa.field("metadata", metadata.type, False), pa.field("value", value.type, False)]
    null = None if mask is None else pa.array(~mask)
    return pa.StructArray.from_arrays([metadata, value], fields=fields, mask=null)


def children_of(group: pa.StructArray) -> dict[str, pa.Array]:
    """The children of a group by name, as long as the (sliced) group."""
    return {group.type.field(i).name: group.field(i) for i in range(group.type.num_fields)}


def plan_pair(
    rows: Rows, schema: ShreddingSchema, group: dict[str, pa.Array], row: Ints, scope: Mask | None, required: bool
) -> Plan:
    """The plan of one pair of columns: an instance for each of `row`, without those outside `scope`.

    Missing instances are variant null if `required`.
    """
    count = len(row)
    typed = both(valid(group["typed_value"]), scope) if schema.typed is not None else np.zeros(count, np.bool_)
    value: Mask = np.zeros(count, np.bool_)
    values = None
    if schema.has_value:
        binary = _plain(group["value"], "value")
        values = Ragged.from_arrow(binary)
        there = both(valid(binary), scope)
        value = np.ones(count, np.bool_) if there is None else there
    mixed = both(value, typed)
    assert mixed is not None
    parts: list[Part] = []
    if not isinstance(schema.typed, ShreddedObject) and mixed.any():
        rows.refuse(mixed, row, CONFLICT)
    residual = minus(value, mixed, count) if mixed.any() else value
    if schema.typed is not None:
        parts.append(_typed(rows, schema.typed, group["typed_value"], row, typed, values, mixed))
    if values is not None and residual.any():
        parts.append(_slices(rows, values, row, places(residual)))
    if required:
        there = typed if not value.any() else (None if typed is None else typed | value)
        missing = minus(scope, there, count)
        if missing.any():
            parts.append(Nulls(places(missing)))
    return together(count, parts)


def _slices(rows: Rows, values: Ragged, row: Ints, at: Ints | None) -> Slices:
    """Values that are not shredded, without bytes that may follow them in their slot."""
    index = np.arange(len(row)) if at is None else at
    nodes = rows.nodes(values, index, row[index])
    with rows.located(nodes, row[index]):
        sizes = sizes_of(nodes)
    return Slices(at, values.data, nodes.pos, sizes)


def _typed(
    rows: Rows,
    typed: DataType | ShreddedObject | ShreddedArray,
    array: pa.Array,
    row: Ints,
    mask: Mask | None,
    values: Ragged | None,
    mixed: Mask,
) -> Part:
    at = places(mask)
    if isinstance(typed, ShreddedObject):
        return _objects(rows, typed, array, row, at, values, mixed)
    if isinstance(typed, ShreddedArray):
        return _arrays(rows, typed, array, row, at)
    part, wrong = encode(array, typed, at)
    rows.refuse(wrong, pick(row, at), f"a value of the column {typed} is out of its range")
    return part


def _objects(
    rows: Rows, typed: ShreddedObject, array: pa.Array, row: Ints, at: Ints | None, values: Ragged | None, mixed: Mask
) -> Part:
    if at is not None:
        array = array.take(pa.array(at))
    row = pick(row, at)
    codes = rows.meta.codes[row]
    fields: list[ObjectField] = []
    ordered = sorted(typed.fields, key=lambda field: field[0].encode())
    groups = children_of(array)
    for name, schema in ordered:
        group = groups[name]
        plan = plan_pair(rows, schema, children_of(group), row, valid(group), required=False)
        ids: Any = rows.names.ids(name)
        ids = int(ids[0]) if len(ids) and ids.min() == ids.max() else ids[codes]
        fields.append(_checked(rows, name, ids, plan, row))
    where = pick(mixed, at)
    if not where.any() or values is None:
        return Objects(at, len(row), fields, None)
    owners = np.flatnonzero(where)
    source = owners if at is None else at[owners]
    nodes = rows.nodes(values, source, row[owners])
    with rows.located(nodes, row[owners]):
        kinds = nodes.kinds()
    rows.refuse(kinds != OBJECT, row[owners], "`value` is not an object beside a shredded object")
    good = kinds == OBJECT
    if rows.bad is not None:  # a field whose name is not in the metadata cannot be ordered among the others
        good &= ~rows.bad[row[owners]]
    owners, source = owners[good], source[good]
    mixed_entries = merge(rows, owners, row[owners], values, source, fields, [name for name, _ in ordered])
    return Objects(at, len(row), fields, mixed_entries)


def _checked(rows: Rows, name: str, ids: Any, plan: Plan, row: Ints) -> ObjectField:
    """The field with its ids; a value whose name is not in the metadata of its row is malformed."""
    if isinstance(ids, int):
        absent = np.full(len(row), ids < 0) if ids < 0 else None
    else:
        absent = ids < 0
    if absent is not None and absent.any():
        if plan.mask is not None:
            absent = absent & plan.mask
        if plan.size is not None:
            rows.refuse(absent, row, f"the field `{name}` is not in the metadata")
        ids = np.maximum(ids, 0)
        ids = int(ids) if np.ndim(ids) == 0 else ids
    return ObjectField(ids if isinstance(ids, int) else ids.astype(np.int64), plan)


def _arrays(rows: Rows, typed: ShreddedArray, array: pa.Array, row: Ints, at: Ints | None) -> Part:
    if at is not None:
        array = array.take(pa.array(at))
    row = pick(row, at)
    array = plain(array)
    if is_list_view(array.type):
        array = plain_list(array)
    counts = np.asarray(pc.list_value_length(array), np.int64)
    elements = array.flatten()
    splits = splits_of(counts)
    below = np.repeat(row, counts)
    scope = valid(elements)
    if scope is not None:
        # The element's group is null: its contents are ignored.
        elements = _without(elements, scope)
    plan = plan_pair(rows, typed.element, children_of(elements), below, None, required=True)
    return Arrays(at, splits, plan)


def _without(group: pa.StructArray, scope: Mask) -> pa.StructArray:
    """A group whose children are null where it is."""
    children = [only_where(pa.array(scope), child) for child in children_of(group).values()]
    return pa.StructArray.from_arrays(children, fields=[f.with_nullable(True) for f in group.type])
