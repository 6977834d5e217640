"""The protobuf wire format for messages declared as frozen dataclasses.

    @dataclass(frozen=True, kw_only=True)
    class Page(Message):
        length: int = scalar(3, "uint64")
        offsets: tuple[int, ...] = repeated(1, "uint64")
        encoding: Encoding | None = nested(4, Encoding)

Absent fields are read as the default; `optional=True` fields and those of a oneof as None, so that a present zero
differs from an absent one. Undeclared fields are kept as bytes in `unknown` and written back after the declared ones.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import lru_cache
from typing import Any, ClassVar, Literal, Self, TypeVar

from boathouse.errors import CorruptTableError

Kind = Literal[
    "int32", "int64", "uint32", "uint64", "bool", "enum", "fixed32", "fixed64", "float", "double", "string", "bytes"
]
_MAX_DEPTH = 100
_SHARED = 8192
"""How many shared messages are kept."""
_WIRE_FORM = "_wire_form"
_M32, _M64 = (1 << 32) - 1, (1 << 64) - 1
_DEFAULTS: dict[str, Any] = {"bool": False, "float": 0.0, "double": 0.0, "string": "", "bytes": b""}
_WIRE = {"fixed64": 1, "double": 1, "string": 2, "bytes": 2, "fixed32": 5, "float": 5}
_FIXED = {"fixed32": "<I", "fixed64": "<Q", "float": "<f", "double": "<d"}


class _Malformed(Exception):
    """Bytes that are not protobuf; the public functions turn it into CorruptTableError."""


@dataclass(frozen=True, slots=True)
class _Spec:
    number: int
    kind: str  # a Kind, or "message"
    type: Any = None  # the Message class (or a function that gives it) of kind "message"
    shape: Literal["one", "many", "map"] = "one"
    optional: bool = False
    oneof: str | None = None
    key: str = "string"


def scalar(number: int, kind: Kind, *, optional: bool = False, oneof: str | None = None) -> Any:
    """A singular scalar: the kind's zero when absent, or None if `optional` or in a oneof."""
    optional = optional or oneof is not None
    default = None if optional else _DEFAULTS.get(kind, 0)
    return field(default=default, metadata={"pb": _Spec(number, kind, optional=optional, oneof=oneof)})


def nested(number: int, type: type[Message] | Callable[[], type[Message]], *, oneof: str | None = None) -> Any:
    """A singular message, None when absent; `type` may be a function, for recursive messages."""
    return field(default=None, metadata={"pb": _Spec(number, "message", type, optional=True, oneof=oneof)})


def repeated(number: int, type: Kind | type[Message] | Callable[[], type[Message]]) -> Any:
    """A tuple of scalars (written packed where the kind allows it) or of messages."""
    spec = _Spec(number, type, shape="many") if isinstance(type, str) else _Spec(number, "message", type, shape="many")
    return field(default=(), metadata={"pb": spec})


def mapping(number: int, key: Kind, value: Kind | type[Message] | Callable[[], type[Message]]) -> Any:
    """A map, read as a dict in the order of the file."""
    kind = value if isinstance(value, str) else "message"
    spec = _Spec(number, kind, None if isinstance(value, str) else value, "map", key=key)
    return field(default_factory=dict, metadata={"pb": spec})


