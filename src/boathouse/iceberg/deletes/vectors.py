"""Deletion vectors: blobs `deletion-vector-v1` of Puffin files (Puffin specification; table specification, "Deletion
Vectors").

The table's metadata says where each blob is, so the footer of the Puffin file is not read: files that hold the bare
blob, as some writers made them, are read too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from boathouse.bits.checksum import check_crc32
from boathouse.bits.roaring import Bitmap, deserialize64
from boathouse.errors import CorruptTableError, MissingFileError, NotFoundError
from boathouse.storage import Stores

MAGIC: Final = bytes.fromhex("d1d33964")
_LENGTH: Final = 4
_CHECKSUM: Final = 4
_LEAST: Final = _LENGTH + len(MAGIC) + 8 + _CHECKSUM
"""The size of the blob of an empty bitmap."""
MOST: Final = (1 << 31) - 1
"""The largest blob, whose size readers keep as a 32-bit number."""


@dataclass(frozen=True, slots=True)
class Vector:
    """Where the deletion vector of one data file is; both paths as recorded, `count` is the number of rows in it."""

    data_file: str
    path: str
    offset: int
    size: int
    count: int

    @classmethod
    def of(cls, data_file: Mapping[str, Any]) -> Vector:
        """The vector that an entry of a delete manifest describes. Raises CorruptTableError."""
        path = data_file["file_path"]
        names = ("referenced_data_file", "content_offset", "content_size_in_bytes")
        data, offset, size = (data_file.get(name) for name in names)
        lacking = [name for name, value in zip(names, (data, offset, size)) if value is None]
        if data is None or offset is None or size is None:
            raise CorruptTableError(f"the entry of a deletion vector lacks {', '.join(lacking)}", where=path)
        if offset < 0 or not _LEAST <= size <= MOST:
            raise CorruptTableError(f"a deletion vector cannot be {size} bytes at offset {offset}", where=path)
        return cls(data, path, offset, size, data_file["record_count"])


def load(uri: str, vectors: Sequence[Vector], stores: Stores) -> Iterator[Bitmap]:
    """The vectors of one Puffin file, which are fetched together. Raises CorruptTableError, MissingFileError."""
    storage, key = stores.resolve(uri)
    try:
        blobs = storage.get_ranges(key, [(v.offset, v.size) for v in vectors])
    except NotFoundError:
        raise MissingFileError("a delete file that the table's metadata names is missing", where=uri) from None
    for vector, blob in zip(vectors, blobs, strict=True):
        if len(blob) != vector.size:
            raise CorruptTableError(
                f"the deletion vector at {vector.offset} is truncated: {len(blob)} of {vector.size} bytes", where=uri
            )
        bitmap = parse(blob, uri)
        if len(bitmap) != vector.count:
            raise CorruptTableError(
                f"the deletion vector at {vector.offset} has {len(bitmap)} rows, the metadata records {vector.count}",
                where=uri,
            )
        yield bitmap


def parse(blob: bytes, where: str) -> Bitmap:
    """A blob: the length of what follows up to the checksum, the magic number, a 64-bit bitmap, the checksum. Raises
    CorruptTableError."""
    length = int.from_bytes(blob[:_LENGTH], "big")
    if len(blob) < _LEAST or length != len(blob) - _LENGTH - _CHECKSUM:
        raise CorruptTableError(f"a deletion vector of {len(blob)} bytes says that it has {length}", where=where)
    checked = blob[_LENGTH : _LENGTH + length]
    if checked[: len(MAGIC)] != MAGIC:
        raise CorruptTableError(
            f"a deletion vector begins with {checked[: len(MAGIC)].hex()}, not with {MAGIC.hex()}", where=where
        )
    check_crc32(checked, blob[_LENGTH + length :], where=where)
    return deserialize64(checked[len(MAGIC) :], where=where)
