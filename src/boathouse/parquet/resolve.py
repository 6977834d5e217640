"""Resolves a table's columns to the leaves of a file, and assembles them.

A column is found by field id where it has one, else by name (exactly, then ignoring case if only one matches);
so is every nested field. What the file lacks is null or the field's default.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Protocol

import pyarrow as pa

from boathouse.arrow.layouts import plain_list
from boathouse.arrow.schema import FIELD_ID, to_arrow_type
from boathouse.arrow.string_offsets import narrow_type
from boathouse.bits.names import Names
from boathouse.errors import CorruptTableError, SchemaMismatchError
from boathouse.parquet.convert import Convert, constant, leaf_cast, null_mask, rebuild_list
from boathouse.parquet.variants import VariantPath, WholeVariant, nothing_known, variant_parts, whole_variant
from boathouse.types import DataType, Field, ListType, MapType, NullType, StructType, VariantType


def own_name(field: Field) -> str:
    return field.name


def no_default(field: Field) -> object:
    return None


@dataclass(frozen=True, slots=True)
class Matching:
    """How a format finds nested fields and fills in missing ones; picklable (module-level functions).

    `physical_name` is a nested field's name in the file (Delta column mapping); `default` its value where the
    file lacks it (Iceberg initial-default); `file_ids` gives the id of a physical path in files that carry no
    field ids at all (Iceberg name mapping), lists and maps with their `element`, `key` and `value`.
    """

    physical_name: Callable[[Field], str] = own_name
    default: Callable[[Field], object] = no_default
    file_ids: Callable[[tuple[str, ...]], int | None] | None = None


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A column of the table's current schema: found by `field_id` if given, else by the `physical` path (else `name`).

    `only` is for a variant column of which only the values at these paths are needed (no path: whether it is null). The
    result is then a variant group, shredded as in the file, that is sufficient for these paths.
    """

    name: str
    type: DataType
    physical: tuple[str, ...] | None = None
    field_id: int | None = None
    default: object = None
    nullable: bool = True
    only: tuple[VariantPath, ...] | None = None


@dataclass(frozen=True)
class FileField:
    """A field of the file: `first` is its first leaf's column number, `leaves` how many it has."""

    path: tuple[str, ...]
    type: pa.DataType
    id: int | None
    first: int
    leaves: int
    children: tuple[FileField, ...] = ()

    @property
    def name(self) -> str:
        return self.path[-1]

    @cached_property
    def places(self) -> Names:
        """The name index of the children."""
        return Names(c.name for c in self.children)

    @cached_property
    def ids(self) -> dict[int | None, FileField]:
        """The children by their ids."""
        return {c.id: c for c in reversed(self.children)}

    def walk(self) -> Iterator[FileField]:
        yield self
        for child in self.children:
            yield from child.walk()


def file_fields(
    schema: pa.Schema, file_ids: Callable[[tuple[str, ...]], int | None] | None = None, narrow: bool = False
) -> list[FileField]:
    """The fields of a file from its Arrow schema; without any field id in it, ids are taken from `file_ids`.

    With `narrow`, the fields have plain instead of large strings and binaries, as they will be read.
    """
    fields = list(_stored(_Serialized(schema), narrow))
    if file_ids is not None and not has_ids(fields):
        fields = _from_arrow(_top(schema, narrow), (), 0, lambda f, path: file_ids(path))
    return fields


def _top(schema: pa.Schema, narrow: bool) -> list[pa.Field]:
    return [f.with_type(narrow_type(f.type) or f.type) if narrow else f for f in schema]


class _Serialized:
    """A schema by its bytes: Arrow compares schemas as equal that differ only in metadata, where field ids are."""

    __slots__ = ("bytes", "schema")

    def __init__(self, schema: pa.Schema) -> None:
        self.schema, self.bytes = schema, schema.serialize().to_pybytes()

    def __hash__(self) -> int:
        return hash(self.bytes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Serialized) and self.bytes == other.bytes


@lru_cache(maxsize=16)
def _stored(of: _Serialized, narrow: bool) -> tuple[FileField, ...]:
    """The fields with the ids in the file; most files of a table share one schema."""
    return tuple(_from_arrow(_top(of.schema, narrow), (), 0, lambda f, path: _stored_id(f)))


def has_ids(fields: list[FileField]) -> bool:
    return any(f.id is not None for top in fields for f in top.walk())


def _stored_id(arrow: pa.Field) -> int | None:
    stored = (arrow.metadata or {}).get(FIELD_ID)
    return int(stored) if stored is not None and int(stored) >= 0 else None


def _from_arrow(
    arrow: list[pa.Field], above: tuple[str, ...], first: int, id_of: Callable[[pa.Field, tuple[str, ...]], int | None]
) -> list[FileField]:
    out = []
    for f in arrow:
        path = (*above, f.name)
        children = tuple(_from_arrow(_below(f.type), path, first, id_of))
        leaves = sum(c.leaves for c in children) or 1
        out.append(FileField(path, f.type, id_of(f, path), first, leaves, children))
        first += leaves
    return out


