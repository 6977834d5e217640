"""Expressions mean what they mean in Spark's ANSI mode, whatever the mode of the session is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.sql import SparkSession

from boathouse.engines.spark.session import settings
from boathouse.expr.functions import FUNCTIONS
from boathouse.expr.tree import Arithmetic, Cast, Expr, Function
from boathouse.types import DataType, DecimalType, FloatType, IntegerType

SETTING: Final = "spark.sql.ansi.enabled"
_OTHERWISE: Final = frozenset({"size"})
"""Functions that never fail, and have another value without the mode: -1 for null."""


def is_on(spark: SparkSession) -> bool:
    """Whether the session's mode is on. Its default may come from the environment of Spark's driver."""
    return str(spark.conf.get(SETTING)).lower() == "true"


@contextmanager
def turned_on(spark: SparkSession) -> Iterator[None]:
    """Turns the mode on inside the block. Classic Spark fixes the meaning of an expression when a frame is made of it,
    Connect when the frame runs."""
    if is_on(spark):
        yield
        return
    with settings(spark, {SETTING: "true"}):
        yield


def same_without(e: Expr) -> bool:
    """Whether Spark gives the bound `e`, as text, the same value without the mode; casts are spelled out in it."""
    match e:
        case Arithmetic(op):
            own = isinstance(e.type, FloatType) and op in ("+", "-", "*")
        case Cast(arg, to, safe):
            own = safe or _widens(arg.type, to)
        case Function(name):
            own = FUNCTIONS[name].total and name not in _OTHERWISE
        case _:
            own = True
    return own and all(map(same_without, e.children()))


def _widens(a: DataType | None, b: DataType) -> bool:
    """Whether a cast keeps every value."""
    match a, b:
        case (IntegerType(bits, True), IntegerType(wider, True)):
            return bits <= wider
        case (IntegerType() | FloatType(), FloatType(64)):
            return True
        case (IntegerType(bits), DecimalType(precision, scale)):
            return precision - scale >= {8: 3, 16: 5, 32: 10, 64: 20}[bits]
        case (DecimalType(precision, scale), DecimalType(wider, finer)):
            return finer >= scale and wider - finer >= precision - scale
    return a == b
