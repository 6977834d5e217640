"""Avro object container files as Iceberg uses them: fields are found by field id, values stay raw.

Logical types are left out while decoding, so that dates and timestamps are plain integers (no calendar limits,
no conversion) and decimals bytes.
"""

from __future__ import annotations

import io
import json
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from boathouse.bits import entropy
from boathouse.errors import CorruptTableError, UnsupportedFeatureError
from boathouse.iceberg.avro_codec import read_long, reader, write_long, writer

MAGIC: Final = b"Obj\x01"
_PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
Schema = Any


@dataclass(frozen=True, slots=True)
class Container:
    """A parsed container: its key-value metadata, its blocks still compressed as (count, payload)."""

    metadata: Mapping[str, bytes]
    blocks: tuple[tuple[int, memoryview], ...]
    where: str

    @property
    def schema(self) -> Schema:
        try:
            return json.loads(self.metadata["avro.schema"])
        except (KeyError, ValueError) as error:
            raise CorruptTableError(f"the Avro schema cannot be read: {error}", where=self.where) from None

    def text(self, key: str) -> str | None:
        value = self.metadata.get(key)
        return None if value is None else value.decode("utf-8", "replace")


def parse(data: bytes, where: str) -> Container:
    """Splits a container file. Raises CorruptTableError."""
    view = memoryview(data)
    if bytes(view[:4]) != MAGIC:
        raise CorruptTableError("this is no Avro file", where=where)
    try:
        metadata, at = _metadata(data, 4)
        sync, at = bytes(view[at : at + 16]), at + 16
        blocks: list[tuple[int, memoryview]] = []
        while at < len(view):
            count, at = read_long(data, at)
            size, at = read_long(data, at)
            if count < 0 or size < 0 or bytes(view[at + size : at + size + 16]) != sync:
                raise CorruptTableError(f"the Avro block at byte {at} does not end where it says", where=where)
            blocks.append((count, view[at : at + size]))
            at += size + 16
    except (IndexError, UnicodeDecodeError):
        raise CorruptTableError("the Avro file is cut short, or its header is damaged", where=where) from None
    return Container(metadata, tuple(blocks), where)


def _metadata(view: bytes, at: int) -> tuple[dict[str, bytes], int]:
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
            found[key.decode()] = value


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


def payload(container: Container, block: memoryview) -> bytes:
    """A block decompressed."""
    codec = container.text("avro.codec") or "null"
    try:
        match codec:
            case "null":
                return bytes(block)
            case "deflate":
                return zlib.decompress(block, -15)
            case "snappy":
                return _snappy(block[:-4])
            case "zstandard":
                return bytes(pa.input_stream(pa.py_buffer(block), compression="zstd").read())
    except (zlib.error, OSError, ValueError, IndexError) as error:
        raise CorruptTableError(f"an Avro block does not decompress: {error}", where=container.where) from None
    raise UnsupportedFeatureError(f"Avro codec {codec} is not offered", where=container.where)


def _snappy(block: memoryview) -> bytes:
    size = shift = at = 0
    while True:
        byte = block[at]
        at += 1
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    return bytes(pa.decompress(bytes(block), size, codec="snappy", asbytes=True))


def records(
    container: Container, schema: Schema, unwanted: frozenset[str] = frozenset()
) -> Iterator[list[dict[str, Any]]]:
    """The records of each block. `schema` is `by_ids(...)` of the file's; fields called `unwanted` are passed over."""
    try:
        read = reader(schema, unwanted)
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptTableError(f"the Avro schema cannot be read: {error!r}", where=container.where) from None
    for count, block in container.blocks:
        data = payload(container, block)
        found: list[dict[str, Any]] = []
        at = 0
        try:
            for _ in range(count):
                record, at = read(data, at)
                found.append(record)
        except (IndexError, UnicodeDecodeError, struct.error) as error:
            raise CorruptTableError(f"an Avro block cannot be decoded: {error}", where=container.where) from None
        if at != len(data):
            raise CorruptTableError(f"an Avro block is {len(data) - at} bytes too long", where=container.where)
        yield found


