"""INSERT INTO and INSERT OVERWRITE, by append and overwrite."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from boathouse.api.delta_frames import counts_frame
from boathouse.api.engines import spark_engine
from boathouse.api.session_settings import evolves
from boathouse.api.sql.defaults import with_defaults
from boathouse.api.sql.tables import Tables
from boathouse.api.table import Table
from boathouse.bits.names import Names, steps
from boathouse.errors import SchemaError, SchemaMismatchError
from boathouse.expr.identifiers import quote
from boathouse.expr.sql_tokens import joined
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


def insert(tables: Tables, s: Insert) -> Any:
    """Writes the rows of the query; one row of counts."""
    table = tables.table(s.table)
    constant = _partition(s, table)
    query = with_defaults(s.query, table, _named(s, table.schema, constant))
    evolve = s.evolve or (table.format == "delta" and evolves(tables.spark))
    rows = _fitted(tables, replace(s, evolve=evolve), tables.frame(query), table.schema, constant)
    if not s.overwrite:
        result = table.append(rows, merge_schema=evolve)
    elif s.where is not None:
        result = table.overwrite(rows, tables.with_views(s.where), merge_schema=evolve)
    elif constant and not spark_engine(tables.spark).replaces_partitions:
        result = table.overwrite(
            rows, " AND ".join(f"{quote(name)} <=> {value}" for name, value in constant.items()), merge_schema=evolve
        )
    else:
        result = table.overwrite(rows, merge_schema=evolve)
    return counts_frame(tables.spark, result, "inserted")


def _partition(s: Insert, table: Table) -> dict[str, str]:
    """The values that a PARTITION clause gives to columns, as SQL."""
    fields = {f.source[0]: f.type for f in table.partitioning.current if f.transform.name == "identity"}
    names = Names(fields)
    found: dict[str, str] = {}
    for given, value in s.partition:
        if not (at := names.at(given)):
            which = f"its partition columns are {', '.join(fields)}" if fields else "it has no partition columns"
            raise SchemaError(
                f"`{given}` is in PARTITION (...), but does not partition the table: {which}",
                where=table.uri,
                advice="leave it out, or write INSERT INTO t REPLACE WHERE condition query",
            )
        name = list(fields)[at[0]]
        if name in found:
            raise SchemaError(f"PARTITION (...) names `{name}` twice", where=table.uri, advice="name it once")
        if value is not None:
            found[name] = f"CAST({joined(value)} AS {fields[name]})"
    return found


def _fitted(tables: Tables, s: Insert, rows: Any, schema: Schema, constant: Mapping[str, str]) -> Any:
    """The rows with the names of the table's columns, and its types where Spark assigns values to them; some columns
    have one value."""
    if not s.by_name:
        names = _named(s, schema, constant)
        if s.evolve and s.columns is None:
            names += rows.columns[len(names) :]
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
    twice = next((name for name in constant if Names(rows.columns).at(name)), None)
    if twice is not None:
        raise SchemaMismatchError(
            f"PARTITION (...) gives `{twice}` a value, and so do the rows", advice="leave one of them out"
        )
    return rows.selectExpr(*chosen, *(f"{value} AS {quote(name)}" for name, value in constant.items()))


def _named(s: Insert, schema: Schema, constant: Mapping[str, str]) -> list[str]:
    """The columns that the values of a row are for, by position."""
    if s.columns is not None:
        return [schema.field(steps(c)[0]).name for c in s.columns]
    return [f.name for f in schema if f.name not in constant]


def _assigned(given: DataType, to: DataType) -> bool:
    """Whether SQL assigns such values with a cast: numbers to numbers, dates to timestamps, anything to a string."""
    if given == to:
        return False
    if isinstance(given, NullType) or (isinstance(given, _NUMBERS) and isinstance(to, _NUMBERS)):
        return True
    if isinstance(to, StringType):
        return isinstance(given, (*_NUMBERS, BooleanType, DateType, TimestampType))
    return isinstance(given, DateType | TimestampType) and isinstance(to, TimestampType)