@dataclass(frozen=True, kw_only=True)
class Message:
    """Base of declared messages."""

    unknown: bytes = field(default=b"", repr=False)

    shared: ClassVar[bool] = False
    """For messages of which most come again unchanged in the next document: those inside of others are decoded once for
    the same bytes, and written as the bytes they were read from. Neither recursive nor with maps, which are mutable."""
    _plan: ClassVar[_Plan | None] = None

    @classmethod
    def decode(cls, data: bytes | memoryview, *, where: str | None = None) -> Self:
        """Parse `data`. Raises CorruptTableError naming the message and `where`."""
        data = bytes(data)
        try:
            return _decode(cls, data, 0, len(data), 0)
        except (_Malformed, IndexError, struct.error, UnicodeDecodeError) as error:
            raise CorruptTableError(
                f"the bytes are not a {cls.__name__} message: {error}", where=where, advice="restore the file"
            ) from error

    def encode(self) -> bytes:
        """The declared fields by number, then the unknown ones; of a shared message, the bytes it was read from."""
        values = self.__dict__
        if _WIRE_FORM in values:
            return bytes(values[_WIRE_FORM])
        out: list[bytes] = []
        for name, default, write in _plan(type(self)).writers:
            value = values.get(name, default)
            if value is not None and value != default:
                write(value, out)
        out.append(self.unknown)
        return b"".join(out)


M = TypeVar("M", bound=Message)


def varint(value: int) -> bytes:
    """Base-128 little-endian of an unsigned value, or of a negative one as 64-bit two's complement."""
    value &= _M64
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _varint_at(data: bytes, pos: int, end: int) -> tuple[int, int]:
    if pos < end and data[pos] < 0x80:
        return data[pos], pos + 1
    result = shift = 0
    while pos < end:
        byte = data[pos]
        pos += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result & _M64, pos
        shift += 7
        if shift > 63:
            raise _Malformed(f"a varint longer than 10 bytes at {pos}")
    raise _Malformed(f"a varint cut off at {pos}")


