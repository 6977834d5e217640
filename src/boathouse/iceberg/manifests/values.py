"""Single values: the binary form of bounds (spec, Appendix D), partition values as stored in Avro, truncation.

A *physical* value is bool, int (also days, microseconds and the unscaled number of a decimal), float, str or
bytes. Bounds are never NaN, so a bound that decodes to NaN is unknown.
"""

from __future__ import annotations

import datetime as dt
import math
import struct
import uuid
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from boathouse import types as T
from boathouse.arrow.schema import to_arrow_type
from boathouse.parquet.bounds import truncate_lower, truncate_upper

Physical = bool | int | float | str | bytes | None

TRUNCATE_WIDTH: Final = 16
_PER_SECOND: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_EPOCH = dt.datetime(1970, 1, 1)
_MICROSECOND = dt.timedelta(microseconds=1)


def encode(value: Physical, type: T.DataType) -> bytes | None:
    """The single-value binary form; None for null, for NaN, and for types without one."""
    if value is None:
        return None
    match type:
        case T.BooleanType():
            return b"\x01" if value else b"\x00"
        case T.IntegerType(32) | T.DateType():
            return struct.pack("<i", value)
        case T.IntegerType(64) | T.TimeType() | T.TimestampType():
            return struct.pack("<q", value)
        case T.FloatType(bits):
            return None if math.isnan(value) else struct.pack("<f" if bits == 32 else "<d", value)  # type: ignore[arg-type]
        case T.DecimalType():
            return minimal_bytes(value)  # type: ignore[arg-type]
        case T.StringType():
            return value.encode() if isinstance(value, str) else bytes(value)  # type: ignore[arg-type]
        case T.FixedType() | T.UUIDType():
            return bytes(value)  # type: ignore[arg-type]
        case T.BinaryType() if type == T.BINARY:
            return bytes(value)  # type: ignore[arg-type]
    return None


def minimal_bytes(unscaled: int) -> bytes:
    """Big-endian two's complement in as few bytes as possible."""
    length = (unscaled if unscaled >= 0 else unscaled + 1).bit_length() // 8 + 1
    return unscaled.to_bytes(length, "big", signed=True)


def decode(data: bytes | None, type: T.DataType) -> Physical:
    """The physical value of a bound, read by its length: one written before a promotion keeps its old width.

    None for what cannot be a value of the type, and for NaN.
    """
    if data is None:
        return None
    match type:
        case T.GeometryType() | T.GeographyType():
            # A corner of the box around all shapes, which no comparison of bytes is about.
            return None
        case T.BooleanType():
            return data != b"\x00" if len(data) == 1 else None
        case T.TimestampType(_, unit) if len(data) == 4:
            # Four bytes are days: the column was a date when the file was written.
            return int.from_bytes(data, "little", signed=True) * 86_400 * _PER_SECOND[unit]
        case T.IntegerType() | T.DateType() | T.TimeType() | T.TimestampType():
            return int.from_bytes(data, "little", signed=True) if len(data) in (4, 8) else None
        case T.FloatType():
            if len(data) not in (4, 8):
                return None
            number = float(struct.unpack("<f" if len(data) == 4 else "<d", data)[0])
            return None if math.isnan(number) else number
        case T.DecimalType():
            return int.from_bytes(data, "big", signed=True) if data else None
        case T.StringType():
            try:
                return data.decode()
            except UnicodeDecodeError:
                return None
        case T.FixedType(length):
            return bytes(data) if len(data) == length else None
        case T.UUIDType():
            return bytes(data) if len(data) == 16 else None
        case T.BinaryType():
            return bytes(data)
    return None


def bounds_array(found: pa.Array, type: T.DataType) -> pa.Array:
    """Bounds in binary form, decoded, as an Arrow array of the column's type; each distinct one once."""
    if found.null_count == len(found):
        return pa.nulls(len(found), to_arrow_type(type))
    fast = _strings(found, type) if type in (T.STRING, T.BINARY) else _numbers(found, type)
    if fast is not None:
        return fast
    encoded = found.cast(pa.binary()).dictionary_encode()
    return arrow_array([decode(b, type) for b in encoded.dictionary.to_pylist()], type).take(encoded.indices)


