"""Converts Lance fields from and to `boathouse.types.Schema`: logical types, field ids, metadata.

Types with several representations in Lance (string and large_string, dictionaries, zones) are one plain type here; the
representation is kept in the field's metadata as `lance:logical_type`, so that a schema that is read and written again
does not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from boathouse import types as T
from boathouse.arrow.schema import COMMENT, from_arrow_type, to_arrow, to_arrow_type
from boathouse.errors import BoathouseError, InvalidArgumentError, UnsupportedFeatureError, UnsupportedTypeError
from boathouse.lance.file.fields import Dictionary
from boathouse.lance.file.fields import Field as LanceField
from boathouse.lance.file.schema import EXTENSION_NAME, JSON, Node, arrow_type, fields_of, leaf_type, logical_type, tree
from boathouse.lance.options import BFLOAT16
from boathouse.types.blobs import is_written, written

SPELLING = "lance:logical_type"
"""Key of a Field's metadata: the logical type, where it is not the usual one of the plain type."""
COMMENT_KEY = COMMENT.decode()
"""Key of a column's comment, as Spark, Arrow's connectors and lance-spark spell it."""
UUID_EXTENSION = "arrow.uuid"
_CONVERTED: dict[str, T.DataType] = {JSON: T.STRING, BFLOAT16: T.FLOAT}


def to_schema(fields: Sequence[LanceField], metadata: dict[str, bytes], *, where: str) -> T.Schema:
    """The plain schema, with field ids. Raises UnsupportedFeatureError naming the column, CorruptTableError."""
    try:
        columns = tuple(_field(node, node.name) for node in tree(fields, where=where))
    except BoathouseError as error:
        if error.where is not None:
            raise
        raise type(error)(error.message, where=where, advice=error.advice) from None
    return T.Schema(columns, {key: _text(value) for key, value in metadata.items()})


def with_written_blobs(schema: T.Schema, fields: Sequence[LanceField]) -> T.Schema:
    """The schema of the rows of a write, of the fields of `schema`."""
    nodes = {node.name for node in tree(fields) if node.is_blob}
    columns = (f.with_type(_written(f.type)) if f.name in nodes else f for f in schema)
    return T.Schema(tuple(columns), schema.metadata)


def _written(stored: T.DataType) -> T.DataType:
    return written(stored) if isinstance(stored, T.StructType) and not is_written(stored) else stored


def _field(node: Node, path: str) -> T.Field:
    own = node.field
    metadata: dict[str, object] = {key: _text(value) for key, value in own.metadata.items()}
    if node.extension and (EXTENSION_NAME not in metadata or node.extension in _CONVERTED):
        metadata[EXTENSION_NAME] = node.extension
    type = _type(node, path)
    leaf = not node.children and not isinstance(type, T.UUIDType) and node.extension not in _CONVERTED
    unusual = leaf and _usual(type, path) != own.logical_type
    if unusual or own.logical_type.startswith("large_list"):
        metadata[SPELLING] = own.logical_type
    comment = metadata.get(COMMENT_KEY)
    return T.Field(own.name, type, own.nullable, own.id, None if comment is None else str(comment), metadata)


def _type(node: Node, path: str) -> T.DataType:
    own = node.field
    if node.extension in _CONVERTED:
        if own.parent_id >= 0:
            raise UnsupportedFeatureError(
                f"column `{path}` is of the type {node.extension}, which is read at the top level only"
            )
        return _CONVERTED[node.extension]
    if node.extension == UUID_EXTENSION and own.logical_type == "fixed_size_binary:16":
        return T.UUID
    if own.logical_type.startswith("decimal:"):
        return _decimal(leaf_type(own.logical_type), path)
    if (not node.children and own.logical_type != "struct") or node.is_blob:
        return from_arrow_type(_stored(node, path), path)
    below = [_field(child, f"{path}.{child.name}") for child in node.children]
    if own.logical_type == "struct":
        return T.StructType(tuple(below))
    arrow_type(node)  # raises if the children do not fit the type
    if own.logical_type == "map":
        entries = below[0].type
        assert isinstance(entries, T.StructType)
        return T.MapType(replace(entries.fields[0], nullable=False), entries.fields[1])
    if own.logical_type.startswith("fixed_size_list:"):
        return T.FixedSizeListType(below[0], int(own.logical_type.rpartition(":")[2]))
    return T.ListType(below[0])


def _stored(node: Node, path: str) -> pa.DataType:
    """The Arrow type of a field without children. Raises UnsupportedFeatureError naming the column."""
    try:
        return arrow_type(node)
    except UnsupportedFeatureError as error:
        raise UnsupportedFeatureError(f"column `{path}`: {error.message}", advice=error.advice) from None


def _decimal(kind: pa.DataType, path: str) -> T.DataType:
    """Scales below 0 mean whole numbers with trailing zeros: a decimal without fraction holds them."""
    if kind.scale >= 0 or kind.precision - kind.scale > 76:
        return from_arrow_type(kind, path)
    return T.DecimalType(kind.precision - kind.scale, 0)


def _usual(type: T.DataType, path: str) -> str:
    return logical_type(to_arrow_type(type), path)


