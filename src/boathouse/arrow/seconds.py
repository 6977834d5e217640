"""TIMESTAMP and numbers: seconds since the epoch, whole ones downwards, as Spark casts them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from boathouse.arrow.schema import to_arrow_type
from boathouse.arrow.vector import build, either, floats, integers
from boathouse.errors import EvaluationError
from boathouse.expr.text import UNITS_PER_SECOND
from boathouse.types import DOUBLE, INT64, DataType, DecimalType, FloatType, IntegerType, TimestampType

_BIGINT = 2.0**63


def seconds(array: pa.Array, source: TimestampType, to: DataType) -> tuple[pa.Array, DataType]:
    """The seconds of timestamps, and their type: whole ones for an integer, else with their fraction."""
    units, mask = integers(array)
    per = UNITS_PER_SECOND[source.unit]
    if isinstance(to, IntegerType):
        return build(units // per, mask, pa.int64()), INT64
    if isinstance(to, DecimalType):  # exact, where doubles have 16 digits
        scale = len(str(per)) - 1
        whole = build(units, mask, pa.int64()).cast(pa.decimal128(19, 0))
        found = pa.Array.from_buffers(pa.decimal128(19, scale), len(whole), whole.buffers(), offset=whole.offset)
        return found, DecimalType(19, scale)
    return build(units / per, mask, pa.float64()), DOUBLE


def from_seconds(array: pa.Array, source: DataType, to: TimestampType, safe: bool) -> pa.Array:
    """The timestamps of seconds. As in Spark, whole ones and decimals beyond the type are its ends; floats beyond it,
    NaN and infinities fail."""
    per = UNITS_PER_SECOND[to.unit]
    if isinstance(source, IntegerType) and (source.signed or source.bits < 64):
        whole, mask = integers(array)
        limit = (2**63 - 1) // per
        units = np.where(whole > limit, 2**63 - 1, np.where(whole < -limit - 1, -(2**63), whole * per))
        return build(units, mask, to_arrow_type(to))
    if isinstance(source, DecimalType | IntegerType):
        found = [None if v is None else int(v * per) for v in array.to_pylist()]
        return pa.array([None if v is None else max(-(2**63), min(v, 2**63 - 1)) for v in found], pa.int64()).view(
            to_arrow_type(to)
        )
    assert isinstance(source, FloatType)
    numbers, mask = floats(array)
    numbers = numbers.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        cut = np.trunc(numbers * per)
        bad = ~((cut >= -_BIGINT) & (cut < _BIGINT))
    if (bad if mask is None else bad & ~mask).any():
        if not safe:
            raise EvaluationError(f"{numbers[bad][0]} does not fit {to}")
        mask = either(mask, bad)
    return build(np.where(bad, 0, cut).astype(np.int64), mask, to_arrow_type(to))
