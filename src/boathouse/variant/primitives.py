"""The Variant encoding: basic types, the table of the 21 primitive types, header bytes, limits.

VariantEncoding.md, "Value encoding" and "Encoding types". All integers are little-endian, a UUID big-endian.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from boathouse import types as T
from boathouse.errors import InvalidArgumentError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Size = TypeVar("Size", int, "npt.NDArray[np.int64]")

VERSION = 1
MAX_DEPTH = 1_000  # nested containers; the specification names no limit
MAX_UNSIGNED = 2**32 - 1  # the largest count, id, offset or length

PRIMITIVE, SHORT_STRING, OBJECT, ARRAY = range(4)

(
    NULL, TRUE, FALSE, INT8, INT16, INT32, INT64, DOUBLE, DECIMAL4, DECIMAL8, DECIMAL16, DATE, TIMESTAMP,
    TIMESTAMP_NTZ, FLOAT, BINARY, STRING, TIME, TIMESTAMP_NANOS, TIMESTAMP_NTZ_NANOS, UUID,
) = range(21)  # fmt: skip

# What a primitive type is, whatever its width, its unit and its zone.
Family = Enum("Family", "NULL BOOLEAN INTEGER FLOAT DECIMAL DATE TIME TIMESTAMP BINARY STRING UUID")
VARIABLE = -1


@dataclass(frozen=True)
class Kind:
    """A primitive type: its id, the value of `Variant.type`, and how its content is stored.

    `size` is in bytes after the header, VARIABLE for binary and string, which start with a length of 4 bytes. `number`
    is numpy's type of the content, of a decimal's after its scale. `type` is that of a column that holds exactly these
    values, None for null and for decimals. `digits` is the largest precision of a decimal, and of times how many
    decimal places of a second they count; `utc` marks instants.
    """

    id: int
    name: str
    family: Family
    size: int
    number: str = ""
    type: T.DataType | None = None
    digits: int = 0
    utc: bool = False

    @cached_property
    def limit(self) -> int:
        """The largest unscaled value of a decimal."""
        return 10**self.digits - 1

    @property
    def struct(self) -> str:
        """The module struct's letter for the number, if it has one."""
        return _LETTERS.get(self.number, "")


_LETTERS = {"<i1": "b", "<i2": "h", "<i4": "i", "<i8": "q", "<f4": "f", "<f8": "d"}
KINDS = (
    Kind(NULL, "null", Family.NULL, 0),
    Kind(TRUE, "boolean", Family.BOOLEAN, 0, type=T.BOOLEAN),
    Kind(FALSE, "boolean", Family.BOOLEAN, 0, type=T.BOOLEAN),
    Kind(INT8, "int8", Family.INTEGER, 1, "<i1", T.INT8),
    Kind(INT16, "int16", Family.INTEGER, 2, "<i2", T.INT16),
    Kind(INT32, "int32", Family.INTEGER, 4, "<i4", T.INT32),
    Kind(INT64, "int64", Family.INTEGER, 8, "<i8", T.INT64),
    Kind(DOUBLE, "double", Family.FLOAT, 8, "<f8", T.DOUBLE),
    Kind(DECIMAL4, "decimal4", Family.DECIMAL, 5, "<i4", digits=9),
    Kind(DECIMAL8, "decimal8", Family.DECIMAL, 9, "<i8", digits=18),
    Kind(DECIMAL16, "decimal16", Family.DECIMAL, 17, "V16", digits=38),
    Kind(DATE, "date", Family.DATE, 4, "<i4", T.DATE),
    Kind(TIMESTAMP, "timestamp", Family.TIMESTAMP, 8, "<i8", T.TIMESTAMP, 6, utc=True),
    Kind(TIMESTAMP_NTZ, "timestamp_ntz", Family.TIMESTAMP, 8, "<i8", T.TIMESTAMP_NTZ, 6),
    Kind(FLOAT, "float", Family.FLOAT, 4, "<f4", T.FLOAT),
    Kind(BINARY, "binary", Family.BINARY, VARIABLE, type=T.BINARY),
    Kind(STRING, "string", Family.STRING, VARIABLE, type=T.STRING),
    Kind(TIME, "time", Family.TIME, 8, "<i8", T.TimeType("us"), 6),
    Kind(TIMESTAMP_NANOS, "timestamp_nanos", Family.TIMESTAMP, 8, "<i8", T.TimestampType(True, "ns"), 9, utc=True),
    Kind(TIMESTAMP_NTZ_NANOS, "timestamp_ntz_nanos", Family.TIMESTAMP, 8, "<i8", T.TimestampType(False, "ns"), 9),
    Kind(UUID, "uuid", Family.UUID, 16, "V16", T.UUID),
)
"""By primitive id."""
PRIMITIVES = len(KINDS)

MAX_SCALE = 38
DAY_MICROS = 86_400_000_000  # a time of day is 0 <= t < this
SHORT_STRING_MAX = 63

EMPTY_METADATA = b"\x11\x00\x00"
NULL_VALUE = b"\x00"


def budget(size: Size) -> Size:
    """How many bytes a full reading of a value of `size` bytes may visit: children may be shared, but not to excess.

    Visited are the bytes of every scalar and the header, ids and offsets of every container, each time they are
    reached. Without sharing that sum is at most `size`.
    """
    return 4_096 + 16 * size


def width_of(largest: int) -> int:
    """The fewest bytes (1 to 4) that hold `largest`. Raises InvalidArgumentError beyond 2^32 - 1."""
    if largest > MAX_UNSIGNED:
        raise InvalidArgumentError(f"a variant cannot hold {largest:,} bytes or elements", advice="split the value")
    return 1 if largest < 1 << 8 else 2 if largest < 1 << 16 else 3 if largest < 1 << 24 else 4


def kinds_of(*families: Family) -> tuple[Kind, ...]:
    """The primitive types of these families, by id."""
    return tuple(kind for kind in KINDS if kind.family in families)


DECIMALS = kinds_of(Family.DECIMAL)


def decimal_kind(digits: int) -> Kind:
    """The narrowest decimal that has so many digits, at most 38."""
    return next(kind for kind in DECIMALS if digits <= kind.digits)


def primitive_header(id: int) -> int:
    """The first byte of a primitive."""
    return id << 2


def short_string_header(length: int) -> int:
    """The first byte of a string of at most 63 bytes."""
    return length << 2 | SHORT_STRING


def object_header(large: bool, id_size: int, offset_size: int) -> int:
    """The first byte of an object: is_large bit 4 of the 6, id size bits 2-3, offset size bits 0-1."""
    return (large << 4 | (id_size - 1) << 2 | offset_size - 1) << 2 | OBJECT


def array_header(large: bool, offset_size: int) -> int:
    """The first byte of an array: is_large bit 2 of the 6, offset size bits 0-1."""
    return (large << 2 | offset_size - 1) << 2 | ARRAY


def metadata_header(sorted_strings: bool, offset_size: int) -> int:
    """The first byte of metadata of version 1."""
    return VERSION | sorted_strings << 4 | (offset_size - 1) << 6