def by_ids(schema: Schema, names: Mapping[int, str], where: str) -> Schema:
    """The schema with fields called by id: `names` of the ids, `f<id>` for others, and logical types left out.

    Fields without an id keep their name. Named types get names of their own, references are written out.
    """
    try:
        return _Renamer(names, where).type(schema)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise CorruptTableError(f"the Avro schema cannot be read: {error!r}", where=where) from None


class _Renamer:
    def __init__(self, names: Mapping[int, str], where: str) -> None:
        self.names = names
        self.where = where
        self.defined: dict[str, Schema] = {}
        self.count = 0

    def type(self, schema: Schema) -> Schema:
        if isinstance(schema, str):
            if schema in _PRIMITIVES:
                return schema
            if schema not in self.defined:
                raise CorruptTableError(f"the Avro schema names {schema!r}, which it does not define", where=self.where)
            return self.type(self.defined[schema])
        if isinstance(schema, list):
            return [self.type(s) for s in schema]
        kind = schema["type"]
        match kind:
            case "record":
                self._define(schema)
                return {"type": "record", "name": self._name(), "fields": [self._field(f) for f in schema["fields"]]}
            case "array":
                return {"type": "array", "items": self.type(schema["items"])}
            case "map":
                return {"type": "map", "values": self.type(schema["values"])}
            case "fixed":
                self._define(schema)
                return {"type": "fixed", "name": self._name(), "size": schema["size"]}
            case "enum":
                self._define(schema)
                return {"type": "enum", "name": self._name(), "symbols": schema["symbols"]}
        return self.type(kind)

    def _field(self, field: Mapping[str, Any]) -> dict[str, Any]:
        id = field.get("field-id")
        name = field["name"] if id is None else self.names.get(int(id), f"f{id}")
        return {"name": name, "type": self.type(field["type"])}

    def _define(self, schema: Mapping[str, Any]) -> None:
        self.defined[schema["name"]] = schema
        if schema.get("namespace"):
            self.defined[f"{schema['namespace']}.{schema['name']}"] = schema

    def _name(self) -> str:
        self.count += 1
        return f"n{self.count}"


def write(schema: Schema, rows: Sequence[Mapping[str, Any]], metadata: Mapping[str, str], codec: str) -> bytes:
    """A container file; `rows` hold raw values under the names of `schema`. `codec`: null, deflate or zstandard."""
    out = io.BytesIO()
    out.write(MAGIC)
    entries = {"avro.schema": json.dumps(schema), "avro.codec": codec, **metadata}
    out.write(long_bytes(len(entries)))
    for key, value in entries.items():
        for part in (key.encode(), value.encode()):
            out.write(long_bytes(len(part)) + part)
    out.write(b"\x00")
    sync = entropy.current().uuid4().bytes
    out.write(sync)
    encode = writer(schema)
    for start in range(0, len(rows), 4000):
        chunk = rows[start : start + 4000]
        block = bytearray()
        for row in chunk:
            encode(row, block)
        body = _compress(bytes(block), codec)
        out.write(long_bytes(len(chunk)) + long_bytes(len(body)) + body + sync)
    return out.getvalue()


def _compress(data: bytes, codec: str) -> bytes:
    match codec:
        case "null":
            return data
        case "deflate":
            squeeze = zlib.compressobj(6, zlib.DEFLATED, -15)
            return squeeze.compress(data) + squeeze.flush()
        case "zstandard":
            sink = pa.BufferOutputStream()
            with pa.CompressedOutputStream(sink, "zstd") as stream:
                stream.write(data)
            return bytes(sink.getvalue().to_pybytes())
    raise UnsupportedFeatureError(f"Avro codec {codec} is not offered")
