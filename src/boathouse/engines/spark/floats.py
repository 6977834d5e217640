"""Floats of files on Spark: no condition on them may make its reader skip rows.

A file's bounds do not include NaN, which is the greatest number, and its dictionaries and bloom filters do not find
-0.0 as 0.0. A column is therefore given as an expression that Spark passes no condition through, neither ours nor one
that the user adds later; it costs nothing measurable, and conditions on other columns still skip.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from operator import and_
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from boathouse.engines.spark.read_schema import quoted
from boathouse.expr.tree import Column as Name
from boathouse.expr.tree import Comparison, ComparisonOp, Expr, Literal, conjuncts
from boathouse.table.tasks import ReadColumn
from boathouse.types import DataType, FloatType, StructType

MAX_NESTED = 100
"""From this number of floats in structs on, rebuilding the structs is slower to plan than skipping can save."""
_FLIPPED: Final[Mapping[str, ComparisonOp]] = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


def opaque(value: Column, type: DataType) -> Column:
    """The same value, on which no condition is passed to the reader of files. Conditions on elements of lists and maps
    never are."""
    if isinstance(type, FloatType):
        return F.nanvl(value, F.lit(math.nan).cast(str(type)))
    if not isinstance(type, StructType):
        return value
    changed = value
    for f in type.fields:
        if _nested(f.type):
            changed = changed.withField(quoted(f.name), opaque(value.getField(f.name), f.type))
    return changed


def unskippable(columns: Sequence[ReadColumn]) -> bool:
    """Whether the columns have floats that cannot be made opaque, so that the reader must skip nothing at all."""
    structs = [c.type for c in columns if isinstance(c.type, StructType)]
    return sum(map(_nested, structs)) > MAX_NESTED or not all(map(_distinct, structs))


def _nested(type: DataType) -> int:
    """The number of floats outside lists and maps."""
    if isinstance(type, StructType):
        return sum(_nested(f.type) for f in type.fields)
    return int(isinstance(type, FloatType))


def _distinct(type: DataType) -> bool:
    """Whether Spark tells the fields of the structs with floats apart."""
    if not isinstance(type, StructType) or not _nested(type):
        return True
    names = [f.name.lower() for f in type.fields]
    return len(set(names)) == len(names) and all(names) and all(_distinct(f.type) for f in type.fields)


def skipping(
    where: Expr | None, floats: Mapping[str, ReadColumn], column: Callable[[ReadColumn], Column]
) -> Column | None:
    """What `where` implies for these columns, which `column` makes, and no NaN or zero that bounds and dictionaries
    hide satisfies: a NaN is not below a number, nor equal to one; zeros are compared by order only, with 0.0, which
    Java puts after -0.0."""
    found = [] if where is None else [c for part in conjuncts(where) for c in _safe(part, floats, column)]
    return reduce(and_, found) if found else None


def _safe(part: Expr, floats: Mapping[str, ReadColumn], value_of: Callable[[ReadColumn], Column]) -> Iterator[Column]:
    if not isinstance(part, Comparison) or part.op not in _FLIPPED:
        return
    left, op, right = part.left, part.op, part.right
    if isinstance(left, Literal):
        left, op, right = right, _FLIPPED[op], left
    if not (isinstance(left, Name) and isinstance(right, Literal) and len(left.path) == 1):
        return
    found, value = floats.get(left.path[0]), right.value
    if found is None or not isinstance(value, float) or right.type != left.type or math.isnan(value):
        return
    column = value_of(found)
    limit = F.lit(value or 0.0).cast(str(right.type))
    if op == "<":
        yield column < limit
    elif op == "<=":
        yield column <= limit
    elif op == "=" and value:
        yield column == limit
