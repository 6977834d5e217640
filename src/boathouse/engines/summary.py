"""One row of aggregates over batches, with Spark's order of NaN."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.table.engine import Agg


def summarize(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, aggregates: Sequence[tuple[str, Agg, str]]
) -> pa.Table:
    """One row of (name, aggregate, column); null over no values, counts are never null."""
    parts: dict[str, list[pa.Scalar]] = {name: [] for name, _, _ in aggregates}
    for batch in batches:
        for name, kind, column in aggregates:
            parts[name].append(_one(batch, kind, column))
    arrays = []
    for name, kind, column in aggregates:
        type = pa.int64() if kind in ("count", "count_all") else schema.field(column).type
        arrays.append(pa.array([_merge(kind, parts[name])], _sum_type(type) if kind == "sum" else type))
    return pa.table(arrays, names=[name for name, _, _ in aggregates])


def _sum_type(type: pa.DataType) -> pa.DataType:
    if pa.types.is_integer(type):
        return pa.int64()
    return pa.float64() if pa.types.is_floating(type) else type


def _one(batch: pa.RecordBatch, kind: Agg, column: str) -> Any:
    if kind == "count_all":
        return batch.num_rows
    values = batch.column(column)
    if kind == "count":
        return len(values) - values.null_count
    if kind == "sum":
        return pc.sum(values).as_py()
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
        return sum(found[1:], found[0])
    nans = [p for p in found if p != p]
    if nans and (kind == "max" or len(nans) == len(found)):
        return nans[0]
    return (max if kind == "max" else min)([p for p in found if p == p])
