"""Reading of encoded values: sizes, containers and scalars, every access checked against an end.

What a full reading refuses with MalformedVariant (and what the column kernels refuse alike):
- anything beyond the end: of the buffer for the root, of the container's values for a child;
- a field id beyond the dictionary, a name that is not UTF-8, a name twice in an object;
- children that overlap without starting at the same byte (equal offsets are sharing, which is legal), and a last
  offset other than the end of the last value;
- strings that are not UTF-8, a scale above 38, an unscaled value beyond the decimal's width, a time of day below 0
  or from 24:00 on;
- more than 1,000 nested containers; more visits than `primitives.budget` allows.
Read, because nothing is lost: fields in any order, values in any order with gaps between them, wider numbers than
needed, reserved bits, bytes after the root's end. Primitive ids 21 to 63 are UnsupportedFeatureError where reached.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

from boathouse.errors import MalformedVariant, UnsupportedFeatureError
from boathouse.variant.metadata import Metadata, unsigned
from boathouse.variant.primitives import (
    DAY_MICROS,
    KINDS,
    MAX_SCALE,
    OBJECT,
    PRIMITIVE,
    PRIMITIVES,
    SHORT_STRING,
    STRING,
    TRUE,
    VARIABLE,
    Family,
    Kind,
)

Scalar = None | bool | int | float | bytes | str | tuple[int, int]


class Container(NamedTuple):
    """The parts of an object or array: positions in the buffer, sizes in bytes."""

    is_object: bool
    pos: int
    elements: int
    ids_at: int
    id_size: int
    offsets_at: int
    offset_size: int
    values_at: int
    end: int


# (key, pos, end) of a value inside a container: its field name or index; `end` is -1 for an unknown type.
Child = tuple[str | int, int, int]

_SHAPES = 256  # how many id lists a dictionary caches, and how long they may be

# By header byte: bytes of the whole value where the header determines it, else 0.
HEADER_SIZES = [
    1 + (header >> 2) if header & 3 == SHORT_STRING
    else 1 + KINDS[header >> 2].size if header & 3 == PRIMITIVE and header >> 2 < PRIMITIVES else 0
    for header in range(256)
]  # fmt: skip
assert VARIABLE == -1  # makes binary and string 0 here


def read_container(data: bytes, pos: int, end: int) -> Container:
    """The layout of the object or array at `pos`, which has to end by `end`. Raises MalformedVariant."""
    header = data[pos]
    if header & 3 == OBJECT:
        large, id_size, offset_size = header >> 6 & 1, (header >> 4 & 3) + 1, (header >> 2 & 3) + 1
    else:
        large, id_size, offset_size = header >> 4 & 1, 0, (header >> 2 & 3) + 1
    ids_at = pos + (5 if large else 2)
    if ids_at > end:
        raise MalformedVariant("the value ends within its number of elements", offset=pos)
    count = int.from_bytes(data[pos + 1 : ids_at], "little") if large else data[pos + 1]
    offsets_at = ids_at + count * id_size
    last_at = offsets_at + count * offset_size
    values_at = last_at + offset_size
    if values_at > end:
        raise MalformedVariant(f"{count:,} elements do not fit into {end - pos:,} bytes", offset=pos)
    stop = values_at + int.from_bytes(data[last_at:values_at], "little")
    if stop > end:
        raise MalformedVariant(f"the last offset points {stop - end:,} bytes beyond the end", offset=last_at)
    # Faster than the constructor of a named tuple.
    return tuple.__new__(
        Container, (header & 3 == OBJECT, pos, count, ids_at, id_size, offsets_at, offset_size, values_at, stop)
    )


def value_end(data: bytes, pos: int, end: int) -> int:
    """Where the value at `pos` ends by its own header, at most `end`; -1 if its type is unknown.

    Constant time: containers hold their size. Raises MalformedVariant.
    """
    if pos >= end:
        raise MalformedVariant("a value is expected beyond the end", offset=pos)
    header = data[pos]
    basic = header & 3
    if basic == SHORT_STRING:
        stop = pos + 1 + (header >> 2)
    elif basic != PRIMITIVE:
        return read_container(data, pos, end).end
    elif header >> 2 >= PRIMITIVES:
        return -1
    else:
        size = KINDS[header >> 2].size
        stop = pos + 1 + size
        if size == VARIABLE:
            stop = pos + 5
            if stop <= end:
                stop += int.from_bytes(data[pos + 1 : pos + 5], "little")
    if stop > end:
        raise MalformedVariant(f"the value extends {stop - end:,} bytes beyond the end", offset=pos)
    return stop


def unknown_type(data: bytes, pos: int, path: str | None = None) -> UnsupportedFeatureError:
    """The error for a primitive id above 20."""
    return UnsupportedFeatureError(
        f"variant primitive type {data[pos] >> 2} at {f'path {path}' if path else f'byte {pos:,}'}",
        advice="upgrade boathouse, or read the other paths of the value",
    )


def read_children(data: bytes, box: Container, metadata: Metadata) -> list[Child]:
    """The children of a container in the order of its offsets, all checked by the rules of the module, except for their
    contents.

    Raises MalformedVariant.
    """
    values_at, stop = box.values_at, box.end
    starts = [values_at + offset for offset in unsigned(data, box.offsets_at, box.offset_size, box.elements)]
    ends = [
        end
        if start < stop and start < (end := start + HEADER_SIZES[data[start]]) <= stop
        else value_end(data, start, stop)
        for start in starts
    ]
    if [values_at, *ends] != [*starts, stop]:  # not consecutive, as most are
        check_layout(box, starts, ends)
    return list(zip(read_names(data, box, metadata) if box.is_object else range(box.elements), starts, ends))


def read_names(data: bytes, box: Container, metadata: Metadata) -> tuple[str, ...]:
    """The field names of an object, in the order of its ids. Raises MalformedVariant: ids out of range, duplicates."""
    key = data[box.pos : box.offsets_at]  # from the header on, which holds the size of the ids
    names = metadata.shapes.get(key)
    if names is None:
        names = _read_names(data, box, metadata)
        if len(metadata.shapes) < _SHAPES and box.elements < _SHAPES:
            metadata.shapes[key] = names
    return names


def _read_names(data: bytes, box: Container, metadata: Metadata) -> tuple[str, ...]:
    ids = unsigned(data, box.ids_at, box.id_size, box.elements)
    if box.elements and max(ids) >= len(metadata):
        at = next(i for i, id in enumerate(ids) if id >= len(metadata))
        raise MalformedVariant(
            f"field id {ids[at]:,} in a dictionary of {len(metadata):,} names", offset=box.ids_at + at * box.id_size
        )
    try:
        known = metadata.names()
        names = tuple([known[id] for id in ids])
    except MalformedVariant:  # some name is not UTF-8, but perhaps none of these
        names = tuple([metadata.name(id) for id in ids])
    if len(set(names)) != len(names):
        raise duplicate(names, box.pos)
    return names


def duplicate(names: Sequence[str], pos: int) -> MalformedVariant:
    """The error for an object with one of the names twice."""
    seen: set[str] = set()
    twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
    return MalformedVariant(f"the object has the field {twice!r} twice", offset=pos)


def check_layout(box: Container, starts: list[int], ends: list[int]) -> None:
    """Refuses children that overlap without sharing, and a last offset that is not the end of the last value."""
    last, previous = box.values_at, -1
    known = True
    for start, end in sorted(zip(starts, ends)):
        if end < 0:
            known = False
        elif start < last and start != previous:
            raise MalformedVariant("two values overlap", offset=start)
        else:
            last, previous = end, start
    if known and last != box.end:
        raise MalformedVariant(
            f"the last offset is {box.end - box.values_at:,}, the values take {last - box.values_at:,} bytes",
            offset=box.values_at - box.offset_size,
        )


def read_scalar(data: bytes, pos: int, end: int) -> Scalar:
    """The content of the scalar at `pos`, without loss: decimals as (unscaled, scale), times as integers, UUIDs as
    bytes.

    `end` is the value's own end, from `value_end`. Raises MalformedVariant, UnsupportedFeatureError.
    """
    header = data[pos]
    if header & 3 == SHORT_STRING:
        return read_text(data, pos + 1, end)
    if header >> 2 >= PRIMITIVES:
        raise unknown_type(data, pos)
    return _READERS[header >> 2](data, pos, end)


def read_decimal(data: bytes, pos: int, end: int) -> tuple[int, int]:
    """(unscaled, scale) of the decimal at `pos`. Raises MalformedVariant if its width does not allow it."""
    scale = data[pos + 1]
    unscaled = int.from_bytes(data[pos + 2 : end], "little", signed=True)
    if scale > MAX_SCALE:
        raise MalformedVariant(f"a decimal of scale {scale}", offset=pos + 1)
    kind = KINDS[data[pos] >> 2]
    if abs(unscaled) > kind.limit:
        raise MalformedVariant(f"{unscaled:,} has too many digits for a {kind.name}", offset=pos + 2)
    return unscaled, scale


def read_text(data: bytes, start: int, end: int) -> str:
    """The UTF-8 bytes as a string. Raises MalformedVariant."""
    try:
        return data[start:end].decode()
    except UnicodeDecodeError as problem:
        raise MalformedVariant("a string is not UTF-8", offset=start + problem.start) from None


def _read_time(data: bytes, pos: int, end: int) -> int:
    micros = int.from_bytes(data[pos + 1 : end], "little", signed=True)
    if not 0 <= micros < DAY_MICROS:
        raise MalformedVariant(f"{micros:,} microseconds are not a time of day", offset=pos)
    return micros


def _reader(kind: Kind) -> Callable[[bytes, int, int], Scalar]:
    match kind.family:
        case Family.NULL:
            return lambda data, pos, end: None
        case Family.BOOLEAN:
            return lambda data, pos, end: kind.id == TRUE
        case Family.STRING:
            return lambda data, pos, end: read_text(data, pos + 5, end)
        case Family.BINARY:
            return lambda data, pos, end: data[pos + 5 : end]
        case Family.UUID:
            return lambda data, pos, end: data[pos + 1 : end]
        case Family.DECIMAL:
            return read_decimal
        case Family.TIME:
            return _read_time
    unpack = struct.Struct(f"<{kind.struct}").unpack_from
    return lambda data, pos, end: unpack(data, pos + 1)[0]


_READERS = [_reader(kind) for kind in KINDS]


def kind_at(data: bytes, pos: int) -> Kind | None:
    """The primitive type of the scalar at `pos`; None for an object or array. Raises UnsupportedFeatureError."""
    header = data[pos]
    if header & 3 == PRIMITIVE:
        if header >> 2 >= PRIMITIVES:
            raise unknown_type(data, pos)
        return KINDS[header >> 2]
    return KINDS[STRING] if header & 3 == SHORT_STRING else None


def type_name(data: bytes, pos: int) -> str:
    """The type of the value at `pos`, as named by `Variant.type`. Raises UnsupportedFeatureError."""
    kind = kind_at(data, pos)
    return kind.name if kind else "object" if data[pos] & 3 == OBJECT else "array"