def _strings(found: pa.Array, type: T.DataType) -> pa.Array | None:
    """Bounds that need no decoding; None if some are not UTF-8."""
    try:
        return found.cast(pa.binary()).cast(to_arrow_type(type))
    except pa.ArrowInvalid:
        return None


def number_kind(type: T.DataType) -> str | None:
    """The numbers that bounds of this type are, as numpy names them; None if they are none."""
    match type:
        case T.IntegerType(bits) | T.FloatType(bits):
            return f"<{'f' if isinstance(type, T.FloatType) else 'i'}{bits // 8}"
        case T.DateType():
            return "<i4"
        case T.TimeType() | T.TimestampType():
            return "<i8"
    return None


def encode_numbers(values: pa.Array, kind: str) -> pa.Array:
    """Numbers, as `number_kind` names them, in binary form; NaN is null."""
    width = np.dtype(kind).itemsize
    if pa.types.is_floating(values.type):
        values = pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)
    else:
        values = values.view(pa.int32() if width == 4 else pa.int64())
    data = pa.py_buffer(np.ascontiguousarray(values.fill_null(0).to_numpy()))
    found = pa.Array.from_buffers(pa.binary(width), len(values), [None, data]).cast(pa.binary())
    return pc.if_else(values.is_valid(), found, pa.scalar(None, pa.binary())) if values.null_count else found


def number_array(numbers: npt.NDArray[Any], valid: npt.NDArray[np.bool_], type: T.DataType) -> pa.Array:
    """Decoded bounds as an Arrow array of the column's type; NaN is null."""
    if isinstance(type, T.FloatType):
        valid = valid & ~np.isnan(numbers)
    return pa.array(numbers, mask=None if valid.all() else ~valid).view(to_arrow_type(type))


def _numbers(found: pa.Array, type: T.DataType) -> pa.Array | None:
    """Bounds that are all numbers of the type's own width; None if they are not."""
    kind = number_kind(type)
    if kind is None or pc.any(pc.not_equal(pc.binary_length(found), np.dtype(kind).itemsize)).as_py():
        return None
    valid = found.is_valid().to_numpy(zero_copy_only=False)
    numbers = np.zeros(len(found), kind)
    numbers[valid] = np.frombuffer(_content(found.drop_null().cast(pa.binary())), kind)
    return number_array(numbers, valid, type)


def _content(found: pa.Array) -> pa.Buffer:
    """The bytes of all values, one after the other."""
    _, offsets, data = found.buffers()
    places = np.frombuffer(offsets, np.int32)
    first, last = int(places[found.offset]), int(places[found.offset + len(found)])
    return data.slice(first, last - first)


def arrow_array(values: Sequence[Physical], type: T.DataType) -> pa.Array:
    """Physical values as an Arrow array of the column's type; values that do not fit are null."""
    target = to_arrow_type(type)
    match type:
        case T.NullType():
            return pa.nulls(len(values))
        case T.DateType():
            return pa.array(_within(values, 32), pa.int32()).view(target)
        case T.TimeType() | T.TimestampType():
            return pa.array(_within(values, 64), pa.int64()).view(target)
        case T.IntegerType(bits):
            return pa.array(_within(values, bits), target)
        case T.DecimalType(precision, scale):
            limit = 10**precision
            return pa.array(
                [Decimal(f"{v}E-{scale}") if isinstance(v, int) and abs(v) < limit else None for v in values],
                target,
            )
    return pa.array(values, target)


def _within(values: Sequence[Physical], bits: int) -> list[Physical]:
    limit = 1 << (bits - 1)
    return [v if v is not None and -limit <= v < limit else None for v in values]  # type: ignore[operator]


def physical_list(array: pa.Array, type: T.DataType) -> list[Physical]:
    """An Arrow array as physical values."""
    match type:
        case T.DateType():
            return list(array.view(pa.int32()).to_pylist())
        case T.TimeType() | T.TimestampType():
            return list(array.view(pa.int64()).to_pylist())
        case T.DecimalType(_, scale):
            return [None if v is None else unscaled(v, scale) for v in array.to_pylist()]
    return list(array.to_pylist())


