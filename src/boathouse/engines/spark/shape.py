"""How the columns of a `ReadSpec` are asked of Spark's Parquet reader: by physical name, or by field id.

Field ids are read under names that no file has (`__f<id>`): Spark resolves pushed filters by name even when it reads
by id, and so loses rows where a name was swapped or used again. The setting that makes Spark look at ids is a
session's, read when the query runs: were it switched off in between, every column would be null. So some columns are
also asked for under their own names with an id that no file has: they are null exactly as long as ids count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as S

from boathouse import registry
from boathouse.engines.spark.schema import spark_type
from boathouse.expr.text import sql_literal
from boathouse.expr.tree import Literal
from boathouse.parquet.resolve import Matching
from boathouse.table.tasks import ReadColumn, ReadSpec
from boathouse.types import BinaryType, DataType, Field, FixedType, ListType, MapType, StructType

FIELD_ID = "parquet.field.id"
READ_BY_ID = "spark.sql.parquet.fieldId.read.enabled"
_NO_ID = 2**31 - 1
_WATCHED = 4
_SWITCHED_OFF = f"boathouse: {READ_BY_ID} was switched off while a frame that needs it was alive"


@dataclass(frozen=True, slots=True)
class Shape:
    """The fields to read for some columns, and the expression of each column over them (a column of the frame)."""

    fields: tuple[S.StructField, ...]
    names: dict[str, str]
    by_id: bool
    casts: frozenset[str]
    watched: tuple[str, ...] = ()

    def column(self, c: ReadColumn) -> Column:
        """The value of a column, under its own type and names."""
        value = F.col(quoted(self.names[c.name]))
        if c.name in self.casts:
            value = value.cast(spark_type(c.type, c.name))
        if not self.watched:
            return value
        off = reduce(Column.__or__, (F.col(quoted(w)).isNotNull() for w in self.watched))
        return F.when(off, F.raise_error(F.lit(_SWITCHED_OFF))).otherwise(value)


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def by_id(read: ReadSpec) -> bool:
    """Whether columns must be found by field id: the format did not say that names and ids never diverged."""
    if all(c.field_id is None for c in read.columns):
        return False
    return read.options.get("names_diverged") is not False


def matching(read: ReadSpec) -> Matching:
    """How the format finds nested fields: its tasks module's `matching(read)`, else by their own names."""
    find = getattr(registry.tasks(read.format), "matching", None)
    return Matching() if find is None else find(read)


def nested_obstacle(read: ReadSpec) -> str | None:
    """Why nested fields, defaults or ids keep Spark's reader from giving the columns; None if nothing does."""
    ids = by_id(read)
    rules = matching(read)
    if ids and read.where is not None:
        return "names and field ids may differ, and Spark skips no row group under a filter then"
    if ids and any(c.field_id is None for c in read.columns if not c.constant_in):
        return "columns without a field id beside columns that need one"
    if ids and rules.file_ids is not None:
        return "files without field ids are read through a name mapping"
    for c in read.columns:
        if c.default is not None and default_sql(c) is None:
            return f"a default of type {c.type} (`{c.name}`)"
        for f in _below(c.type):
            if rules.default(f) is not None:
                return f"a default inside the nested column `{c.name}`"
            if ids and f.id is None and f.name not in ("element", "key", "value"):
                return f"a field without an id inside `{c.name}`"
    return None


def _below(type: DataType) -> Iterator[Field]:
    match type:
        case StructType(fields):
            below = fields
        case ListType(element):
            below = (element,)
        case MapType(key, value):
            below = (key, value)
        case _:
            below = ()
    for f in below:
        yield f
        yield from _below(f.type)


def shape_of(read: ReadSpec, columns: tuple[ReadColumn, ...]) -> Shape:
    """The shape of these columns, none of them constant in the files that are read."""
    ids = by_id(read)
    rules = matching(read)
    fields: list[S.StructField] = []
    names: dict[str, str] = {}
    casts: set[str] = set()
    for c in columns:
        name = f"__f{c.field_id}" if ids else (c.physical or (c.name,))[0]
        names[c.name] = name
        physical = _physical(c.type, c.name, rules, ids)
        if physical != spark_type(c.type, c.name):
            casts.add(c.name)
        fields.append(S.StructField(name, physical, True, _metadata(c, ids)))
    watched = _watched(columns, set(names.values())) if ids else []
    return Shape((*fields, *watched), names, ids, frozenset(casts), tuple(w.name for w in watched))


def _metadata(c: ReadColumn, ids: bool) -> dict[str, Any]:
    metadata: dict[str, Any] = {FIELD_ID: c.field_id} if ids else {}
    if c.default is not None:
        metadata["EXISTS_DEFAULT"] = default_sql(c)
    return metadata


def _watched(columns: tuple[ReadColumn, ...], taken: set[str]) -> list[S.StructField]:
    plain = [c for c in columns if not isinstance(c.type, (StructType, ListType, MapType)) and c.name not in taken]
    return [
        S.StructField(c.name, spark_type(c.type, c.name), True, {FIELD_ID: _NO_ID - i})
        for i, c in enumerate(plain[:_WATCHED])
    ]


def _physical(type: DataType, path: str, rules: Matching, ids: bool) -> S.DataType:
    """The type as the files spell it; Spark casts structs by position, so a cast gives the table's names back."""
    match type:
        case StructType(fields):
            return S.StructType([_physical_field(f, path, rules, ids) for f in fields])
        case ListType(element):
            return S.ArrayType(_physical(element.type, f"{path}.element", rules, ids))
        case MapType(key, value):
            return S.MapType(
                _physical(key.type, f"{path}.key", rules, ids), _physical(value.type, f"{path}.value", rules, ids)
            )
    return spark_type(type, path)


def _physical_field(f: Field, path: str, rules: Matching, ids: bool) -> S.StructField:
    inner = _physical(f.type, f"{path}.{f.name}", rules, ids)
    if ids:
        return S.StructField(f"__f{f.id}", inner, True, {FIELD_ID: f.id})
    return S.StructField(rules.physical_name(f), inner, True)


def default_sql(c: ReadColumn) -> str | None:
    """A column's default as SQL text for EXISTS_DEFAULT; None for types that Spark's reader cannot fill in."""
    if isinstance(c.type, (StructType, ListType, MapType, BinaryType, FixedType)):
        return None
    return sql_literal(Literal.of(c.default).value, c.type)
