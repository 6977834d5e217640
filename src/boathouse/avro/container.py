"""Reads and writes Avro object container files as Iceberg uses them: fields are found by field id, values stay raw.

Logical types are ignored in decoding, so that dates and timestamps are plain integers (no calendar limits, no
conversion) and decimals bytes.
"""

from __future__ import annotations

import io
import json
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from boathouse.avro.codec import read_long, reader, write_long, writer
from boathouse.avro.schema import Schema, by_ids, least
from boathouse.bits import system
from boathouse.bits.inflate import Budget
from boathouse.bits.text import json_value, text
from boathouse.errors import CorruptTableError, UnsupportedFeatureError

__all__ = [
    "Container", "Header", "by_ids", "container", "decoding", "header", "long_bytes", "parse", "payload", "payloads",
    "records", "write",
]  # fmt: skip
MAGIC: Final = b"Obj\x01"
CODECS: Final = ("null", "deflate", "snappy", "zstandard")
_ENCRYPTED: Final = b"AGS1"
_CHUNK: Final = 10_000
_BLOCK: Final = 64_000
_DEFLATE: Final = 4
"""Manifests take half the time of level 6, and are not larger."""
"""The size of a block that is written: records of different blocks can be decoded together."""


@dataclass(frozen=True, slots=True)
class Container:
    """A parsed container: its key-value metadata, its blocks still compressed as (count, payload)."""

    metadata: Mapping[str, bytes]
    blocks: tuple[tuple[int, memoryview], ...]
    where: str
    codec: str

    @property
    def schema(self) -> Schema:
        if "avro.schema" not in self.metadata:
            raise CorruptTableError("the Avro file has no schema", where=self.where)
        return json_value(self.metadata["avro.schema"], self.where, "the Avro schema")

    def text(self, key: str) -> str | None:
        value = self.metadata.get(key)
        return None if value is None else text(value, self.where, f"the Avro file's {key}")


@dataclass(frozen=True, slots=True)
class Header:
    """The beginning of a container: its metadata, the marker after each block, and its own size."""

    metadata: Mapping[str, bytes]
    sync: bytes
    codec: str
    size: int


def header(data: bytes, where: str) -> Header:
    """The header at the beginning of `data`. Raises IndexError if it is not whole, CorruptTableError, and
    UnsupportedFeatureError naming a codec."""
    if data[:4] != MAGIC:
        if data[:4] == _ENCRYPTED:
            raise UnsupportedFeatureError("Iceberg table encryption is not offered", where=where)
        raise CorruptTableError("this is not an Avro file", where=where)
    metadata, at = _metadata(data, 4, where)
    sync = data[at : at + 16]
    if len(sync) < 16:
        raise IndexError(at)
    codec = text(metadata.get("avro.codec", b"null"), where, "the name of the Avro codec")
    if codec not in CODECS:
        raise UnsupportedFeatureError(f"Avro codec {codec!r:.80} is not offered", where=where)
    return Header(metadata, sync, codec, at + 16)


def parse(data: bytes, where: str) -> Container:
    """Splits a container file. Raises CorruptTableError, and UnsupportedFeatureError naming a codec."""
    view = memoryview(data)
    try:
        found = header(data, where)
        at = found.size
        blocks: list[tuple[int, memoryview]] = []
        while at < len(view):
            count, at = read_long(data, at)
            size, at = read_long(data, at)
            if count < 0 or size < 0 or bytes(view[at + size : at + size + 16]) != found.sync:
                raise CorruptTableError(f"the Avro block at byte {at} does not end with the sync marker", where=where)
            blocks.append((count, view[at : at + size]))
            at += size + 16
    except IndexError:
        raise CorruptTableError("the Avro file is truncated, or its header is corrupt", where=where) from None
    return Container(found.metadata, tuple(blocks), where, found.codec)


def _metadata(view: bytes, at: int, where: str) -> tuple[dict[str, bytes], int]:
    found: dict[str, bytes] = {}
    while True:
        count, at = read_long(view, at)
        if count == 0:
            return found, at
        if count < 0:
            count = -count
            _, at = read_long(view, at)
        for _ in range(count):
            key, at = _bytes(view, at)
            value, at = _bytes(view, at)
            found[text(key, where, "a key of the Avro file's metadata")] = value


def _bytes(view: bytes, at: int) -> tuple[bytes, int]:
    size, at = read_long(view, at)
    if size < 0 or at + size > len(view):
        raise IndexError(at)
    return bytes(view[at : at + size]), at + size


def long_bytes(value: int) -> bytes:
    """A zigzag varint."""
    out = bytearray()
    write_long(value, out)
    return bytes(out)


def _inflated(codec: str, block: memoryview, budget: Budget, where: str) -> bytes:
    match codec:
        case "deflate":
            return budget.deflate(block)
        case "snappy":
            return _snappy(block, budget, where)
        case "zstandard":
            return budget.stream(pa.input_stream(pa.py_buffer(block), compression="zstd").read)
    return bytes(block)


