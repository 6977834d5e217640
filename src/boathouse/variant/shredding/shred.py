"""Shreds variant columns by a shredding schema (VariantShredding.md, "Value Shredding").

A value goes to `typed_value` where it is of exactly the column's type, so that it is restored exactly: an int16 stays
in `value` beside a column of int32, a decimal4 beside one of decimal8 or of another scale. Strings are an exception
without consequence: the short and the long form are one type. Every `value` keeps the ids of the row's metadata, which
is passed on unchanged. `widen` stores numbers of one class together without their widths, which mean nothing in values
that came from JSON.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse.bits.unaligned import Ints, Mask, copy
from boathouse.errors import InvalidArgumentError
from boathouse.types import DataType
from boathouse.variant.columns.byte_columns import Ragged, splits_of
from boathouse.variant.columns.faults import Lenient
from boathouse.variant.columns.layout import Column, chunks
from boathouse.variant.columns.nodes import ARRAY, OBJECT, Children, Nodes, roots
from boathouse.variant.shredding.masks import groups
from boathouse.variant.shredding.merge import entries
from boathouse.variant.shredding.plans import Objects, joined, together
from boathouse.variant.shredding.rows import Rows, sizes_of
from boathouse.variant.shredding.schema import (
    ShreddedArray,
    ShreddedObject,
    ShreddingSchema,
    group_fields,
    shredding_schema,
    storage_type,
)
from boathouse.variant.shredding.typed import decode

STEP = 1 << 14
"""Rows shredded at once."""


def shred(
    column: Any, schema: ShreddingSchema | DataType | str, *, widen: bool = False, lenient: Lenient | None = None
) -> pa.StructArray | pa.ChunkedArray:
    """`column` (variants in any Arrow layout) with its typed parts in columns of their own: struct<metadata, value,
    typed_value>.

    An array gives an array, a chunked array a chunked array. Null rows stay null; malformed rows raise
    MalformedVariant, or become null and are counted in `lenient`. `schema` is anything that `shredding_schema` takes;
    InvalidArgumentError if it lacks a `value` column for a value that does not fit `typed_value`. With `widen`, columns
    of integers also take narrower integers, and columns of decimals narrower ones of their scale: restored values are
    equal, but wider. Raises SchemaError and UnsupportedTypeError for what is not a shredding schema.

    >>> column = bh.variant.from_json(pa.array(['{"id": 1}', '"x"']))
    >>> shredded = bh.variant.shred(column, "struct<id:tinyint>")
    >>> shredded.field("typed_value").to_pylist()
    [{'id': {'value': None, 'typed_value': 1}}, None]
    >>> bh.variant.to_json(bh.variant.unshred(shredded)).to_pylist()
    ['{"id":1}', '"x"']
    """
    wanted = shredding_schema(schema)
    parts = [_shred(part, wanted, lenient, widen) for part in chunks(column)]
    type = storage_type(wanted)
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array(parts, type)
    return parts[0] if parts else pa.nulls(0, type)


def _shred(column: Column, schema: ShreddingSchema, lenient: Lenient | None, widen: bool) -> pa.StructArray:
    type = storage_type(schema)
    parts = []
    whole = Rows(column.meta, lenient, column.first_row)
    for start in range(0, column.rows, STEP):
        stop = min(start + STEP, column.rows)
        rows = whole.piece(start, stop)
        piece = column.slice(start, stop)
        faults = piece.faults(lenient)
        nodes = roots(piece, faults)
        shredder = _Shredder(rows, widen)
        fields = shredder.group(schema, nodes, nodes.row, piece.rows)
        valid = np.zeros(piece.rows, np.bool_)
        valid[nodes.row] = True
        for bad in (faults.bad, rows.bad):
            if bad is not None:
                valid &= ~bad
        if lenient is not None:
            gone = ~valid if piece.valid is None else ~valid & piece.valid
            lenient.add(np.flatnonzero(gone) + piece.first_row)
        metadata = _plain_binary(piece.metadata_array())
        parts.append(struct_array(type, [metadata, *fields], valid))
    if len(parts) == 1:
        return parts[0]
    try:
        return pa.concat_arrays(parts)
    except pa.ArrowInvalid:  # Parquet readers and writers use 32-bit offsets
        raise InvalidArgumentError(
            f"{column.rows:,} rows have more than 2 GiB in one column", advice="shred fewer rows at once: pass chunks"
        ) from None


def struct_array(type: pa.DataType, children: list[pa.Array], valid: Mask | None) -> pa.StructArray:
    """A struct whose children may be null where it is, without Arrow's checks."""
    count = len(children[0])
    bits = None
    nulls = 0
    if valid is not None and not valid.all():
        bits = pa.py_buffer(np.packbits(valid, bitorder="little"))
        nulls = count - int(np.count_nonzero(valid))
    return pa.Array.from_buffers(type, count, [bits], nulls, children=children)


def _plain_binary(array: pa.Array) -> pa.Array:
    if array.null_count:
        array = array.fill_null(b"")
    return array if array.type == pa.binary() else array.cast(pa.binary())


