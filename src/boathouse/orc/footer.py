"""The tail of an ORC file: its types with their attributes, where Iceberg keeps field ids, and its stripes.

pyarrow reads ORC, but gives no attributes, and its reader trusts what a footer says. So the tail is read and checked
here, and `Tail.clean` gives another one with the same stripes: names by type number (pyarrow finds columns by dotted
paths), CHAR as STRING (pyarrow reads it as bytes of a fixed length, which the values do not have), no statistics.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from boathouse.bits.inflate import Budget
from boathouse.bits.protobuf import Message, nested, repeated, scalar
from boathouse.errors import CorruptTableError, UnsupportedFeatureError

BOOLEAN, BYTE, SHORT, INT, LONG, FLOAT, DOUBLE, STRING, BINARY, TIMESTAMP = range(10)
LIST, MAP, STRUCT, UNION, DECIMAL, DATE, VARCHAR, CHAR, INSTANT = range(10, 19)
_NONE, _ZLIB, _SNAPPY, _LZO, _LZ4, _ZSTD = range(6)
_CHILDREN: Final = {LIST: 1, MAP: 2}
_MAGIC: Final = "ORC"
_DEEPEST: Final = 64
_MOST_TYPES: Final = 100_000
_FIRST: Final = 16 << 10
"""Bytes at the end that are read at once, which mostly contain the whole tail."""
_CHUNK: Final = 1 << 15
_BLOCK: Final = 1 << 23
"""The largest block of compressed data: its length has 23 bits. pyarrow allocates what the file says."""
_SOME_ROWS, _ROWS_A_BYTE = 1 << 24, 1 << 17
"""A stripe with more rows than the first has at most the second for each byte: run lengths, and those compressed."""


@dataclass(frozen=True, kw_only=True)
class PostScript(Message):
    footer: int = scalar(1, "uint64")
    compression: int | None = scalar(2, "enum", optional=True)
    block: int = scalar(3, "uint64", optional=True)
    version: tuple[int, ...] = repeated(4, "uint32")
    metadata: int = scalar(5, "uint64")
    writer_version: int | None = scalar(6, "uint32", optional=True)
    magic: str = scalar(8000, "string")


@dataclass(frozen=True, kw_only=True)
class Stripe(Message):
    offset: int = scalar(1, "uint64")
    index: int = scalar(2, "uint64")
    data: int = scalar(3, "uint64")
    footer: int = scalar(4, "uint64")
    rows: int = scalar(5, "uint64")

    @property
    def end(self) -> int:
        return self.offset + self.index + self.data + self.footer


@dataclass(frozen=True, kw_only=True)
class Attribute(Message):
    key: str = scalar(1, "string")
    value: str = scalar(2, "string")


@dataclass(frozen=True, kw_only=True)
class Type(Message):
    kind: int | None = scalar(1, "enum", optional=True)
    below: tuple[int, ...] = repeated(2, "uint32")
    names: tuple[str, ...] = repeated(3, "string")
    length: int | None = scalar(4, "uint32", optional=True)
    precision: int = scalar(5, "uint32")
    scale: int = scalar(6, "uint32")
    attributes: tuple[Attribute, ...] = repeated(7, Attribute)

    def attribute(self, key: str) -> str | None:
        return next((a.value for a in self.attributes if a.key == key), None)


@dataclass(frozen=True, kw_only=True)
class Range(Message):
    """Milliseconds, zigzag: in the writer's time zone, and since 2016 in UTC."""

    low: int | None = scalar(1, "uint64", optional=True)
    high: int | None = scalar(2, "uint64", optional=True)
    utc_low: int | None = scalar(3, "uint64", optional=True)
    utc_high: int | None = scalar(4, "uint64", optional=True)

    @property
    def bounds(self) -> tuple[int, int] | None:
        low = self.low if self.utc_low is None else self.utc_low
        high = self.high if self.utc_high is None else self.utc_high
        return None if low is None or high is None else ((low >> 1) ^ -(low & 1), (high >> 1) ^ -(high & 1))


@dataclass(frozen=True, kw_only=True)
class Numbers(Message):
    """The least and the greatest, zigzag."""

    low: int | None = scalar(1, "uint64", optional=True)
    high: int | None = scalar(2, "uint64", optional=True)


@dataclass(frozen=True, kw_only=True)
class Texts(Message):
    """The least and the greatest in UTF-8; long ones are left out."""

    low: bytes | None = scalar(1, "bytes", optional=True)
    high: bytes | None = scalar(2, "bytes", optional=True)


