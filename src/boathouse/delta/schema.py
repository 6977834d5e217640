"""Delta schema JSON from and to `boathouse.types.Schema` (PROTOCOL.md, "Schema Serialization Format")."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from boathouse.errors import CorruptTableError, SchemaError, UnsupportedTypeError
from boathouse.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT8,
    INT16,
    INT32,
    INT64,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    DataType,
    DecimalType,
    Field,
    ListType,
    MapType,
    Schema,
    StructType,
)

PHYSICAL_NAME = "delta.columnMapping.physicalName"
FIELD_ID = "delta.columnMapping.id"
_NAMES: Mapping[str, DataType] = {
    "string": STRING, "long": INT64, "integer": INT32, "short": INT16, "byte": INT8, "float": FLOAT,
    "double": DOUBLE, "boolean": BOOLEAN, "binary": BINARY, "date": DATE, "timestamp": TIMESTAMP,
    "timestamp_ntz": TIMESTAMP_NTZ, "void": NULL, "null": NULL, "variant": VARIANT,
}  # fmt: skip
_SPELLING = {v: k for k, v in reversed(list(_NAMES.items()))}
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(-?\d+)\s*\)")


def parse_schema(text: str, where: str) -> Schema:
    """A schemaString. Raises CorruptTableError, and UnsupportedTypeError for a type that is not known."""
    try:
        document = json.loads(text)
    except ValueError as error:
        raise CorruptTableError(f"the schemaString is no JSON: {error}", where=where) from error
    if not isinstance(document, dict) or document.get("type") != "struct":
        raise CorruptTableError("the schemaString is no struct", where=where)
    try:
        fields = _fields(document, where)
    except (KeyError, TypeError, AttributeError, SchemaError) as error:
        if isinstance(error, UnsupportedTypeError):
            raise
        raise CorruptTableError(f"the schemaString cannot be read: {error}", where=where) from error
    seen: dict[str, str] = {}
    for f in fields:
        if (other := seen.setdefault(f.name.lower(), f.name)) is not f.name:
            raise CorruptTableError(f"the schema has the columns {other!r} and {f.name!r}", where=where)
    return Schema(fields)


def without_mapping(schema: Schema) -> Schema:
    """The schema of a table that maps no columns: names and ids that a mapping left behind mean nothing."""
    return Schema(tuple(_unmapped(f) for f in schema), schema.metadata)


def _unmapped(f: Field) -> Field:
    kept = {k: v for k, v in f.metadata.items() if k not in (PHYSICAL_NAME, FIELD_ID)}
    type: DataType = f.type
    match type:
        case StructType(fields):
            type = StructType(tuple(_unmapped(c) for c in fields))
        case ListType(element):
            type = ListType(_unmapped(element))
        case MapType(key, value):
            type = MapType(_unmapped(key), _unmapped(value))
    return Field(f.name, type, f.nullable, None, f.doc, kept)


def _fields(struct: Mapping[str, Any], where: str) -> tuple[Field, ...]:
    return tuple(_field(f, where) for f in struct["fields"])


def _field(document: Mapping[str, Any], where: str) -> Field:
    metadata = document.get("metadata") or {}
    id = metadata.get(FIELD_ID)
    return Field(
        document["name"],
        parse_type(document["type"], where),
        bool(document.get("nullable", True)),
        int(id) if isinstance(id, int) else None,
        metadata.get("comment") if isinstance(metadata.get("comment"), str) else None,
        metadata,
    )


def parse_type(document: Any, where: str) -> DataType:
    """A type in schema JSON."""
    if isinstance(document, str):
        if (found := _NAMES.get(document)) is not None:
            return found
        if document == "decimal":
            return DecimalType(10, 0)
        if match := _DECIMAL.fullmatch(document):
            return DecimalType(int(match[1]), int(match[2]))
        raise UnsupportedTypeError(
            f"the Delta type {document!r} is not offered", where=where, advice="upgrade boathouse"
        )
    kind = document.get("type")
    if kind == "struct":
        return StructType(_fields(document, where))
    if kind == "array":
        element = parse_type(document["elementType"], where)
        return ListType(Field("element", element, bool(document["containsNull"])))
    if kind == "map":
        value = Field("value", parse_type(document["valueType"], where), bool(document["valueContainsNull"]))
        return MapType(Field("key", parse_type(document["keyType"], where), False), value)
    raise UnsupportedTypeError(f"the Delta type {kind!r} is not offered", where=where, advice="upgrade boathouse")


def schema_json(schema: Schema) -> str:
    """The schemaString of a schema. Raises UnsupportedTypeError naming the column."""
    return json.dumps({"type": "struct", "fields": [field_json(f, f.name) for f in schema]}, ensure_ascii=False)


def field_json(field: Field, path: str) -> dict[str, Any]:
    """One field as schema JSON; `path` is what errors name."""
    metadata = dict(field.metadata)
    if field.doc is not None:
        metadata.setdefault("comment", field.doc)
    return {"name": field.name, "type": type_json(field.type, path), "nullable": field.nullable, "metadata": metadata}


def type_json(type: DataType, path: str) -> Any:
    """A type as schema JSON. Raises UnsupportedTypeError for what Delta has no type for."""
    if (name := _SPELLING.get(type)) is not None:
        return name
    match type:
        case DecimalType(precision, scale) if precision <= 38:
            return f"decimal({precision},{scale})"
        case StructType(fields):
            return {"type": "struct", "fields": [field_json(f, f"{path}.{f.name}") for f in fields]}
        case ListType(element):
            return {
                "type": "array",
                "elementType": type_json(element.type, f"{path}.element"),
                "containsNull": element.nullable,
            }
        case MapType(key, value):
            return {
                "type": "map",
                "keyType": type_json(key.type, f"{path}.key"),
                "valueType": type_json(value.type, f"{path}.value"),
                "valueContainsNull": value.nullable,
            }
    raise UnsupportedTypeError(
        f"column `{path}` is {type}, which Delta has no type for", advice="cast the column to a type that Delta has"
    )


def physical_name(field: Field) -> str:
    """The name in files, statistics and partition values: the mapped one if there is one."""
    found = field.metadata.get(PHYSICAL_NAME)
    return found if isinstance(found, str) else field.name
