"""Schemas as users give them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from boathouse.arrow.schema import from_arrow
from boathouse.errors import InvalidArgumentError
from boathouse.types import Field, Schema
from boathouse.types.text import parse_schema


def as_schema(schema: Any) -> Schema:
    """A Schema from any schema that users pass. Raises InvalidArgumentError."""
    if isinstance(schema, Schema):
        return schema
    if isinstance(schema, str):
        return parse_schema(schema)
    if isinstance(schema, pa.Schema):
        return from_arrow(schema)
    if hasattr(schema, "__arrow_c_schema__") and not isinstance(schema, pa.DataType | pa.Field):
        return from_arrow(pa.schema(schema))
    if type(schema).__module__.startswith("pyspark.sql"):
        return parse_schema(_spark_ddl(schema))
    if isinstance(schema, list | tuple) and all(isinstance(f, Field) for f in schema):
        return Schema(tuple(schema))
    raise InvalidArgumentError(
        f"cannot read a schema from a {type(schema).__name__}",
        advice="pass a boathouse Schema, an Arrow schema, a Spark StructType or DDL text",
    )


def _spark_ddl(struct: Any) -> str:
    parts = []
    for f in struct.fields:
        name = "`" + f.name.replace("`", "``") + "`"
        parts.append(f"{name} {f.dataType.simpleString()}{'' if f.nullable else ' not null'}")
    return ", ".join(parts)
