"""One row of aggregates over batches; NaN is ordered as in Spark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import localcontext
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.errors import EvaluationError
from boathouse.table.engine import Agg


def summarize(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, aggregates: Sequence[tuple[str, Agg, str]]
) -> pa.Table:
    """One row of (name, aggregate, column); null if there are no values, counts are never null."""
    parts: dict[str, list[pa.Scalar]] = {name: [] for name, _, _ in aggregates}
    for batch in batches:
        for name, kind, column in aggregates:
            parts[name].append(_one(batch, kind, column))
    arrays = []
    for name, kind, column in aggregates:
        value = _merge(kind, parts[name])
        if kind == "sum":
            arrays.append(_sum(value, schema.field(column)))
        else:
            arrays.append(pa.array([value], schema.field(column).type if kind in ("min", "max") else pa.int64()))
    return pa.table(arrays, names=[name for name, _, _ in aggregates])


def _sum(value: Any, field: pa.Field) -> pa.Array:
    """The sum in Spark's type for it. Raises EvaluationError where it does not fit."""
    type = field.type
    if pa.types.is_integer(type):
        result = pa.int64()
    elif pa.types.is_decimal(type):
        result = pa.decimal128(min(38, type.precision + 10), type.scale)
    else:
        result = pa.float64() if pa.types.is_floating(type) else type
    try:
        return pa.array([value], result)
    except (pa.ArrowInvalid, OverflowError) as error:
        raise EvaluationError(f"the sum of `{field.name}` overflows {result}") from error


def _total(values: pa.Array) -> Any:
    """The exact sum of one batch: 64-bit integers are summed in halves, which cannot overflow."""
    if not (pa.types.is_int64(values.type) or pa.types.is_uint64(values.type)):
        return pc.sum(values).as_py()
    high = pc.sum(pc.shift_right(values, pa.scalar(32, values.type))).as_py()
    low = pc.sum(pc.bit_wise_and(values, pa.scalar(0xFFFFFFFF, values.type))).as_py()
    return None if high is None else (high << 32) + low


def _one(batch: pa.RecordBatch, kind: Agg, column: str) -> Any:
    if kind == "count_all":
        return batch.num_rows
    values = batch.column(column)
    if kind == "count":
        return len(values) - values.null_count
    if kind == "sum":
        return _total(values)
    if pa.types.is_floating(values.type):
        numbers = values.filter(pc.invert(pc.is_nan(values))).drop_null()
        nans = len(values) - values.null_count - len(numbers)
        if nans and (kind == "max" or len(numbers) == 0):
            return float("nan")
        values = numbers
    return getattr(pc, kind)(values).as_py()


def _merge(kind: Agg, parts: list[Any]) -> Any:
    if kind in ("count", "count_all"):
        return sum(parts)
    found = [p for p in parts if p is not None]
    if not found:
        return None
    if kind == "sum":
        with localcontext(prec=76):
            return sum(found[1:], found[0])
    nans = [p for p in found if p != p]
    if nans and (kind == "max" or len(nans) == len(found)):
        return nans[0]
    return (max if kind == "max" else min)([p for p in found if p == p])
