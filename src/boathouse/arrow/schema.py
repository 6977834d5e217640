"""Converts Arrow schemas from and to `boathouse.types.Schema`.

Types that Arrow lacks are represented by their storage, with the field metadata key `boathouse:type`:
UUID is `fixed_size_binary(16)` marked `uuid` (the `arrow.uuid` extension is read but not produced: Spark and older
readers refuse it), VARIANT is `struct<metadata: binary, value: binary>` marked `variant`, and also by the keys of the
extension type `arrow.parquet.variant`, for other libraries; either mark is read. The extension type itself is never
registered. Field ids are stored as `PARQUET:field_id` if requested, comments as `comment`, as in Spark and Delta;
pyiceberg's `doc` is read too.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from boathouse import types as T
from boathouse.errors import UnsupportedTypeError

FIELD_ID = b"PARQUET:field_id"
MARK = b"boathouse:type"
COMMENT = b"comment"
EXTENSION_NAME = b"ARROW:extension:name"
VARIANT_EXTENSION = "arrow.parquet.variant"
VARIANT_MARKS = {
    MARK: b"variant",
    EXTENSION_NAME: VARIANT_EXTENSION.encode(),
    b"ARROW:extension:metadata": b"",
}
_VARIANT_EXTENSIONS = (VARIANT_EXTENSION, "parquet.variant")  # the current name, and that before 2025
VARIANT_STORAGE = pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)])


def to_arrow(schema: T.Schema, field_ids: bool = False) -> pa.Schema:
    """The Arrow schema of `schema`'s data."""
    return pa.schema([to_arrow_field(f, field_ids) for f in schema])


def to_arrow_field(field: T.Field, field_ids: bool = False, comments: bool = False) -> pa.Field:
    """One field with its marks: field id and comment (if requested) and the type marks of this module."""
    metadata: dict[bytes, bytes] = {}
    if comments and field.doc is not None:
        metadata[COMMENT] = field.doc.encode()
    if field_ids and field.id is not None:
        metadata[FIELD_ID] = str(field.id).encode()
    if isinstance(field.type, T.UUIDType):
        metadata[MARK] = b"uuid"
    elif isinstance(field.type, T.VariantType):
        metadata.update(VARIANT_MARKS)
    return pa.field(field.name, to_arrow_type(field.type, field_ids, comments), field.nullable, metadata or None)


def to_arrow_type(type: T.DataType, field_ids: bool = False, comments: bool = False) -> pa.DataType:
    """The Arrow type of values of `type`. Raises UnsupportedTypeError."""
    match type:
        case T.NullType():
            return pa.null()
        case T.BooleanType():
            return pa.bool_()
        case T.IntegerType(bits, signed):
            return getattr(pa, f"{'' if signed else 'u'}int{bits}")()
        case T.FloatType(bits):
            return getattr(pa, f"float{bits}")()
        case T.DecimalType(precision, scale):
            return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)
        case T.StringType():
            return pa.string()
        case T.BinaryType():
            return pa.binary()
        case T.FixedType(length):
            return pa.binary(length)
        case T.UUIDType():
            return pa.binary(16)
        case T.DateType():
            return pa.date32()
        case T.TimeType(unit):
            return pa.time64(unit) if unit in ("us", "ns") else pa.time32(unit)
        case T.TimestampType(utc, unit):
            return pa.timestamp(unit, "UTC" if utc else None)
        case T.DurationType(unit):
            return pa.duration(unit)
        case T.VariantType():
            return VARIANT_STORAGE
        case _:
            return _nested_to_arrow(type, field_ids, comments)


def _nested_to_arrow(type: T.DataType, field_ids: bool, comments: bool) -> pa.DataType:
    match type:
        case T.StructType(fields):
            return pa.struct([to_arrow_field(f, field_ids, comments) for f in fields])
        case T.ListType(element):
            return pa.list_(to_arrow_field(element, field_ids, comments))
        case T.FixedSizeListType(element, size):
            return pa.list_(to_arrow_field(element, field_ids, comments), size)
        case T.MapType(key, value):
            # Arrow's map keys are never null, whatever the field says.
            key_field = to_arrow_field(key, field_ids, comments).with_nullable(False)
            return pa.map_(key_field, to_arrow_field(value, field_ids, comments))
    raise UnsupportedTypeError(f"Arrow has no type for {type}")


def from_arrow(schema: pa.Schema) -> T.Schema:
    """The plain schema of Arrow data: large, view, dictionary and run-end layouts become the plain types.

    Raises UnsupportedTypeError naming the column.
    """
    return T.Schema(tuple(from_arrow_field(f) for f in schema))


