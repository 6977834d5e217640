"""What rows have in columns and fields that are left out when they are written: their write defaults (spec, "Default
values")."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

from boathouse.expr.identifiers import quote
from boathouse.expr.text import sql_literal
from boathouse.expr.tree import Literal
from boathouse.iceberg.metadata.single_values import WRITE, default_of
from boathouse.table.tasks import ComputedColumn
from boathouse.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    FixedType,
    FloatType,
    IntegerType,
    Schema,
    StringType,
    TimestampType,
)

_PLAIN: Final = (BooleanType, IntegerType, FloatType, DecimalType, StringType, BinaryType, FixedType)


def absent(schema: Schema) -> dict[int, Any]:
    """The write defaults of fields of structs, at any depth, by field id."""
    nested = (f for path, f in schema.walk() if len(path) > 1 and f.metadata.get(WRITE) is not None)
    return {f.id: default_of(f, WRITE) for f in nested if f.id is not None}


def computed(schema: Schema) -> tuple[ComputedColumn, ...]:
    """The columns with a write default; rows that lack one whose value SQL cannot write are refused, as the name that
    stands for it is no column's."""
    found = []
    for field in schema.fields:
        if field.metadata.get(WRITE) is None:
            continue
        value = default_of(field, WRITE)
        sql = _sql(value, field.type) if writable(field.type) else quote(f"the write default of {field.name}")
        found.append(ComputedColumn(field.name, sql, generated=False))
    return tuple(found)


def writable(type: DataType) -> bool:
    """Whether SQL text can write every value of the type."""
    return isinstance(type, (*_PLAIN, DateType)) or (isinstance(type, TimestampType) and type.unit == "us")


def _sql(value: object, type: DataType) -> str:
    if isinstance(value, dt.date):
        return str(Literal.of(value))
    return sql_literal(value, type)
