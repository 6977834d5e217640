"""What the specification demands of a table's schemas: types of the format version, defaults, ids; and the columns that
identify rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from boathouse.errors import CorruptTableError, UnsupportedFeatureError
from boathouse.iceberg.metadata.single_values import INITIAL, WRITE, default_of
from boathouse.iceberg.metadata.versions import FormatVersion
from boathouse.table.metadata_columns import LAST_UPDATED, ROW_ID
from boathouse.types import (
    DataType,
    DateType,
    DecimalType,
    Field,
    FloatType,
    GeographyType,
    GeometryType,
    IntegerType,
    ListType,
    MapType,
    NullType,
    Schema,
    StructType,
    TimestampType,
    VariantType,
)
from boathouse.types.data_types import children

LAST_ID: Final = (1 << 31) - 1 - 200
"""The ids above are those of metadata columns."""
LINEAGE: Final = {ROW_ID: 2147483540, LAST_UPDATED: 2147483539}
"""The field ids under which files may store these metadata columns."""
IDENTIFIERS: Final = "identifier-field-ids"
_VERSION_3: Final = (VariantType, NullType, GeometryType, GeographyType)
_WATCHED: Final = (StructType, ListType, MapType, TimestampType, *_VERSION_3)


def check_schema(schema: Schema, version: int, where: str) -> None:
    """Raises CorruptTableError naming the first column that breaks a rule."""
    if not _unusual(schema.fields):
        return
    try:
        problem = next(_problems(schema, version), None)
    except CorruptTableError as error:
        problem = error.message
    if problem is not None:
        raise CorruptTableError(problem, where=where)


def _unusual(fields: tuple[Field, ...]) -> bool:
    """Whether a field is one that the rules are about: metadata has hundreds of schemas, and theirs rarely are."""
    for f in fields:
        if f.metadata or (f.id or 0) > LAST_ID:
            return True
        if isinstance(f.type, _WATCHED) and (_is_new(f.type) or _unusual(children(f.type))):
            return True
    return False


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


def _is_new(type: DataType) -> bool:
    return isinstance(type, _VERSION_3) or (isinstance(type, TimestampType) and type.unit == "ns")


def identifiers(schema: Schema) -> tuple[tuple[str, ...], ...]:
    """The paths of the columns that identify a row, in the order of the schema."""
    found = schema.metadata.get(IDENTIFIERS)
    ids = frozenset(found) if isinstance(found, list) else frozenset()
    return tuple(path for path, f in schema.walk() if f.id in ids) if ids else ()


def check_lineage_names(schema: Schema, where: str) -> None:
    """Raises UnsupportedFeatureError for a column with the name of a column of row lineage: it would hide the ids of
    its rows."""
    for name in LINEAGE:
        if schema.places.at(name):
            raise UnsupportedFeatureError(
                f"a column of a table with row lineage cannot be called `{name}`: every row has one of that name",
                where=where,
                advice="give the column another name",
            )


def promotes(old: DataType, new: DataType, version: FormatVersion | None = None) -> bool:
    """Whether the specification lets a type become another one, in this format version (None: in any) (spec, "Schema
    Evolution")."""
    match old, new:
        case (IntegerType(32, True), IntegerType(64, True)) | (FloatType(32), FloatType(64)):
            return True
        case (DecimalType(p, s), DecimalType(q, t)):
            return s == t and q >= p
    if version is not None and version.number < 3:
        return False
    match old, new:
        case (DateType(), TimestampType(utc=False)):
            return True
        case (NullType(), _):
            return not isinstance(new, NullType)
    return False