def from_arrow_field(field: pa.Field, where: str = "") -> T.Field:
    path = f"{where}.{field.name}" if where else field.name
    metadata = field.metadata or {}
    mark = metadata.get(MARK)
    if is_variant_field(field):
        type: T.DataType = T.VARIANT
    elif mark == b"uuid":
        type = T.UUID
    else:
        type = from_arrow_type(field.type, path)
    id = int(metadata[FIELD_ID]) if FIELD_ID in metadata else None
    return T.Field(field.name, type, field.nullable, id, _comment(metadata))


def _comment(metadata: Mapping[bytes, bytes]) -> str | None:
    found = metadata.get(COMMENT, metadata.get(b"doc"))
    return None if found is None else found.decode(errors="replace")


def is_variant_field(field: pa.Field) -> bool:
    """Whether a field is marked as variants: by our mark, by Spark's, by the extension name or its type."""
    metadata, type = field.metadata or {}, field.type
    if isinstance(type, pa.BaseExtensionType):
        return type.extension_name in _VARIANT_EXTENSIONS
    if metadata.get(MARK) == b"variant" or metadata.get(b"variant") == b"true":
        return True
    return metadata.get(EXTENSION_NAME, b"").decode(errors="replace") in _VARIANT_EXTENSIONS


def is_variant_storage(type: pa.DataType) -> bool:
    """Whether an Arrow type has the children of a variant: `metadata`, and `value` or `typed_value`."""
    if isinstance(type, pa.BaseExtensionType):
        return is_variant_storage(type.storage_type)
    if pa.types.is_dictionary(type):
        return is_variant_storage(type.value_type)
    names = {f.name for f in type} if pa.types.is_struct(type) else set()
    return "metadata" in names and not names.isdisjoint(("value", "typed_value"))


def from_arrow_type(type: pa.DataType, where: str = "") -> T.DataType:
    """The plain type of an Arrow type; `where` is the column's name in errors."""
    t = pa.types
    if isinstance(type, pa.BaseExtensionType):
        known = {"arrow.uuid": T.UUID, "arrow.bool8": T.BOOLEAN}.get(type.extension_name)
        return known or from_arrow_type(type.storage_type, where)
    if t.is_dictionary(type) or t.is_run_end_encoded(type):
        return from_arrow_type(type.value_type, where)
    if t.is_null(type):
        return T.NULL
    if t.is_boolean(type):
        return T.BOOLEAN
    if t.is_integer(type):
        return T.IntegerType(type.bit_width, t.is_signed_integer(type))
    if t.is_floating(type):
        return T.FloatType(type.bit_width)
    if t.is_decimal(type):
        return _decimal(type, where)
    if t.is_string(type) or t.is_large_string(type) or t.is_string_view(type):
        return T.STRING
    if t.is_fixed_size_binary(type):
        return T.FixedType(type.byte_width)
    if t.is_binary(type) or t.is_large_binary(type) or t.is_binary_view(type):
        return T.BINARY
    if t.is_date(type):
        return T.DATE
    if t.is_time(type):
        return T.TimeType(type.unit)
    if t.is_timestamp(type):
        return T.TimestampType(type.tz is not None, type.unit)
    if t.is_duration(type):
        return T.DurationType(type.unit)
    return _nested_from_arrow(type, where)


def _decimal(type: pa.DataType, where: str) -> T.DataType:
    if not 0 <= type.scale <= type.precision:
        raise UnsupportedTypeError(f"column `{where}` is {type}: a scale below 0 or above the precision", where=where)
    return T.DecimalType(type.precision, type.scale)


def _nested_from_arrow(type: pa.DataType, where: str) -> T.DataType:
    t = pa.types
    if t.is_struct(type):
        return T.StructType(tuple(from_arrow_field(f, where) for f in type))
    if t.is_map(type):
        return T.MapType(from_arrow_field(type.key_field, where), from_arrow_field(type.item_field, where))
    if t.is_fixed_size_list(type):
        return T.FixedSizeListType(from_arrow_field(type.value_field, where), type.list_size)
    if t.is_list(type) or t.is_large_list(type) or t.is_list_view(type) or t.is_large_list_view(type):
        return T.ListType(from_arrow_field(type.value_field, where))
    raise UnsupportedTypeError(
        f"column `{where}` has the Arrow type {type}, which no table format supports",
        where=where or None,
        advice="cast it to a plain type first",
    )
