"""Constants of the Variant encoding: basic types, the 21 primitive types, header bytes, limits.

VariantEncoding.md, "Value encoding" and "Encoding types". All integers are little-endian, a UUID big-endian.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

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

# By primitive id: the value of `Variant.type`.
TYPE_NAMES = (
    "null", "boolean", "boolean", "int8", "int16", "int32", "int64", "double", "decimal4", "decimal8", "decimal16",
    "date", "timestamp", "timestamp_ntz", "float", "binary", "string", "time", "timestamp_nanos",
    "timestamp_ntz_nanos", "uuid",
)  # fmt: skip
# By primitive id: bytes after the header; VARIABLE for binary and string, which start with a length of 4 bytes.
VARIABLE = -1
CONTENT_SIZES = (0, 0, 0, 1, 2, 4, 8, 8, 5, 9, 17, 4, 8, 8, 4, VARIABLE, VARIABLE, 8, 8, 8, 16)
PRIMITIVES = len(TYPE_NAMES)

# By primitive id of a decimal: largest precision ("Decimal table").
DECIMAL_DIGITS = {DECIMAL4: 9, DECIMAL8: 18, DECIMAL16: 38}
DECIMAL_LIMITS = {id: 10**digits - 1 for id, digits in DECIMAL_DIGITS.items()}
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
