"""Equality and hashes by equivalence class (VariantEncoding.md, "Encoding types").

Exact numbers (int8 to int64, decimals) are compared by value; timestamps, and timestamps without zone, by instant, in
any unit; short and long strings by content; everything else equals values of its own type only: float 1.5 does not
equal double 1.5. NaN equals NaN, and -0.0 equals 0.0, as Spark groups them. Objects are equal if they have the same
names and equal values, in any order; arrays element by element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import Any

from boathouse.variant.decode import read_scalar
from boathouse.variant.primitives import INT8, KINDS, SHORT_STRING, STRING, TIMESTAMP, TIMESTAMP_NTZ, TRUE, Family, Kind
from boathouse.variant.view import VariantView
from boathouse.variant.walk import Event, walk

Token = tuple[str | int | None, object]


def _lowest(decimal: tuple[int, int]) -> tuple[int, int]:
    unscaled, scale = decimal
    while scale and unscaled % 10 == 0:
        unscaled, scale = unscaled // 10, scale - 1
    return unscaled, scale


def _class(kind: Kind) -> tuple[int, Callable[[Any], object] | None]:
    """The id of the type that stands for all those whose values may be equal to one of this type, and how a content
    becomes comparable."""
    match kind.family:
        case Family.BOOLEAN:
            return TRUE, None
        case Family.INTEGER:
            return INT8, lambda number: (number, 0)
        case Family.DECIMAL:
            return INT8, _lowest
        case Family.FLOAT:
            return kind.id, lambda number: "NaN" if number != number else number
        case Family.TIMESTAMP:
            unit = 10 ** (9 - kind.digits)
            return TIMESTAMP if kind.utc else TIMESTAMP_NTZ, lambda ticks: ticks * unit
    return kind.id, None


_CLASSES = [_class(kind) for kind in KINDS]


def scalar_token(data: bytes, pos: int, end: int) -> tuple[int, object]:
    """(class, content) of a scalar: equal for equal scalars, hashable."""
    content = read_scalar(data, pos, end)
    group, convert = _CLASSES[STRING if data[pos] & 3 == SHORT_STRING else data[pos] >> 2]
    return group, content if convert is None else convert(content)


def _tokens(value: VariantView) -> Iterator[Token]:
    """The value as a flat sequence that is equal for equal values: (key, content) in the order of names."""
    data = value.buffer
    for event, key, pos, end, _ in walk(data, *value.span, value.dictionary, by_name=True):
        yield key, scalar_token(data, pos, end) if event is Event.SCALAR else event


def equal(left: VariantView, right: VariantView) -> bool:
    """Whether two variants are equal, by the rules of the module.

    Reads no further than the first difference. Raises MalformedVariant, UnsupportedFeatureError for what it reads.
    """
    if left.dictionary.raw == right.dictionary.raw and left.value == right.value:
        return True
    return all(a == b for a, b in zip_longest(_tokens(left), _tokens(right)))


def hash_of(value: VariantView) -> int:
    """A hash that equal variants share. Raises MalformedVariant, UnsupportedFeatureError."""
    return hash(tuple(_tokens(value)))
