"""Adapts the schema of new tables to the types of the format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from boathouse.errors import UnsupportedTypeError
from boathouse.table.edits import CreateTable
from boathouse.table.snapshot import Target
from boathouse.types import (
    DataType,
    Field,
    FixedSizeListType,
    ListType,
    MapType,
    Schema,
    StructType,
    TimestampType,
)


def held(supports: Callable[[CreateTable], Target], table: CreateTable) -> CreateTable:
    """`table` with nanoseconds as microseconds if the format has none: the rows are cast if nothing is lost.

    `supports` raises UnsupportedTypeError for types that the format does not support; so does this, for types that it
    does not support either way.
    """
    try:
        supports(table)
        return table
    except UnsupportedTypeError:
        fields = tuple(_field(f) for f in table.schema.fields)
        if fields == table.schema.fields:
            raise
    partitions = tuple(replace(f, type=_micros(f.type)) for f in table.partition_by)
    return replace(table, schema=Schema(fields, table.schema.metadata), partition_by=partitions)


def _field(f: Field) -> Field:
    return replace(f, type=_micros(f.type))


def _micros(type: DataType) -> DataType:
    match type:
        case TimestampType(utc, "ns"):
            return TimestampType(utc, "us")
        case StructType(fields):
            return StructType(tuple(_field(f) for f in fields))
        case ListType(element):
            return ListType(_field(element))
        case FixedSizeListType(element, size):
            return FixedSizeListType(_field(element), size)
        case MapType(key, value):
            return MapType(_field(key), _field(value))
    return type