@dataclass(frozen=True, kw_only=True)
class Statistics(Message):
    """`values` are those that are not null; `bytes_on_disk` is the size in the file."""

    values: int | None = scalar(1, "uint64", optional=True)
    numbers: Numbers | None = nested(2, Numbers)
    texts: Texts | None = nested(4, Texts)
    times: Range | None = nested(9, Range)
    nulls: bool | None = scalar(10, "bool", optional=True)
    bytes_on_disk: int | None = scalar(11, "uint64", optional=True)


@dataclass(frozen=True, kw_only=True)
class Footer(Message):
    header: int = scalar(1, "uint64")
    content: int = scalar(2, "uint64")
    stripes: tuple[Stripe, ...] = repeated(3, Stripe)
    types: tuple[Type, ...] = repeated(4, Type)
    rows: int = scalar(6, "uint64")
    statistics: tuple[Statistics, ...] = repeated(7, Statistics)
    stride: int = scalar(8, "uint32")
    writer: int | None = scalar(9, "uint32", optional=True)
    encryption: bytes | None = scalar(10, "bytes", optional=True)
    software: str | None = scalar(12, "string", optional=True)


@dataclass(frozen=True, slots=True)
class Tail:
    """What the tail says: `content` are the bytes before it; only stripes with rows are listed."""

    script: PostScript
    footer: Footer
    content: int

    def clean(self, seconds: Collection[int] = ()) -> bytes:
        """A tail that says the same of the stripes, to be put at `content`. Of the timestamps with the type numbers
        `seconds`, pyarrow then reads the seconds, as they are stored."""
        types = [_renamed(t, LONG if i in seconds else t.kind) for i, t in enumerate(self.footer.types)]
        said = self.footer
        body = Footer(
            header=said.header, content=self.content, stripes=said.stripes, types=tuple(types), rows=said.rows,
            writer=said.writer, software=said.software,
        ).encode()  # fmt: skip
        body = stored(body, self.script)
        script = replace(self.script, footer=len(body), metadata=0, unknown=b"").encode()
        return body + script + bytes((len(script),))


def name_of(type: int) -> str:
    """The name in a clean tail of the field with this type number."""
    return f"f{type}"


def _renamed(found: Type, kind: int | None) -> Type:
    return Type(
        kind=STRING if kind in (CHAR, VARCHAR) else kind,
        below=found.below,
        names=tuple(map(name_of, found.below)) if found.kind == STRUCT else (),
        precision=found.precision,
        scale=found.scale,
    )


def read_tail(stream: pa.NativeFile, where: str) -> Tail:
    """Reads and checks the tail. Raises CorruptTableError, UnsupportedFeatureError, and the errors of the stream."""
    size = int(stream.size())
    last = bytes(stream.read_at(min(size, _FIRST), max(0, size - _FIRST)))
    length = last[-1] + 1 if last else size + 1
    if length > len(last) or not last[:-1].endswith(_MAGIC.encode()):
        raise CorruptTableError("this is not an ORC file", where=where)
    script = PostScript.decode(last[-length:-1], where=where)
    block = 1 if script.block is None else script.block
    if (
        script.magic != _MAGIC
        or script.compression is None
        or script.footer + script.metadata + length > size
        or not 0 < block <= _BLOCK
    ):
        raise CorruptTableError("the postscript of the ORC file is corrupt", where=where)
    need = script.footer + length
    if need > len(last):
        last = bytes(stream.read_at(need, size - need))
    packed = last[len(last) - need : len(last) - length]
    footer = Footer.decode(inflated(packed, script, where), where=where)
    if footer.encryption is not None:
        raise UnsupportedFeatureError("encrypted ORC files are not offered", where=where)
    content = size - need - script.metadata
    _check_types(footer.types, where)
    return Tail(script, replace(footer, stripes=_checked(footer, content, where)), content)


def _check_types(types: Sequence[Type], where: str) -> None:
    """Types are numbered in the order of their tree: a field, then what is below it, then the next field."""
    if not types or types[0].kind != STRUCT or len(types) > _MOST_TYPES:
        raise CorruptTableError("the ORC file has no columns, or too many", where=where)

    def after(number: int, depth: int) -> int:
        found = types[number] if number < len(types) else None
        if found is None or found.kind is None or not BOOLEAN <= found.kind <= INSTANT or depth > _DEEPEST:
            what = f"the ORC file has the unknown type {None if found is None else found.kind}"
            raise CorruptTableError(what if depth <= _DEEPEST else "the ORC types are nested too deeply", where=where)
        nested = found.kind in (STRUCT, UNION) or len(found.below) == _CHILDREN.get(found.kind, 0)
        if not nested or (found.kind == STRUCT and len(set(found.names)) != len(found.below)):
            raise CorruptTableError("the ORC file has a type with wrong fields", where=where)
        number += 1
        for below in found.below:
            if below != number:
                raise CorruptTableError("the ORC file's types are not in the order of their tree", where=where)
            number = after(below, depth + 1)
        return number

    if after(0, 0) != len(types):
        raise CorruptTableError("the ORC file has types that no field has", where=where)