def _snappy(block: memoryview, budget: Budget, where: str) -> bytes:
    """A snappy block, followed by the checksum of its content."""
    try:
        size, _ = read_long(bytes(block[:10]), 0, signed=False)
        budget.take(size)
        data = bytes(pa.decompress(bytes(block[:-4]), size, codec="snappy", asbytes=True))
    except (OSError, ValueError, IndexError) as error:
        if isinstance(error, CorruptTableError):
            raise
        raise CorruptTableError(f"an Avro block does not decompress: {error}", where=where) from None
    if zlib.crc32(data) != int.from_bytes(block[-4:], "big"):
        raise CorruptTableError("an Avro block does not have the checksum that follows it", where=where)
    return data


def records(
    container: Container, schema: Schema, unwanted: frozenset[str] = frozenset()
) -> Iterator[list[dict[str, Any]]]:
    """The records, some thousands at a time. `schema` is `by_ids(...)` of the file's; the fields in `unwanted` are
    skipped."""
    where = container.where
    if not isinstance(schema, dict) or schema["type"] != "record":
        raise CorruptTableError("the Avro file does not contain records", where=where)
    read = reader(schema, unwanted)
    for count, data in payloads(container, schema):
        at = 0
        for start in range(0, count, _CHUNK):
            found: list[dict[str, Any]] = []
            with decoding(where):
                for _ in range(min(_CHUNK, count - start)):
                    record, at = read(data, at)
                    found.append(record)
            yield found
        if at != len(data):
            raise CorruptTableError(f"an Avro block is {len(data) - at} bytes too long", where=where)


def payloads(container: Container, schema: Schema) -> Iterator[tuple[int, bytes]]:
    """The decompressed blocks, and how many records of the schema each has. Raises CorruptTableError."""
    where = container.where
    smallest = least(schema)
    budget = Budget(sum(len(block) for _, block in container.blocks), where)
    for count, block in container.blocks:
        yield count, payload(container.codec, count, block, smallest, budget, where)


def payload(codec: str, count: int, block: memoryview, smallest: int, budget: Budget, where: str) -> bytes:
    """A decompressed block of `count` records, of which each takes at least `smallest` bytes."""
    data = _inflated(codec, block, budget, where)
    if count and count * max(smallest, 1) > len(data):
        raise CorruptTableError(f"an Avro block of {len(data):,} bytes claims {count:,} records", where=where)
    return data


@contextmanager
def decoding(where: str) -> Iterator[None]:
    """Names the file in the errors of a decoder."""
    try:
        yield
    except UnicodeDecodeError:
        raise CorruptTableError("an Avro block has a string that is not UTF-8", where=where) from None
    except (IndexError, struct.error, TypeError) as error:
        raise CorruptTableError(f"an Avro block cannot be decoded: {error}", where=where) from None


def write(schema: Schema, rows: Sequence[Mapping[str, Any]], metadata: Mapping[str, str], codec: str) -> bytes:
    """A container file; `rows` have raw values under the names of `schema`."""
    return container(schema, _blocks(schema, rows), metadata, codec)


def _blocks(schema: Schema, rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, bytes]]:
    encode = writer(schema)
    block, count = bytearray(), 0
    for i, row in enumerate(rows, 1):
        encode(row, block)
        count += 1
        if len(block) >= _BLOCK or i == len(rows):
            yield count, bytes(block)
            block, count = bytearray(), 0


def container(schema: Schema, blocks: Iterable[tuple[int, bytes]], metadata: Mapping[str, str], codec: str) -> bytes:
    """A container file of these blocks of encoded records, each with its number of them. `codec`: null, deflate or
    zstandard."""
    head, sync = opening(schema, metadata, codec)
    return b"".join((head, *(stored_block(count, block, codec, sync) for count, block in blocks)))


def opening(schema: Schema, metadata: Mapping[str, str], codec: str) -> tuple[bytes, bytes]:
    """The header of a file, and the marker after each of its blocks."""
    out = io.BytesIO()
    out.write(MAGIC)
    entries = {"avro.schema": json.dumps(schema), "avro.codec": codec, **metadata}
    out.write(long_bytes(len(entries)))
    for key, value in entries.items():
        for part in (key.encode(), value.encode()):
            out.write(long_bytes(len(part)) + part)
    out.write(b"\x00")
    sync = system.current().uuid4().bytes
    out.write(sync)
    return out.getvalue(), sync


def stored_block(count: int, data: bytes, codec: str, sync: bytes, level: int | None = None) -> bytes:
    """A block of so many records, as a file with this codec and marker has it."""
    body = _compress(data, codec, level)
    return b"".join((long_bytes(count), long_bytes(len(body)), body, sync))


def _compress(data: bytes, codec: str, level: int | None) -> bytes:
    match codec:
        case "null":
            return data
        case "deflate":
            squeeze = zlib.compressobj(_DEFLATE if level is None else level, zlib.DEFLATED, -15)
            return squeeze.compress(data) + squeeze.flush()
        case "snappy":
            return bytes(pa.compress(data, codec="snappy", asbytes=True)) + zlib.crc32(data).to_bytes(4, "big")
        case "zstandard":
            return bytes(pa.Codec("zstd", compression_level=level).compress(data, asbytes=True))
    raise UnsupportedFeatureError(f"Avro codec {codec} is not offered")
