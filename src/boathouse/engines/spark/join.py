"""Joins of DataFrames whose result has a struct column per side, and expressions over such a result."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from boathouse.engines.spark.errors import expression_error
from boathouse.engines.spark.read_schema import quoted
from boathouse.errors import InvalidArgumentError
from boathouse.table.engine import JoinType

_SIDE = "boathouse:side"
_PRESENT = "_present"


def join(left: DataFrame, right: DataFrame, on: str, how: JoinType, sides: tuple[str, str]) -> DataFrame:
    """The pairs of rows as two struct columns, each null where its side has no match; for semi and anti the left rows.

    Spark plans an ordinary join of the columns: the structs are made of its rows. Left rows without a match, where they
    are not in the result, are dropped by a semi join first: Spark can send the keys of a small right side to all tasks,
    which it cannot do with the right side of a right join, whose other side would be shuffled whole.
    """
    if sides[0].lower() == sides[1].lower():
        raise InvalidArgumentError(f"both sides of a join are named {sides[0]!r}", advice="name them differently")
    if how in ("semi", "anti"):
        kept = [_column(sides[0], name) for name in left.columns]
        return resolved(
            lambda: left.alias(sides[0]).join(right.alias(sides[1]), F.expr(on), f"left_{how}").select(*kept)
        )
    if how in ("inner", "right"):
        left = join(left, right, on, "semi", sides)
    missing = (how in ("right", "full"), how in ("left", "full"))
    packed = [_packed(side, frame.columns, may) for side, frame, may in zip(sides, (left, right), missing, strict=True)]
    marked = [
        (frame.withColumn(_marker(frame.columns), F.lit(True)) if may else frame).alias(side)
        for side, frame, may in zip(sides, (left, right), missing, strict=True)
    ]
    return resolved(lambda: marked[0].join(marked[1], F.expr(on), how).select(*packed))


def with_columns(rel: DataFrame) -> DataFrame:
    """The result of a join with the columns of both sides beside the structs, so that names resolve without a side."""
    sides = [f for f in rel.schema.fields if (f.metadata or {}).get(_SIDE) == f.name]
    if len(sides) != 2 or len(rel.columns) != 2:
        return rel
    taken = {f.name.lower() for f in sides}
    columns = [
        F.col(f"{quoted(side.name)}.{quoted(name)}").alias(name)
        for side in sides
        for name in side.dataType.names
        if name.lower() not in taken
    ]
    return rel.select("*", *columns)


def resolved(make: Callable[[], DataFrame]) -> DataFrame:
    """The frame, its names resolved now, also on Connect. Raises ExpressionError."""
    try:
        frame = make()
        _ = frame.schema
    except AnalysisException as error:
        raise expression_error(error) from error
    return frame


def _packed(side: str, names: list[str], may_miss: bool) -> Column:
    """The columns of one side as a struct: null where the marker is, which is never null in the side's own rows."""
    struct = F.struct(*(_column(side, name) for name in names))
    if may_miss:
        struct = F.when(_column(side, _marker(names)).isNotNull(), struct)
    return struct.alias(side, metadata={_SIDE: side})


def _column(side: str, name: str) -> Column:
    return F.col(f"{quoted(side)}.{quoted(name)}")


def _marker(names: list[str]) -> str:
    """A name that no column has."""
    marker, known = _PRESENT, {name.lower() for name in names}
    while marker in known:
        marker += "_"
    return marker
