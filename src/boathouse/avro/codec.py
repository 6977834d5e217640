"""Avro's binary encoding as functions generated for one schema: what manifests need, faster than a general decoder.

Values are raw: int, float, bool, str, bytes, dict (record), list (array). An array of (key, value) records, which
is how Iceberg writes maps, is a dict.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from boathouse.errors import CorruptTableError

Schema = Any
Read = Callable[[bytes, int], tuple[Any, int]]
"""(data, place) -> (value, the place after it). IndexError, UnicodeDecodeError or struct.error for corrupt data."""
Skip = Callable[[bytes, int], int]
Write = Callable[[Any, bytearray], None]
_DOUBLE = struct.Struct("<d")
_FLOAT = struct.Struct("<f")


def read_long(data: bytes, at: int, signed: bool = True) -> tuple[int, int]:
    """A varint of at most ten bytes, zigzag if it is signed: 64 bits, or more if the data is corrupt."""
    byte = data[at]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1) if signed else byte, at + 1
    value = byte & 0x7F
    shift = 7
    while True:
        at += 1
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1) if signed else value, at + 1
        if shift == 63:
            raise IndexError(at)
        shift += 7


def write_long(value: int, out: bytearray) -> None:
    n = (value << 1) ^ (value >> 63)
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)


def _read_bytes(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = read_long(data, at)
    if size < 0 or at + size > len(data):
        raise IndexError(at)
    return data[at : at + size], at + size


def _read_string(data: bytes, at: int) -> tuple[str, int]:
    size, at = read_long(data, at)
    if size < 0 or at + size > len(data):
        raise IndexError(at)
    return data[at : at + size].decode(), at + size


def _read_boolean(data: bytes, at: int) -> tuple[bool, int]:
    return data[at] != 0, at + 1


def _read_null(data: bytes, at: int) -> tuple[None, int]:
    return None, at


def _read_float(data: bytes, at: int) -> tuple[float, int]:
    return _FLOAT.unpack_from(data, at)[0], at + 4


def _read_double(data: bytes, at: int) -> tuple[float, int]:
    return _DOUBLE.unpack_from(data, at)[0], at + 8


_READ: dict[str, Read] = {
    "null": _read_null, "boolean": _read_boolean, "int": read_long, "long": read_long, "float": _read_float,
    "double": _read_double, "bytes": _read_bytes, "string": _read_string,
}  # fmt: skip


def reader(schema: Schema, unwanted: frozenset[str] = frozenset()) -> Read:
    """The decoder of one value of the schema; record fields in `unwanted` are skipped and None."""
    if isinstance(schema, str):
        return _READ[schema]
    if isinstance(schema, list):
        return _union_reader([reader(s, unwanted) for s in schema], schema)
    match schema["type"]:
        case "record":
            fields = [
                (f["name"], _forgetful(f["type"]) if f["name"] in unwanted else reader(f["type"], unwanted))
                for f in schema["fields"]
            ]
            return _record_reader(fields)
        case "array":
            return _array_reader(schema["items"], unwanted)
        case "map":
            pair = {"type": "record", "fields": [{"name": "key", "type": "string"}, _value(schema["values"])]}
            return _array_reader(pair, unwanted)
        case "fixed":
            return _fixed_reader(int(schema["size"]))
        case "enum":
            return _enum_reader(schema["symbols"])
    raise CorruptTableError(f"{schema['type']!r} is not an Avro type")


def _value(type: Schema) -> Mapping[str, Schema]:
    return {"name": "value", "type": type}


def _union_reader(branches: list[Read], schema: Schema) -> Read:
    if len(branches) == 2 and "null" in schema:
        null_at = schema.index("null")
        null_tag, tag, inner = null_at * 2, (1 - null_at) * 2, branches[1 - null_at]

        def optional(data: bytes, at: int) -> tuple[Any, int]:
            found = data[at]
            if found == null_tag:
                return None, at + 1
            if found != tag:
                raise IndexError(at)
            return inner(data, at + 1)

        return optional

    def union(data: bytes, at: int) -> tuple[Any, int]:
        index, at = read_long(data, at)
        if index < 0:
            raise IndexError(at)
        return branches[index](data, at)

    return union


def _record_reader(fields: list[tuple[str, Read]]) -> Read:
    def record(data: bytes, at: int) -> tuple[dict[str, Any], int]:
        found = {}
        for name, read in fields:
            found[name], at = read(data, at)
        return found, at

    return record


def _fixed_reader(size: int) -> Read:
    def fixed(data: bytes, at: int) -> tuple[bytes, int]:
        if at + size > len(data):
            raise IndexError(at)
        return data[at : at + size], at + size

    return fixed


def _enum_reader(symbols: list[str]) -> Read:
    def enum(data: bytes, at: int) -> tuple[str, int]:
        index, at = read_long(data, at)
        if index < 0:
            raise IndexError(at)
        return symbols[index], at

    return enum


def is_pair(schema: Schema) -> bool:
    """Whether a record schema is an entry of a map, its two fields in any order."""
    return (
        isinstance(schema, dict)
        and schema["type"] == "record"
        and sorted(f["name"] for f in schema["fields"]) == ["key", "value"]
    )


def _array_reader(items: Schema, unwanted: frozenset[str]) -> Read:
    if is_pair(items) and items["fields"][0]["name"] == "key":
        key, value = (reader(f["type"]) for f in items["fields"])
        return _pairs_reader(key, value)
    read = reader(items, unwanted)
    branches = items if isinstance(items, list) else [items]
    pairs = any(is_pair(b) for b in branches)

    def array(data: bytes, at: int) -> tuple[Any, int]:
        found: list[Any] = []
        while True:
            count, at = _block(data, at)
            if count == 0:
                return ({p["key"]: p["value"] for p in found if p is not None} if pairs else found), at
            for _ in range(count):
                item, at = read(data, at)
                found.append(item)

    return array


def _pairs_reader(key: Read, value: Read) -> Read:
    def pairs(data: bytes, at: int) -> tuple[dict[Any, Any], int]:
        found: dict[Any, Any] = {}
        while True:
            count, at = _block(data, at)
            if count == 0:
                return found, at
            for _ in range(count):
                k, at = key(data, at)
                found[k], at = value(data, at)

    return pairs


def _block(data: bytes, at: int) -> tuple[int, int]:
    """How many items follow, each of at least one byte; a negative count is followed by the block's size in bytes."""
    count, at = read_long(data, at)
    if count < 0:
        count = -count
        _, at = read_long(data, at)
    if count > len(data) - at:
        raise IndexError(at)
    return count, at