@dataclass(frozen=True, eq=False)
class _Shredder:
    rows: Rows
    widen: bool

    def group(self, schema: ShreddingSchema, nodes: Nodes, index: Ints, count: int) -> list[pa.Array]:
        """The arrays of `group_fields(schema)`, `count` long: node k is instance `index[k]`, others are missing."""
        if schema.typed is None:
            return [self._slices(nodes, index, count)]
        kinds = nodes.kinds()
        if isinstance(schema.typed, ShreddedObject):
            value, typed = self._objects(schema.typed, nodes, kinds, index, count)
        elif isinstance(schema.typed, ShreddedArray):
            value, typed = self._arrays(schema.typed, nodes, kinds, index, count)
        else:
            typed, rest = decode(schema.typed, nodes, kinds, index, count, self.widen)
            value = self._slices(nodes.take(rest), index[rest], count)
        if schema.has_value:
            return [value, typed]
        if value.null_count < len(value):
            raise InvalidArgumentError(
                f"a value does not fit the column {schema}, which has no `value` beside it",
                advice="shred by a schema with `value` columns",
            )
        return [typed]

    def _slices(self, nodes: Nodes, index: Ints, count: int) -> pa.Array:
        """The bytes of the nodes as a binary array, null for the other instances."""
        sizes = sizes_of(nodes)
        lengths = np.zeros(count, np.int64)
        lengths[index] = sizes
        offsets = splits_of(lengths)
        data = np.empty(int(offsets[-1]), np.uint8)
        copy(data, offsets[index], nodes.data, nodes.pos, sizes)
        return binary_array(Ragged(offsets, data), _there(index, count))

    def _objects(
        self, typed: ShreddedObject, nodes: Nodes, kinds: npt.NDArray[np.uint8], index: Ints, count: int
    ) -> tuple[pa.Array, pa.Array]:
        is_object = kinds == OBJECT
        objects, owners = nodes.take(is_object), index[is_object]
        below = objects.children()
        row = below.nodes.row
        codes = self.rows.meta.codes[row]
        names = [name for name, _ in typed.fields]
        known = below.id >= 0
        which = np.full(len(row), -2, np.int64)
        which[known] = self.rows.names.which(codes[known], below.id[known], names)
        children = []
        type = next(f.type for f in group_fields(ShreddingSchema(typed)) if f.name == "typed_value")
        places = groups(which, len(names))
        for position, (_, schema) in enumerate(typed.fields):
            mine = places[position]
            owner = below.owner[mine]
            repeated = np.zeros(len(owner), np.bool_)
            repeated[1:] = owner[1:] == owner[:-1]
            self.rows.refuse(repeated, row[mine], "an object has a field twice")
            group = self.group(schema, below.nodes.take(mine), owners[owner], count)
            children.append(struct_array(type.field(position).type, group, None))
        value = self._residuals(objects, below, np.flatnonzero(which == -1), owners, count)
        rest = np.flatnonzero(~is_object)
        if len(rest):
            value = _either(value, self._slices(nodes.take(rest), index[rest], count))
        return value, struct_array(type, children, _there(owners, count))

    def _residuals(self, objects: Nodes, below: Children, mine: Ints, index: Ints, count: int) -> pa.Array:
        """Objects of the fields without a column, null where there are none."""
        if not len(mine):
            return pa.nulls(count, pa.binary())
        owners, owner = np.unique(below.owner[mine], return_inverse=True)
        fields = below.nodes.take(mine)
        sizes = sizes_of(fields)
        mixed = entries(
            self.rows, objects.row[owners], np.arange(len(owners)), owner, below.id[mine], sizes,
            [np.arange(len(mine))], fields.data, fields.pos,
        )  # fmt: skip
        plan = together(len(owners), [Objects(None, len(owners), [], mixed)])
        made = joined(plan, len(owners))
        at = index[owners]
        lengths = np.zeros(count, np.int64)
        lengths[at] = made.sizes
        offsets = splits_of(lengths)
        return binary_array(Ragged(offsets, made.data), _there(at, count))

    def _arrays(
        self, typed: ShreddedArray, nodes: Nodes, kinds: npt.NDArray[np.uint8], index: Ints, count: int
    ) -> tuple[pa.Array, pa.Array]:
        is_array = kinds == ARRAY
        arrays, owners = nodes.take(is_array), index[is_array]
        below = arrays.children()
        total = len(below.owner)
        counts = np.zeros(count, np.int64)
        counts[owners] = np.bincount(below.owner, minlength=len(owners))
        splits = splits_of(counts)
        if total > (1 << 31) - 1:
            raise InvalidArgumentError(f"{total:,} elements in {count:,} rows", advice="shred fewer rows at once")
        type = next(f.type for f in group_fields(ShreddingSchema(typed)) if f.name == "typed_value")
        group = self.group(typed.element, below.nodes, np.arange(total), total)
        elements = struct_array(type.value_type, group, None)
        there = _there(owners, count)
        bits = None if there is None else pa.py_buffer(np.packbits(there, bitorder="little"))
        buffers = [bits, pa.py_buffer(splits.astype(np.int32))]
        made = pa.Array.from_buffers(type, count, buffers, children=[elements])
        rest = np.flatnonzero(~is_array)
        return self._slices(nodes.take(rest), index[rest], count), made


def _there(index: Ints, count: int) -> Mask | None:
    if len(index) == count:
        return None
    there = np.zeros(count, np.bool_)
    there[index] = True
    return there


def _either(a: pa.Array, b: pa.Array) -> pa.Array:
    """The non-null one of two arrays, of which at most one is not null in each row."""
    if a.null_count == len(a):
        return b
    return pa.compute.coalesce(a, b)


def binary_array(bytes: Ragged, valid: Mask | None) -> pa.Array:
    """A binary array of 32-bit offsets, null outside `valid`."""
    if int(bytes.offsets[-1]) > (1 << 31) - 1:
        raise InvalidArgumentError("more than 2 GiB of values in a batch", advice="shred fewer rows at once")
    bits = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    buffers = [bits, pa.py_buffer(bytes.offsets.astype(np.int32)), pa.py_buffer(bytes.data)]
    return pa.Array.from_buffers(pa.binary(), bytes.rows, buffers)
