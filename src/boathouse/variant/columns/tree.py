"""A nested Arrow array split into nodes for `from_arrow`: nodes from the root down, rows and masks at each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import numpy as np
import pyarrow as pa

from boathouse.arrow.schema import MARK
from boathouse.arrow.selection import run_end_decoded, take
from boathouse.arrow.vector import ragged
from boathouse.bits.unaligned import Ints, Mask
from boathouse.errors import InvalidArgumentError, UnsupportedTypeError
from boathouse.variant.columns.byte_columns import Ragged, splits_of
from boathouse.variant.columns.layout import column
from boathouse.variant.columns.nodes import roots
from boathouse.variant.columns.rewrite import Rewriter
from boathouse.variant.primitives import MAX_DEPTH

_EXTENSIONS = ("arrow.parquet.variant", "parquet.variant")


class Kind(Enum):
    LEAF, NULL, STRUCT, LIST, MAP, VARIANT = range(6)


# Where less than half of the rows have a value, only those are encoded: lists do so anyway.
_LIFTED = (Kind.LEAF, Kind.STRUCT, Kind.VARIANT)


@dataclass(frozen=True)
class Options:
    """`omit`: null fields of structs are left out. `narrow`: each integer takes its least width."""

    omit: bool
    narrow: bool
    masks: dict[bytes, Mask] = field(default_factory=dict)

    def same(self, mask: Mask) -> Mask:
        """One object for all masks of the same content: parts of rows with the same mask are written together."""
        return self.masks.setdefault(np.packbits(mask).tobytes() + len(mask).to_bytes(8), mask)


@dataclass(eq=False)
class Node:
    """One array of the tree. A row of it is in `present` (it has a value; None: all have), in `void` (a variant null is
    written; None: none is), or in neither: nothing is written for it.

    `names` are the fields' (structs, in the order of `children`) or all that occur (maps, variants), sorted;
    `splits` bound the elements of lists and maps, `ranks` are places in `names` of each entry of a map. Where few
    rows have a value, `array` has only those, and `lifted` says which rows they are.
    """

    array: pa.Array
    present: Mask | None
    void: Mask | None
    kind: Kind
    where: str
    parent: Node | None
    narrow: bool = False
    uuid: bool = False
    depth: int = 0
    children: list[Node] = field(default_factory=list)
    names: list[bytes] = field(default_factory=list)
    lifted: Mask | None = None
    splits: Any = None
    ranks: Any = None
    rewriter: Any = None
    rope: Any = None

    def tops(self) -> Ints:
        """The row of the complete column that each row belongs to."""
        path = [self]
        while (above := path[-1].parent) is not None:
            path.append(above)
        rows = np.arange(len(path[-1].array))
        for node in reversed(path):
            if node.lifted is not None:
                rows = rows[node.lifted]
            if node.splits is not None and node is not self:
                rows = np.repeat(rows, np.diff(node.splits))
        return rows

    def presence(self, child: Node) -> Mask | None:
        """The rows in which a struct has the field: None for all its rows."""
        if child.void is not None:
            return None
        there = child.present if child.lifted is None else child.lifted
        return None if there is self.present else there

    def uses(self) -> tuple[Ints, Ints]:
        """For a map or variant: rows of the complete column, and the positions in `names` that they use."""
        if self.kind is Kind.MAP:
            return self.children[0].tops(), self.ranks
        rows, names = self.rewriter.uses
        return self.tops()[rows], names


def grow(array: pa.Array, options: Options) -> list[Node]:
    """All nodes, parents before children. Raises UnsupportedTypeError, InvalidArgumentError."""
    root = _node(array, None, None, None, options, "", True)
    nodes: list[Node] = []
    stack = [root]
    while stack:
        node = stack.pop()
        nodes.append(node)
        if node.depth > MAX_DEPTH:
            raise InvalidArgumentError(f"the Arrow type has more than {MAX_DEPTH:,} nested lists and structs")
        node.children = list(_children(node, options))
        stack.extend(node.children)
    return nodes


def _node(
    array: pa.Array,
    mark: pa.Field | None,
    needed: Mask | None,
    parent: Node | None,
    options: Options,
    where: str,
    void: bool,
) -> Node:
    """A node below `parent`, of which the rows `needed` are written; null rows of them as variant null if `void`."""
    metadata = (mark.metadata if mark is not None else None) or {}
    is_variant = metadata.get(MARK) == b"variant" or metadata.get(b"ARROW:extension:name", b"").decode() in _EXTENSIONS
    is_uuid = metadata.get(MARK) == b"uuid"
    while isinstance(array, pa.ExtensionArray | pa.DictionaryArray | pa.RunEndEncodedArray):
        if isinstance(array, pa.ExtensionArray):
            name = array.type.extension_name
            is_variant, is_uuid = is_variant or name in _EXTENSIONS, is_uuid or name == "arrow.uuid"
            array = array.storage.cast(pa.bool_()) if name == "arrow.bool8" else array.storage
        elif isinstance(array, pa.DictionaryArray):
            array = take(array.dictionary, array.indices)
        else:
            array = run_end_decoded(array)
    is_variant = is_variant or _marked_by_spark(array.type)
    valid = None if not array.null_count else np.asarray(array.is_valid().to_numpy(zero_copy_only=False), np.bool_)
    present = needed if valid is None else options.same(valid if needed is None else needed & valid)
    voided = None
    if valid is not None and void:
        voided = ~valid if needed is None else needed & ~valid
    uuid = is_uuid and pa.types.is_fixed_size_binary(array.type) and array.type.byte_width == 16
    depth = 0 if parent is None else parent.depth + 1
    kind = Kind.VARIANT if is_variant else _kind(array.type)
    lifted = None
    if present is not None and parent is not None and kind in _LIFTED and 2 * np.count_nonzero(present) < len(array):
        lifted, present = present, None
        array = take(array, np.flatnonzero(lifted))
    return Node(array, present, voided, kind, where, parent, options.narrow, uuid, depth, lifted=lifted)


def _marked_by_spark(type: pa.DataType) -> bool:
    """Spark's UDF boundary marks the child `metadata` of its struct."""
    if not pa.types.is_struct(type) or type.get_field_index("metadata") < 0:
        return False
    return (type.field("metadata").metadata or {}).get(b"variant") == b"true"


