"""Bounds of an expression's values in each file, for a column or a monotonic cast of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.cast import cast
from boathouse.arrow.layouts import plain
from boathouse.arrow.schema import to_arrow_type
from boathouse.arrow.vector import Bools, build, either, integers
from boathouse.bits.zones import Zone
from boathouse.errors import EvaluationError, UnsupportedTypeError
from boathouse.expr.text import UNITS_PER_SECOND
from boathouse.expr.tree import Cast, Column, Expr
from boathouse.expr.zoned import zone_of
from boathouse.types import DataType, DateType, DecimalType, FloatType, IntegerType, TimestampType


@dataclass(frozen=True, slots=True)
class Interval:
    """Per file: every value that is neither null nor NaN is in [lower, upper] (null: unknown).

    `has_null`, `has_nan`, `has_number` (neither) and `has_value` (not null) err on the side of True; `exact` is
    True only where both bounds are attained.
    """

    lower: pa.Array
    upper: pa.Array
    exact: Bools
    has_null: Bools
    has_nan: Bools
    has_number: Bools
    has_value: Bools


def interval(e: Expr, member: Callable[[Column], pa.StructArray | None], rows: pa.Array) -> Interval | None:
    """The interval of `e`; None if nothing is known about it."""
    if isinstance(e, Column):
        stats = member(e)
        return None if stats is None or e.type is None else _of_stats(stats, e.type, rows)
    if isinstance(e, Cast) and not e.safe and e.arg.type is not None and _monotonic(e.arg.type, e.to):
        inner = interval(e.arg, member, rows)
        return None if inner is None else _cast(inner, e.arg.type, e.to, zone_of(e))
    return None


def _monotonic(source: DataType, to: DataType) -> bool:
    """Whether x <= y implies CAST(x) <= CAST(y), with NaN unchanged."""
    match source, to:
        case (IntegerType() | DecimalType(), IntegerType() | FloatType() | DecimalType()):
            return True
        case (FloatType(a), FloatType(b)):
            return b >= a
        case (DateType(), TimestampType()) | (TimestampType(), DateType() | TimestampType()):
            return True
    return False


def _cast(inner: Interval, source: DataType, to: DataType, zone: Zone | None) -> Interval | None:
    try:
        lower, upper = (cast(b, source, to, zone=zone) for b in (inner.lower, inner.upper))
    except EvaluationError:
        return None
    if zone is None or not _turns_back(source, to, zone):
        return replace(inner, lower=lower, upper=upper)
    # No clock was ever set by more than a day.
    return replace(inner, lower=_moved(lower, -1), upper=_moved(upper, 1), exact=np.zeros(len(lower), np.bool_))


def _turns_back(source: DataType, to: DataType, zone: Zone) -> bool:
    """Whether a greater value can become a smaller one: an instant after a clock was set back, a skipped wall clock."""
    if isinstance(source, DateType) or zone.fixed:
        return False
    return zone.dates_fall if isinstance(to, DateType) else True


def _moved(bounds: pa.Array, days: int) -> pa.Array:
    """Bounds shifted by some days; null, which means no limit, beyond the type's range."""
    values, mask = integers(bounds)
    step = days if pa.types.is_date32(bounds.type) else days * 86_400 * UNITS_PER_SECOND[bounds.type.unit]
    limit = 2**31 - 1 if pa.types.is_date32(bounds.type) else 2**63 - 1
    beyond = values > limit - step if days > 0 else values < -limit - 1 - step
    return build(np.where(beyond, 0, values + np.where(beyond, 0, step)), either(mask, beyond), bounds.type)


def _of_stats(stats: pa.StructArray, type: DataType, rows: pa.Array) -> Interval:
    count = len(rows)
    arrow = to_arrow_type(type)

    def counts(name: str) -> pa.Array:
        array = _field(stats, name)
        return pa.nulls(count, pa.int64()) if array is None else array.cast(pa.int64())

    nulls, nans = counts("nulls"), counts("nans")
    total = pc.coalesce(counts("values"), rows.cast(pa.int64()))
    lower, upper = (_bound(_field(stats, name), type, arrow, count) for name in ("lower", "upper"))
    has_null = ~true_of(pc.equal(nulls, 0))
    has_value = ~true_of(pc.greater_equal(nulls, total))
    if isinstance(type, FloatType):
        has_nan = ~true_of(pc.equal(nans, 0)) & has_value
        has_number = ~true_of(pc.greater_equal(pc.add(nulls, nans), total))
    else:
        has_nan = np.zeros(count, np.bool_)
        has_number = has_value
    exact = true_of(_flag(stats, "lower_exact", count)) & true_of(_flag(stats, "upper_exact", count))
    return Interval(lower, upper, exact, has_null, has_nan, has_number, has_value)


def _field(stats: pa.StructArray, name: str) -> pa.Array | None:
    index = stats.type.get_field_index(name)
    return None if index < 0 else pc.struct_field(stats, [index])


def _flag(stats: pa.StructArray, name: str, count: int) -> pa.Array:
    array = _field(stats, name)
    return pa.repeat(pa.scalar(False), count) if array is None else array.cast(pa.bool_())


def _bound(array: pa.Array | None, type: DataType, arrow: pa.DataType, count: int) -> pa.Array:
    if array is None:
        return pa.nulls(count, arrow)
    try:
        bound = plain(array, type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnsupportedTypeError):
        return pa.nulls(count, arrow)
    if bound.type != arrow:
        return pa.nulls(count, arrow)
    if isinstance(type, FloatType):
        # Some writers store NaN in bounds: it does not bound the other values.
        return pc.if_else(pc.is_nan(bound), pa.scalar(None, arrow), bound)
    return bound


def true_of(values: pa.Array) -> Bools:
    """A boolean array as numpy, null as False."""
    return np.asarray(pc.fill_null(values, False).to_numpy(zero_copy_only=False), np.bool_)
