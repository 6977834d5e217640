"""INSERT INTO and INSERT OVERWRITE, by append and overwrite."""

from __future__ import annotations

from typing import Any, Final

from boathouse.api.engines import spark_engine
from boathouse.api.frames import counts_frame
from boathouse.api.sql_tables import Tables
from boathouse.bits.names import steps
from boathouse.errors import SchemaMismatchError, UnsupportedFeatureError
from boathouse.expr.identifiers import quote
from boathouse.expr.statement_tree import Insert
from boathouse.types import (
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    FloatType,
    IntegerType,
    NullType,
    Schema,
    StringType,
    TimestampType,
)

_NUMBERS: Final = (IntegerType, FloatType, DecimalType)
_MODE: Final = "spark.sql.sources.partitionOverwriteMode"


def insert(tables: Tables, s: Insert) -> Any:
    """Writes the rows of the query; one row of counts."""
    table = tables.table(s.table)
    if s.overwrite and s.where is None and table.partitioning.current.fields:
        mode = str(tables.spark.conf.get(_MODE, "static"))
        if mode.lower() == "dynamic":
            raise UnsupportedFeatureError(
                f"{_MODE}=dynamic is not offered", advice="write INSERT INTO t REPLACE WHERE p = 1 SELECT ..."
            )
    rows = _fitted(tables, s, tables.frame(s.query), table.schema)
    if not s.overwrite:
        result = table.append(rows)
    else:
        result = table.overwrite(rows, None if s.where is None else tables.with_views(s.where))
    return counts_frame(tables.spark, result, "inserted")


def _fitted(tables: Tables, s: Insert, rows: Any, schema: Schema) -> Any:
    """The rows with the names of the table's columns, and its types where Spark assigns values to them."""
    if not s.by_name:
        names = [f.name for f in schema] if s.columns is None else [schema.field(steps(c)[0]).name for c in s.columns]
        if len(names) != len(rows.columns):
            raise SchemaMismatchError(
                f"the query has {len(rows.columns)} columns, and {len(names)} are inserted ({', '.join(names)})",
                advice="name the columns, INSERT INTO t (a, b), or write INSERT INTO t BY NAME",
            )
        rows = rows.toDF(*names)
    chosen = []
    for f in spark_engine(tables.spark).schema(rows):
        to = schema.fields[at[0]].type if (at := schema.places.at(f.name)) else None
        name = quote(f.name)
        chosen.append(name if to is None or not _assigned(f.type, to) else f"CAST({name} AS {to}) AS {name}")
    return rows.selectExpr(*chosen)


def _assigned(given: DataType, to: DataType) -> bool:
    """Whether SQL assigns such values with a cast: numbers to numbers, dates to timestamps, anything to a string."""
    if given == to:
        return False
    if isinstance(given, NullType) or (isinstance(given, _NUMBERS) and isinstance(to, _NUMBERS)):
        return True
    if isinstance(to, StringType):
        return isinstance(given, (*_NUMBERS, BooleanType, DateType, TimestampType))
    return isinstance(given, DateType | TimestampType) and isinstance(to, TimestampType)