def _checked(footer: Footer, content: int, where: str) -> tuple[Stripe, ...]:
    """The stripes that have rows; they follow each other."""
    at = 0
    for stripe in footer.stripes:
        if stripe.offset < at or stripe.end > content:
            raise CorruptTableError(f"the ORC stripe at byte {stripe.offset:,} overlaps another part", where=where)
        at = stripe.end
        if stripe.rows > max(_SOME_ROWS, _ROWS_A_BYTE * stripe.data):
            raise CorruptTableError(f"{stripe.data:,} bytes of ORC claim {stripe.rows:,} rows", where=where)
    if sum(s.rows for s in footer.stripes) != footer.rows:
        raise CorruptTableError("the ORC stripes do not have the rows of the file", where=where)
    return tuple(replace(s, unknown=b"") for s in footer.stripes if s.rows)


def stored(data: bytes, script: PostScript) -> bytes:
    """A part of a file, as it is in a file with this postscript; it is not compressed."""
    if script.compression == _NONE:
        return data
    parts = (data[i : i + _CHUNK] for i in range(0, len(data), _CHUNK))
    return b"".join((len(p) << 1 | 1).to_bytes(3, "little") + p for p in parts)


def inflated(data: bytes, script: PostScript, where: str) -> bytes:
    """A part of the file, decompressed. Raises CorruptTableError, UnsupportedFeatureError."""
    if script.compression == _NONE:
        return data
    if script.compression not in (_ZLIB, _SNAPPY, _LZ4, _ZSTD):
        name = {_LZO: "LZO", 6: "Brotli"}.get(script.compression or 0, str(script.compression))
        raise UnsupportedFeatureError(f"ORC compression {name} is not offered", where=where)
    budget = Budget(len(data), where)
    return b"".join(_chunks(data, script.compression, budget, where))


def _chunks(data: bytes, codec: int, budget: Budget, where: str) -> Iterator[bytes]:
    """The parts, each preceded by its length and by whether it is stored as it is."""
    at = 0
    while at < len(data):
        head = int.from_bytes(data[at : at + 3], "little")
        part = data[at + 3 : at + 3 + (head >> 1)]
        at += 3 + (head >> 1)
        if at > len(data):
            raise CorruptTableError("the ORC footer is cut short", where=where)
        if head & 1:
            yield part
        elif codec == _ZLIB:
            yield budget.deflate(part)
        elif codec == _ZSTD:
            yield budget.stream(pa.input_stream(pa.py_buffer(part), compression="zstd").read)
        else:
            yield _sized(part, codec, budget, where)


def _sized(part: bytes, codec: int, budget: Budget, where: str) -> bytes:
    try:
        size = _snappy_size(part) if codec == _SNAPPY else _lz4_size(part)
        budget.take(size)
        found: Any = pa.decompress(part, size, codec="snappy" if codec == _SNAPPY else "lz4_raw", asbytes=True)
    except (OSError, ValueError, IndexError, pa.ArrowException) as error:
        if isinstance(error, CorruptTableError):
            raise
        raise CorruptTableError(f"the ORC footer does not decompress: {error}", where=where) from None
    return bytes(found)


def _snappy_size(data: bytes) -> int:
    size = shift = 0
    for byte in data[:5]:
        size |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return size
    raise IndexError("its length is cut off")


def _lz4_size(data: bytes) -> int:
    """The size of the decompressed block, which it does not tell: literals and matches follow each other."""
    size = at = 0
    while True:
        token = data[at]
        literals, at = _lz4_length(data, at + 1, token >> 4)
        size, at = size + literals, at + literals
        if at >= len(data):
            return size
        match, at = _lz4_length(data, at + 2, token & 15)
        size += match + 4


def _lz4_length(data: bytes, at: int, length: int) -> tuple[int, int]:
    if length == 15:
        while True:
            length, at = length + data[at], at + 1
            if data[at - 1] != 255:
                break
    return length, at
