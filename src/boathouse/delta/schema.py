"""Converts Delta schema JSON from and to `boathouse.types.Schema` (PROTOCOL.md, "Schema Serialization Format")."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from boathouse import types as T
from boathouse.bits.text import json_value
from boathouse.errors import CorruptTableError, SchemaError, UnsupportedFeatureError, UnsupportedTypeError
from boathouse.types.data_types import children

PHYSICAL_NAME = "delta.columnMapping.physicalName"
FIELD_ID = "delta.columnMapping.id"
NESTED_IDS = "delta.columnMapping.nested.ids"
MAX_DEPTH = 100
"""The maximum nesting that is read: engines recurse into types."""
_NAMES: Mapping[str, T.DataType] = {
    "string": T.STRING, "long": T.INT64, "integer": T.INT32, "short": T.INT16, "byte": T.INT8, "float": T.FLOAT,
    "double": T.DOUBLE, "boolean": T.BOOLEAN, "binary": T.BINARY, "date": T.DATE, "timestamp": T.TIMESTAMP,
    "timestamp_ntz": T.TIMESTAMP_NTZ, "void": T.NULL, "null": T.NULL, "variant": T.VARIANT,
}  # fmt: skip
_SPELLING = {v: k for k, v in reversed(list(_NAMES.items()))}
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(-?\d+)\s*\)")


def parse_schema(text: str, where: str) -> T.Schema:
    """A schemaString. Raises CorruptTableError, and UnsupportedTypeError for an unknown type."""
    document = json_value(text, where, "the schemaString")
    if not isinstance(document, dict) or document.get("type") != "struct":
        raise CorruptTableError("the schemaString is not a struct", where=where)
    try:
        fields = _fields(document, where, 1)
    except KeyError as error:
        raise CorruptTableError(f"the schemaString cannot be read: {error} is missing", where=where) from error
    except (TypeError, AttributeError, SchemaError) as error:
        if isinstance(error, UnsupportedTypeError):
            raise
        raise CorruptTableError(f"the schemaString cannot be read: {error}", where=where) from error
    return T.Schema(fields)


def check_mapping(schema: T.Schema, by_id: bool, where: str) -> None:
    """Checks the physical names of columns: each field has its own. Raises CorruptTableError."""
    _check_names(schema.fields, "", where)
    if not by_id:
        return
    ids: dict[int, str] = {}
    for path, f in schema.walk():
        name = ".".join(path)
        if f.id is None and PHYSICAL_NAME in f.metadata:
            raise CorruptTableError(f"column `{name}` has no {FIELD_ID}, which its mapping needs", where=where)
        if f.id is not None and (other := ids.setdefault(f.id, name)) != name:
            raise CorruptTableError(f"the columns `{other}` and `{name}` have the same {FIELD_ID}, {f.id}", where=where)


def _check_names(fields: Iterable[T.Field], above: str, where: str) -> None:
    seen: dict[str, str] = {}
    for f in fields:
        path = above + f.name
        name = f.metadata.get(PHYSICAL_NAME)
        if not isinstance(name, str) or not name:
            raise CorruptTableError(f"column `{path}` has no {PHYSICAL_NAME}, which its mapping needs", where=where)
        if (other := seen.setdefault(name, path)) is not path:
            raise CorruptTableError(
                f"the columns `{other}` and `{path}` have the same {PHYSICAL_NAME}, {name}", where=where
            )
        for inner, prefix in _structs(f.type, path):
            _check_names(inner.fields, f"{prefix}.", where)


def _structs(type: T.DataType, path: str) -> Iterator[tuple[T.StructType, str]]:
    """The nearest structs at or below a type."""
    if isinstance(type, T.StructType):
        yield type, path
        return
    for f in children(type):
        yield from _structs(f.type, f"{path}.{f.name}")


def without_mapping(schema: T.Schema) -> T.Schema:
    """The schema of a table without column mapping: names and ids left behind by a former mapping are ignored."""
    return without_keys(schema, (PHYSICAL_NAME, FIELD_ID, NESTED_IDS))


def without_keys(schema: T.Schema, keys: Collection[str]) -> T.Schema:
    """The schema without ids, and without these keys in the metadata of fields."""
    return T.Schema(tuple(_without(f, keys) for f in schema), schema.metadata)


def _without(f: T.Field, keys: Collection[str]) -> T.Field:
    kept = {k: v for k, v in f.metadata.items() if k not in keys}
    type: T.DataType = f.type
    match type:
        case T.StructType(fields):
            type = T.StructType(tuple(_without(c, keys) for c in fields))
        case T.ListType(element):
            type = T.ListType(_without(element, keys))
        case T.MapType(key, value):
            type = T.MapType(_without(key, keys), _without(value, keys))
    return T.Field(f.name, type, f.nullable, None, f.doc, kept)


def _fields(struct: Mapping[str, Any], where: str, depth: int) -> tuple[T.Field, ...]:
    fields = tuple(_field(f, where, depth) for f in struct["fields"])
    seen: dict[str, str] = {}
    for f in fields:
        if (other := seen.setdefault(f.name.lower(), f.name)) is not f.name:
            raise CorruptTableError(f"the schema has the columns {other!r} and {f.name!r}", where=where)
    return fields


def _field(document: Mapping[str, Any], where: str, depth: int) -> T.Field:
    metadata = document.get("metadata") or {}
    id, name, nullable = metadata.get(FIELD_ID), document["name"], document.get("nullable", True)
    if not isinstance(name, str):
        raise CorruptTableError(f"a field of the schema is called {name!r}, which is not a name", where=where)
    if not isinstance(nullable, bool):
        raise CorruptTableError(f"`nullable` of the field {name!r} is {nullable!r}", where=where)
    type = parse_type(document["type"], where, depth)
    if isinstance(nested := metadata.get(NESTED_IDS), dict):
        type = _with_ids(type, str(metadata.get(PHYSICAL_NAME, name)), nested)
    return T.Field(
        name,
        type,
        nullable,
        id if isinstance(id, int) and not isinstance(id, bool) else None,
        metadata.get("comment") if isinstance(metadata.get("comment"), str) else None,
        metadata,
    )


def _with_ids(type: T.DataType, above: str, ids: Mapping[str, Any]) -> T.DataType:
    """The type with the ids of its elements, keys and values, down to its structs: files have them too."""

    def inside(f: T.Field) -> T.Field:
        path, id = f"{above}.{f.name}", ids.get(f"{above}.{f.name}")
        found = id if isinstance(id, int) and not isinstance(id, bool) else None
        return replace(f, type=_with_ids(f.type, path, ids), id=found)

    match type:
        case T.ListType(element):
            return T.ListType(inside(element))
        case T.MapType(key, value):
            return T.MapType(inside(key), inside(value))
    return type


def parse_type(document: Any, where: str, depth: int = 1) -> T.DataType:
    """A type in schema JSON, `depth` levels below the table's."""
    if depth > MAX_DEPTH:
        raise UnsupportedFeatureError(f"the schema is more than {MAX_DEPTH} levels deep", where=where)
    if isinstance(document, str):
        if (found := _NAMES.get(document)) is not None:
            return found
        if document == "decimal":
            return T.DecimalType(10, 0)
        if match := _DECIMAL.fullmatch(document):
            return T.DecimalType(int(match[1]), int(match[2]))
        raise UnsupportedTypeError(
            f"the Delta type {document!r} is not offered", where=where, advice="upgrade boathouse"
        )
    kind = document.get("type")
    if kind == "struct":
        return T.StructType(_fields(document, where, depth + 1))
    if kind == "array":
        element = parse_type(document["elementType"], where, depth + 1)
        return T.ListType(T.Field("element", element, bool(document["containsNull"])))
    if kind == "map":
        of_values = parse_type(document["valueType"], where, depth + 1)
        value = T.Field("value", of_values, bool(document["valueContainsNull"]))
        return T.MapType(T.Field("key", parse_type(document["keyType"], where, depth + 1), False), value)
    raise UnsupportedTypeError(f"the Delta type {kind!r} is not offered", where=where, advice="upgrade boathouse")


