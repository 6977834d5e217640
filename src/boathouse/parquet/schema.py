"""The Arrow schema that a table's Parquet files are written with.

What both Delta and Iceberg require of a file: list elements called `element`, map entries `key` and `value`, INT64
microseconds (nanoseconds only for types that have them), field ids at every level that has one, no void columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from boathouse import types as T
from boathouse.arrow.layouts import plain_list
from boathouse.arrow.schema import FIELD_ID, MARK, VARIANT_STORAGE, is_variant_field, to_arrow_type
from boathouse.errors import ConstraintViolationError, SchemaMismatchError, UnsupportedTypeError
from boathouse.parquet.convert import leaf_cast, null_mask, rebuild_list
from boathouse.parquet.fields import is_list
from boathouse.parquet.matching import own_name


def no_id(field: T.Field) -> int | None:
    return None


def own_id(field: T.Field) -> int | None:
    return field.id


@dataclass(frozen=True, slots=True)
class Dialect:
    """The layout of a format's files; picklable (module-level functions).

    `physical_name` and `field_id` give a field's name and id in the file, at every level: Delta column mapping
    keeps both in the field's metadata. A format that writes no ids gives `field_id=no_id`. Without
    `annotate_variants` they are plain structs, which only the table's schema identifies as variants.
    """

    physical_name: Callable[[T.Field], str] = own_name
    field_id: Callable[[T.Field], int | None] = own_id
    annotate_variants: bool = True


PLAIN = Dialect()
"""Names unchanged, ids where fields have one: Iceberg, and Delta without column mapping."""


def to_parquet_schema(schema: T.Schema, dialect: Dialect = PLAIN) -> pa.Schema:
    """The Arrow schema to write `schema`'s rows with; void fields are left out (neither format stores them).

    Raises UnsupportedTypeError naming the column.
    """
    return pa.schema([_field(f, (f.name,), dialect) for f in schema if not isinstance(f.type, T.NullType)])


def without_void(schema: T.Schema) -> T.Schema:
    """The fields that files have: void ones are left out, also those of structs."""

    def kept(field: T.Field) -> T.Field:
        return replace(field, type=inner(field.type))

    def inner(type: T.DataType) -> T.DataType:
        match type:
            case T.StructType(fields):
                return T.StructType(tuple(kept(f) for f in fields if not isinstance(f.type, T.NullType)))
            case T.ListType(element):
                return T.ListType(kept(element))
            case T.MapType(key, value):
                return T.MapType(kept(key), kept(value))
        return type

    return T.Schema(tuple(kept(f) for f in schema if not isinstance(f.type, T.NullType)))


def variant_groups(schema: pa.Schema) -> tuple[tuple[str, ...], ...]:
    """The paths of the groups to annotate VARIANT in the Parquet schema of a file with this Arrow schema."""
    out: list[tuple[str, ...]] = []

    def below(f: pa.Field, path: tuple[str, ...]) -> None:
        if is_variant_field(f):
            out.append(path)
        elif pa.types.is_struct(f.type):
            for child in f.type:
                below(child, (*path, child.name))
        elif pa.types.is_map(f.type):
            below(f.type.key_field, (*path, "key_value", "key"))
            below(f.type.item_field, (*path, "key_value", "value"))
        elif is_list(f.type):
            below(f.type.value_field, (*path, "list", "element"))

    for f in schema:
        below(f, (f.name,))
    return tuple(out)


def _field(field: T.Field, path: tuple[str, ...], dialect: Dialect, name: str | None = None) -> pa.Field:
    id = dialect.field_id(field)
    metadata = {FIELD_ID: str(id).encode()} if id is not None else {}
    if dialect.annotate_variants and isinstance(field.type, T.VariantType):
        metadata[MARK] = b"variant"
    return pa.field(
        name or dialect.physical_name(field), _type(field.type, path, dialect), field.nullable, metadata or None
    )


def _type(type: T.DataType, path: tuple[str, ...], dialect: Dialect) -> pa.DataType:
    match type:
        case T.StructType(fields):
            kept = [f for f in fields if not isinstance(f.type, T.NullType)]
            if not kept:
                raise _refused(type, path, "a struct without columns")
            return pa.struct([_field(f, (*path, f.name), dialect) for f in kept])
        case T.ListType(element):
            return pa.list_(_field(element, (*path, "element"), dialect, "element"))
        case T.MapType(key, value):
            key_field = _field(key, (*path, "key"), dialect, "key").with_nullable(False)
            return pa.map_(key_field, _field(value, (*path, "value"), dialect, "value"))
        case T.VariantType():
            return VARIANT_STORAGE
        case T.UUIDType():
            return pa.uuid()
        case T.NullType():
            raise _refused(type, path, "void inside a list or a map")
        case T.FixedSizeListType() | T.DurationType() | T.FloatType(16) | T.IntegerType(_, False):
            raise _refused(type, path, str(type))
        case T.DecimalType(precision, _) if precision > 38:
            raise _refused(type, path, "a precision above 38")
        case T.TimeType(unit) if unit not in ("us", "ns"):
            raise _refused(type, path, str(type))
        case _:
            return to_arrow_type(type)


def _refused(type: T.DataType, path: tuple[str, ...], what: str) -> UnsupportedTypeError:
    return UnsupportedTypeError(
        f"column `{'.'.join(path)}` ({type}): {what} cannot be stored in the Parquet files of a table",
        advice="cast it, or write it as Lance",
    )


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """`batch` in the layout of the file's `schema`: columns by position, void ones dropped, names the file's.

    Raises SchemaMismatchError for types that do not fit, ConstraintViolationError for a null in a required column.
    """
    if _fits(batch, schema):
        return pa.RecordBatch.from_arrays(batch.columns, schema=schema)
    columns = [(f.name, c) for f, c in zip(batch.schema, batch.columns) if not pa.types.is_null(f.type)]
    if len(columns) != len(schema):
        raise SchemaMismatchError(f"the rows have {len(columns)} columns, the file {len(schema)}")
    made = [_fit(column, f, None) for (_, column), f in zip(columns, schema)]
    return pa.RecordBatch.from_arrays(made, schema=schema)


def _fits(batch: pa.RecordBatch, schema: pa.Schema) -> bool:
    """Whether plain columns already have the file's types, and no nulls in required columns."""
    return batch.num_columns == len(schema) and all(
        c.type == f.type and not pa.types.is_nested(f.type) and (f.nullable or not c.null_count)
        for c, f in zip(batch.columns, schema)
    )


