"""Writes Puffin files of deletion vectors (Puffin specification, "File structure" and "deletion-vector-v1")."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from boathouse.bits.roaring import Bitmap, serialize64
from boathouse.errors import UnsupportedFeatureError
from boathouse.iceberg.deletes.vectors import MAGIC, MOST
from boathouse.iceberg.puffin import MAGIC as FILE_MAGIC
from boathouse.iceberg.puffin import footer

_BLOB: Final = "deletion-vector-v1"
_ROW_POSITION: Final = 2147483645
"""The reserved id of `_pos`: what a vector is computed of."""
_INHERITED: Final = -1


@dataclass(frozen=True, slots=True)
class Blob:
    """Where the vector of a data file is in a Puffin file, and how many rows it deletes."""

    data_file: str
    offset: int
    size: int
    count: int


def vector(bitmap: Bitmap) -> bytes:
    """The blob of a vector: the length of what follows up to the checksum, the magic number, the bitmap, the
    checksum."""
    body = MAGIC + serialize64(bitmap)
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def written(vectors: Sequence[tuple[str, Bitmap]]) -> tuple[bytes, list[Blob]]:
    """A Puffin file with a vector for each of these data files, whose paths are as recorded. Raises
    UnsupportedFeatureError for one that is larger than readers allow."""
    data, blobs = bytearray(FILE_MAGIC), []
    for path, bitmap in vectors:
        blob = vector(bitmap)
        if len(blob) > MOST:
            raise UnsupportedFeatureError(f"a deletion vector of {len(blob)} bytes", where=path)
        blobs.append(Blob(path, len(data), len(blob), len(bitmap)))
        data += blob
    data += footer([_described(blob) for blob in blobs])
    return bytes(data), blobs


def _described(blob: Blob) -> dict[str, Any]:
    """What the footer says of a vector: its snapshot and sequence number are those of the manifest entry."""
    return {
        "type": _BLOB,
        "fields": [_ROW_POSITION],
        "snapshot-id": _INHERITED,
        "sequence-number": _INHERITED,
        "offset": blob.offset,
        "length": blob.size,
        "properties": {"referenced-data-file": blob.data_file, "cardinality": str(blob.count)},
    }
