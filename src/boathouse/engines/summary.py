"""One row of aggregates over batches; NaN is ordered as in Spark."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import localcontext
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.schema import to_arrow_type
from boathouse.compute.evaluate import evaluate
from boathouse.engines.sources import Batches, bind_all
from boathouse.errors import EvaluationError
from boathouse.expr.tree import Expr
from boathouse.table.engine import Agg, Sql


def summarize(rel: Batches, aggregates: Sequence[tuple[str, Agg, Sql]]) -> pa.Table:
    """One row of (name, aggregate, expression); null if there are no values, counts are never null."""
    bound = bind_all(rel, ["1" if kind == "count_all" else sql for _, kind, sql in aggregates])
    kinds = [kind for _, kind, _ in aggregates]
    parts: list[list[Any]] = [[] for _ in kinds]
    for batch in rel.open():
        for found, kind, expr in zip(parts, kinds, bound, strict=True):
            found.append(_one(batch, kind, expr))
    arrays = [_merged(kind, found, expr) for kind, found, expr in zip(kinds, parts, bound, strict=True)]
    return pa.table(arrays, names=[name for name, _, _ in aggregates])


def _one(batch: pa.RecordBatch, kind: Agg, expr: Expr) -> Any:
    if kind == "count_all":
        return batch.num_rows
    values = evaluate(expr, batch)
    if kind == "count":
        return len(values) - values.null_count
    return _total(values) if kind == "sum" else _extreme(values, kind)


def _merged(kind: Agg, parts: list[Any], expr: Expr) -> pa.Array:
    assert expr.type is not None
    type = to_arrow_type(expr.type)
    if kind in ("count", "count_all"):
        return pa.array([sum(parts)], pa.int64())
    if kind == "sum":
        return _sum([p for p in parts if p is not None], type, expr)
    return _extreme(pa.concat_arrays([pa.array([], type), *parts]), kind)


def _extreme(values: pa.Array, kind: Agg) -> pa.Array:
    """The smallest or greatest value, as an array of one: NaN is the greatest, null only if there is nothing else."""
    type = values.type
    values = values.drop_null()
    if pa.types.is_floating(type):
        numbers = values.filter(pc.invert(pc.is_nan(values)))
        if len(numbers) < len(values) and (kind == "max" or not len(numbers)):
            return pa.array([float("nan")], type)
        values = numbers
    if not len(values):
        return pa.nulls(1, type)
    # Scalars of every type, also dates beyond those of Python.
    return pa.array([(pc.max if kind == "max" else pc.min)(values)], type)


def _sum(parts: list[Any], type: pa.DataType, expr: Expr) -> pa.Array:
    """The sum in Spark's type for it. Raises EvaluationError where it does not fit."""
    if pa.types.is_integer(type):
        result = pa.int64()
    elif pa.types.is_decimal(type):
        result = pa.decimal128(min(38, type.precision + 10), type.scale)
    else:
        result = pa.float64() if pa.types.is_floating(type) else type
    with localcontext(prec=76):
        total = sum(parts[1:], parts[0]) if parts else None
    try:
        return pa.array([total], result)
    except (pa.ArrowInvalid, OverflowError) as error:
        raise EvaluationError(f"the sum of `{expr}` overflows {result}") from error


def _total(values: pa.Array) -> Any:
    """The exact sum of one batch: 64-bit integers are summed in halves, which cannot overflow."""
    if not (pa.types.is_int64(values.type) or pa.types.is_uint64(values.type)):
        return pc.sum(values).as_py()
    high = pc.sum(pc.shift_right(values, pa.scalar(32, values.type))).as_py()
    low = pc.sum(pc.bit_wise_and(values, pa.scalar(0xFFFFFFFF, values.type))).as_py()
    return None if high is None else (high << 32) + low