def _forgetful(schema: Schema) -> Read:
    skip = skipper(schema)
    return lambda data, at: (None, skip(data, at))


def skipper(schema: Schema) -> Skip:
    """Moves over one value of the schema; over maps, which are most of a manifest, in one step."""
    if isinstance(schema, str):
        return _SKIP[schema]
    if isinstance(schema, list):
        return _union_skipper([skipper(s) for s in schema])
    match schema["type"]:
        case "record":
            return _record_skipper([skipper(f["type"]) for f in schema["fields"]])
        case "array":
            return _array_skipper(schema["items"])
        case "map":
            fields = [{"name": "key", "type": "string"}, _value(schema["values"])]
            return _array_skipper({"type": "record", "fields": fields})
        case "fixed":
            size = int(schema["size"])
            return lambda data, at: at + size
    return _skip_long


def _skip_long(data: bytes, at: int) -> int:
    if data[at] < 0x80:
        return at + 1
    return read_long(data, at)[1]


def _skip_bytes(data: bytes, at: int) -> int:
    size, at = read_long(data, at)
    if size < 0 or at + size > len(data):
        raise IndexError(at)
    return at + size


_SKIP: dict[str, Skip] = {
    "null": lambda data, at: at, "boolean": lambda data, at: at + 1, "int": _skip_long, "long": _skip_long,
    "float": lambda data, at: at + 4, "double": lambda data, at: at + 8, "bytes": _skip_bytes, "string": _skip_bytes,
}  # fmt: skip


def _union_skipper(branches: list[Skip]) -> Skip:
    def union(data: bytes, at: int) -> int:
        index, at = read_long(data, at)
        if index < 0:
            raise IndexError(at)
        return branches[index](data, at)

    return union


