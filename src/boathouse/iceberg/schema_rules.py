"""What the specification demands of a table's schemas: types of the format version, defaults, identifiers, ids."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from boathouse.errors import CorruptTableError
from boathouse.iceberg.single_values import INITIAL, WRITE, default_of
from boathouse.types import (
    DataType,
    Field,
    FloatType,
    GeographyType,
    GeometryType,
    ListType,
    MapType,
    NullType,
    Schema,
    StructType,
    TimestampType,
    VariantType,
)

LAST_ID: Final = (1 << 31) - 1 - 200
"""The ids above are those of metadata columns."""
IDENTIFIERS: Final = "identifier-field-ids"
_VERSION_3: Final = (VariantType, NullType, GeometryType, GeographyType)


def check_schema(schema: Schema, version: int, where: str) -> None:
    """Raises CorruptTableError naming the first column that breaks a rule."""
    try:
        problem = next(_problems(schema, version), None)
    except CorruptTableError as error:
        problem = error.message
    if problem is not None:
        raise CorruptTableError(problem, where=where)


def _problems(schema: Schema, version: int) -> Iterator[str]:
    for path, f in schema.walk():
        name = ".".join(path)
        if f.id is not None and f.id > LAST_ID:
            yield f"column `{name}` has the field id {f.id}, above {LAST_ID}: these are reserved"
        if version < 3 and _is_new(f.type):
            yield f"column `{name}` is {f.type}, which format version {version} does not have"
        if isinstance(f.type, NullType) and not f.nullable:
            yield f"column `{name}` has no type yet, and no values: it cannot be required"
        for which in (INITIAL, WRITE):
            if f.metadata.get(which) is not None:
                default_of(f, which)
    yield from _identifiers(schema)


def _is_new(type: DataType) -> bool:
    return isinstance(type, _VERSION_3) or (isinstance(type, TimestampType) and type.unit == "ns")


def _identifiers(schema: Schema) -> Iterator[str]:
    ids = identifier_ids(schema)
    if not ids:
        return
    usable = dict(_usable(schema.fields, True))
    names = {f.id: ".".join(path) for path, f in schema.walk()}
    for id in ids:
        reason = usable.get(id, "it is inside of a list or a map")
        if id not in names:
            yield f"field {id} identifies the rows, but no column has this id"
        elif reason is not None:
            yield f"column `{names[id]}` identifies the rows, but {reason}"


def _usable(fields: tuple[Field, ...], required: bool) -> Iterator[tuple[int, str | None]]:
    """The fields outside of lists and maps by id, and why each cannot identify rows."""
    for f in fields:
        there = required and not f.nullable
        if f.id is not None:
            yield f.id, _unusable(f, there)
        if isinstance(f.type, StructType):
            yield from _usable(f.type.fields, there)


def _unusable(f: Field, there: bool) -> str | None:
    if isinstance(f.type, StructType | ListType | MapType | VariantType):
        return f"it is {f.type}, not a single value"
    if isinstance(f.type, FloatType):
        return f"it is {f.type}, whose values are not equal to themselves"
    return None if there else "it may be null"


def identifier_ids(schema: Schema) -> tuple[int, ...]:
    """The ids of the columns that identify a row."""
    found = schema.metadata.get(IDENTIFIERS)
    return tuple(found) if isinstance(found, list) else ()


def identifier_paths(schema: Schema) -> tuple[tuple[str, ...], ...]:
    """The columns that identify a row, in the order of the schema."""
    ids = set(identifier_ids(schema))
    return tuple(path for path, f in schema.walk() if f.id in ids) if ids else ()
