"""CRC-32 (IEEE 802.3, as in zlib), which Delta and Puffin store after a deletion vector, big-endian."""

from __future__ import annotations

import zlib

from boathouse.errors import CorruptTableError


def crc32(data: bytes | bytearray | memoryview) -> int:
    """The unsigned 32-bit checksum of `data`."""
    return zlib.crc32(data) & 0xFFFFFFFF


def crc32_bytes(data: bytes | bytearray | memoryview) -> bytes:
    """The checksum as the 4 big-endian bytes that follow a deletion vector."""
    return crc32(data).to_bytes(4, "big")


def check_crc32(data: bytes | bytearray | memoryview, stored: bytes, *, where: str | None = None) -> None:
    """Raises CorruptTableError unless `stored` is the big-endian checksum of `data`."""
    found = crc32_bytes(data)
    if bytes(stored) != found:
        raise CorruptTableError(
            f"the checksum is {found.hex()}, but the file contains {bytes(stored).hex()}", where=where
        )
