"""Iceberg's partition transforms over whole arrays (spec, "Partition Transforms" and Appendix B)."""

from __future__ import annotations

from decimal import Decimal
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse import types as T
from boathouse.arrow import calendar
from boathouse.arrow.layouts import plain
from boathouse.arrow.schema import to_arrow_type
from boathouse.arrow.vector import Bools, Ints, build, integers, nulls, per_distinct
from boathouse.bits.murmur3 import decimal_bytes, hash_bytes, hash_longs
from boathouse.errors import EvaluationError
from boathouse.expr import transforms
from boathouse.expr.text import UNITS_PER_SECOND


def transform(array: pa.Array, transform: T.Transform, source: T.DataType) -> pa.Array:
    """The partition values of a column of type `source`, in `transform.result(source)`'s Arrow type; null of null.

    Raises UnsupportedFeatureError for a transform that is unknown or not defined for `source`, and EvaluationError if a
    truncated number is below its type's range.
    """
    transforms.check(transform, source)
    array = plain(array, source)
    if transform.name == "identity":
        return array
    if transform.name == "void":
        return pa.nulls(len(array), to_arrow_type(source))
    if transform.name == "bucket":
        hashes = hash_array(array, source)
        buckets = (hashes & np.int32(0x7FFFFFFF)) % np.int32(transform.parameter or 1)
        return pa.array(buckets, pa.int32(), mask=nulls(array))
    if transform.name == "truncate":
        return _truncate(array, transform.parameter or 1, source)
    values, mask = integers(array)
    return build(_time(transform.name, values, source), mask, to_arrow_type(transform.result(source)))


def hash_array(array: pa.Array, source: T.DataType) -> np.ndarray[tuple[int, ...], np.dtype[np.int32]]:
    """The 32-bit hash of each value; undefined for nulls."""
    match source:
        case T.IntegerType() | T.DateType():
            return hash_longs(integers(array)[0])
        case T.TimestampType(unit=unit) | T.TimeType(unit):
            values, per_second = integers(array)[0], UNITS_PER_SECOND[unit]
            micros = values // 1000 if unit == "ns" else values * (1_000_000 // per_second)
            return hash_longs(micros)
        case T.DecimalType(scale=scale):
            coded = array.dictionary_encode()
            words = [decimal_bytes(transforms.unscaled(v, scale)) for v in coded.dictionary.to_pylist()]
            hashes = hash_bytes(*byte_strings(pa.array(words, pa.binary())))
            return hashes[integers(coded.indices)[0]] if len(words) else np.zeros(len(array), np.int32)
        case T.BooleanType():
            return hash_longs(np.asarray(array.fill_null(False).to_numpy(zero_copy_only=False), np.int64))
        case T.FloatType():
            return hash_longs(_float_bits(array))
    data, offsets = byte_strings(array)
    return hash_bytes(data, offsets)


def _float_bits(array: pa.Array) -> Ints:
    """The bits of each value as a double, with one NaN and one zero: the specification defines the hash, but no bucket
    transform."""
    values = np.array(array.fill_null(0.0).to_numpy(zero_copy_only=False), np.float64)
    values[values == 0] = 0.0
    values[np.isnan(values)] = np.nan
    return values.view(np.int64)


def byte_strings(array: pa.Array) -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.uint8]], Ints]:
    """The bytes of a string or binary array and the start of each value."""
    if pa.types.is_fixed_size_binary(array.type):
        width, (_, data) = array.type.byte_width, array.buffers()
        offsets = (np.arange(len(array) + 1, dtype=np.int64) + array.offset) * width
    else:
        _, where, data = array.buffers()
        offsets = np.frombuffer(where, np.int32)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    raw = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    return raw, offsets


def _truncate(array: pa.Array, width: int, source: T.DataType) -> pa.Array:
    arrow = to_arrow_type(source)
    if isinstance(source, T.IntegerType):
        values, mask = integers(array)
        # In int64 a value below the minimum wraps around: it is then greater than its source.
        out = values - values % width
        low = -(2 ** (source.bits - 1))
        _in_range(values, (out > values) | (out < low), mask, width, source)
        return build(out, mask, arrow)
    if isinstance(source, T.DecimalType):
        return per_distinct(partial(_truncated_decimal, width=width, source=source), array, arrow)
    if pa.types.is_string(array.type):
        return pc.utf8_slice_codeunits(array, 0, width)
    return pc.binary_slice(array, 0, width)


def _truncated_decimal(value: Decimal, width: int, source: T.DecimalType) -> object:
    found = transforms.truncate(value, width)
    assert isinstance(found, Decimal)
    if abs(transforms.unscaled(found, source.scale)) >= 10**source.precision:
        raise EvaluationError(f"truncate[{width}] of {value} is below the range of {source}")
    return found


def _in_range(values: Ints, bad: Bools, mask: Bools | None, width: int, source: T.DataType) -> None:
    if mask is not None:
        bad = bad & ~mask
    if bad.any():
        raise EvaluationError(f"truncate[{width}] of {values[bad][0]} is below the range of {source}")


def _time(name: str, values: Ints, source: T.DataType) -> Ints:
    if isinstance(source, T.TimestampType):
        seconds = values // UNITS_PER_SECOND[source.unit]
        if name == "hour":
            return seconds // 3600
        values = seconds // 86_400
    if name == "day":
        return values
    year, month, _ = calendar.civil(values)
    return year - 1970 if name == "year" else (year - 1970) * 12 + month - 1
