"""Iceberg schemas as JSON (spec, Appendix C) and as `boathouse.types.Schema`; fresh field ids for new tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from boathouse.errors import (
    BoathouseError,
    CorruptTableError,
    SchemaError,
    UnsupportedFeatureError,
    UnsupportedTypeError,
)
from boathouse.iceberg.metadata.versions import FormatVersion
from boathouse.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT32,
    INT64,
    NULL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    UUID,
    VARIANT,
    DataType,
    DecimalType,
    Field,
    FixedType,
    GeographyType,
    GeometryType,
    IntegerType,
    ListType,
    MapType,
    Schema,
    StructType,
    TimestampType,
    TimeType,
)

Json = Mapping[str, Any]

TIME: Final = TimeType("us")
PRIMITIVES: Final[dict[str, DataType]] = {
    "boolean": BOOLEAN,
    "int": INT32,
    "long": INT64,
    "float": FLOAT,
    "double": DOUBLE,
    "date": DATE,
    "time": TIME,
    "timestamp": TIMESTAMP_NTZ,
    "timestamptz": TIMESTAMP,
    "string": STRING,
    "uuid": UUID,
    "binary": BINARY,
}
_V3_PRIMITIVES: Final[dict[str, DataType]] = {
    "timestamp_ns": TimestampType(utc=False, unit="ns"),
    "timestamptz_ns": TimestampType(utc=True, unit="ns"),
    "unknown": NULL,
    "variant": VARIANT,
}
_NAMES: Final = {type: name for name, type in {**PRIMITIVES, **_V3_PRIMITIVES}.items()}
_DECIMAL = re.compile(r"decimal\(\s*(\d{1,9})\s*,\s*(\d{1,9})\s*\)")
_FIXED = re.compile(r"fixed\[\s*(\d{1,18})\s*\]")
_GEOMETRY = re.compile(r"geometry(?:\(\s*([^,()]+?)\s*\))?")
_GEOGRAPHY = re.compile(r"geography(?:\(\s*([^,()]+?)\s*(?:,\s*(\w+)\s*)?\))?", re.A)
_DEEPEST: Final = 100
_FIELD_KEYS = frozenset({"id", "name", "required", "type", "doc"})


def parse_schema(document: Json, where: str | None = None) -> Schema:
    """A schema object; what the neutral model cannot represent is kept in `Schema.metadata` and `Field.metadata`.

    Raises CorruptTableError, and UnsupportedFeatureError for types that are nested too deeply.
    """
    try:
        fields = tuple(_field(f, 0) for f in document["fields"])
    except KeyError as error:
        raise CorruptTableError(f"a schema lacks {error}", where=where) from None
    except BoathouseError as error:
        error.where = error.where or where
        raise
    except (TypeError, AttributeError) as error:
        raise CorruptTableError(f"a schema cannot be read: {error}", where=where) from None
    _check_unique(fields, where)
    rest = {k: v for k, v in document.items() if k not in ("type", "fields")}
    return Schema(fields, rest)


def _check_unique(fields: tuple[Field, ...], where: str | None) -> None:
    """Ids are unique, and so are names, with parts joined by dots: Java's readers refuse other schemas."""
    ids: dict[int | None, str] = {}
    names: set[str] = set()
    for path, f in Schema(fields).walk():
        name = ".".join(path)
        if f.id in ids:
            raise CorruptTableError(
                f"the columns `{ids[f.id]}` and `{name}` have the same field id {f.id}", where=where
            )
        if name in names:
            raise CorruptTableError(f"two columns are called `{name}`", where=where)
        ids[f.id] = name
        names.add(name)


def _field(document: Json, depth: int) -> Field:
    rest = {k: v for k, v in document.items() if k not in _FIELD_KEYS}
    name, doc = document["name"], document.get("doc")
    if not isinstance(name, str) or not (doc is None or isinstance(doc, str)):
        raise CorruptTableError(f"a column has the name {name!r:.80} and the doc {doc!r:.80}")
    type = parse_type(document["type"], depth + 1)
    return Field(name, type, not _flag(document, "required"), _id(document, "id"), doc, rest)


def _id(document: Json, key: str) -> int:
    found = document[key]
    if type(found) is not int or not -(1 << 31) <= found < 1 << 31:
        raise CorruptTableError(f"a column has {key} {found!r:.80}")
    return found


def _flag(document: Json, key: str) -> bool:
    found = document[key]
    if not isinstance(found, bool):
        raise CorruptTableError(f"a column has {key} {found!r:.80}")
    return found


