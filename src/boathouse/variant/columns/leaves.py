"""Arrow arrays of plain values as variant values, each in the Variant type that corresponds exactly to the column's
type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse.arrow.masks import mask_of
from boathouse.bits.unaligned import Mask
from boathouse.errors import InvalidArgumentError, UnsupportedTypeError
from boathouse.variant.columns.assemble import binaries, booleans, decimals, integers, primitives, strings
from boathouse.variant.columns.byte_columns import Ragged, Rope, fixed_values, rope
from boathouse.variant.primitives import (
    DATE,
    DECIMAL16,
    DOUBLE,
    FLOAT,
    INT64,
    KINDS,
    MAX_SCALE,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NANOS,
    TIMESTAMP_NTZ,
    TIMESTAMP_NTZ_NANOS,
    UUID,
    Family,
    decimal_kind,
    kinds_of,
)

_MICROS = {"s": 1_000_000, "ms": 1_000, "us": 1}
_DAY_MILLIS = 86_400_000
_INTEGER_IDS = {8 * kind.size: kind.id for kind in kinds_of(Family.INTEGER)}


def leaf(array: pa.Array, present: Mask | None, where: str, *, narrow: bool, uuid: bool) -> Rope:
    """The values of an array without children; those outside `present` have undefined bytes.

    Integers are as wide as the column's (unsigned ones as the next wider; beyond int64 decimal16), or each in the
    narrowest type. With `uuid`, 16 fixed bytes are a UUID. The array has been validated in full. Raises
    UnsupportedTypeError naming `where`, InvalidArgumentError for values that no variant can hold.
    """
    type = array.type
    make = _MAKERS.get(type.id)
    if make is None:
        raise UnsupportedTypeError(
            f"a variant has no type for {type}", where=where or None, advice="cast the column, or leave it out"
        )
    if pa.types.is_integer(type):
        return _integer(array, present, narrow)
    if uuid:
        return primitives(UUID, fixed_values(array, "V16"))
    return make(array, present, where)


def _integer(array: pa.Array, present: Mask | None, narrow: bool) -> Rope:
    width, signed = array.type.bit_width, pa.types.is_signed_integer(array.type)
    values = fixed_values(array, f"{'i' if signed else 'u'}{width // 8}")
    if width == 64 and not signed:
        return _unsigned64(values, present, narrow)
    if narrow:
        return integers(values)
    if not signed:
        width *= 2
    return primitives(_INTEGER_IDS[width], values.astype(f"<i{width // 8}", copy=False))


def _unsigned64(values: npt.NDArray[Any], present: Mask | None, narrow: bool) -> Rope:
    signed = values.view(np.int64)
    beyond = signed < 0 if present is None else (signed < 0) & present
    usual = integers(np.where(signed < 0, 0, signed)) if narrow else primitives(INT64, signed)
    if not beyond.any():
        return usual
    wide = np.zeros((len(values), 2), np.uint64)
    wide[:, 0] = values
    return rope(usual.within(~beyond), decimals(DECIMAL16, 0, wide.view("V16")[:, 0]).within(beyond))


def _boolean(array: pa.Array, present: Mask | None, where: str) -> Rope:
    return booleans(mask_of(array))


def _half(array: pa.Array, present: Mask | None, where: str) -> Rope:
    return primitives(FLOAT, fixed_values(array, "f2").astype("<f4"))


def _float(array: pa.Array, present: Mask | None, where: str) -> Rope:
    return primitives(FLOAT, fixed_values(array, "<f4"))


def _double(array: pa.Array, present: Mask | None, where: str) -> Rope:
    return primitives(DOUBLE, fixed_values(array, "<f8"))


def _decimal(array: pa.Array, present: Mask | None, where: str) -> Rope:
    precision, scale, bytes = array.type.precision, array.type.scale, array.type.byte_width
    if scale < 0:
        return _decimal(_without_negative_scale(array, where), present, where)
    digits = max(precision, scale)  # a scale beyond the width's precision is refused by Spark
    if digits > MAX_SCALE:
        raise UnsupportedTypeError(
            f"a variant's decimals have at most 38 digits, the column is {array.type}",
            where=where or None,
            advice="cast the column to decimal128",
        )
    id = decimal_kind(digits).id
    # Validated: the digits fit the precision, so that the upper bytes hold the sign alone.
    if bytes <= 8:
        low: npt.NDArray[Any] = fixed_values(array, f"<i{bytes}")
    else:
        words = bytes // 8
        both = fixed_values(array, f"V{bytes}").view(np.int64).reshape(-1, words)
        if id == DECIMAL16:
            return decimals(id, scale, np.ascontiguousarray(both[:, :2]).view("V16")[:, 0])
        low = both[:, 0]
    if id == DECIMAL16:
        wide = np.empty((len(low), 2), np.int64)
        wide[:, 0], wide[:, 1] = low, low >> 63
        return decimals(id, scale, wide.view("V16")[:, 0])
    return decimals(id, scale, low.astype(KINDS[id].number))


def _without_negative_scale(array: pa.Array, where: str) -> pa.Array:
    digits = array.type.precision - array.type.scale
    if digits > MAX_SCALE:
        raise UnsupportedTypeError(
            f"a variant's decimals have at most 38 digits and no negative scale, the column is {array.type}",
            where=where or None,
        )
    return array.cast(pa.decimal128(digits, 0))


def _date(array: pa.Array, present: Mask | None, where: str) -> Rope:
    return primitives(DATE, fixed_values(array, "<i4"))


def _date_millis(array: pa.Array, present: Mask | None, where: str) -> Rope:
    days = fixed_values(array, "<i8") // _DAY_MILLIS
    _check(abs(days) < 1 << 31, present, where, "a date beyond 32 bits of days")
    return primitives(DATE, days.astype("<i4"))


def _time(array: pa.Array, present: Mask | None, where: str) -> Rope:
    unit = array.type.unit
    found = fixed_values(array, f"<i{array.type.bit_width // 8}").astype(np.int64, copy=False)
    if unit == "ns":
        _check(found % 1_000 == 0, present, where, "a time of day with nanoseconds: a variant's have microseconds")
        return primitives(TIME, found // 1_000)
    return primitives(TIME, found * _MICROS[unit])


def _timestamp(array: pa.Array, present: Mask | None, where: str) -> Rope:
    unit, utc = array.type.unit, array.type.tz is not None
    found = fixed_values(array, "<i8")
    if unit == "ns":
        return primitives(TIMESTAMP_NANOS if utc else TIMESTAMP_NTZ_NANOS, found)
    factor = _MICROS[unit]
    if factor > 1:
        limit = (1 << 63) // factor
        _check((found >= -limit) & (found < limit), present, where, "a timestamp beyond 64 bits of microseconds")
        found = found * factor
    return primitives(TIMESTAMP if utc else TIMESTAMP_NTZ, found)


def _check(ok: Mask, present: Mask | None, where: str, what: str) -> None:
    wrong = ~ok if present is None else ~ok & present
    if wrong.any():
        raise InvalidArgumentError(f"value {wrong.argmax():,} is {what}", where=where or None, advice="cast it first")


def _string(array: pa.Array, present: Mask | None, where: str) -> Rope:
    return strings(Ragged.from_arrow(array))


def _binary(array: pa.Array, present: Mask | None, where: str) -> Rope:
    return binaries(Ragged.from_arrow(array))


def _ids(*types: pa.DataType) -> list[int]:
    return [type.id for type in types]


_MAKERS: dict[int, Callable[[pa.Array, Mask | None, str], Rope]] = {
    pa.bool_().id: _boolean,
    pa.float16().id: _half,
    pa.float32().id: _float,
    pa.float64().id: _double,
    pa.date32().id: _date,
    pa.date64().id: _date_millis,
    pa.timestamp("s").id: _timestamp,
    **dict.fromkeys(_ids(pa.time32("s"), pa.time64("us")), _time),
    **dict.fromkeys(_ids(pa.decimal32(1), pa.decimal64(1), pa.decimal128(1), pa.decimal256(1)), _decimal),
    **dict.fromkeys(_ids(pa.string(), pa.large_string(), pa.string_view()), _string),
    **dict.fromkeys(_ids(pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(1)), _binary),
    **dict.fromkeys(
        _ids(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
        lambda array, present, where: _integer(array, present, False),
    ),
}
