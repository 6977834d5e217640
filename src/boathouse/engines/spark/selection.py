"""Selections of many columns in few calls to the JVM: a step of a Column costs a dozen, a text in `selectExpr` one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from boathouse.engines.spark.floats import opaque
from boathouse.engines.spark.read_schema import quoted
from boathouse.engines.spark.session import flag
from boathouse.types import FloatType

_REGEX: Final = "spark.sql.parser.quotedRegexColumnNames"
"""A setting from Hive: names in backquotes are patterns then, in texts alone."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A column of a frame by its name; with `floats` one on which no condition is passed to the reader of files."""

    name: str
    floats: FloatType | None = None

    def text(self) -> str:
        """As SQL."""
        name = quoted(self.name)
        return name if self.floats is None else f"nanvl({name}, CAST('NaN' AS {self.floats}))"

    def column(self) -> Column:
        """As a Column."""
        found = F.col(quoted(self.name))
        return found if self.floats is None else opaque(found, self.floats)


Expression: TypeAlias = Stored | Column


def as_column(value: Expression) -> Column:
    """An expression as a Column."""
    return value.column() if isinstance(value, Stored) else value


def selected(spark: SparkSession, frame: DataFrame, columns: Sequence[tuple[str, Expression]]) -> DataFrame:
    """Expressions under names, in this order."""
    made = [(name, e) for name, e in columns if not isinstance(e, Stored)]
    taken = {name.lower() for name in frame.columns} if made else set()
    if any(name.lower() in taken for name, _ in made) or flag(spark, _REGEX, False):
        return frame.select(*(as_column(e).alias(name) for name, e in columns))
    if made:
        frame = frame.select("*", *(e.alias(name) for name, e in made))
    return frame.selectExpr(
        *(f"{e.text()} AS {quoted(name)}" if isinstance(e, Stored) else quoted(name) for name, e in columns)
    )
