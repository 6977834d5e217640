"""What rows have in columns that are left out when they are written: the columns' write defaults (spec, "Default
values")."""

from __future__ import annotations

import datetime as dt
from typing import Final

from boathouse.errors import UnsupportedFeatureError
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


def computed(schema: Schema, where: str) -> tuple[ComputedColumn, ...]:
    """The columns with a write default; rows that lack one whose value SQL cannot write are refused, as the name that
    stands for it is no column's. Raises UnsupportedFeatureError for a field of a struct, whose absence nobody would
    see."""
    found = []
    for path, field in schema.walk():
        if field.metadata.get(WRITE) is None:
            continue
        value = default_of(field, WRITE)
        if len(path) > 1:
            raise UnsupportedFeatureError(
                f"writing a table whose column `{'.'.join(path)}` ({field.type}) has a write default is not offered",
                where=where,
                advice=f"remove it: t.set_default({'.'.join(path)!r}, None)",
            )
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
