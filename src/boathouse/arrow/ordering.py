"""Orders of rows (Iceberg spec, "Sorting"): by transforms of columns, ascending or descending, nulls first or last.

Floats are in the order of the specification: -NaN, -infinity, ..., -0.0, 0.0, ..., infinity, NaN. Texts are compared by
their UTF-8, which is the order of code points, bytes as unsigned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.layouts import plain
from boathouse.arrow.transforms import transform
from boathouse.types import (
    BooleanType,
    DataType,
    DateType,
    FloatType,
    IntegerType,
    Schema,
    SortField,
    StructType,
    TimestampType,
    TimeType,
)
from boathouse.types.partitioning import ORDERED


@dataclass(frozen=True, slots=True)
class Key:
    """Values without nulls, by which rows are compared; `descending`: the greatest first."""

    values: pa.Array
    descending: bool = False


def leaf_of(rows: pa.RecordBatch, schema: Schema, path: Sequence[str]) -> tuple[pa.Array, DataType]:
    """The values of a column, or of a field of structs: null where an enclosing struct is."""
    at = schema.index(path[0])
    array, type = rows.column(at), schema.fields[at].type
    for name in path[1:]:
        assert isinstance(type, StructType)
        i = next(i for i, f in enumerate(type.fields) if f.name == name)
        array, type = pc.struct_field(array, [i]), type.fields[i].type
    return array, type


def can_order(schema: Schema, fields: Sequence[SortField]) -> bool:
    """Whether rows can be put in this order: every column is there, of a type that has an order."""
    types = {path: f.type for path, f in schema.walk()}
    return all(isinstance(types.get(f.source), ORDERED) for f in fields)


def keys_of(rows: pa.RecordBatch, schema: Schema, fields: Sequence[SortField]) -> list[Key]:
    """The keys by which rows of this schema are in the order; the first decides, the next between equal ones."""
    found: list[Key] = []
    for f in fields:
        array, type = leaf_of(rows, schema, f.source)
        found += keys(*_transformed(plain(array, type), f, type), f.descending, f.nulls_first)
    return found


def keys(array: pa.Array, type: DataType, descending: bool = False, nulls_first: bool = True) -> Iterator[Key]:
    """The keys of one column: where it is null, if it is anywhere, and its values."""
    if array.null_count:
        absent = pc.is_null(array).cast(pa.uint8())
        yield Key(absent, descending=nulls_first)
    yield Key(_comparable(array, type), descending)


def _transformed(array: pa.Array, field: SortField, type: DataType) -> tuple[pa.Array, DataType]:
    if field.transform.name == "truncate" and isinstance(type, IntegerType):
        # In the order of the truncated numbers, of which the least may be below the range of the type.
        numbers = _filled(array).to_numpy(zero_copy_only=False).astype(np.int64)
        quotients = pa.array(numbers // (field.transform.parameter or 1), mask=pc.is_null(array).to_numpy(False))
        return quotients, IntegerType(64)
    return transform(array, field.transform, type), field.transform.result(type)


def _comparable(array: pa.Array, type: DataType) -> pa.Array:
    """Values that Arrow compares in the order of the type."""
    match type:
        case BooleanType():
            return _filled(array).cast(pa.uint8())
        case FloatType():
            return pa.array(_ordered_bits(_filled(array).to_numpy(zero_copy_only=False)))
        case DateType() | TimestampType() | TimeType():
            return _filled(array.view(pa.int32() if array.type.bit_width == 32 else pa.int64()))
    return _filled(array)


def _filled(array: pa.Array) -> pa.Array:
    if not array.null_count:
        return array
    if pa.types.is_fixed_size_binary(array.type) and not pa.types.is_decimal(array.type):
        return pc.fill_null(array, pa.scalar(bytes(array.type.byte_width), array.type))
    if pa.types.is_string(array.type) or pa.types.is_binary(array.type):
        return pc.fill_null(array, pa.scalar(b"", pa.binary()).cast(array.type))
    return pc.fill_null(array, pa.scalar(False if pa.types.is_boolean(array.type) else 0, array.type))


def _ordered_bits(values: Any) -> Any:
    """Integers in the order of the floats' bits: negative ones have the reverse order of their magnitudes."""
    bits = values.view(np.int64 if values.dtype == np.float64 else np.int32)
    low = np.iinfo(bits.dtype).max
    return np.where(bits < 0, bits ^ low, bits)


def in_order(found: Sequence[Key]) -> pa.Array:
    """The places of the rows in the order; equal ones keep theirs."""
    table = pa.table([key.values for key in found], names=[str(i) for i in range(len(found))])
    by = [(str(i), "descending" if key.descending else "ascending") for i, key in enumerate(found)]
    return pc.sort_indices(table, sort_keys=by)


def is_ordered(found: Sequence[Key]) -> bool:
    """Whether the rows are in the order."""
    if not found or len(found[0].values) < 2:
        return True
    tied = None
    for key in found:
        before, after = key.values.slice(0, len(key.values) - 1), key.values.slice(1)
        wrong = pc.less(before, after) if key.descending else pc.greater(before, after)
        if tied is not None:
            wrong = pc.and_(wrong, tied)
        if pc.any(wrong).as_py():
            return False
        equal = pc.equal(before, after)
        tied = equal if tied is None else pc.and_(tied, equal)
        if not pc.any(tied).as_py():
            return True
    return True


class OrderCheck:
    """Whether rows, batch after batch, are in an order."""

    def __init__(self, schema: Schema, fields: Sequence[SortField]) -> None:
        needed = {f.source[0] for f in fields}
        self._at = [i for i, f in enumerate(schema) if f.name in needed]
        self._schema = Schema(tuple(schema.fields[i] for i in self._at))
        self._fields = fields
        self._last: pa.RecordBatch | None = None
        self.holds = True

    def update(self, rows: pa.RecordBatch) -> None:
        """Looks at the next rows, with the columns of the schema in order."""
        if not self.holds or not rows.num_rows:
            return
        some = rows.select(self._at)
        if self._last is not None:
            some = pa.Table.from_batches([self._last, some]).combine_chunks().to_batches()[0]
        self.holds = is_ordered(keys_of(some, self._schema, self._fields))
        self._last = some.slice(some.num_rows - 1)
