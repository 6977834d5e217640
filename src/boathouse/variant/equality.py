"""Equality and hashes by equivalence class (VariantEncoding.md, "Encoding types").

Exact numbers (int8 to int64, decimals) are compared by value; timestamps, and timestamps without zone, by instant, in
any unit; short and long strings by content; everything else equals values of its own type only: float 1.5 does not
equal double 1.5. NaN equals NaN, and -0.0 equals 0.0, as Spark groups them. Objects are equal if they have the same
names and equal values, in any order; arrays element by element.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from boathouse.variant.decode import kind_at, read_scalar
from boathouse.variant.primitives import INT8, KINDS, TIMESTAMP, TIMESTAMP_NTZ, TRUE, Family, Kind
from boathouse.variant.view import VariantView
from boathouse.variant.walk import Event, walk

Token = tuple[str | int | None, object]


def _class(kind: Kind) -> int:
    """The id of the type that stands for all those whose values may be equal to one of this type."""
    match kind.family:
        case Family.BOOLEAN:
            return TRUE
        case Family.INTEGER | Family.DECIMAL:
            return INT8
        case Family.TIMESTAMP:
            return TIMESTAMP if kind.utc else TIMESTAMP_NTZ
    return kind.id


_CLASSES = [_class(kind) for kind in KINDS]


def scalar_token(data: bytes, pos: int, end: int) -> tuple[int, object]:
    """(class, content) of a scalar: equal for equal scalars, hashable."""
    kind, content = kind_at(data, pos), read_scalar(data, pos, end)
    assert kind is not None
    match content:
        case int() if kind.family is Family.INTEGER:
            content = content, 0
        case int() if kind.family is Family.TIMESTAMP:
            content *= 10 ** (9 - kind.digits)
        case (int(unscaled), int(scale)):
            while scale and unscaled % 10 == 0:
                unscaled, scale = unscaled // 10, scale - 1
            content = unscaled, scale
        case float() if content != content:
            content = "NaN"
    return _CLASSES[kind.id], content


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