def _kind(type: pa.DataType) -> Kind:
    t = pa.types
    if t.is_struct(type):
        return Kind.STRUCT
    if t.is_map(type):
        return Kind.MAP
    if t.is_list(type) or t.is_large_list(type) or t.is_fixed_size_list(type):
        return Kind.LIST
    if t.is_list_view(type) or t.is_large_list_view(type):
        return Kind.LIST
    return Kind.NULL if t.is_null(type) else Kind.LEAF


def _children(node: Node, options: Options) -> Iterator[Node]:
    if node.kind is Kind.STRUCT:
        yield from _fields(node, options)
    elif node.kind is Kind.LIST:
        splits, places = _elements(node)
        node.splits = splits
        elements = _taken(node.array.values, places)
        yield _node(elements, node.array.type.value_field, None, node, options, f"{node.where}[]", True)
    elif node.kind is Kind.MAP:
        yield _entries(node, options)
    elif node.kind is Kind.VARIANT:
        node.rewriter = Rewriter(roots(replace(column(node.array), valid=node.present)))
        node.names = node.rewriter.names


def _fields(node: Node, options: Options) -> Iterator[Node]:
    type = node.array.type
    fields = sorted((type.field(i).name.encode(), i) for i in range(type.num_fields))
    node.names = [name for name, _ in fields]
    for before, name in zip(node.names, node.names[1:]):
        if before == name:
            raise InvalidArgumentError(f"a struct has the field {name.decode()!r} twice", where=node.where or None)
    for name, i in fields:
        where = f"{node.where}.{name.decode()}" if node.where else name.decode()
        yield _node(node.array.field(i), type.field(i), node.present, node, options, where, not options.omit)


