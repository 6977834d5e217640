"""Reads single fields of flatbuffers: tables whose fields are found by number, through a table of offsets.

Positions are bytes from the start of the data. Data that is cut short raises struct.error.
"""

from __future__ import annotations

import struct
from typing import Final

_I32: Final = struct.Struct("<i")
_U32: Final = struct.Struct("<I")
_U16: Final = struct.Struct("<H")


def root(data: bytes) -> int:
    """The position of the outermost table."""
    return target(data, 0)


def target(data: bytes, at: int) -> int:
    """The position to which the reference at `at` leads: a table, or the number of elements before a vector."""
    (offset,) = _U32.unpack_from(data, at)
    return at + int(offset)


def field(data: bytes, table: int, number: int) -> int | None:
    """The position of a field of a table; None if it is absent."""
    (back,) = _I32.unpack_from(data, table)
    offsets = table - back
    if offsets < 0:
        raise struct.error(f"a table of offsets at byte {offsets}")
    (size,) = _U16.unpack_from(data, offsets)
    if 4 + 2 * number >= size:
        return None
    (offset,) = _U16.unpack_from(data, offsets + 4 + 2 * number)
    return table + int(offset) if offset else None


def structs(data: bytes, vector: int, layout: struct.Struct) -> list[tuple[int, ...]]:
    """The elements of a vector of structs of numbers."""
    (count,) = _U32.unpack_from(data, vector)
    end = vector + 4 + int(count) * layout.size
    if end > len(data):
        raise struct.error(f"a vector of {count} elements that ends at byte {end} of {len(data)}")
    return [*layout.iter_unpack(data[vector + 4 : end])]