def parse_type(document: str | Json, depth: int = 0) -> DataType:
    """A type as JSON: a string for primitives, an object for struct, list and map."""
    if depth > _DEEPEST:
        raise UnsupportedFeatureError(f"a column nested more than {_DEEPEST} deep is not offered")
    if isinstance(document, str):
        return _primitive(document)
    match document["type"]:
        case "struct":
            return StructType(tuple(_field(f, depth) for f in document["fields"]))
        case "list":
            element = parse_type(document["element"], depth + 1)
            nullable = not _flag(document, "element-required")
            return ListType(Field("element", element, nullable, _id(document, "element-id")))
        case "map":
            key = Field("key", parse_type(document["key"], depth + 1), False, _id(document, "key-id"))
            value = parse_type(document["value"], depth + 1)
            nullable = not _flag(document, "value-required")
            return MapType(key, Field("value", value, nullable, _id(document, "value-id")))
    raise CorruptTableError(f"{document['type']!r:.80} is not a type of the Iceberg specification")


def _primitive(text: str) -> DataType:
    found = PRIMITIVES.get(text) or _V3_PRIMITIVES.get(text)
    if found is not None:
        return found
    if m := _DECIMAL.fullmatch(text):
        if not 1 <= int(m[1]) <= 38:
            raise CorruptTableError(f"{text} has a precision outside 1 to 38")
        if int(m[2]) > 38:
            raise CorruptTableError(f"{text} has a scale above 38")
        return DecimalType(int(m[1]), int(m[2]))
    if m := _FIXED.fullmatch(text):
        if int(m[1]) >= 1 << 31:
            raise CorruptTableError(f"{text} is longer than any file can store")
        return FixedType(int(m[1]))
    if m := _GEOMETRY.fullmatch(text):
        return GeometryType(m[1])
    if m := _GEOGRAPHY.fullmatch(text):
        return GeographyType(m[1], m[2])
    raise CorruptTableError(f"{text!r:.80} is not a type of the Iceberg specification")


def schema_json(schema: Schema, schema_id: int) -> dict[str, Any]:
    """The schema object of `schema`, whose fields all have ids."""
    rest = {k: v for k, v in schema.metadata.items() if k not in ("schema-id", "type", "fields")}
    return {"type": "struct", "schema-id": schema_id, **rest, "fields": [_field_json(f) for f in schema]}


def _field_json(field: Field) -> dict[str, Any]:
    if field.id is None:
        raise SchemaError(f"column `{field.name}` has no field id")
    document: dict[str, Any] = {
        "id": field.id,
        "name": field.name,
        "required": not field.nullable,
        "type": type_json(field.type),
    }
    if field.doc is not None:
        document["doc"] = field.doc
    return {**document, **{k: v for k, v in field.metadata.items() if k not in _FIELD_KEYS}}


def type_json(type: DataType) -> str | dict[str, Any]:
    """A type as JSON. Raises UnsupportedTypeError for what Iceberg has no type for."""
    match type:
        case StructType(fields):
            return {"type": "struct", "fields": [_field_json(f) for f in fields]}
        case ListType(e):
            return {
                "type": "list",
                "element-id": e.id,
                "element": type_json(e.type),
                "element-required": not e.nullable,
            }
        case MapType(k, v):
            return {
                "type": "map",
                "key-id": k.id,
                "key": type_json(k.type),
                "value-id": v.id,
                "value": type_json(v.type),
                "value-required": not v.nullable,
            }
        case DecimalType(precision, scale) if precision <= 38:
            return f"decimal({precision},{scale})"
        case FixedType(length):
            return f"fixed[{length}]"
        case GeometryType() | GeographyType():
            return str(type)
    name = _NAMES.get(type)
    if name is None:
        raise UnsupportedTypeError(f"Iceberg has no type for {type}")
    return name


def storable(type: DataType, path: str, version: FormatVersion) -> DataType:
    """`type` as stored in a table of this format version: tinyint and smallint widen to int.

    Raises UnsupportedTypeError naming the column.
    """
    match type:
        case StructType(()):
            raise UnsupportedTypeError(
                f"column `{path}` is a struct without fields, which Parquet files cannot store",
                advice="leave it out, or give it a field",
            )
        case StructType(fields):
            _check_names(fields, path)
            return StructType(tuple(f.with_type(storable(f.type, f"{path}.{f.name}", version)) for f in fields))
        case ListType(e):
            return ListType(replace(e, name="element", type=storable(e.type, f"{path}.element", version)))
        case MapType(k, v):
            key = replace(k, name="key", nullable=False, type=storable(k.type, f"{path}.key", version))
            return MapType(key, replace(v, name="value", type=storable(v.type, f"{path}.value", version)))
        case IntegerType(bits, True) if bits < 32:
            return INT32
    if type in PRIMITIVES.values() or isinstance(type, FixedType):
        return type
    if isinstance(type, DecimalType) and type.precision <= 38:
        return type
    if version.number >= 3 and type in _V3_PRIMITIVES.values():
        return type
    raise UnsupportedTypeError(
        f"column `{path}` is {type}, which an Iceberg table of format version {version} cannot hold",
        advice=_advice(type, version),
    )


