"""Lance fields as a tree, as an Arrow schema and as boathouse types.

The kind of a field is defined by `logical_type` alone: files leave `type` at 0. Fields are stored flat, depth
first, with ids from 0 and parent_id -1 at the top.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from boathouse.errors import CorruptTableError, UnsupportedFeatureError, UnsupportedTypeError
from boathouse.lance.file.fields import Dictionary, Field

JSON = "lance.json"
EXTENSION_NAME = "ARROW:extension:name"
EXTENSION_METADATA = "ARROW:extension:metadata"
_SIMPLE: dict[str, pa.DataType] = {
    "null": pa.null(),
    "bool": pa.bool_(),
    **{f"{sign}int{bits}": getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "halffloat": pa.float16(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "large_string": pa.large_string(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "json": pa.large_binary(),
    "date32:day": pa.date32(),
    "date64:ms": pa.date64(),
    **{f"time32:{unit}": pa.time32(unit) for unit in ("s", "ms")},
    **{f"time64:{unit}": pa.time64(unit) for unit in ("us", "ns")},
    **{f"duration:{unit}": pa.duration(unit) for unit in ("s", "ms", "us", "ns")},
}
_NAMES = {str(kind): name for name, kind in _SIMPLE.items() if name != "json"}
# The type in which a blob column is read: the location of the bytes. Versions 2.0 and 2.1 have the first, 2.2 the
# second.
BLOB_V1 = pa.struct([("position", pa.uint64()), ("size", pa.uint64())])
BLOB_V2 = pa.struct(
    [
        pa.field(name, kind, nullable=False)
        for name, kind in (
            ("kind", pa.uint8()),
            ("position", pa.uint64()),
            ("size", pa.uint64()),
            ("blob_id", pa.uint32()),
            ("blob_uri", pa.string()),
        )
    ]
)
PACKED = ("packed", "lance-encoding:packed")
"""Keys of a struct's metadata that request storage as one column."""
MAX_DEPTH = 100
MAX_ITEMS = 1 << 28
"""The most items of a fixed-size list, including nested ones."""
_LISTS = ("list", "list.struct", "large_list", "large_list.struct")
_NESTED = (*_LISTS, "struct", "map", "fixed_size_list")
_OTHERS_ONLY = "read other columns only"