def schema_json(schema: T.Schema) -> str:
    """The schemaString of a schema. Raises UnsupportedTypeError naming the column."""
    return json.dumps({"type": "struct", "fields": [field_json(f, f.name) for f in schema]}, ensure_ascii=False)


def field_json(field: T.Field, path: str) -> dict[str, Any]:
    """One field as schema JSON; `path` is its name in errors."""
    metadata = dict(field.metadata)
    if field.doc is not None:
        metadata.setdefault("comment", field.doc)
    return {"name": field.name, "type": type_json(field.type, path), "nullable": field.nullable, "metadata": metadata}


def type_json(type: T.DataType, path: str) -> Any:
    """A type as schema JSON. Raises UnsupportedTypeError for what Delta has no type for."""
    if (name := _SPELLING.get(type)) is not None:
        return name
    match type:
        case T.DecimalType(precision, scale) if precision <= 38:
            return f"decimal({precision},{scale})"
        case T.StructType(fields):
            return {"type": "struct", "fields": [field_json(f, f"{path}.{f.name}") for f in fields]}
        case T.ListType(element):
            return {
                "type": "array",
                "elementType": type_json(element.type, f"{path}.element"),
                "containsNull": element.nullable,
            }
        case T.MapType(key, value):
            return {
                "type": "map",
                "keyType": type_json(key.type, f"{path}.key"),
                "valueType": type_json(value.type, f"{path}.value"),
                "valueContainsNull": value.nullable,
            }
    raise UnsupportedTypeError(
        f"column `{path}` is {type}, which Delta has no type for", advice="cast the column to a type of Delta"
    )


def is_mapped(schema: T.Schema) -> bool:
    """Whether files have other names than the schema: every field of a table with column mapping has one."""
    return any(PHYSICAL_NAME in f.metadata for f in schema)


def physical_name(field: T.Field) -> str:
    """The name in files, statistics and partition values: the mapped one if there is one."""
    found = field.metadata.get(PHYSICAL_NAME)
    return found if isinstance(found, str) else field.name


def physical_path(schema: T.Schema, path: Sequence[str]) -> tuple[str, ...]:
    """The names of the fields on a path in files; lists and maps have `element`, `key` and `value`."""
    fields, found, inside = schema.fields, [], True
    for name in path:
        f = next(f for f in fields if f.name == name)
        found.append(physical_name(f) if inside else name)
        fields, inside = children(f.type), isinstance(f.type, T.StructType)
    return tuple(found)