def _elements(node: Node) -> tuple[Ints, slice | Ints]:
    """Splits of the elements that are needed, and their positions in `values`."""
    array, type, rows = node.array, node.array.type, len(node.array)
    if pa.types.is_fixed_size_list(type):
        starts = (np.arange(rows) + array.offset) * type.list_size
        counts = np.full(rows, type.list_size)
    else:
        large = pa.types.is_large_list(type) or pa.types.is_large_list_view(type)
        views = pa.types.is_list_view(type) or pa.types.is_large_list_view(type)
        first = _integers(array, 1, large, rows if views else rows + 1)
        starts = first[:rows]
        counts = _integers(array, 2, large, rows) if views else np.diff(first)
    if node.present is not None:
        counts = np.where(node.present, counts, 0)
    splits = splits_of(counts)
    filled = counts > 0
    at, long = (starts, counts) if filled.all() else (starts[filled], counts[filled])
    if not len(at):
        return splits, slice(0, 0)
    if (at[1:] == at[:-1] + long[:-1]).all():
        return splits, slice(int(at[0]), int(at[-1] + long[-1]))
    owner, slot = ragged(long)
    return splits, at[owner] + slot


def _integers(array: pa.Array, buffer: int, large: bool, count: int) -> Ints:
    kind = np.dtype(np.int64 if large else np.int32)
    data = array.buffers()[buffer]
    if data is None or not data.size:
        return np.zeros(count, np.int64)
    return np.frombuffer(data, kind, count, array.offset * kind.itemsize).astype(np.int64, copy=False)


def _taken(values: pa.Array, places: slice | Ints) -> pa.Array:
    if isinstance(places, slice):
        return values.slice(places.start, places.stop - places.start)
    return take(values, places)


def _entries(node: Node, options: Options) -> Node:
    """The values of a map, in the order of the names within each row."""
    keys, items, type = node.array.keys, node.array.items, node.array.type
    node.splits, places = _elements(node)
    keys = _taken(keys, places)
    if isinstance(keys, pa.DictionaryArray):
        keys = take(keys.dictionary, keys.indices)
    if not (pa.types.is_string(keys.type) or pa.types.is_large_string(keys.type) or pa.types.is_string_view(keys.type)):
        raise UnsupportedTypeError(
            f"a map with keys of {keys.type} is not an object: names are strings",
            where=node.where or None,
            advice="cast the keys to strings",
        )
    coded = keys.cast(pa.large_string()).dictionary_encode()
    words = Ragged.from_arrow(coded.dictionary)
    names = [words[i] for i in range(words.rows)]
    node.names = sorted(names)
    rank = {name: i for i, name in enumerate(node.names)}
    ranks = np.array([rank[name] for name in names], np.int64)[coded.indices.to_numpy()]
    order = _sorted_entries(node, ranks)
    items = _taken(items, places)
    if order is not None:
        ranks, items = ranks[order], take(items, order)
    node.ranks = ranks
    return _node(items, type.item_field, None, node, options, f"{node.where}{{}}", True)


def _sorted_entries(node: Node, ranks: Ints) -> Ints | None:
    """The order by row and name; None if they are already in order. Raises InvalidArgumentError for a name twice in a
    row."""
    owner = np.repeat(np.arange(len(node.array)), np.diff(node.splits))
    keys = owner * max(len(node.names), 1) + ranks
    if (np.diff(keys) > 0).all():
        return None
    order = np.argsort(keys, kind="stable")
    twice = np.flatnonzero(np.diff(keys[order]) == 0)
    if len(twice):
        at = order[twice[0]]
        raise InvalidArgumentError(
            f"map {owner[at]:,} has the key {node.names[ranks[at]].decode()!r} twice", where=node.where or None
        )
    return order
