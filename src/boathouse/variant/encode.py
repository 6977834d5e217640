"""Bytes of single values: scalars by physical type, objects and arrays from the bytes of their children."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import accumulate

from boathouse.errors import InvalidArgumentError
from boathouse.variant.metadata import utf8
from boathouse.variant.primitives import (
    BINARY,
    DAY_MICROS,
    DECIMAL16,
    DECIMALS,
    INT8,
    INT16,
    INT32,
    INT64,
    KINDS,
    MAX_SCALE,
    SHORT_STRING_MAX,
    STRING,
    TIME,
    UUID,
    array_header,
    object_header,
    primitive_header,
    short_string_header,
    width_of,
)

_FORMATS = {kind.id: struct.Struct(f"<B{kind.struct}") for kind in KINDS if kind.struct}
_SMALL = [_FORMATS[INT8].pack(INT8 << 2, i if i < 128 else i - 256) for i in range(256)]  # negative indexes fit
_SHORT = [bytes([short_string_header(length)]) for length in range(SHORT_STRING_MAX + 1)]
DOUBLE_BYTES = struct.Struct("<Bd")
FLOAT_BYTES = struct.Struct("<Bf")


def encode_integer(id: int, number: int) -> bytes:
    """A signed number of 1, 2, 4 or 8 bytes: integers, dates, times, timestamps. Raises InvalidArgumentError."""
    try:
        return _FORMATS[id].pack(primitive_header(id), number)
    except struct.error:
        raise InvalidArgumentError(f"{number!r} is not a {KINDS[id].name} of {8 * KINDS[id].size} bits") from None


def encode_int(number: int) -> bytes:
    """An integer in the narrowest type: int8 to int64, then decimal16 of scale 0. Raises InvalidArgumentError."""
    if -128 <= number < 128:
        return _SMALL[number]
    if -(1 << 15) <= number < 1 << 15:
        return _FORMATS[INT16].pack(INT16 << 2, number)
    if -(1 << 31) <= number < 1 << 31:
        return _FORMATS[INT32].pack(INT32 << 2, number)
    if -(1 << 63) <= number < 1 << 63:
        return _FORMATS[INT64].pack(INT64 << 2, number)
    return encode_decimal(DECIMAL16, number, 0)


def encode_bool(value: bool) -> bytes:
    """True or false: a header only."""
    return b"\x04" if value else b"\x08"


def encode_decimal(id: int, unscaled: int, scale: int) -> bytes:
    """unscaled x 10^-scale in the width that `id` names. Raises InvalidArgumentError for digits beyond it."""
    if abs(unscaled) > KINDS[id].limit or not 0 <= scale <= MAX_SCALE:
        digits = len(str(abs(unscaled))) if abs(unscaled) < 10**1000 else "too many"
        raise InvalidArgumentError(
            f"a decimal of {digits} digits and scale {scale} does not fit into {KINDS[id].name}",
            advice="round it to at most 38 digits, or store a string",
        )
    return bytes([primitive_header(id), scale]) + unscaled.to_bytes(KINDS[id].size - 1, "little", signed=True)


def decimal_id(unscaled: int, scale: int) -> int:
    """The narrowest decimal whose precision covers both the digits and the scale (Spark refuses a larger scale)."""
    magnitude = abs(unscaled)
    return next((kind.id for kind in DECIMALS if magnitude <= kind.limit and scale <= kind.digits), DECIMAL16)


def encode_time(micros: int) -> bytes:
    """Microseconds since midnight, below 24:00. Raises InvalidArgumentError."""
    if not 0 <= micros < DAY_MICROS:
        raise InvalidArgumentError(f"{micros:,} microseconds are not a time of day")
    return encode_integer(TIME, micros)


def encode_string(text: str) -> bytes:
    """A string: short form up to 63 bytes. Raises InvalidArgumentError for unpaired surrogates."""
    raw = text.encode() if text.isascii() else utf8(text)
    if len(raw) <= SHORT_STRING_MAX:
        return _SHORT[len(raw)] + raw
    return _sized(STRING, raw)


def encode_binary(raw: bytes) -> bytes:
    """Bytes with a length of four bytes before them."""
    return _sized(BINARY, raw)


def encode_uuid(raw: bytes) -> bytes:
    """A UUID from its 16 bytes, big-endian. Raises InvalidArgumentError."""
    if len(raw) != 16:
        raise InvalidArgumentError(f"a UUID has 16 bytes, not {len(raw)}")
    return bytes([primitive_header(UUID)]) + raw


def _sized(id: int, raw: bytes) -> bytes:
    width_of(len(raw))
    return bytes([primitive_header(id)]) + len(raw).to_bytes(4, "little") + raw


def encode_array(elements: Sequence[bytes]) -> bytes:
    """An array of encoded values, with the narrowest header fields."""
    return _container(None, elements)


def encode_object(ids: Sequence[int], values: Sequence[bytes]) -> bytes:
    """An object of encoded values; the caller gives ids and values in the order of the names' UTF-8 bytes."""
    return _container(ids, values)


def _container(ids: Sequence[int] | None, values: Sequence[bytes]) -> bytes:
    count = len(values)
    large = count > 255
    offsets = list(accumulate(map(len, values), initial=0))
    offset_size = width_of(offsets[-1])
    width_of(count)
    if ids is None:
        head = bytes([array_header(large, offset_size)])
        numbers = b""
    else:
        id_size = width_of(max(ids, default=0))
        head = bytes([object_header(large, id_size, offset_size)])
        numbers = pack_unsigned(ids, id_size)
    return b"".join(
        [head, count.to_bytes(4 if large else 1, "little"), numbers, pack_unsigned(offsets, offset_size), *values]
    )


def pack_unsigned(numbers: Sequence[int], size: int) -> bytes:
    """Unsigned little-endian integers of `size` bytes, one after another."""
    if size == 1:
        return bytes(numbers)
    if size == 3:
        return b"".join([number.to_bytes(3, "little") for number in numbers])
    return struct.pack(f"<{len(numbers)}{'H' if size == 2 else 'I'}", *numbers)
