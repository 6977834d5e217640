"""Sets of rows as indices store them: 32-bit bitmaps of positions, by the upper half of addresses or stable ids.

u32 number of bitmaps; for each a u32 upper half, a u32 length of the bitmap, and the portable roaring bitmap; length 0
stands for every position.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from boathouse.bits.roaring import Bitmap, deserialize32, serialize32
from boathouse.errors import CorruptTableError

_HEAD = struct.Struct("<II")


def decode_rows(data: bytes, where: str) -> Iterator[tuple[int, npt.NDArray[np.int64] | None]]:
    """Upper half and positions, None: every one. Raises CorruptTableError."""
    if len(data) < 4:
        raise CorruptTableError(f"a set of rows of {len(data)} bytes", where=where)
    at = 4
    for _ in range(int.from_bytes(data[:4], "little")):
        if at + _HEAD.size > len(data):
            raise CorruptTableError(f"a set of rows that ends at byte {at}", where=where)
        upper, size = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        if at + size > len(data):
            raise CorruptTableError(f"a set of rows that ends in the bitmap at byte {at}", where=where)
        yield upper, deserialize32(data[at : at + size], where=where).positions() if size else None
        at += size
    if at != len(data):
        raise CorruptTableError(f"{len(data) - at} bytes after a set of rows", where=where)


def encode_rows(ids: npt.NDArray[np.int64]) -> bytes:
    """The set of these addresses or ids, in any order."""
    ascending = np.unique(ids)
    uppers, begins = np.unique(ascending >> 32, return_index=True)
    parts = [struct.pack("<I", len(uppers))]
    for upper, members in zip(uppers.tolist(), np.split(ascending & 0xFFFF_FFFF, begins[1:])):
        body = serialize32(Bitmap(members))
        parts.append(_HEAD.pack(upper, len(body)) + body)
    return b"".join(parts)