def _by_id(fields: Sequence[FileField]) -> dict[int | None, FileField]:
    """The fields and those in nested structs; of two with one id the less deep one, then the first."""
    found = {f.id: f for f in reversed(fields)}
    for f in fields:
        if pa.types.is_struct(f.type):
            for id, below in _by_id(f.children).items():
                found.setdefault(id, below)
    return found


def _below(type: pa.DataType) -> list[pa.Field]:
    """The fields below an Arrow type as read from Parquet, lists and maps with the names of the specification."""
    if isinstance(type, pa.BaseExtensionType):
        return []
    if pa.types.is_struct(type):
        return list(type)
    if pa.types.is_map(type):
        return [type.key_field.with_name("key"), type.item_field.with_name("value")]
    if is_list(type):
        return [type.value_field.with_name("element")]
    return []


def is_list(type: pa.DataType) -> bool:
    p = pa.types
    return bool(
        p.is_list(type) or p.is_large_list(type) or p.is_fixed_size_list(type) or p.is_list_view(type)
        or p.is_large_list_view(type)
    )  # fmt: skip


def find(fields: Sequence[FileField], places: Names, name: str) -> FileField | None:
    """The field called `name`: exactly, else ignoring case. Raises SchemaMismatchError if it is ambiguous."""
    hits = [fields[i] for i in places.exactly(name)[:1] or places.loosely(name)]
    if len(hits) > 1:
        raise SchemaMismatchError(f"column `{name}` is ambiguous in the file: {', '.join(f.name for f in hits)}")
    return hits[0] if hits else None


class Node(Protocol):
    """Converts what was read of one field of the file to one field of the table."""

    @property
    def leaves(self) -> tuple[int, ...]:
        """The file's leaf columns that are needed; () if the file lacks the field."""

    @property
    def straight(self) -> bool:
        """Whether the field is the file's own, unless its Arrow type still differs."""

    def apply(self, array: pa.Array) -> pa.Array: ...


@dataclass(frozen=True, slots=True)
class Absent:
    target: pa.DataType
    default: object
    leaves: tuple[int, ...] = ()
    straight: bool = False

    def apply(self, array: pa.Array) -> pa.Array:
        """`array` gives only the length."""
        return constant(self.default, self.target, len(array))


@dataclass(frozen=True, slots=True)
class Unread:
    """A leaf column about which nothing is known without reading it."""

    leaves: tuple[int, ...] = ()
    straight: bool = False

    def apply(self, array: pa.Array) -> pa.Array:
        return array


@dataclass(frozen=True, slots=True)
class Leaf:
    leaves: tuple[int, ...]
    convert: Convert | None

    @property
    def straight(self) -> bool:
        return self.convert is None

    def apply(self, array: pa.Array) -> pa.Array:
        return array if self.convert is None else self.convert(array)


@dataclass(frozen=True, slots=True)
class Struct:
    target: pa.DataType
    names: tuple[str | None, ...]
    """The children's names in the file, in the table's order."""
    nodes: tuple[Node, ...]
    leaves: tuple[int, ...]
    straight: bool

    def apply(self, array: pa.Array) -> pa.Array:
        if self.straight and array.type == self.target:
            return array
        columns = [
            node.apply(array if name is None else _child(array, name, node))
            for name, node in zip(self.names, self.nodes)
        ]
        return pa.StructArray.from_arrays(columns, fields=list(self.target), mask=null_mask(array))


def _child(array: pa.Array, name: str, node: Node) -> pa.Array:
    """A struct's child. A nested variant inherits the struct's nulls: a required group of a null struct reads as empty
    bytes, which are not a variant."""
    i = array.type.get_field_index(name)
    if array.null_count and isinstance(node, WholeVariant | Struct):
        return pa.StructArray.flatten(array)[i]
    return array.field(i)


@dataclass(frozen=True, slots=True)
class Repeated:
    """A list, or a map as the struct of its entries."""

    target: pa.DataType
    entry: Node

    @property
    def leaves(self) -> tuple[int, ...]:
        return self.entry.leaves

    @property
    def straight(self) -> bool:
        return self.entry.straight

    def apply(self, array: pa.Array) -> pa.Array:
        if self.straight and array.type == self.target:
            return array
        return rebuild_list(plain_list(array), self.target, self.entry.apply)


