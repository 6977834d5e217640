"""Converts from the type in a Parquet file to the current type of the table: promotions and layouts, leaf by leaf."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.errors import SchemaMismatchError

Convert = Callable[[pa.Array], pa.Array]
t = pa.types


def leaf_cast(source: pa.DataType, target: pa.DataType) -> Convert | None:
    """The conversion of a leaf from Arrow type `source` to `target`; None if there is nothing to do.

    Raises SchemaMismatchError where no table format allows the change (narrowing, string to number, ...).
    """
    if source == target:
        return None
    if t.is_null(source):
        return lambda array: pa.nulls(len(array), target)
    if isinstance(source, pa.BaseExtensionType):
        return _then(lambda array: array.storage, leaf_cast(source.storage_type, target))
    if t.is_dictionary(source):
        value = source.value_type
        return _then(lambda array: array.cast(value), leaf_cast(value, target))
    cast = _timestamp(source, target) or _number(source, target) or _bytes(source, target)
    if cast is None:
        raise SchemaMismatchError(f"the file holds {source}, which cannot be read as {target}")
    return cast


def _then(first: Convert, second: Convert | None) -> Convert:
    return first if second is None else lambda array: second(first(array))


def _timestamp(source: pa.DataType, target: pa.DataType) -> Convert | None:
    if t.is_time(source) and t.is_time(target):
        return lambda array: array.cast(target, safe=False)
    if not t.is_timestamp(target):
        return None
    if t.is_date(source) and target.tz is None:
        return lambda array: array.cast(target)
    if not t.is_timestamp(source):
        return None
    # Whether a file declares UTC or not never changes the number: INT96 has no zone, old writers got the flag wrong.
    if source.unit == target.unit:
        return lambda array: array.view(target)
    return lambda array: rescale(array.view(pa.timestamp(source.unit)), target.unit).view(target)


_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def rescale(array: pa.Array, unit: str) -> pa.Array:
    """Zoneless timestamps in another unit; fractions are floored, before 1970 too."""
    loss = _PER_SECOND[array.type.unit] // _PER_SECOND[unit]
    if loss > 1:
        raw = array.view(pa.int64())
        # Arrow's own cast truncates toward zero.
        floored = np.floor_divide(raw.fill_null(0).to_numpy(zero_copy_only=False), loss)
        mask = raw.is_null().to_numpy(zero_copy_only=False) if raw.null_count else None
        return pa.array(floored, pa.int64(), mask=mask).view(pa.timestamp(unit))
    return array.cast(pa.timestamp(unit))


def _number(source: pa.DataType, target: pa.DataType) -> Convert | None:
    if t.is_integer(source) and (t.is_integer(target) or t.is_float64(target)):
        return lambda array: array.cast(target)
    if t.is_integer(source) and t.is_decimal(target):
        wide = pa.decimal256(76, target.scale)
        return lambda array: array.cast(wide).cast(target)
    if t.is_decimal(source) and t.is_decimal(target):
        return lambda array: array.cast(target)
    if t.is_floating(source) and t.is_floating(target) and source.bit_width < target.bit_width:
        return lambda array: array.cast(target)
    return None


def _is_text(type: pa.DataType) -> bool:
    return t.is_string(type) or t.is_large_string(type) or t.is_string_view(type)


def _is_bytes(type: pa.DataType) -> bool:
    return t.is_binary(type) or t.is_large_binary(type) or t.is_binary_view(type)


def _bytes(source: pa.DataType, target: pa.DataType) -> Convert | None:
    if (_is_text(source) or _is_bytes(source)) and (_is_text(target) or _is_bytes(target)):
        return lambda array: array.cast(target)
    if t.is_fixed_size_binary(source) and t.is_binary(target):
        return lambda array: array.cast(target)
    if _is_bytes(source) and t.is_fixed_size_binary(target):
        return lambda array: _to_fixed(array, target)
    return None


def _to_fixed(array: pa.Array, target: pa.DataType) -> pa.Array:
    lengths = pc.unique(pc.binary_length(array.drop_null())).to_pylist()
    if lengths not in ([], [target.byte_width]):
        raise SchemaMismatchError(f"the file holds values of {sorted(lengths)[:5]} bytes, the column has {target}")
    return pa.array(array.to_pylist(), target)


def null_mask(array: pa.Array) -> pa.Array | None:
    """True where `array` is null; None if it has no nulls."""
    return array.is_null() if array.null_count else None


def rebuild_list(array: pa.Array, target: pa.DataType, values: Convert) -> pa.Array:
    """A list or map of type `target` over the offsets of `array`, with its children converted.

    `values` gets the whole child array: that of the elements, or the struct of a map's entries.
    """
    if t.is_map(array.type):
        entries = pa.StructArray.from_arrays(
            [array.keys, array.items],
            fields=[array.type.key_field.with_name("key"), array.type.item_field.with_name("value")],
        )
        child = values(entries)
    else:
        child = values(array.values)
    return pa.Array.from_buffers(
        target, len(array), array.buffers()[:2], null_count=array.null_count, offset=array.offset, children=[child]
    )


def constant(value: object, type: pa.DataType, length: int) -> pa.Array:
    """`value` (a Python value, or a scalar) repeated `length` times; None is null."""
    if value is None:
        return pa.nulls(length, type)
    one = pa.array([value.as_py() if isinstance(value, pa.Scalar) else value], type)
    return one.take(pa.array(np.zeros(length, np.int32)))
