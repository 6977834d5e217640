"""Resolves a table's columns to the leaves of a file, and assembles them.

A column is found by field id where it has one, else by name (exactly, then ignoring case if only one matches);
so is every nested field. What the file lacks is null or the field's default.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import pyarrow as pa

from boathouse.arrow.layouts import plain_list
from boathouse.arrow.schema import to_arrow_type
from boathouse.bits.names import Names
from boathouse.errors import CorruptTableError, SchemaMismatchError
from boathouse.parquet.convert import Convert, constant, leaf_cast, null_mask, rebuild_list
from boathouse.parquet.fields import FileField, find, has_ids, is_list
from boathouse.parquet.matching import Matching
from boathouse.parquet.variants import VariantPath, WholeVariant, nothing_known, variant_parts, whole_variant
from boathouse.types import DataType, Field, ListType, MapType, NullType, StructType, VariantType


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


def _by_id(fields: Sequence[FileField]) -> dict[int | None, FileField]:
    """The fields and those in nested structs; of two with one id the less deep one, then the first."""
    found = {f.id: f for f in reversed(fields)}
    for f in fields:
        if pa.types.is_struct(f.type):
            for id, below in _by_id(f.children).items():
                found.setdefault(id, below)
    return found


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
        if column.field_id is not None and (has_ids(self.fields) or self.matching.file_ids is not None):
            # A name mapping that names nothing finds nothing.
            return self._ids.get(column.field_id)
        if column.field_id is not None and self.fields and (column.physical is None or not self.names_decide):
            raise CorruptTableError(
                f"column `{column.name}` must be found by its field id {column.field_id}, but the file has no ids",
                advice="give the table a name mapping (the property schema.name-mapping.default), or rewrite the file "
                "with field ids",
            )
        if column.field_id is not None and not self.fields:
            return None
        return self.at(column.physical or (column.name,))

    @cached_property
    def names_decide(self) -> bool:
        """Whether the names of a file without ids are the table's."""
        known = self.matching.names
        return known is None or any(f.name.lower() in known for f in self.fields)

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
