"""The numbers and literals among the leaves of JSON texts, eight digits at a time.

Whatever is not certainly a literal, an integer of 64 bits, a decimal of at most 18 digits (zeros before the first other
digit aside) or a number with a usual exponent is left to the single-value implementation (`odd`), which decides what it
is, or what is wrong with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.vector import only_where
from boathouse.bits.unaligned import Bytes, Ints, Mask, gather
from boathouse.variant.columns.byte_columns import Ragged
from boathouse.variant.columns.json_scan import FRONT
from boathouse.variant.primitives import DECIMAL4, DOUBLE, INT8

Words = npt.NDArray[np.uint64]

_ZEROS = np.uint64(0x3030303030303030)
_NINES = np.uint64(0x7676767676767676)
_HIGHS = np.uint64(0x8080808080808080)
# By count, the mask of the last bytes of a word; for 0, the mask of all bytes, so that an empty piece is not a number.
_LAST = np.array([(1 << 64) - (1 << 64 - 8 * (count or 8)) for count in range(9)], np.uint64)
_DIGITS = 18  # this many digits always fit into a signed 64-bit integer
_SCALES = 2 * _DIGITS
_EIGHT = 100_000_000
_TEN = 10 ** np.arange(_DIGITS + 1, dtype=np.int64)
_MINUS = ord("-")
_POINTS = np.uint64(0x2E2E2E2E2E2E2E2E)
_ONES = np.uint64(0x0101010101010101)
_LITERALS = ((b"null", b"\0", 4), (b"true", b"\4", 4), (b"fals", b"\x08", 5))
# Neither beyond the largest double nor below the smallest normal one.
_EXPONENT = r"^-?(0|[1-9][0-9]{0,50})(\.[0-9]{1,50})?[eE][+-]?0{0,20}[01]?[0-9]{1,2}$"


@dataclass(frozen=True, eq=False)
class Scalars:
    """Scalar i is the first `sizes[i]` bytes of `records[i]` (24 bytes as three words), unless it is `odd`."""

    records: Words
    sizes: Ints
    odd: Ints


def scalars(buffer: Bytes, starts: Ints, stops: Ints) -> Scalars:
    """Encodes the scalars from `starts` to `stops` of the text, which begins FRONT bytes into `buffer`."""
    body = buffer[FRONT:]
    records = np.empty((len(starts), 3), np.uint64)
    sizes = np.zeros(len(starts), np.int64)
    minus = body.take(starts) == _MINUS
    first = starts + minus
    value, ok = _digits(buffer, first, stops)
    whole = np.flatnonzero(ok)
    if len(whole) == len(starts):
        _integers(records, sizes, slice(None), np.where(minus, -value, value))
        return Scalars(records, sizes, np.empty(0, np.int64))
    _integers(records, sizes, whole, np.where(minus, -value, value)[whole])
    rest = np.flatnonzero(~ok)
    rest = _literals(buffer, records, sizes, starts, stops, rest)
    rest = _decimals(buffer, records, sizes, (starts, first, stops), rest)
    rest = _doubles(body, records, sizes, starts, stops, rest)
    return Scalars(records, sizes, rest)


def _digits(buffer: Bytes, first: Ints, stops: Ints, zeros: bool = False) -> tuple[Ints, Mask]:
    """The digits from `first` to `stops` as non-negative signed 64-bit integers, and which are valid; leading zeros
    only with `zeros`."""
    length = stops - first
    ok = (length > 0) & (length <= _DIGITS + 1)
    if not zeros:
        ok &= (buffer.take(first + FRONT) != ord("0")) | (length == 1)
    value, good = _eight(buffer, stops, np.clip(length, 0, 8))
    ok &= good
    for part in (1, 2):
        more = np.flatnonzero(ok & (length > 8 * part))
        if not len(more):
            break
        high, good = _eight(buffer, stops[more] - 8 * part, np.minimum(length[more] - 8 * part, 8))
        value[more] += high * _EIGHT**part
        ok[more] &= good & (value[more] >= 0)  # 19 digits may overflow
    return value, ok


def _eight(buffer: Bytes, stops: Ints, length: Ints) -> tuple[Ints, Mask]:
    """Numbers of up to eight digits that end at `stops`, and whether they are digits; the leftmost digit is the lowest
    byte of a word."""
    words = gather(buffer, stops + (FRONT - 8), "<u8")
    words ^= _ZEROS
    words &= _LAST.take(length)
    good = (words + _NINES | words) & _HIGHS == 0
    words = words * np.uint64(10) + (words >> np.uint64(8))
    low, high = np.uint64(0x000F424000000064), np.uint64(0x0000271000000001)
    every = np.uint64(0x000000FF000000FF)
    words = (words & every) * low + (words >> np.uint64(16) & every) * high
    return (words >> np.uint64(32)).view(np.int64), good


def _integers(records: Words, sizes: Ints, which: Ints | slice, values: Ints) -> None:
    magnitude = values ^ (values >> 63)
    level = (magnitude >= 1 << 7).astype(np.int64)
    level += magnitude >= 1 << 15
    level += magnitude >= 1 << 31
    records[which, 0] = (values << 8 | (INT8 + level) << 2).view(np.uint64)
    records[which, 1] = (values >> 56).view(np.uint64)
    sizes[which] = 1 + (1 << level)


def _literals(buffer: Bytes, records: Words, sizes: Ints, starts: Ints, stops: Ints, rest: Ints) -> Ints:
    at = starts[rest] + FRONT
    words = gather(buffer, at, "<u4")
    length = stops[rest] - starts[rest]
    left = np.ones(len(rest), np.bool_)
    for word, encoded, size in _LITERALS:
        found = (words == int.from_bytes(word, "little")) & (length == size)
        if size == 5:
            found &= buffer[at + 4] == ord("e")
        these = rest[found]
        records[these, 0] = encoded[0]
        sizes[these] = 1
        left &= ~found
    return rest[left]


def _decimals(buffer: Bytes, records: Words, sizes: Ints, spans: tuple[Ints, Ints, Ints], rest: Ints) -> Ints:
    """Numbers with a point, no exponent and 18 digits at most."""
    if not len(rest):
        return rest
    body = buffer[FRONT:]
    starts, first, stops = spans[0][rest], spans[1][rest], spans[2][rest]
    point = _points(buffer, first, stops)
    scale, length = stops - point - 1, stops - first - 1
    length -= body[first] == ord("0")
    few = (length <= _DIGITS) | (point == first + 1) & (body[first] == ord("0")) & (scale <= _SCALES)
    able = np.flatnonzero((point > first) & (scale > 0) & few)
    able, whole = _good(able, _digits(buffer, first[able], point[able]))
    middle = np.maximum(point + 1, stops - _DIGITS)
    fraction, good = _digits(buffer, middle[able], stops[able], zeros=True)
    zeros, none = _digits(buffer, point[able] + 1, middle[able], zeros=True)
    good &= (middle[able] == point[able] + 1) | none & (zeros == 0)
    able, scale = able[good], scale[able[good]]
    unscaled = whole[good] * _TEN[np.where(whole[good] == 0, 0, scale)] + fraction[good]
    level = np.maximum((unscaled > 999_999_999) | (scale > 9), 2 * (scale > _DIGITS))
    unscaled = np.where(starts[able] != first[able], -unscaled, unscaled)
    these = rest[able]
    records[these, 0] = (unscaled << 16 | scale << 8 | (DECIMAL4 + level) << 2).view(np.uint64)
    records[these, 1] = (unscaled >> 48).view(np.uint64)
    records[these, 2] = (unscaled >> 63).view(np.uint64)
    sizes[these] = 2 + (4 << level)
    left = np.ones(len(rest), np.bool_)
    left[able] = False
    return rest[left]


def _points(buffer: Bytes, first: Ints, stops: Ints) -> Ints:
    """The position of the first decimal point, within as many digits as are read before one; -1 if there is none."""
    point = np.full(len(first), -1)
    for skip in (16, 8, 0):
        words = gather(buffer, first + (FRONT + skip), "<u8") ^ _POINTS
        found = (words - _ONES) & ~words & _HIGHS  # the lowest mark is at the first point
        at = first + skip + (np.bitwise_count((found & (~found + np.uint64(1))) - np.uint64(1)) >> 3)
        point = np.where((found != 0) & (at < stops), at, point)
    return point


def _good(which: Ints, digits: tuple[Ints, Mask]) -> tuple[Ints, Ints]:
    """Those of `which` that are numbers, and the numbers."""
    value, ok = digits
    return which[ok], value[ok]


def _doubles(body: Bytes, records: Words, sizes: Ints, starts: Ints, stops: Ints, rest: Ints) -> Ints:
    """Numbers with an exponent, within the range of double."""
    if not len(rest):
        return rest
    bounds = np.empty(2 * len(rest), np.int64)
    bounds[0::2], bounds[1::2] = starts[rest], stops[rest]
    texts = Ragged(bounds, body).to_arrow().take(pa.array(np.arange(0, len(bounds), 2)))
    texts = only_where(pc.match_substring_regex(texts, _EXPONENT), texts)
    values = texts.cast(pa.large_string()).cast(pa.float64()).to_numpy(zero_copy_only=False)
    able = np.flatnonzero(np.isfinite(values))
    these = rest[able]
    bits = values[able].view(np.uint64)
    records[these, 0] = bits << np.uint64(8) | np.uint64(DOUBLE << 2)
    records[these, 1] = bits >> np.uint64(56)
    sizes[these] = 9
    left = np.ones(len(rest), np.bool_)
    left[able] = False
    return rest[left]
