"""The difference of two DataFrames as multisets, also with maps, which Spark's set operations refuse."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as S

from boathouse.engines.spark.read_schema import quoted


def subtract(left: DataFrame, right: DataFrame, columns: Sequence[str]) -> DataFrame:
    """The rows of `left` but for as many equal ones as `right` has. Maps are compared as arrays of entries."""
    schema = left.schema
    if not any(_has_map(f.dataType) for f in schema):
        return left.exceptAll(right).select(*map(quoted, columns))
    found = _each(left, schema, _entries).exceptAll(_each(right, schema, _entries))
    return _each(found, schema, _maps).select(*map(quoted, columns))


def _each(frame: DataFrame, schema: S.StructType, turn: Callable[[Column, S.DataType], Column]) -> DataFrame:
    return frame.select(*(turn(F.col(quoted(f.name)), f.dataType).alias(f.name) for f in schema))


def _has_map(type: S.DataType) -> bool:
    match type:
        case S.MapType():
            return True
        case S.ArrayType():
            return _has_map(type.elementType)
        case S.StructType():
            return any(_has_map(f.dataType) for f in type)
    return False


def _entries(value: Column, type: S.DataType) -> Column:
    """The value with every map in it as an array of entries."""
    if isinstance(type, S.MapType):
        pairs = F.map_entries(value)
        if not (_has_map(type.keyType) or _has_map(type.valueType)):
            return pairs
        return F.transform(pairs, lambda e: _pair(e, type, _entries))
    return _inside(value, type, _entries)


def _maps(value: Column, type: S.DataType) -> Column:
    """What `_entries` was made of."""
    if isinstance(type, S.MapType):
        nested = _has_map(type.keyType) or _has_map(type.valueType)
        return F.map_from_entries(F.transform(value, lambda e: _pair(e, type, _maps)) if nested else value)
    return _inside(value, type, _maps)


def _pair(entry: Column, type: S.MapType, turn: Callable[[Column, S.DataType], Column]) -> Column:
    key, item = turn(entry["key"], type.keyType), turn(entry["value"], type.valueType)
    return F.struct(key.alias("key"), item.alias("value"))


def _inside(value: Column, type: S.DataType, turn: Callable[[Column, S.DataType], Column]) -> Column:
    if not _has_map(type):
        return value
    if isinstance(type, S.ArrayType):
        element = type.elementType
        return F.transform(value, lambda e: turn(e, element))
    assert isinstance(type, S.StructType)
    fields = [turn(value.getField(f.name), f.dataType).alias(f.name) for f in type]
    return F.when(value.isNotNull(), F.struct(*fields))
