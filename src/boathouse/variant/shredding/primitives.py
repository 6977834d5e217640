"""Typed columns of primitives as encoded bytes: one record of fixed width per item, or a header and a string.

(VariantShredding.md, "Shredded Value Types"; VariantEncoding.md, "Encoding types")
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse.arrow.dictionary import spread
from boathouse.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    FloatType,
    IntegerType,
    StringType,
    TimestampType,
    TimeType,
    UUIDType,
)
from boathouse.variant import primitives as ids
from boathouse.variant.columns.byte_columns import Ragged
from boathouse.variant.columns.unaligned import Bytes, copy, scatter
from boathouse.variant.shredding.masks import Ints, Mask, Sizes, pick


@dataclass(frozen=True, slots=True)
class Kind:
    """How a typed column's primitive is encoded: its id, and numpy's type of its content (None: string, boolean)."""

    id: int
    dtype: str | None = None


def kind_of(type: DataType) -> Kind:
    """The exact Variant type that a typed column holds."""
    match type:
        case BooleanType():
            return Kind(ids.TRUE)
        case IntegerType(bits, _):
            return Kind({8: ids.INT8, 16: ids.INT16, 32: ids.INT32, 64: ids.INT64}[bits], f"<i{bits // 8}")
        case FloatType(bits):
            return Kind(ids.FLOAT if bits == 32 else ids.DOUBLE, f"<f{bits // 8}")
        case DecimalType(precision, _):
            return Kind(*_decimal(precision))
        case DateType():
            return Kind(ids.DATE, "<i4")
        case TimeType():
            return Kind(ids.TIME, "<i8")
        case TimestampType(utc, unit):
            micros, nanos = (
                (ids.TIMESTAMP, ids.TIMESTAMP_NANOS) if utc else (ids.TIMESTAMP_NTZ, ids.TIMESTAMP_NTZ_NANOS)
            )
            return Kind(micros if unit == "us" else nanos, "<i8")
        case UUIDType():
            return Kind(ids.UUID, "V16")
        case BinaryType():
            return Kind(ids.BINARY)
        case StringType():
            return Kind(ids.STRING)
    raise AssertionError(type)


def _decimal(precision: int) -> tuple[int, str]:
    if precision <= 9:
        return ids.DECIMAL4, "<i4"
    return (ids.DECIMAL8, "<i8") if precision <= 18 else (ids.DECIMAL16, "V16")


def plain(array: pa.Array) -> pa.Array:
    """The array below extension and dictionary layers. Raises ArrowIndexError for an index beyond its dictionary."""
    while isinstance(array, pa.ExtensionArray | pa.DictionaryArray):
        array = array.storage if isinstance(array, pa.ExtensionArray) else spread(array)
    return array


def fixed_values(array: pa.Array, dtype: str) -> npt.NDArray[Any]:
    """The values buffer of a fixed-width array, null slots included."""
    kind = np.dtype(dtype)
    buffer = array.buffers()[1]
    if buffer is None or not len(array):
        return np.zeros(len(array), kind)
    return np.frombuffer(buffer, kind, len(array), array.offset * kind.itemsize)


@dataclass(frozen=True, eq=False)
class Records:
    """Items of one width, ready to be written at the positions of the instances `at` (None: of all)."""

    at: Ints | None
    records: npt.NDArray[Any]

    @property
    def size(self) -> Sizes:
        return int(self.records.dtype.itemsize)

    def write(self, out: Bytes, pos: Ints) -> None:
        scatter(out, pick(pos, self.at), self.records)


@dataclass(frozen=True, eq=False)
class Texts:
    """Strings or binaries of the instances `at`, borrowed from Arrow's buffer."""

    at: Ints | None
    data: Bytes
    start: Ints
    length: Ints
    id: int

    @cached_property
    def size(self) -> Ints:
        return self.length + 1 + 4 * self._long

    @cached_property
    def _long(self) -> Mask:
        return (self.length > ids.SHORT_STRING_MAX) | (self.id == ids.BINARY)

    def write(self, out: Bytes, pos: Ints) -> None:
        pos = pick(pos, self.at)
        long = self._long
        if not long.any():
            out[pos] = (self.length << 2 | ids.SHORT_STRING).astype(np.uint8)
            copy(out, pos + 1, self.data, self.start, self.length)
            return
        short = np.flatnonzero(~long)
        out[pos[short]] = (self.length[short] << 2 | ids.SHORT_STRING).astype(np.uint8)
        where = np.flatnonzero(long)
        records = np.empty((len(where), 5), np.uint8)
        records[:, 0] = self.id << 2
        records[:, 1:] = self.length[where].astype("<u4").view(np.uint8).reshape(-1, 4)
        scatter(out, pos[where], records.view("V5").ravel())
        copy(out, pos + 1 + 4 * long, self.data, self.start, self.length)