def _signed64(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _signed32(value: int) -> int:
    value &= _M32
    return value - (1 << 32) if value >> 31 else value


_FROM_VARINT: dict[str, Callable[[int], Any]] = {
    "int32": _signed32,
    "enum": _signed32,
    "int64": _signed64,
    "uint32": lambda v: v & _M32,
    "uint64": lambda v: v,
    "bool": bool,
}


@dataclass(frozen=True, slots=True)
class _Plan:
    """How to read and write one class: handlers by tag, writers by field number, dict fields to create."""

    readers: Mapping[int, tuple[str, _Spec, int]]
    writers: tuple[tuple[str, Any, Callable[[Any, list[bytes]], None]], ...]
    maps: tuple[str, ...]
    siblings: Mapping[str, tuple[str, ...]]


def _plan(cls: type[Message]) -> _Plan:
    plan = cls.__dict__.get("_plan")
    if plan is None:
        plan = _make_plan(cls)
        cls._plan = plan
    return plan


def _make_plan(cls: type[Message]) -> _Plan:
    readers: dict[int, tuple[str, _Spec, int]] = {}
    writers = []
    groups: dict[str, list[str]] = {}
    maps = []
    declared = sorted((f for f in fields(cls) if "pb" in f.metadata), key=lambda f: f.metadata["pb"].number)
    for f in declared:
        spec: _Spec = f.metadata["pb"]
        wire = 2 if spec.kind == "message" or spec.shape == "map" else _WIRE.get(spec.kind, 0)
        readers[spec.number << 3 | wire] = (f.name, spec, wire)
        if spec.shape == "many" and wire != 2:
            readers[spec.number << 3 | 2] = (f.name, spec, 2)
        if spec.oneof:
            groups.setdefault(spec.oneof, []).append(f.name)
        if spec.shape == "map":
            maps.append(f.name)
        default = {} if f.default is MISSING else f.default
        writers.append((f.name, default, _writer(spec)))
    siblings = {name: tuple(n for n in names if n != name) for names in groups.values() for name in names}
    return _Plan(readers, tuple(writers), tuple(maps), siblings)


def _resolve(spec: _Spec) -> type[Message]:
    kind = spec.type
    return kind if isinstance(kind, type) else kind()


def _decode(cls: type[M], data: bytes, pos: int, end: int, depth: int) -> M:
    if depth > _MAX_DEPTH:
        raise _Malformed(f"more than {_MAX_DEPTH} nested messages")
    plan = cls.__dict__.get("_plan") or _plan(cls)
    readers = plan.readers
    values: dict[str, Any] = {name: {} for name in plan.maps}
    many: dict[str, list[Any]] = {}
    unknown: list[bytes] = []
    while pos < end:
        start = pos
        tag = data[pos]
        pos += 1
        if tag > 0x7F:
            tag, pos = _varint_at(data, start, end)
        found = readers.get(tag)
        if found is None:
            pos = _skip(data, tag, pos, end)
            unknown.append(data[start:pos])
            continue
        name, spec, wire = found
        if wire == 2:
            size, pos = _varint_at(data, pos, end)
            stop = pos + size
            if stop > end:
                raise _Malformed(f"field {spec.number} ends at {stop}, its message at {end}")
            if spec.kind == "string" and spec.shape == "one":
                values[name] = data[pos:stop].decode()
            else:
                _take_bytes(name, spec, data, pos, stop, depth, values, many)
            pos = stop
        else:
            value, pos = _scalar_at(spec.kind, data, pos, end)
            if spec.shape == "many":
                many.setdefault(name, []).append(value)
            else:
                values[name] = value
        if spec.oneof:
            for other in plan.siblings[name]:
                values.pop(other, None)
    return _made(cls, values, many, unknown)


def _made(cls: type[M], values: dict[str, Any], many: dict[str, list[Any]], unknown: list[bytes]) -> M:
    for name, items in many.items():
        values[name] = tuple(items)
    if unknown:
        values["unknown"] = b"".join(unknown)
    made = cls.__new__(cls)
    made.__dict__.update(values)
    return made


@lru_cache(_SHARED)
def _shared(cls: type[Message], data: bytes) -> Message:
    """The message in `data`, which is not changed by anybody."""
    made = _decode(cls, data, 0, len(data), 1)
    made.__dict__[_WIRE_FORM] = data
    return made


def _take_bytes(
    name: str,
    spec: _Spec,
    data: bytes,
    pos: int,
    stop: int,
    depth: int,
    values: dict[str, Any],
    many: dict[str, list[Any]],
) -> None:
    if spec.shape == "map":
        key, value = _map_entry(spec, data, pos, stop, depth)
        values[name][key] = value
    elif spec.kind == "message":
        cls: Any = _resolve(spec)
        made = _shared(cls, data[pos:stop]) if cls.shared else _decode(cls, data, pos, stop, depth + 1)
        if spec.shape == "many":
            many.setdefault(name, []).append(made)
        elif name in values:  # the wire format merges repetitions of a singular message
            whole = values[name].encode() + data[pos:stop]
            values[name] = _decode(_resolve(spec), whole, 0, len(whole), depth + 1)
        else:
            values[name] = made
    elif spec.kind in ("string", "bytes"):
        raw = data[pos:stop]
        value = raw.decode() if spec.kind == "string" else raw
        if spec.shape == "many":
            many.setdefault(name, []).append(value)
        else:
            values[name] = value
    else:
        _packed(spec.kind, data, pos, stop, many.setdefault(name, []))


def _packed(kind: str, data: bytes, pos: int, stop: int, out: list[Any]) -> None:
    if kind in _FIXED:
        code = _FIXED[kind]
        width = struct.calcsize(code)
        if (stop - pos) % width:
            raise _Malformed(f"{stop - pos} bytes of packed {kind}")
        out.extend(struct.unpack(f"<{(stop - pos) // width}{code[1]}", data[pos:stop]))
        return
    convert = _FROM_VARINT[kind]
    while pos < stop:
        byte = data[pos]
        pos += 1
        if byte > 0x7F:
            byte, pos = _varint_at(data, pos - 1, stop)
        out.append(convert(byte))


def _scalar_at(kind: str, data: bytes, pos: int, end: int) -> tuple[Any, int]:
    if kind in _FIXED:
        stop = pos + struct.calcsize(_FIXED[kind])
        if stop > end:
            raise _Malformed(f"a {kind} cut off at {end}")
        return struct.unpack(_FIXED[kind], data[pos:stop])[0], stop
    value, pos = _varint_at(data, pos, end)
    return _FROM_VARINT[kind](value), pos


def _map_entry(spec: _Spec, data: bytes, pos: int, stop: int, depth: int) -> tuple[Any, Any]:
    key: Any = _DEFAULTS.get(spec.key, 0)
    value: Any = _DEFAULTS.get(spec.kind, 0) if spec.kind != "message" else None
    while pos < stop:
        tag, pos = _varint_at(data, pos, stop)
        kind = {1: spec.key, 2: spec.kind}.get(tag >> 3)
        wire = 2 if kind == "message" else _WIRE.get(kind or "", 0)
        if kind is None or tag & 7 != wire:
            pos = _skip(data, tag, pos, stop)
            continue
        item: Any
        if wire == 2:
            size, pos = _varint_at(data, pos, stop)
            if pos + size > stop:
                raise _Malformed(f"a map entry cut off at {stop}")
            if kind == "message":
                item = _decode(_resolve(spec), data, pos, pos + size, depth + 1)
            else:
                item = data[pos : pos + size].decode() if kind == "string" else data[pos : pos + size]
            pos += size
        else:
            item, pos = _scalar_at(kind, data, pos, stop)
        if tag >> 3 == 1:
            key = item
        else:
            value = item
    if value is None:
        value = _resolve(spec)()
    return key, value


def _skip(data: bytes, tag: int, pos: int, end: int) -> int:
    wire = tag & 7
    if not tag >> 3:
        raise _Malformed(f"field number 0 at {pos}")
    if wire == 0:
        return _varint_at(data, pos, end)[1]
    if wire == 2:
        size, pos = _varint_at(data, pos, end)
        stop = pos + size
    elif wire in (1, 5):
        stop = pos + (8 if wire == 1 else 4)
    else:
        raise _Malformed(f"wire type {wire} at {pos}")
    if stop > end:
        raise _Malformed(f"a field cut off at {end}")
    return stop


def _encoder(kind: str) -> Callable[[Any], bytes]:
    """A function from a value to its bytes, without tag; with length for strings, bytes and messages."""
    if kind in _FIXED:
        return struct.Struct(_FIXED[kind]).pack
    if kind == "string":
        return lambda v: varint(len(raw := v.encode())) + raw
    if kind == "bytes":
        return lambda v: varint(len(v)) + bytes(v)
    if kind == "message":
        return lambda v: varint(len(raw := v.encode())) + raw
    return varint


def _writer(spec: _Spec) -> Callable[[Any, list[bytes]], None]:
    wire = 2 if spec.kind == "message" else _WIRE.get(spec.kind, 0)
    encode = _encoder(spec.kind)
    if spec.shape == "map":
        return _map_writer(spec, varint(spec.number << 3 | 2), wire, encode)
    tag = varint(spec.number << 3 | wire)
    if spec.shape == "one":
        return lambda value, out: out.append(tag + encode(value))
    if wire == 2:
        return lambda value, out: out.extend(tag + encode(v) for v in value)
    packed = varint(spec.number << 3 | 2)

    def write_packed(value: Any, out: list[bytes]) -> None:
        body = b"".join(map(encode, value))
        out.append(packed + varint(len(body)) + body)

    return write_packed


def _map_writer(
    spec: _Spec, tag: bytes, wire: int, encode: Callable[[Any], bytes]
) -> Callable[[Any, list[bytes]], None]:
    key_tag = varint(1 << 3 | _WIRE.get(spec.key, 0))
    value_tag = varint(2 << 3 | wire)
    encode_key = _encoder(spec.key)

    def write_map(value: Any, out: list[bytes]) -> None:
        for k, v in value.items():
            body = key_tag + encode_key(k) + value_tag + encode(v)
            out.append(tag + varint(len(body)) + body)

    return write_map
