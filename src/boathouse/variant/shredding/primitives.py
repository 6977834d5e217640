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
from boathouse.arrow.masks import mask_of
from boathouse.bits.unaligned import Bytes, Ints, Mask, copy, scatter
from boathouse.types import BinaryType, BooleanType, DataType, DecimalType, StringType, TimeType
from boathouse.variant import primitives as ids
from boathouse.variant.columns.byte_columns import Ragged, fixed_values
from boathouse.variant.shredding.masks import Sizes, pick

_BY_TYPE = {kind.type: kind for kind in ids.KINDS if kind.type is not None and kind.id != ids.FALSE}


def kind_of(type: DataType) -> ids.Kind:
    """The exact Variant type that a typed column holds."""
    return ids.decimal_kind(type.precision) if isinstance(type, DecimalType) else _BY_TYPE[type]


def plain(array: pa.Array) -> pa.Array:
    """The array below extension and dictionary layers. Raises ArrowIndexError for an index beyond its dictionary."""
    while isinstance(array, pa.ExtensionArray | pa.DictionaryArray):
        array = array.storage if isinstance(array, pa.ExtensionArray) else spread(array)
    return array


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
        bits = pick(mask_of(array), at)
        headers = np.where(bits, np.uint8(ids.TRUE << 2), np.uint8(ids.FALSE << 2))
        return Records(at, headers), None
    if isinstance(type, DecimalType):
        return _encode_decimals(array, type, kind, at)
    values = pick(fixed_values(array, kind.number), at)
    wrong = None
    if isinstance(type, TimeType):
        wrong = (values < 0) | (values >= ids.DAY_MICROS)
    return Records(at, _records(kind.id, None, values)), wrong


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
    array: pa.Array, type: DecimalType, kind: ids.Kind, at: Ints | None
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
    return Records(at, _records(kind.id, type.scale, low.astype(kind.number))), wrong


def beyond(low: Ints, high: Ints, precision: int) -> Mask:
    """Which 128-bit numbers (two's complement, two words) have more than `precision` digits."""
    limit = 10**precision - 1
    top, rest = limit >> 64, np.uint64(limit & (1 << 64) - 1)
    unsigned = low.view("<u8")
    above = (high > top) | ((high == top) & (unsigned > rest))
    negative = -limit
    floor, least = negative >> 64, np.uint64(negative & (1 << 64) - 1)
    return above | (high < floor) | ((high == floor) & (unsigned < least))