@dataclass(frozen=True)
class Resolver:
    """Finds columns among a file's fields; `is_empty` identifies leaf columns that certainly hold only nulls."""

    fields: list[FileField]
    matching: Matching = field(default_factory=Matching)
    is_empty: Callable[[int], bool] = nothing_known

    @cached_property
    def _places(self) -> Names:
        return Names(f.name for f in self.fields)

    @cached_property
    def _ids(self) -> dict[int | None, FileField]:
        return _by_id(self.fields)

    def column(self, column: SourceColumn) -> tuple[tuple[str, ...] | None, Node]:
        """The path in the file (None: missing) and the node of a table's column."""
        found, node = self._column(column)
        return (None if found is None else found.path), node

    def leaf(self, column: SourceColumn, below: tuple[str, ...]) -> tuple[DataType, Node, FileField | None]:
        """The type, the node and the file's field at the path `below` a column, through structs only."""
        found, node = self._column(column)
        type = column.type
        for name in below:
            if not isinstance(type, StructType) or not isinstance(node, Struct | Absent):
                return type, Unread(), None
            i = next(i for i, f in enumerate(type.fields) if f.name == name)
            type = type.fields[i].type
            if isinstance(node, Absent):
                # The default of a struct is not split into its fields.
                node = Absent(to_arrow_type(type), None) if node.default is None else Unread()
                continue
            child = node.names[i]
            found = None if found is None or child is None else find(found.children, found.places, child)
            node = node.nodes[i]
        return type, node, found

    def found(self, column: SourceColumn) -> FileField | None:
        """The file's field for a column; None if it has none."""
        if column.field_id is not None and has_ids(self.fields):
            return self._ids.get(column.field_id)
        if column.field_id is not None and column.physical is None:
            if not self.fields:
                return None
            raise CorruptTableError(
                f"column `{column.name}` must be found by its field id {column.field_id}, but the file has no ids",
                advice="give the table a name mapping, or rewrite the file with field ids",
            )
        return self.at(column.physical or (column.name,))

    def _column(self, column: SourceColumn) -> tuple[FileField | None, Node]:
        target = to_arrow_type(column.type)
        found = self.found(column)
        if found is None or isinstance(column.type, NullType):
            return None, Absent(target, column.default)
        if column.only is not None:
            return found, variant_parts(found, column.only, self.is_empty)
        return found, self.node(column.type, target, found, column.field_id is not None and has_ids(self.fields))

    def at(self, path: tuple[str, ...]) -> FileField | None:
        """The field at a path of names through structs; None if there is none."""
        found = find(self.fields, self._places, path[0])
        for name in path[1:]:
            if found is None or not pa.types.is_struct(found.type):
                return None
            found = find(found.children, found.places, name)
        return found

    def leaf_at(self, number: int) -> FileField:
        """The field of a leaf column."""
        fields: Sequence[FileField] = self.fields
        while True:
            found = fields[bisect_right(fields, number, key=lambda f: f.first) - 1]
            if not found.children:
                return found
            fields = found.children

    def node(self, type: DataType, target: pa.DataType, found: FileField, by_id: bool) -> Node:
        """The node that produces `type`, of Arrow type `target`, from the file's field `found`."""
        whole = tuple(range(found.first, found.first + found.leaves))
        if pa.types.is_null(found.type):
            return Leaf(whole, leaf_cast(found.type, target))
        match type:
            case VariantType():
                return whole_variant(found)
            case StructType(fields) if pa.types.is_struct(found.type):
                return self._struct(fields, target, found, by_id)
            case ListType(element) if is_list(found.type):
                return Repeated(target, self.node(element.type, target.value_type, found.children[0], by_id))
            case MapType(key, value) if pa.types.is_map(found.type):
                nodes = (
                    self.node(key.type, target.key_type, found.children[0], by_id),
                    self.node(value.type, target.item_type, found.children[1], by_id),
                )
                entries = pa.struct([target.key_field.with_name("key"), target.item_field.with_name("value")])
                straight = all(n.straight for n in nodes)
                return Repeated(target, Struct(entries, ("key", "value"), nodes, whole, straight))
        if found.children or isinstance(type, StructType | ListType | MapType):
            raise SchemaMismatchError(f"`{'.'.join(found.path)}` is {found.type} in the file, {type} in the table")
        try:
            return Leaf(whole, leaf_cast(found.type, target))
        except SchemaMismatchError as error:
            raise SchemaMismatchError(f"`{'.'.join(found.path)}`: {error.message}") from None

    def _struct(self, fields: tuple[Field, ...], target: pa.DataType, found: FileField, by_id: bool) -> Node:
        names: list[str | None] = []
        nodes: list[Node] = []
        for i, f in enumerate(fields):
            child = self._child(f, found, by_id)
            absent = child is None or isinstance(f.type, NullType)
            names.append(None if absent or child is None else child.name)
            child_type = target.field(i).type
            if absent or child is None:
                nodes.append(Absent(child_type, self.matching.default(f)))
            else:
                nodes.append(self.node(f.type, child_type, child, by_id))
        # A struct of which no field is needed, or present, still has nulls of its own: one leaf gives them.
        leaves = tuple(sorted({leaf for n in nodes for leaf in n.leaves})) or (found.first,)
        straight = all(n.straight for n in nodes) and [f.name for f in fields] == names
        return Struct(target, tuple(names), tuple(nodes), leaves, straight)

    def _child(self, wanted: Field, found: FileField, by_id: bool) -> FileField | None:
        if by_id and wanted.id is not None:
            return found.ids.get(wanted.id)
        return find(found.children, found.places, self.matching.physical_name(wanted))
