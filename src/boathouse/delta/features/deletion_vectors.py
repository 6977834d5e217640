"""Deletion vectors: descriptors in the log, roaring bitmaps in files or inline (PROTOCOL.md, "Deletion Vectors")."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from boathouse.bits import z85
from boathouse.bits.checksum import check_crc32
from boathouse.bits.roaring import MAX_CARDINALITY, Bitmap, deserialize32, deserialize64, serialize64
from boathouse.delta import paths
from boathouse.errors import CorruptTableError, MissingFileError, NotFoundError, UnsupportedFeatureError
from boathouse.storage import Stores

PORTABLE: Final = 1681511377
NATIVE: Final = 1681511376
_UUID_CHARS: Final = 20


def file_uri(vector: Mapping[str, Any], root: str) -> str | None:
    """The raw URI of the file that holds the vector; None if it is inline. Raises CorruptTableError."""
    kind, text = vector["storageType"], vector["pathOrInlineDv"]
    if kind == "i":
        return None
    if kind == "p":
        return paths.decode(text, root)
    if kind != "u" or len(text) < _UUID_CHARS:
        raise CorruptTableError(f"a deletion vector has the storage type {kind!r} and path {text!r}", where=root)
    prefix, name = text[:-_UUID_CHARS], text[-_UUID_CHARS:]
    id = uuid.UUID(bytes=z85.decode(name, where=root))
    folder = f"{prefix}/" if prefix else ""
    return f"{root}/{folder}deletion_vector_{id}.bin"


def load_all(vectors: Sequence[Mapping[str, Any] | None], root: str, stores: Stores) -> list[bytes | None]:
    """Each deletion vector as a portable 64-bit roaring bitmap; those of one file are fetched together.

    Raises CorruptTableError if size, checksum or count are wrong, MissingFileError.
    """
    found: list[bytes | None] = [None] * len(vectors)
    by_file: dict[str, list[int]] = {}
    for i, vector in enumerate(vectors):
        if vector is None:
            continue
        where = file_uri(vector, root)
        if where is None:
            data = z85.decode(vector["pathOrInlineDv"], where=root)[: vector["sizeInBytes"]]
            found[i] = _counted(data, vector, root)
        else:
            by_file.setdefault(where, []).append(i)
    for where, rows in by_file.items():
        wanted = [v for i in rows if (v := vectors[i]) is not None]
        for i, vector, data in zip(rows, wanted, _from_file(where, wanted, stores), strict=True):
            found[i] = _counted(data, vector, where)
    return found


def _counted(data: bytes, vector: Mapping[str, Any], where: str) -> bytes:
    bitmap = parse(data, where)
    if vector.get("cardinality") is not None and len(bitmap) != vector["cardinality"]:
        raise CorruptTableError(
            f"the deletion vector has {len(bitmap)} rows, the log records {vector['cardinality']}", where=where
        )
    return serialize64(bitmap)


def _from_file(where: str, vectors: Sequence[Mapping[str, Any]], stores: Stores) -> Iterator[bytes]:
    """The payloads of vectors of one file, each behind its size and before its checksum."""
    storage, key = stores.resolve(where)
    placed = all(v.get("offset") for v in vectors)
    # One byte more where the descriptor lacks the offset, as the version byte comes first; nothing beyond the end of
    # the file otherwise, which stores answer one by one.
    wanted = [(v.get("offset") or 0, v["sizeInBytes"] + (8 if v.get("offset") else 9)) for v in vectors]
    try:
        parts = storage.get_ranges(key, [(0, 1), *wanted] if placed else wanted)
    except NotFoundError as error:
        raise MissingFileError("the deletion vector file is missing", where=where) from error
    if placed and (version := parts.pop(0)) != b"\x01":
        raise CorruptTableError(f"a file of deletion vectors has version {version.hex() or 'none'}, not 1", where=where)
    for vector, found in zip(vectors, parts, strict=True):
        size, offset = vector["sizeInBytes"], vector.get("offset") or 0
        if vector.get("offset") is None and found[:1] == b"\x01" and _size_of(found) != size:
            found = found[1:]
        found = found[: size + 8]
        if len(found) != size + 8:
            raise CorruptTableError(
                f"the deletion vector at {offset} is truncated: {len(found)} of {size + 8} bytes", where=where
            )
        if _size_of(found) != size:
            raise CorruptTableError(
                f"the deletion vector at {offset} has {_size_of(found)} bytes, the log records {size}", where=where
            )
        data = found[4 : 4 + size]
        check_crc32(data, found[4 + size :], where=where)
        yield data


def _size_of(data: bytes) -> int:
    return int(struct.unpack(">i", data[:4])[0]) if len(data) >= 4 else -1


def parse(data: bytes, where: str) -> Bitmap:
    """A vector's payload: the portable form, or the older native one. Raises CorruptTableError."""
    if len(data) < 4:
        raise CorruptTableError("a deletion vector has no magic number", where=where)
    little, big = (struct.unpack(order, data[:4])[0] for order in ("<I", ">I"))
    if little == PORTABLE:
        return deserialize64(data[4:], where=where)
    if NATIVE in (little, big):
        return _native(data[4:], "<" if little == NATIVE else ">", where)
    raise CorruptTableError(
        f"a deletion vector begins with {data[:4].hex()}, which is not one of Delta's magic numbers", where=where
    )


def _native(data: bytes, order: str, where: str) -> Bitmap:
    """The count of bitmaps, then each preceded by its size; the n-th holds the rows from n * 2**32 on.

    The protocol's own example of an inline vector has these numbers big-endian, the bitmaps as ever.
    """
    try:
        (count,) = struct.unpack_from(f"{order}i", data)
        at, positions, rows = 4, [], 0
        for high in range(count):
            (size,) = struct.unpack_from(f"{order}I", data, at)
            if at + 4 + size > len(data):
                raise CorruptTableError("a deletion vector in the native form is truncated", where=where)
            bitmap = deserialize32(data[at + 4 : at + 4 + size], where=where)
            positions.append(bitmap.positions() + (high << 32))
            if (rows := rows + len(bitmap)) > MAX_CARDINALITY:
                raise UnsupportedFeatureError(f"a deletion vector of more than {MAX_CARDINALITY:,} rows", where=where)
            at += 4 + size
    except struct.error as error:
        raise CorruptTableError(f"a deletion vector in the native form is truncated: {error}", where=where) from error
    return Bitmap.of(np.concatenate(positions) if positions else ())
