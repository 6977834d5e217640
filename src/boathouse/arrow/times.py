"""Date and time functions over physical integers; TIMESTAMP is split into fields on the wall clock of a zone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse.arrow import calendar
from boathouse.arrow.schema import to_arrow_type
from boathouse.arrow.vector import Bools, Value, as_array, build, either, integers
from boathouse.bits.zones import Zone
from boathouse.errors import EvaluationError
from boathouse.types import DataType

Ints = npt.NDArray[np.int64]
_DATE_UNITS = {
    "year": "year", "yyyy": "year", "yy": "year", "quarter": "quarter",
    "month": "month", "mon": "month", "mm": "month", "week": "week",
}  # fmt: skip
_TIME_UNITS = {"day": 86_400, "dd": 86_400, "hour": 3600, "minute": 60}
# Units per second: no zone's offset is finer.
_PARTS = {"second": 1, "millisecond": 1_000, "microsecond": 1_000_000}


def _per_second(type: pa.DataType) -> int:
    return {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}[type.unit]


def _of_date(fn: Callable[[Ints], Ints]) -> Callable[[list[Value], DataType], Value]:
    def run(args: list[Value], type: DataType) -> Value:
        days, mask = integers(args[0])
        return _fitted(fn(days), mask, type)

    return run


def _of_time(divisor: int, modulus: int) -> Callable[[list[Value], DataType, Zone | None], Value]:
    def run(args: list[Value], type: DataType, zone: Zone | None) -> Value:
        units, mask = integers(args[0])
        seconds = units // _per_second(args[0].type)
        clocks = seconds if zone is None else zone.to_local(seconds, 1)
        return build(clocks // divisor % modulus, mask, to_arrow_type(type))

    return run


def _fitted(values: Ints, mask: Bools | None, type: DataType) -> pa.Array:
    """32-bit results; a date or a difference beyond that is an overflow."""
    bad = (values < -(2**31)) | (values >= 2**31)
    if mask is not None:
        bad &= ~mask
    if bad.any():
        raise EvaluationError(f"{type} overflow")
    return build(np.where(bad, 0, values), mask, to_arrow_type(type))


def _wrapped(values: Ints, mask: Bools | None, type: DataType) -> pa.Array:
    """Days wrap around at 32 bits, in Spark's ANSI mode too."""
    return build(values.astype(np.int32), mask, to_arrow_type(type))


def _two(args: list[Value]) -> tuple[Ints, Ints, Bools | None]:
    rows = next(len(a) for a in args if not isinstance(a, pa.Scalar))
    (x, m), (y, n) = (integers(as_array(a, rows)) for a in args)
    return x, y, either(m, n)


def _date_add(args: list[Value], type: DataType) -> Value:
    days, more, mask = _two(args)
    return _wrapped(days + more, mask, type)


def _date_less(args: list[Value], type: DataType) -> Value:
    days, less, mask = _two(args)
    return _wrapped(days - less, mask, type)


def _trunc(args: list[Value], type: DataType) -> Value:
    """TRUNC of a date: null for an invalid unit, as in Spark."""
    unit = _DATE_UNITS.get(str(args[1].as_py()).lower())
    array = as_array(args[0], 1)
    if unit is None:
        return pa.nulls(len(array), pa.date32())
    days, mask = integers(array)
    return _fitted(calendar.truncate_days(days, unit), mask, type)


def _date_trunc(args: list[Value], type: DataType, zone: Zone | None) -> Value:
    assert zone is not None  # its argument is always a TIMESTAMP
    word = str(args[0].as_py()).lower() if not isinstance(args[0], pa.Array) else str(args[0][0].as_py()).lower()
    array = as_array(args[1], 1)
    arrow = to_arrow_type(type)
    units, mask = integers(array)
    scale = _per_second(array.type)
    if word in _PARTS:
        step = max(scale // _PARTS[word], 1)
        return build(units - units % step, mask, arrow)
    if word in _TIME_UNITS:
        step = _TIME_UNITS[word] * scale
        return build(zone.truncate(units, lambda clocks: clocks - clocks % step, scale), mask, arrow)
    if word not in _DATE_UNITS:
        return pa.nulls(len(array), arrow)
    day = 86_400 * scale
    first = partial(calendar.truncate_days, unit=_DATE_UNITS[word])
    return build(zone.truncate(units, lambda clocks: first(clocks // day) * day, scale), mask, arrow)


KERNELS: dict[str, Callable[[list[Value], DataType], Value]] = {
    "year": _of_date(lambda d: calendar.civil(d)[0]),
    "quarter": _of_date(lambda d: (calendar.civil(d)[1] + 2) // 3),
    "month": _of_date(lambda d: calendar.civil(d)[1]),
    "day": _of_date(lambda d: calendar.civil(d)[2]),
    "dayofweek": _of_date(lambda d: (calendar.weekday(d) + 1) % 7 + 1),
    "weekday": _of_date(calendar.weekday),
    "dayofyear": _of_date(calendar.day_of_year),
    "weekofyear": _of_date(calendar.iso_week),
    "date_add": _date_add,
    "date_sub": _date_less,
    "datediff": _date_less,
    "last_day": _of_date(calendar.last_day),
    "trunc": _trunc,
}

ZONED: dict[str, Callable[[list[Value], DataType, Zone | None], Value]] = {
    "hour": _of_time(3600, 24),
    "minute": _of_time(60, 60),
    "second": _of_time(1, 60),
    "date_trunc": _date_trunc,
}
