"""Puffin files (Puffin specification, "File structure"): blobs one after the other, and a footer that says what they
are. Written without compression; read with what the specification allows."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from boathouse.bits.library import library_version
from boathouse.errors import CorruptTableError, UnsupportedFeatureError

MAGIC: Final = b"PFA1"
_TAIL: Final = struct.Struct("<I4s4s")
_COMPRESSED: Final = 1
_CODECS: Final = {"lz4": "lz4", "zstd": "zstd"}


@dataclass(frozen=True, slots=True)
class Blob:
    """A blob and what the footer says of it; `fields` are field ids."""

    type: str
    fields: tuple[int, ...]
    snapshot_id: int
    sequence_number: int
    data: bytes
    properties: Mapping[str, str] = field(default_factory=dict)

    def described(self) -> dict[str, Any]:
        """What the footer says of it, without its place, and the table's metadata too."""
        found: dict[str, Any] = {
            "type": self.type,
            "snapshot-id": self.snapshot_id,
            "sequence-number": self.sequence_number,
            "fields": list(self.fields),
        }
        return {**found, "properties": dict(self.properties)} if self.properties else found


def written(blobs: Sequence[Blob]) -> tuple[bytes, int]:
    """A file of these blobs, and the size of its footer."""
    data, described = bytearray(MAGIC), []
    for blob in blobs:
        described.append({**blob.described(), "offset": len(data), "length": len(blob.data)})
        data += blob.data
    end = footer(described)
    return bytes(data) + end, len(end)


def footer(blobs: Sequence[Mapping[str, Any]]) -> bytes:
    """The footer for blobs that are described with their places."""
    found = {"blobs": list(blobs), "properties": {"created-by": f"boathouse {library_version()}"}}
    payload = json.dumps(found).encode()
    return MAGIC + payload + _TAIL.pack(len(payload), bytes(4), MAGIC)


def read(data: bytes, where: str) -> list[Blob]:
    """The blobs of a file, decompressed. Raises CorruptTableError, UnsupportedFeatureError for flags and codecs that
    the specification does not know."""
    blobs = []
    for found in _footer(data, where):
        try:
            start, length = int(found["offset"]), int(found["length"])
            if not (len(MAGIC) <= start and length >= 0 and start + length <= len(data)):
                raise ValueError(f"{length} bytes at {start} are not in the file")
            body = _decompressed(data[start : start + length], found.get("compression-codec"), where)
            numbers = int(found["snapshot-id"]), int(found["sequence-number"])
            fields = tuple(int(id) for id in found["fields"])
            blobs.append(Blob(str(found["type"]), fields, *numbers, body, dict(found.get("properties") or {})))
        except (KeyError, TypeError, ValueError, AttributeError, OSError, pa.ArrowException) as error:
            raise CorruptTableError(f"a blob of the Puffin file is damaged: {error!r}", where=where) from None
    return blobs


def relabelled(data: bytes, change: Callable[[Mapping[str, str]], Mapping[str, str]], where: str) -> bytes:
    """The same blobs at the same places, with other properties. Raises CorruptTableError, UnsupportedFeatureError."""
    blobs = [{**b, "properties": dict(change(b.get("properties") or {}))} for b in _footer(data, where)]
    length = _TAIL.unpack(data[-_TAIL.size :])[0]
    return data[: len(data) - _TAIL.size - length - len(MAGIC)] + footer(blobs)


def _footer(data: bytes, where: str) -> list[Mapping[str, Any]]:
    try:
        if data[:4] != MAGIC or len(data) < 2 * len(MAGIC) + _TAIL.size:
            raise ValueError("it does not begin with PFA1, or is too short")
        length, flags, end = _TAIL.unpack(data[-_TAIL.size :])
        start = len(data) - _TAIL.size - length
        if end != MAGIC or start < 2 * len(MAGIC) or data[start - 4 : start] != MAGIC:
            raise ValueError("there is no footer at its end")
        if flags not in (bytes(4), bytes((_COMPRESSED, 0, 0, 0))):
            raise UnsupportedFeatureError(f"Puffin files with the flags {flags.hex()} are not offered", where=where)
        payload = _decompressed(data[start : start + length], "lz4" if flags[0] else None, where)
        found: list[Mapping[str, Any]] = json.loads(payload)["blobs"]
        return found
    except (KeyError, TypeError, ValueError, OSError, pa.ArrowException) as error:
        raise CorruptTableError(f"the Puffin file is damaged: {error}", where=where) from None


def _decompressed(data: bytes, codec: str | None, where: str) -> bytes:
    if codec is None:
        return data
    if codec not in _CODECS:
        raise UnsupportedFeatureError(f"Puffin blobs compressed by {codec!r} are not offered", where=where)
    with pa.CompressedInputStream(pa.BufferReader(data), _CODECS[codec]) as stream:
        return bytes(stream.read())
