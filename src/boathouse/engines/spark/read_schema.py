"""The read schema for Spark's Parquet reader of the columns of a `ReadSpec`: by physical name.

Never by field id: Spark resolves pushed filters by name even when it reads by id, and so loses rows where a name was
swapped or reused; and the setting that enables ids is the session's, evaluated when the query runs, so that a frame
would return nulls if it is switched off. Tables whose names and ids diverged are read by executor tasks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as S

from boathouse.engines.spark.schema import spark_type
from boathouse.expr.text import sql_literal
from boathouse.expr.tree import Literal
from boathouse.parquet.matching import Matching
from boathouse.table.tasks import ReadColumn, ReadSpec
from boathouse.types import (
    BinaryType,
    DataType,
    Field,
    FixedType,
    ListType,
    MapType,
    StructType,
    TimestampType,
    TimeType,
)


@dataclass(frozen=True, slots=True)
class Shape:
    """The fields to read for some columns, and each column's expression over them (a column of the frame)."""

    fields: tuple[S.StructField, ...]
    names: dict[str, str]
    casts: frozenset[str]

    def column(self, c: ReadColumn) -> Column:
        """The value of a column, with its own type and names."""
        value = F.col(quoted(self.names[c.name]))
        if c.name in self.casts:
            value = value.cast(spark_type(c.type, c.name))
        return value


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def by_id(read: ReadSpec) -> bool:
    """Whether columns must be found by field id: the format did not declare that names and ids never diverged."""
    if all(c.field_id is None for c in read.columns):
        return False
    return read.diverged


def nested_obstacle(read: ReadSpec) -> str | None:
    """Why nested fields, defaults or ids prevent Spark's reader from reading the columns; None if nothing does."""
    if by_id(read):
        return "names and field ids diverged, which Spark's reader does not handle safely"
    rules = read.matching
    for c in read.columns:
        if c.default is not None and default_sql(c) is None:
            return f"a default of type {c.type} (`{c.name}`)"
        for f in _below(c.type):
            if rules.default(f) is not None:
                return f"a default inside the nested column `{c.name}`"
    return None


def holds_struct(type: DataType) -> bool:
    """Whether there is a struct in the type."""
    return isinstance(type, StructType) or any(isinstance(f.type, StructType) for f in _below(type))


def _inside(type: DataType) -> tuple[Field, ...]:
    match type:
        case StructType(fields):
            return fields
        case ListType(element):
            return (element,)
        case MapType(key, value):
            return (key, value)
    return ()


def _below(type: DataType) -> Iterator[Field]:
    for f in _inside(type):
        yield f
        yield from _below(f.type)


def shape_of(read: ReadSpec, columns: tuple[ReadColumn, ...]) -> Shape:
    """The read schema of these columns, none of which is constant in the files that are read."""
    rules = read.matching
    fields: list[S.StructField] = []
    names: dict[str, str] = {}
    casts: set[str] = set()
    for c in columns:
        name = (c.physical or (c.name,))[0]
        names[c.name] = name
        if _renames(c.type, rules):
            casts.add(c.name)
        fields.append(S.StructField(name, _physical(c.type, c.name, rules), True, _metadata(c)))
    return Shape(tuple(fields), names, frozenset(casts))


def _metadata(c: ReadColumn) -> dict[str, Any]:
    return {} if c.default is None else {"EXISTS_DEFAULT": default_sql(c)}


def _renames(type: DataType, rules: Matching) -> bool:
    """Whether a field in the type has another name in the files; Spark casts structs by position, so a cast restores
    the table's names."""
    named = type.fields if isinstance(type, StructType) else ()
    return any(rules.physical_name(f) != f.name for f in named) or any(_renames(f.type, rules) for f in _inside(type))


def _physical(type: DataType, path: str, rules: Matching) -> S.DataType:
    """The type with the names in the files, and with the table's nullability and comments."""
    match type:
        case StructType(fields):
            return S.StructType([_physical_field(f, path, rules) for f in fields])
        case ListType(element):
            return S.ArrayType(_physical(element.type, f"{path}.element", rules), element.nullable)
        case MapType(key, value):
            names = _physical(key.type, f"{path}.key", rules)
            return S.MapType(names, _physical(value.type, f"{path}.value", rules), value.nullable)
    return spark_type(type, path)


def _physical_field(f: Field, path: str, rules: Matching) -> S.StructField:
    inner = _physical(f.type, f"{path}.{f.name}", rules)
    return S.StructField(rules.physical_name(f), inner, f.nullable, {} if f.doc is None else {"comment": f.doc})


def _in_nanoseconds(type: DataType) -> bool:
    return isinstance(type, TimestampType) and type.unit == "ns"


def default_sql(c: ReadColumn) -> str | None:
    """A column's default as SQL text for EXISTS_DEFAULT; None for types whose defaults Spark's reader cannot fill
    in."""
    if isinstance(c.type, (StructType, ListType, MapType, BinaryType, FixedType, TimeType)) or _in_nanoseconds(c.type):
        return None
    return sql_literal(Literal.of(c.default).value, c.type)