def unscaled(value: Decimal, scale: int) -> int:
    """The unscaled integer of a decimal of this scale; exact in any decimal context."""
    sign, digits, exponent = value.as_tuple()
    number = int("".join(map(str, digits)) or "0")
    shift = int(exponent) + scale
    number = number * 10**shift if shift >= 0 else number // 10**-shift
    return -number if sign else number


def physical(value: object, type: T.DataType) -> Physical:
    """A Python value (as Arrow gives it) as a physical one."""
    match value:
        case None | bool() | str() | float():
            return value
        case int():
            return float(value) if isinstance(type, T.FloatType) else value
        case Decimal():
            return unscaled(value, type.scale if isinstance(type, T.DecimalType) else 0)
        case uuid.UUID():
            return value.bytes
        case bytes() | bytearray() | memoryview():
            return bytes(value)
        case dt.datetime():
            naive = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo is not None else value
            return (naive - _EPOCH) // _MICROSECOND
        case dt.date():
            return value.toordinal() - _EPOCH.toordinal()
        case dt.time():
            return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
    raise TypeError(f"{value!r} is not a value of {type}")


def from_avro(value: Physical, type: T.DataType) -> Physical:
    """A partition value as stored in Avro (a decimal is big-endian bytes), as a physical one. ValueError for a value
    that is not of the type."""
    found = value
    if isinstance(type, T.DecimalType) and isinstance(value, bytes):
        found = int.from_bytes(value, "big", signed=True)
    elif isinstance(type, T.UUIDType) and isinstance(value, str):
        found = uuid.UUID(value).bytes
    elif isinstance(type, T.FloatType) and _integer(value, 64):
        found = float(value)  # type: ignore[arg-type]
    if found is not None and not _is_of(found, type):
        raise ValueError(f"is not {type}: {value!r:.80}")
    return found


def _integer(value: Physical, bits: int) -> bool:
    """True and False are not numbers."""
    return isinstance(value, int) and not isinstance(value, bool) and -(1 << bits - 1) <= value < 1 << bits - 1


def _is_of(value: Physical, type: T.DataType) -> bool:
    """Whether a physical value is of the type."""
    match type:
        case T.BooleanType():
            return isinstance(value, bool)
        case T.IntegerType(bits):
            return _integer(value, bits)
        case T.DateType():
            return _integer(value, 32)
        case T.TimeType() | T.TimestampType():
            return _integer(value, 64)
        case T.FloatType():
            return isinstance(value, float)
        case T.DecimalType(precision):
            return isinstance(value, int) and abs(value) < 10**precision
        case T.StringType():
            return isinstance(value, str)
        case T.FixedType(length):
            return isinstance(value, bytes) and len(value) == length
        case T.UUIDType():
            return isinstance(value, bytes) and len(value) == 16
        case T.BinaryType():
            return isinstance(value, bytes)
    return True


def to_avro(value: Physical, type: T.DataType) -> Physical:
    """A physical partition value as stored in Avro."""
    if isinstance(type, T.DecimalType) and isinstance(value, int):
        return value.to_bytes(decimal_size(type.precision), "big", signed=True)
    return value


def decimal_size(precision: int) -> int:
    """The bytes that any decimal of this precision fits into."""
    return (10**precision - 1).bit_length() // 8 + 1


def truncated(lower: Physical, upper: Physical, width: int | None) -> tuple[Physical, Physical]:
    """Bounds of a string or binary column truncated to `width` code points or bytes; an upper bound that cannot be
    incremented is None."""
    if width is None:
        return lower, upper
    low = truncate_lower(lower, width) if isinstance(lower, str | bytes) else lower
    return low, truncate_upper(upper, width) if isinstance(upper, str | bytes) else upper


def raised(prefix: str | bytes) -> str | bytes | None:
    """The least string of its length above everything that begins with `prefix`; None if there is none."""
    if not prefix:
        return None
    longer: str | bytes = prefix + "x" if isinstance(prefix, str) else prefix + b"x"
    return truncate_upper(longer, len(prefix))
