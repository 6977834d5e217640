"""Equality and hashes by equivalence class (VariantEncoding.md, "Encoding types").

Exact numbers (int8 to int64, decimals) are compared by value; timestamps, and timestamps without zone, by instant, in
any unit; short and long strings by content; everything else equals values of its own type only: float 1.5 does not
equal double 1.5. NaN equals NaN, and -0.0 equals 0.0, as Spark groups them. Objects are equal if they have the same
names and equal values, in any order; arrays element by element.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from boathouse.variant.decode import read_scalar
from boathouse.variant.primitives import (
    DECIMAL4,
    DECIMAL16,
    DOUBLE,
    FALSE,
    FLOAT,
    INT8,
    INT64,
    SHORT_STRING,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NANOS,
    TIMESTAMP_NTZ,
    TIMESTAMP_NTZ_NANOS,
    TRUE,
)
from boathouse.variant.view import VariantView
from boathouse.variant.walk import Event, walk

Token = tuple[int | str | None, object]


def scalar_token(data: bytes, pos: int, end: int) -> tuple[int, object]:
    """(class, content) of a scalar: equal for equal scalars, hashable."""
    id = STRING if data[pos] & 3 == SHORT_STRING else data[pos] >> 2
    content = read_scalar(data, pos, end)
    if INT8 <= id <= INT64:
        return INT8, (content, 0)
    if DECIMAL4 <= id <= DECIMAL16:
        assert isinstance(content, tuple)
        unscaled, scale = content
        while scale and unscaled % 10 == 0:
            unscaled, scale = unscaled // 10, scale - 1
        return INT8, (unscaled, scale)
    if id in (DOUBLE, FLOAT) and content != content:
        return id, "NaN"
    if id in (TIMESTAMP, TIMESTAMP_NTZ):
        assert isinstance(content, int)
        return id, content * 1_000
    if id in (TIMESTAMP_NANOS, TIMESTAMP_NTZ_NANOS):
        return TIMESTAMP if id == TIMESTAMP_NANOS else TIMESTAMP_NTZ, content
    return TRUE if id == FALSE else id, content


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
