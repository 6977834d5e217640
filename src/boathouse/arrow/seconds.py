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
    return build(units / per, mask, pa.float64()), DOUBLE


def from_seconds(array: pa.Array, source: DataType, to: TimestampType, safe: bool) -> pa.Array:
    """The timestamps of seconds; beyond the type they are its ends, as in Spark, and NaN and infinities fail."""
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
    bad = ~np.isfinite(numbers)
    if (bad if mask is None else bad & ~mask).any():
        if not safe:
            raise EvaluationError(f"{numbers[bad][0]} does not fit {to}")
        mask = either(mask, bad)
    with np.errstate(over="ignore"):
        cut = np.trunc(np.where(bad, 0, numbers) * per)
    inside = np.clip(cut, -_BIGINT, np.nextafter(_BIGINT, 0)).astype(np.int64)
    return build(np.where(cut >= _BIGINT, 2**63 - 1, inside), mask, to_arrow_type(to))
