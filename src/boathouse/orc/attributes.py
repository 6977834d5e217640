"""What Iceberg says of each type of an ORC file by attributes (Iceberg specification, Appendix A, ORC)."""

from __future__ import annotations

from boathouse import types as T
from boathouse.orc.footer import Attribute

ID = "iceberg.id"


def attributes_of(schema: T.Schema) -> list[tuple[Attribute, ...]]:
    """The attributes of each type, in the order of the tree; the first is that of the whole row. Every field has its
    id, and no type is void or variant."""
    found: list[tuple[Attribute, ...]] = [()]

    def add(field: T.Field) -> None:
        values = {ID: str(field.id), "iceberg.required": str(not field.nullable).lower(), **_of_type(field.type)}
        found.append(tuple(Attribute(key=key, value=value) for key, value in values.items()))
        match field.type:
            case T.StructType(fields):
                for child in fields:
                    add(child)
            case T.ListType(element):
                add(element)
            case T.MapType(key, value):
                add(key)
                add(value)

    for field in schema:
        add(field)
    return found


def _of_type(type: T.DataType) -> dict[str, str]:
    match type:
        case T.TimeType():
            return {"iceberg.long-type": "TIME"}
        case T.TimestampType(_, unit):
            return {"iceberg.timestamp-unit": "NANOS" if unit == "ns" else "MICROS"}
        case T.UUIDType():
            return {"iceberg.binary-type": "UUID"}
        case T.FixedType(length):
            return {"iceberg.binary-type": "FIXED", "iceberg.length": str(length)}
        case T.GeometryType():
            return {"iceberg.binary-type": "GEOMETRY"}
        case T.GeographyType():
            return {"iceberg.binary-type": "GEOGRAPHY"}
    return {}