def _advice(type: DataType, version: FormatVersion) -> str:
    if isinstance(type, GeometryType | GeographyType):
        return "write shapes as well-known binary in a column of type binary"
    if version.number < 3 and type in _V3_PRIMITIVES.values():
        return f"{_ADVICE.get(str(type), 'leave it out')}, or create the table with format-version 3"
    return _ADVICE.get(str(type), f"cast it to a type of Iceberg v{version}")


_ADVICE = {
    "timestamp(ns)": "cast it to timestamp (microseconds)",
    "timestamp_ntz(ns)": "cast it to timestamp_ntz (microseconds)",
    "uint8": "cast it to int",
    "uint16": "cast it to int",
    "uint32": "cast it to bigint",
    "uint64": "cast it to decimal(20,0)",
    "halffloat": "cast it to float",
    "void": "give the column a type",
}


def _check_names(fields: tuple[Field, ...], path: str) -> None:
    seen: set[str] = set()
    for f in fields:
        if not f.name:
            raise SchemaError(f"a column has an empty name{f' in `{path}`' if path else ''}")
        if f.name in seen:
            raise SchemaError(f"column `{f'{path}.' if path else ''}{f.name}` appears twice")
        seen.add(f.name)


def storable_schema(schema: Schema, version: FormatVersion) -> Schema:
    """The schema as stored in a table of this format version, with unchanged ids."""
    _check_names(schema.fields, "")
    return Schema(tuple(f.with_type(storable(f.type, f.name, version)) for f in schema), schema.metadata)


class Ids:
    """Assigns field ids above `last`."""

    def __init__(self, last: int = 0) -> None:
        self.last = last

    def next(self) -> int:
        self.last += 1
        return self.last


def fresh_ids(field: Field, ids: Ids) -> Field:
    """`field` with new ids for it and everything below it, depth first."""
    return replace(field, id=ids.next(), type=_fresh_type(field.type, lambda f: fresh_ids(f, ids)), metadata={})


def _fresh_type(type: DataType, fresh: Callable[[Field], Field]) -> DataType:
    match type:
        case StructType(fields):
            return StructType(tuple(fresh(f) for f in fields))
        case ListType(element):
            return ListType(fresh(element))
        case MapType(key, value):
            return MapType(fresh(key), fresh(value))
    return type


def fresh_schema(schema: Schema, version: FormatVersion) -> tuple[Schema, int]:
    """A new table's schema with ids from 1, and the last assigned id."""
    ids = Ids()
    fields = tuple(fresh_ids(f, ids) for f in storable_schema(schema, version))
    return Schema(fields), ids.last


def merged_ids(schema: Schema, current: Schema, ids: Ids, version: FormatVersion) -> Schema:
    """`schema` replacing `current`: a column of the same path keeps its id, new ones get ids from `ids`.

    A column whose kind changes (list to string) is a new column.
    """

    def merge(field: Field, old: Mapping[str, Field]) -> Field:
        before = old.get(field.name)
        if before is None or type(before.type) is not type(field.type):
            return fresh_ids(field, ids)
        members = {f.name: f for f in _members(before.type)}
        merged = _fresh_type(field.type, lambda f: merge(f, members))
        return replace(field, id=before.id, type=merged, metadata={})

    columns = {f.name: f for f in current}
    return Schema(tuple(merge(f, columns) for f in storable_schema(schema, version)))


def _members(type: DataType) -> tuple[Field, ...]:
    match type:
        case StructType(fields):
            return fields
        case ListType(element):
            return (element,)
        case MapType(key, value):
            return (key, value)
    return ()


def by_id(schema: Schema) -> dict[int, tuple[tuple[str, ...], Field]]:
    """Every field of a schema, including nested ones, by id, with its path."""
    return {f.id: (path, f) for path, f in schema.walk() if f.id is not None}


def leaves(schema: Schema) -> Iterator[tuple[tuple[str, ...], Field]]:
    """The primitive fields, depth first, including those in lists and maps."""
    for path, f in schema.walk():
        if not isinstance(f.type, StructType | ListType | MapType):
            yield path, f


def field_type(schema: Schema, path: tuple[str, ...]) -> DataType | None:
    """The type of the column at `path`; None if the schema has none there."""
    fields = schema.fields
    type: DataType | None = None
    for name in path:
        found = next((f for f in fields if f.name == name), None)
        if found is None:
            return None
        type = found.type
        fields = type.fields if isinstance(type, StructType) else ()
    return type
