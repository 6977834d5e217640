"""The Avro schemas of data files and delete files (spec, Appendix A, Avro)."""

from __future__ import annotations

from typing import Any

from boathouse import types as T
from boathouse.iceberg.manifests.schemas import avro_name, avro_type


def avro_schema(schema: T.Schema) -> dict[str, Any]:
    """The record of a schema without void fields. Names that Avro does not allow are spelled out; as readers go by ids,
    a name that two fields of a record then have gets its id."""
    return {"type": "record", "name": "table", "fields": _fields(schema.fields)}


def _fields(fields: tuple[T.Field, ...]) -> list[dict[str, Any]]:
    found = []
    taken = {f.name for f in fields if avro_name(f.name) == f.name}
    for field in fields:
        name = avro_name(field.name)
        if name != field.name:
            name = f"{name}_{field.id}" if name in taken else name
            taken.add(name)
        made = {"name": name, "type": _optional(field), "field-id": field.id}
        if name != field.name:
            made["iceberg-field-name"] = field.name
        if field.doc is not None:
            made["doc"] = field.doc
        if field.nullable:
            made["default"] = None
        found.append(made)
    return found


def _optional(field: T.Field) -> Any:
    return ["null", _type(field)] if field.nullable else _type(field)


def _type(field: T.Field) -> Any:
    assert field.id is not None
    match field.type:
        case T.StructType(fields):
            return {"type": "record", "name": f"r{field.id}", "fields": _fields(fields)}
        case T.ListType(element):
            return {"type": "array", "items": _optional(element), "element-id": element.id}
        case T.MapType(key, value) if isinstance(key.type, T.StringType):
            return {"type": "map", "values": _optional(value), "key-id": key.id, "value-id": value.id}
        case T.MapType(key, value):
            parts = [
                {"name": "key", "type": _type(key), "field-id": key.id},
                {"name": "value", "type": _optional(value), "field-id": value.id},
            ]
            entry = {"type": "record", "name": f"k{key.id}_v{value.id}", "fields": parts}
            return {"type": "array", "items": entry, "logicalType": "map"}
        case T.VariantType():
            parts = [{"name": "metadata", "type": "bytes"}, {"name": "value", "type": "bytes"}]
            return {"type": "record", "name": f"r{field.id}", "logicalType": "variant", "fields": parts}
    return avro_type(field.type, field.id)
