"""Converts literals to Arrow scalars and arrays, and back: physical values (days, micros) need a view."""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa

from boathouse.arrow.schema import to_arrow_type
from boathouse.expr.tree import Literal
from boathouse.types import NULL, DataType


def storage(type: pa.DataType) -> pa.DataType:
    """The integer type that stores a temporal type; any other type is its own storage."""
    if pa.types.is_date32(type) or pa.types.is_time32(type):
        return pa.int32()
    temporal = pa.types.is_timestamp(type) or pa.types.is_time64(type) or pa.types.is_duration(type)
    return pa.int64() if temporal else type


def to_array(values: tuple[Literal, ...], type: pa.DataType) -> pa.Array:
    """Literals of one type as an array of `type`."""
    physical = storage(type)
    out = pa.array([v.value for v in values], physical)
    return out if physical == type else out.view(type)


def to_scalar(literal: Literal) -> pa.Scalar:
    """The literal as an Arrow scalar of its type."""
    # -0.0 and 0.0 are one key of the cache but two values.
    return _scalar(literal) if isinstance(literal.value, float) else _cached(literal)


def _scalar(literal: Literal) -> pa.Scalar:
    return to_array((literal,), to_arrow_type(literal.type or NULL))[0]


_cached = lru_cache(8192)(_scalar)


def to_literal(scalar: pa.Scalar, type: DataType) -> Literal:
    """The literal of an Arrow scalar that holds a value of `type`."""
    if not scalar.is_valid:
        return Literal(None, type=type)
    arrow = to_arrow_type(type)
    array = pa.repeat(scalar, 1)
    if array.type != arrow:
        array = array.cast(arrow)
    physical = storage(arrow)
    return Literal((array if physical == arrow else array.view(physical))[0].as_py(), type=type)
