"""A full reading of one value as a stream of events, without recursion: the basis of every function that reads whole
values."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from boathouse.errors import MalformedVariant
from boathouse.variant.decode import Child, Container, read_children, read_container, unknown_type, value_end
from boathouse.variant.metadata import Metadata
from boathouse.variant.path import quoted_step
from boathouse.variant.primitives import MAX_DEPTH, SHORT_STRING, budget


class Event(IntEnum):
    SCALAR = 0
    OBJECT = 1
    ARRAY = 2
    END = 3


class Step(NamedTuple):
    """`key` is the field name or index inside the parent, None at the root; `depth` counts open containers."""

    event: Event
    key: str | int | None
    pos: int
    end: int
    depth: int


def walk(data: bytes, pos: int, end: int, metadata: Metadata, *, by_name: bool = False) -> Iterator[Step]:
    """Every value below and at `pos`, parents before children, an END after the last child of each container.

    Objects in the order of their ids, or by the UTF-8 bytes of the names. All rules of `decode` are checked except
    those about the contents of scalars: calling `read_scalar` is left to the caller. Raises MalformedVariant,
    UnsupportedFeatureError.
    """
    stop = value_end(data, pos, end)
    if stop < 0:
        raise unknown_type(data, pos, "$")
    scalar, new = Event.SCALAR, tuple.__new__  # faster than the constructor of a named tuple
    left = budget(stop - pos)
    trail: list[Iterator[Child]] = [iter((("", pos, stop),))]
    keys: list[str | int | None] = []
    while trail:
        for key, start, end in trail[-1]:
            if end < 0:
                raise unknown_type(data, start, spell_path([*keys[1:], key]))
            if data[start] & 3 <= SHORT_STRING:
                left -= end - start
                if left < 0:
                    raise over_budget(pos, stop)
                yield new(Step, (scalar, key if keys else None, start, end, len(keys)))
                continue
            box = read_container(data, start, end)
            left -= box.values_at - start
            if left < 0:
                raise over_budget(pos, stop)
            if len(keys) == MAX_DEPTH:
                raise too_deep(start)
            event = Event.OBJECT if box.is_object else Event.ARRAY
            yield new(Step, (event, key if keys else None, start, end, len(keys)))
            keys.append(key if keys else None)
            trail.append(_children(data, box, metadata, by_name))
            break
        else:
            trail.pop()
            if trail:
                yield new(Step, (Event.END, keys.pop(), pos, pos, len(trail) - 1))


def _children(data: bytes, box: Container, metadata: Metadata, by_name: bool) -> Iterator[Child]:
    children = read_children(data, box, metadata)
    if by_name and box.is_object:
        children.sort(key=_name_of)
    return iter(children)


def _name_of(child: Child) -> str:
    return str(child[0])  # code points sort as their UTF-8 bytes do


def too_deep(pos: int) -> MalformedVariant:
    """The error for nesting beyond the limit."""
    return MalformedVariant(f"more than {MAX_DEPTH:,} nested objects and arrays", offset=pos)


def over_budget(pos: int, end: int) -> MalformedVariant:
    """The error for a value whose shared children would expand without bound."""
    return MalformedVariant(
        f"shared values make {end - pos:,} bytes expand to more than {budget(end - pos):,}", offset=pos
    )


def spell_path(keys: list[str | int | None]) -> str:
    """A path as a string: `$['name'][0]`."""
    return "$" + "".join(f"[{key}]" if isinstance(key, int) else quoted_step(str(key)) for key in keys)


def path_to(data: bytes, pos: int, end: int, metadata: Metadata, target: int) -> str:
    """The path of the value that starts at `target` below the value at `pos`; or its byte offset if no path reaches
    it."""
    try:
        path = _search(data, pos, end, metadata, target)
    except MalformedVariant:
        path = None
    return path or f"byte {target:,}"


def _search(data: bytes, pos: int, end: int, metadata: Metadata, target: int) -> str | None:
    """Descends to `target`: at each level into the child whose bytes contain it."""
    keys: list[str | int | None] = []
    while pos != target:
        children = read_children(data, read_container(data, pos, end), metadata) if data[pos] & 3 > SHORT_STRING else []
        for key, start, stop in children:
            if start == target or start < target < stop:
                keys.append(key)
                pos, end = start, stop
                break
        else:
            return None
    return spell_path(keys)