@dataclass(frozen=True)
class Node:
    """A field with its children; `id`, `name` and so on are those of `field`."""

    field: Field
    children: tuple[Node, ...] = ()

    @property
    def id(self) -> int:
        return self.field.id

    @property
    def name(self) -> str:
        return self.field.name

    @property
    def logical_type(self) -> str:
        return self.field.logical_type

    @property
    def is_blob(self) -> bool:
        """A blob column of either version: stored as one column of descriptors."""
        return self.field.extension_name == "lance.blob.v2" or self.field.metadata.get("lance-encoding:blob") == b"true"

    @property
    def extension(self) -> str:
        """The name of the extension type. JSON is recognised by its logical type: pylance up to 2.0 calls it
        arrow.json."""
        return JSON if self.logical_type == "json" else self.field.extension_name

    @property
    def is_packed(self) -> bool:
        """A struct stored as one column, row by row."""
        return self.logical_type == "struct" and any(self.field.metadata.get(key) == b"true" for key in PACKED)

    @property
    def is_leaf(self) -> bool:
        """Whether the field owns a column in files of 2.1 and later."""
        return not self.children or self.is_packed or self.is_blob

    def walk(self) -> Iterator[Node]:
        """This node and all below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    def leaves(self) -> Iterator[Node]:
        """The nodes that own a column in files of 2.1 and later, in column order."""
        if self.is_leaf:
            yield self
        else:
            for child in self.children:
                yield from child.leaves()


def tree(fields: Sequence[Field], *, where: str | None = None) -> tuple[Node, ...]:
    """The top-level nodes of a flat list of fields, in its order.

    Raises CorruptTableError on a repeated id or a parent that does not come before its child.
    """
    below: dict[int, list[Field]] = {-1: []}
    depth = {-1: 0}
    blob: list[Field] | None = None
    for f in fields:
        if f.id < 0 and blob is not None:  # fields of a blob's descriptor: without ids, directly after it
            blob.append(f)
            continue
        if f.parent_id not in below:
            raise CorruptTableError(
                f"field {f.id} `{f.name}` has parent {f.parent_id}, which does not exist", where=where
            )
        if f.id < 0 or f.id in below:
            raise CorruptTableError(f"field id {f.id} is negative or occurs twice", where=where)
        depth[f.id] = depth[f.parent_id] + 1
        if depth[f.id] > MAX_DEPTH:
            raise CorruptTableError(f"field {f.id} `{f.name}` is nested more than {MAX_DEPTH} deep", where=where)
        below[f.parent_id].append(f)
        below[f.id] = []
        blob = below[f.id] if Node(f).is_blob else None

    def node(f: Field) -> Node:
        return Node(f, tuple(node(child) for child in below.get(f.id, ()) if f.id >= 0))

    return tuple(node(f) for f in below[-1])


def arrow_type(node: Node) -> pa.DataType:
    """The Arrow type in which the column is read. Raises UnsupportedFeatureError naming an unknown type."""
    kind = node.logical_type
    if node.is_blob:
        return BLOB_V1 if kind == "large_binary" else BLOB_V2
    if kind == "struct":
        return pa.struct([arrow_field(child) for child in node.children])
    if kind in _LISTS or kind == "map":
        return _nested_type(node)
    if kind.startswith("fixed_size_list:") and node.children:
        return pa.list_(arrow_field(node.children[0]), _dimension(kind))
    return leaf_type(kind)


def _nested_type(node: Node) -> pa.DataType:
    kind = node.logical_type
    if len(node.children) != 1:
        raise CorruptTableError(f"field {node.id} `{node.name}`, a {kind}, has {len(node.children)} children, not 1")
    child = node.children[0]
    if kind != "map":
        return pa.large_list(arrow_field(child)) if kind.startswith("large") else pa.list_(arrow_field(child))
    if len(child.children) != 2:
        raise CorruptTableError(f"the entries of map `{node.name}` have {len(child.children)} children, not 2")
    key, value = (arrow_field(c) for c in child.children)
    return pa.map_(key.with_nullable(False), value)


def _dimension(kind: str) -> int:
    size = kind.rsplit(":", 1)[1]
    if not (size.isascii() and size.isdigit()) or len(size) > 10 or int(size) > MAX_ITEMS:
        raise CorruptTableError(f"the type {shown(kind)} has no size up to {MAX_ITEMS:,}")
    return int(size)


def shown(kind: str) -> str:
    """A type as a string, truncated if it is long."""
    return repr(kind if len(kind) <= 80 else kind[:77] + "...")


def leaf_type(kind: str) -> pa.DataType:
    """The Arrow type of a logical type without child fields."""
    simple = _SIMPLE.get(kind)
    if simple is not None:
        return simple
    head, _, rest = kind.partition(":")
    if kind.count(":") > 2 * MAX_DEPTH:
        raise CorruptTableError(f"the type {shown(kind)} is nested more than {MAX_DEPTH} deep")
    try:
        if head == "timestamp":
            unit, _, zone = rest.partition(":")
            return pa.timestamp(unit, None if zone in ("-", "") else zone)
        if head == "decimal":
            bits, precision, scale = rest.split(":")
            return {"128": pa.decimal128, "256": pa.decimal256}[bits](int(precision), int(scale))
        if head == "fixed_size_binary":
            return pa.binary(int(rest))
        if head == "fixed_size_list":
            made = pa.list_(leaf_type(rest.rpartition(":")[0]), _dimension(kind))
            if _items(made) > MAX_ITEMS:
                raise CorruptTableError(f"the type {shown(kind)} has more than {MAX_ITEMS:,} items")
            return made
        if head == "dict":
            value, index, ordered = rest.rsplit(":", 2)
            if value.partition(":")[0] in _NESTED:
                raise UnsupportedFeatureError(f"a dictionary of nested values, {shown(kind)}", advice=_OTHERS_ONLY)
            return pa.dictionary(leaf_type(index), leaf_type(value), ordered == "true")
    except CorruptTableError:
        raise
    except (ValueError, KeyError, OverflowError, pa.ArrowException) as error:
        raise CorruptTableError(f"the type {shown(kind)} does not parse: {error}") from error
    raise UnsupportedFeatureError(f"the Lance type {shown(kind)}", advice=_OTHERS_ONLY)


def _items(kind: pa.DataType) -> int:
    """The number of items of one value."""
    return int(kind.list_size) * _items(kind.value_type) if pa.types.is_fixed_size_list(kind) else 1


def arrow_field(node: Node) -> pa.Field:
    """The Arrow field: storage type, nullability, metadata (extension names included)."""
    metadata = dict(node.field.metadata)
    if node.field.extension_name and EXTENSION_NAME not in metadata:
        metadata[EXTENSION_NAME] = node.field.extension_name.encode()
    return pa.field(node.name, arrow_type(node), node.field.nullable, metadata or None)


def arrow_schema(fields: Sequence[Field], metadata: dict[str, bytes] | None = None) -> pa.Schema:
    """The Arrow schema of a flat list of fields; extension types appear as storage with their metadata."""
    return pa.schema([arrow_field(node) for node in tree(fields)], metadata or None)


def fields_of(schema: pa.Schema, first_id: int = 0) -> tuple[Field, ...]:
    """Fields for an Arrow schema, ids counted depth first from `first_id`.

    Raises UnsupportedTypeError naming column and type: unions, run-end, list views, intervals, 32- and 64-bit decimals
    cannot be stored.
    """
    out: list[Field] = []
    for f in schema:
        _add(f, f.name, -1, first_id, out)
    return tuple(out)


def _add(f: pa.Field, path: str, parent: int, first_id: int, out: list[Field]) -> None:
    metadata = {k.decode(): v for k, v in (f.metadata or {}).items()}
    kind = f.type
    if isinstance(kind, pa.BaseExtensionType):
        serialize = getattr(kind, "__arrow_ext_serialize__", bytes)  # Arrow's own extension types have none
        metadata = {EXTENSION_METADATA: serialize(), **metadata}
        metadata[EXTENSION_NAME] = kind.extension_name.encode()
        kind = kind.storage_type
    name = metadata.get(EXTENSION_NAME, b"").decode()
    if name == "arrow.json":
        raise UnsupportedTypeError(f"column `{path}` is arrow.json, stored as JSONB", advice="cast it to string")
    logical = "json" if name == "lance.json" else logical_type(kind, path)
    id = first_id + len(out)
    made = Field(
        name=f.name, id=id, parent_id=parent, logical_type=logical, nullable=f.nullable,
        encoding=_encoding(logical), extension_name=name, metadata=metadata,
    )  # fmt: skip
    out.append(replace(made, dictionary=Dictionary()) if logical.startswith("dict:") else made)
    for child in _child_fields(kind):
        _add(child, f"{path}.{child.name}", id, first_id, out)


def _encoding(logical: str) -> int:
    if logical == "struct":
        return 0
    if logical in ("string", "binary", "large_string", "large_binary", "json"):
        return 2
    return 3 if logical.startswith("dict:") else 1


def _child_fields(kind: pa.DataType) -> list[pa.Field]:
    if pa.types.is_struct(kind):
        return [kind.field(i) for i in range(kind.num_fields)]
    if pa.types.is_map(kind):
        entries = pa.struct([kind.key_field.with_name("key"), kind.item_field.with_name("value")])
        return [pa.field("entries", entries, nullable=False)]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [kind.value_field]
    if pa.types.is_fixed_size_list(kind) and pa.types.is_struct(kind.value_type):
        return [kind.value_field]
    return []


def logical_type(kind: pa.DataType, path: str) -> str:
    """The logical type string of an Arrow type; `path` is the column's name in errors."""
    simple = _NAMES.get(str(kind))
    if simple is not None:
        return simple
    t = pa.types
    if t.is_struct(kind):
        return "struct"
    if t.is_map(kind):
        return "map"
    if t.is_list(kind) or t.is_large_list(kind):
        name = "large_list" if t.is_large_list(kind) else "list"
        return f"{name}.struct" if t.is_struct(kind.value_type) else name
    if t.is_fixed_size_list(kind):
        element = "struct" if t.is_struct(kind.value_type) else logical_type(kind.value_type, path)
        stored = t.is_struct(kind.value_type) or t.is_primitive(kind.value_type) or t.is_null(kind.value_type)
        if not stored and "fixed_size" not in element:
            raise UnsupportedTypeError(f"column `{path}`: a fixed-size list of {kind.value_type} cannot be stored")
        return f"fixed_size_list:{element}:{kind.list_size}"
    if t.is_timestamp(kind):
        return f"timestamp:{kind.unit}:{kind.tz or '-'}"
    if t.is_decimal128(kind) or t.is_decimal256(kind):
        return f"decimal:{kind.bit_width}:{kind.precision}:{kind.scale}"
    if t.is_fixed_size_binary(kind):
        return f"fixed_size_binary:{kind.byte_width}"
    if t.is_dictionary(kind):
        if t.is_nested(kind.value_type):
            raise UnsupportedTypeError(
                f"column `{path}`: a dictionary of {kind.value_type}, which Lance cannot store",
                advice="cast it to its values",
            )
        return f"dict:{logical_type(kind.value_type, path)}:{logical_type(kind.index_type, path)}:false"
    if kind in (pa.string_view(), pa.binary_view()):
        return "string" if kind == pa.string_view() else "binary"
    raise UnsupportedTypeError(
        f"column `{path}` has the type {kind}, which Lance cannot store", advice="cast it to a type that Lance supports"
    )