def _record_skipper(fields: list[Skip]) -> Skip:
    def record(data: bytes, at: int) -> int:
        for skip in fields:
            at = skip(data, at)
        return at

    return record


def _array_skipper(items: Schema) -> Skip:
    types = [f["type"] for f in items["fields"]] if is_pair(items) else [items]
    pattern = _pattern(tuple(types)) if all(isinstance(t, str) and t in _SHORT for t in types) else None
    each = skipper(items)

    def array(data: bytes, at: int) -> int:
        while True:
            count, at = _block(data, at)
            if count == 0:
                return at
            found = None if pattern is None else _repeated(pattern, count).match(data, at)
            if found is not None:
                at = found.end()
                continue
            for _ in range(count):
                at = each(data, at)

    return array


_NUMBER = rb"[\x80-\xff]{0,9}+[\x00-\x7f]"
_SHORT_BYTES = b"(?:%s)" % b"|".join(rb"\x%02x[\x00-\xff]{%d}" % (2 * n, n) for n in range(64))
_SHORT = {"int": _NUMBER, "long": _NUMBER, "bytes": _SHORT_BYTES, "string": _SHORT_BYTES}
"""Patterns of values; those of strings match up to 63 bytes, whose length is one byte."""


def _pattern(types: tuple[str, ...]) -> bytes:
    return b"".join(_SHORT[t] for t in types)


@lru_cache(maxsize=512)
def _repeated(pattern: bytes, count: int) -> re.Pattern[bytes]:
    return re.compile(b"(?:%s){%d}" % (pattern, count))


def writer(schema: Schema) -> Write:
    """The encoder of one value of the schema."""
    if isinstance(schema, str):
        return _WRITE[schema]
    if isinstance(schema, list):
        return _optional_writer(schema)
    match schema["type"]:
        case "record":
            fields = [(f["name"], writer(f["type"]), isinstance(f["type"], list)) for f in schema["fields"]]
            return lambda value, out: _write_record(fields, value, out)
        case "array":
            item = writer(schema["items"])
            pairs = is_pair(schema["items"])
            return lambda value, out: _write_array(item, _as_pairs(value) if pairs else value, out)
        case "map":
            pair = writer({"type": "record", "fields": [{"name": "key", "type": "string"}, _value(schema["values"])]})
            return lambda value, out: _write_array(pair, _as_pairs(value), out)
        case "fixed":
            return _fixed_writer(int(schema["size"]))
    return writer(schema["type"])


def _fixed_writer(size: int) -> Write:
    def fixed(value: bytes, out: bytearray) -> None:
        if len(value) != size:
            raise ValueError(f"{len(value)} bytes are given for a fixed of {size}")
        out.extend(value)

    return fixed


def _as_pairs(value: Mapping[Any, Any]) -> list[dict[str, Any]]:
    return [{"key": k, "value": v} for k, v in value.items()]


def _write_record(fields: list[tuple[str, Write, bool]], value: Mapping[str, Any], out: bytearray) -> None:
    for name, write, optional in fields:
        write(value.get(name) if optional else value[name], out)


def _write_array(item: Write, values: list[Any], out: bytearray) -> None:
    if values:
        write_long(len(values), out)
        for value in values:
            item(value, out)
    out.append(0)


def _optional_writer(schema: Schema) -> Write:
    inner = writer(next(s for s in schema if s != "null"))
    null, there = (0, 2) if schema[0] == "null" else (2, 0)

    def optional(value: Any, out: bytearray) -> None:
        if value is None:
            out.append(null)
        else:
            out.append(there)
            inner(value, out)

    return optional


def _write_bytes(value: bytes, out: bytearray) -> None:
    write_long(len(value), out)
    out.extend(value)


_WRITE: dict[str, Write] = {
    "boolean": lambda value, out: out.append(1 if value else 0),
    "int": write_long,
    "long": write_long,
    "float": lambda value, out: out.extend(_FLOAT.pack(value)),
    "double": lambda value, out: out.extend(_DOUBLE.pack(value)),
    "bytes": _write_bytes,
    "string": lambda value, out: _write_bytes(value.encode(), out),
}