def _fit(array: pa.Array, field: pa.Field, parent: pa.Array | None) -> pa.Array:
    """`array` as the field's type; `parent` is the struct that it is a field of."""
    if not field.nullable and array.null_count:
        hidden = 0 if parent is None else parent.null_count
        if array.null_count > hidden or (parent is not None and pc.any(pc.and_(array.is_null(), parent.is_valid()))):
            raise ConstraintViolationError(f"column `{field.name}` is not null, but the rows contain a null")
    if array.type != field.type or _hides_nulls(array):
        array = _convert(array, field.type, field.name)
    return array if field.nullable or not array.null_count else _without_nulls(array)


def _hides_nulls(array: pa.Array) -> bool:
    """Whether a required nested field is null somewhere, which is only allowed inside a null struct.

    pyarrow counts such fields as null and refuses to write them, so their validity bitmap must be dropped.
    """
    if pa.types.is_struct(array.type):
        members = [(f, array.field(i)) for i, f in enumerate(array.type)]
        return any((not f.nullable and m.null_count > 0) or _hides_nulls(m) for f, m in members)
    if pa.types.is_map(array.type):
        return _hides_nulls(array.keys) or _hides_nulls(array.items)
    return is_list(array.type) and _hides_nulls(array.values)


def _without_nulls(array: pa.Array) -> pa.Array:
    """The array without its validity bitmap: its null slots hold arbitrary bytes, which are never read."""
    if isinstance(array, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(array.type, _without_nulls(array.storage))
    if pa.types.is_struct(array.type):
        return pa.StructArray.from_arrays([array.field(i) for i in range(len(array.type))], fields=list(array.type))
    if pa.types.is_map(array.type):
        return pa.MapArray.from_arrays(array.offsets, array.keys, array.items, type=array.type)
    if is_list(array.type):
        return type(array).from_arrays(array.offsets, array.values, type=array.type)
    buffers = [None, *array.buffers()[1:]]
    return pa.Array.from_buffers(array.type, len(array), buffers, 0, array.offset)


def _convert(array: pa.Array, target: pa.DataType, name: str) -> pa.Array:
    source = array.type
    if isinstance(target, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(target, _convert_leaf(array, target.storage_type, name))
    if pa.types.is_struct(target) and pa.types.is_struct(source):
        kept = [i for i, f in enumerate(source) if not pa.types.is_null(f.type)]
        if len(kept) != target.num_fields:
            raise SchemaMismatchError(f"column `{name}` is {source} in the rows, {target} in the file")
        columns = [_fit(array.field(i), f, array) for i, f in zip(kept, target)]
        return pa.StructArray.from_arrays(columns, fields=list(target), mask=null_mask(array))
    if pa.types.is_map(target) and pa.types.is_map(source):
        entries = pa.struct([target.key_field, target.item_field])
        return rebuild_list(array, target, lambda child: _convert(child, entries, name))
    if is_list(target) and is_list(source):
        return rebuild_list(plain_list(array), target, lambda child: _fit(child, target.value_field, None))
    return _convert_leaf(array, target, name)


def _convert_leaf(array: pa.Array, target: pa.DataType, name: str) -> pa.Array:
    try:
        cast = leaf_cast(array.type, target)
        return array if cast is None else cast(array)
    except (SchemaMismatchError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaMismatchError(f"column `{name}` is {array.type} in the rows, {target} in the file") from error
