"""Decompression within a budget: a few bytes of a corrupt or hostile file never expand to gigabytes of memory."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Final

from boathouse.errors import CorruptTableError

FLOOR: Final = 64 << 20
"""The size to which any file may inflate, however small it is."""
RATIO: Final = 200
"""How many times its size a larger file may inflate to; metadata reaches 10 to 50 times."""
_STEP: Final = 1 << 20
_RAW, _GZIP = -15, 31


class Budget:
    """The budget of one file of `packed` bytes, for all its blocks together. Errors name `where`.

    Every method raises CorruptTableError for data that does not decompress and for data beyond the budget.
    """

    def __init__(self, packed: int, where: str | None, floor: int = FLOOR) -> None:
        self._limit = self._left = max(floor, RATIO * packed)
        self._packed = packed
        self._where = where

    def take(self, size: int) -> None:
        """Deducts `size` bytes: for codecs that declare their inflated size."""
        if size < 0 or size > self._left:
            raise CorruptTableError(
                f"{self._packed:,} bytes inflate to more than {self._limit:,}, which no sound file does",
                where=self._where,
            )
        self._left -= size

    def deflate(self, data: bytes | memoryview) -> bytes:
        """Raw deflate, as in Avro: one stream; bytes of a zlib checksum may follow, as some writers leave them."""
        found, rest = self._zlib(data, _RAW)
        if len(rest) > 4:
            raise CorruptTableError(f"{len(rest):,} bytes follow the end of the deflate stream", where=self._where)
        return found

    def gzip(self, data: bytes | memoryview) -> bytes:
        """A gzip file: one member or several, zeros may follow."""
        parts: list[bytes] = []
        rest = bytes(data)
        while rest:
            found, rest = self._zlib(rest, _GZIP)
            parts.append(found)
            rest = rest.lstrip(b"\0")
        return b"".join(parts)

    def stream(self, read: Callable[[int], bytes]) -> bytes:
        """Reads to the end: for codecs of other libraries, which raise OSError or ValueError."""
        parts: list[bytes] = []
        while True:
            try:
                part = read(min(_STEP, self._left + 1))
            except (OSError, ValueError) as error:
                raise CorruptTableError(f"the data does not decompress: {error}", where=self._where) from None
            if not part:
                return b"".join(parts)
            self.take(len(part))
            parts.append(part)

    def _zlib(self, data: bytes | memoryview, bits: int) -> tuple[bytes, bytes]:
        machine = zlib.decompressobj(bits)
        parts: list[bytes] = []
        rest: bytes | memoryview = data
        try:
            while not machine.eof:
                part = machine.decompress(rest, min(_STEP, self._left + 1))
                rest = machine.unconsumed_tail
                if not part and not rest and not machine.eof:
                    raise CorruptTableError("the compressed data is cut short", where=self._where)
                self.take(len(part))
                parts.append(part)
        except zlib.error as error:
            raise CorruptTableError(f"the data does not decompress: {error}", where=self._where) from None
        return b"".join(parts), machine.unused_data