def encode(array: pa.Array, type: DataType, at: Ints | None) -> tuple[Records | Texts, Mask | None]:
    """The items `at` of a typed column encoded, and which of them cannot be (None: all can).

    Not encodable are decimals beyond the precision of their type, and times of day outside 0 to 24:00.
    """
    array = plain(array)
    kind = kind_of(type)
    if isinstance(type, StringType | BinaryType):
        ragged = Ragged.from_arrow(array)
        start, length = pick(ragged.offsets[:-1], at), pick(ragged.sizes, at)
        return Texts(at, ragged.data, start, length, kind.id), None
    if isinstance(type, BooleanType):
        bits = pick(booleans(array), at)
        headers = np.where(bits, np.uint8(ids.TRUE << 2), np.uint8(ids.FALSE << 2))
        return Records(at, headers), None
    if isinstance(type, DecimalType):
        return _encode_decimals(array, type, kind, at)
    values = pick(fixed_values(array, kind.dtype or ""), at)
    wrong = None
    if isinstance(type, TimeType):
        wrong = (values < 0) | (values >= ids.DAY_MICROS)
    return Records(at, _records(kind.id, None, values)), wrong


def booleans(array: pa.Array) -> Mask:
    """The bits of a boolean array, null slots included."""
    buffer = array.buffers()[1]
    if buffer is None or not len(array):
        return np.zeros(len(array), np.bool_)
    first, shift = array.offset >> 3, array.offset & 7
    bits = np.frombuffer(buffer, np.uint8)[first:]
    return np.unpackbits(bits, count=len(array) + shift, bitorder="little")[shift:].view(np.bool_)


def _records(id: int, scale: int | None, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    width = values.dtype.itemsize
    lead = 1 if scale is None else 2
    records = np.empty((len(values), lead + width), np.uint8)
    records[:, 0] = id << 2
    if scale is not None:
        records[:, 1] = scale
    if len(values):
        np.ndarray((len(values),), values.dtype, records, lead, (lead + width,))[:] = values
    return records.view(f"V{lead + width}").ravel()


def _encode_decimals(
    array: pa.Array, type: DecimalType, kind: Kind, at: Ints | None
) -> tuple[Records | Texts, Mask | None]:
    """From decimal32, 64, 128 or 256, whose words are little-endian: the low words, if they hold the value."""
    if not pa.types.is_decimal128(array.type):
        array = array.cast(pa.decimal128(type.precision, type.scale))
    words = pick(fixed_values(array, "V16"), at)
    pairs = words.view("<i8").reshape(-1, 2)
    low, high = pairs[:, 0], pairs[:, 1]
    if kind.id == ids.DECIMAL16:
        return Records(at, _records(kind.id, type.scale, words)), beyond(low, high, type.precision)
    limit = 10**type.precision - 1
    wrong = (high != low >> 63) | (low > limit) | (low < -limit)
    return Records(at, _records(kind.id, type.scale, low.astype(kind.dtype))), wrong


def beyond(low: Ints, high: Ints, precision: int) -> Mask:
    """Which 128-bit numbers (two's complement, two words) have more than `precision` digits."""
    limit = 10**precision - 1
    top, rest = limit >> 64, np.uint64(limit & (1 << 64) - 1)
    unsigned = low.view("<u8")
    above = (high > top) | ((high == top) & (unsigned > rest))
    negative = -limit
    floor, least = negative >> 64, np.uint64(negative & (1 << 64) - 1)
    return above | (high < floor) | ((high == floor) & (unsigned < least))