def from_schema(schema: T.Schema) -> tuple[LanceField, ...]:
    """Fields for a new table, ids from 0 depth first. Raises UnsupportedTypeError naming column and type."""
    for path, f in schema.walk():
        _check_extension(f, path)
        if isinstance(f.type, T.VariantType):
            raise UnsupportedTypeError(
                f"column `{'.'.join(path)}` is of the type variant, which Lance cannot store",
                advice="store it as a string of JSON",
            )
        if isinstance(f.type, T.StructType) and not len(f.type):
            raise UnsupportedTypeError(
                f"column `{'.'.join(path)}` is a struct without fields, which Lance cannot store",
                advice="leave it out, or give it a field",
            )
        if isinstance(f.type, T.FixedSizeListType) and not f.type.size:
            raise UnsupportedTypeError(
                f"column `{'.'.join(path)}` is of fixed-size lists without elements, which pylance cannot read",
                advice="leave it out",
            )
        if _is_vector_of(f.type, T.StructType):
            raise UnsupportedTypeError(
                f"column `{'.'.join(path)}` is a fixed-size list of structs, which pylance cannot read",
                advice="make it a list",
            )
        members = [m.name for m in f.type] if isinstance(f.type, T.StructType) else []
        if len({*members}) != len(members) or "" in members:
            raise InvalidArgumentError(
                f"column `{'.'.join(path)}` has a field without a name, or two with the same name",
                advice="rename the field",
            )
    names = [name.lower() for name in schema.names]
    if any("." in name or not name for name in names) or len(set(schema.names)) != len(names):
        raise InvalidArgumentError(
            f"columns {', '.join(schema.names)}: Lance allows no empty names, no dots in names and no duplicate names",
            advice="rename the column",
        )
    columns = {f.name: f for f in schema}
    return tuple(f for top in tree(fields_of(to_arrow(schema))) for f in _restore(top, columns[top.name]))


def _is_vector_of(type: T.DataType, kind: type[T.DataType]) -> bool:
    while isinstance(type, T.FixedSizeListType):
        type = type.element.type
        if isinstance(type, kind):
            return True
    return False


def _restore(node: Node, field: T.Field) -> list[LanceField]:
    """The fields of `node` with the metadata and the representation of the plain field."""
    strings = {k: v for k, v in field.metadata.items() if isinstance(v, str) and k != SPELLING}
    if field.doc is not None:
        strings.setdefault(COMMENT_KEY, field.doc)
    metadata = {key: value.encode("utf-8", "surrogateescape") for key, value in strings.items()}
    extension = str(strings.get(EXTENSION_NAME, ""))
    if isinstance(field.type, T.UUIDType):
        extension = UUID_EXTENSION
        metadata[EXTENSION_NAME] = extension.encode()
    own = replace(node.field, metadata=metadata, extension_name=extension)
    if extension in _CONVERTED:
        return [replace(own, logical_type="json" if extension == JSON else "fixed_size_binary:2")]
    spelling = field.metadata.get(SPELLING)
    if isinstance(spelling, str) and _fits(spelling, field.type):
        own = replace(own, logical_type=spelling)
        if spelling.startswith("dict:"):
            own = replace(own, dictionary=Dictionary())
    out = [own]
    for child, below in zip(node.children, _children(field.type)):
        out += _entries(child, field.type) if isinstance(field.type, T.MapType) else _restore(child, below)
    return out


def _children(type: T.DataType) -> tuple[T.Field, ...]:
    match type:
        case T.StructType(fields):
            return fields
        case T.ListType(element) | T.FixedSizeListType(element, _):
            return (element,)
        case T.MapType(key, _):
            return (key,)
    return ()


def _entries(node: Node, type: T.MapType) -> list[LanceField]:
    key, value = node.children
    return [node.field, *_restore(key, type.key), *_restore(value, type.value)]


def _fits(spelling: str, type: T.DataType) -> bool:
    """Whether a logical type represents the plain type."""
    if isinstance(type, T.ListType):
        return spelling in ("large_list", "large_list.struct") and spelling.endswith(".struct") == isinstance(
            type.element.type, T.StructType
        )
    if isinstance(type, T.StructType | T.MapType):
        return False
    try:
        kind = leaf_type(spelling)
        return (_decimal(kind, spelling) if pa.types.is_decimal(kind) else from_arrow_type(kind)) == type
    except (UnsupportedFeatureError, UnsupportedTypeError, ValueError):
        return False


def fields_for(schema: T.Schema, present: Sequence[LanceField], *, where: str) -> tuple[LanceField, ...]:
    """The fields under which data of `schema` is written: the existing ones if they are equivalent, else new ones."""
    if present:
        now = to_schema(present, {}, where=where)
        blobs = {node.name for node in tree(present) if node.is_blob}
        if len(now) == len(schema) and all(_same(a, b, a.name in blobs) for a, b in zip(now, schema, strict=True)):
            return tuple(present)
    return from_schema(schema)


def _same(present: T.Field, given: T.Field, blob: bool) -> bool:
    """Whether a field of the table is what is given; blobs are given as bytes, or as those of the rows of a write."""
    if (present.name, present.nullable) != (given.name, given.nullable):
        return False
    return str(present.type) == str(given.type) or (blob and (given.type == T.BINARY or is_written(given.type)))


def _text(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")


def to_metadata(schema: T.Schema) -> dict[str, bytes]:
    """The schema's own metadata as stored in a manifest."""
    return {
        str(k): v if isinstance(v, bytes) else str(v).encode("utf-8", "surrogateescape")
        for k, v in schema.metadata.items()
    }


def _check_extension(f: T.Field, path: Sequence[str]) -> None:
    """Raises UnsupportedTypeError for an extension type that is not written of this type, or there."""
    extension = str(f.metadata.get(EXTENSION_NAME, ""))
    if extension in _CONVERTED and (len(path) > 1 or f.type != _CONVERTED[extension]):
        where = "inside another column" if len(path) > 1 else f"as {f.type}"
        raise UnsupportedTypeError(
            f"column `{'.'.join(path)}` is of the type {extension}, which is not written {where}",
            advice="leave the metadata of the field out",
        )


def no_partitions(where: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError("Lance tables have no partitions", where=where, advice="leave partition_by out")
