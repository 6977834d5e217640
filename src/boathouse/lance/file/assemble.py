"""Assembles leaves to Arrow: levels to validity and offsets, then the leaves of a field to one array.

The inverse of `shred`, whose docstring defines the levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.vector import numpy_type
from boathouse.lance.file import messages as m
from boathouse.lance.file.plain import (
    Bits,
    Fixed,
    Ints,
    Nulls,
    Plain,
    Var,
    Vectors,
    buffer,
    byte_width,
    to_arrow,
    validity,
)
from boathouse.lance.file.schema import Node, arrow_field, arrow_type
from boathouse.lance.file.segments import Broken, NotRead
from boathouse.lance.file.shred import Levels

Mask = npt.NDArray[np.bool_]
_ITEMS = (m.ALL_VALID_ITEM, m.NULLABLE_ITEM)


@dataclass(frozen=True)
class Packed:
    """The fields of a struct that is one column."""

    members: tuple[Plain, ...]

    def __len__(self) -> int:
        return len(self.members[0])


@dataclass(frozen=True)
class Decoded:
    """Rows of one page of a leaf: visible values (or keys into `dictionary`), levels, layers innermost first.

    `pick` selects the requested rows among those decoded: a slice, positions, or None for all. `absent` says that there
    are no values, only levels.
    """

    values: Plain | Packed | None
    layers: tuple[int, ...]
    rep: Levels | None = None
    defs: Levels | None = None
    pick: slice | Ints | None = None
    dictionary: Plain | None = None
    entries: int = 0


class _Cursor:
    """The state on the way up through the layers: the levels of the next layer."""

    def __init__(self, decoded: Decoded) -> None:
        self._layers = list(decoded.layers)
        self._rep, self._defs = decoded.rep, decoded.defs
        self._entries = decoded.entries
        self._taken = 0  # definition levels of the layers below
        self._lists = 0  # list layers below
        total = sum(_width(layer) for layer in self._layers)
        lists = sum(layer not in _ITEMS for layer in self._layers)
        if any(not 1 <= layer <= 6 for layer in self._layers):
            raise NotRead(f"layers {self._layers}")
        for levels, most, kind in ((self._rep, lists, "repetition"), (self._defs, total, "definition")):
            if levels is None:
                continue
            if len(levels) != self._entries or (len(levels) and int(levels.max()) > most):
                raise Broken(f"{kind} levels above {most}, or too many")
        if lists and self._entries and (self._rep is None or int(self._rep[0]) != lists):
            raise Broken("a page that does not begin with a row")
        self._visible = self._visibility()

    def _visibility(self) -> Mask | None:
        """Which entries have a slot at the current layer; None for all."""
        limit = self._taken
        for layer in self._layers:
            if layer not in _ITEMS:
                break
            limit += _width(layer)
        if self._defs is None or limit == self._taken + sum(map(_width, self._layers)):
            return None
        visible = self._defs <= limit
        return None if visible.all() else visible

    @property
    def slots(self) -> int:
        return self._entries if self._visible is None else int(np.count_nonzero(self._visible))

    def _pop(self) -> int:
        if not self._layers:
            raise Broken("fewer layers than the field is deep")
        return self._layers.pop(0)

    def item(self) -> Mask | None:
        """The validity of an item layer."""
        layer = self._pop()
        if layer not in _ITEMS:
            raise Broken("a list layer where the field has an item")
        valid = None
        if self._defs is not None:
            seen = self._defs if self._visible is None else self._defs[self._visible]
            valid = seen <= self._taken
        self._taken += _width(layer)
        return valid

    def rows(self, dimension: int) -> None:
        """Fixed-size lists of structs have one entry per element: keep the first of each."""
        if self._rep is not None or self._visible is not None:
            raise NotRead("a fixed-size list of structs inside a list")
        if self._entries % dimension:
            raise Broken(f"{self._entries} entries of fixed-size lists of {dimension}")
        self._entries //= dimension
        self._defs = None if self._defs is None else self._defs[::dimension]

    def list(self) -> tuple[Ints, Mask | None]:
        """Offsets and validity of a list layer."""
        layer = self._pop()
        if layer in _ITEMS:
            raise Broken("an item layer where the field has a list")
        assert self._rep is not None or not self._entries
        rep = self._rep if self._rep is not None else np.empty(0, np.uint16)
        inner = np.ones(self._entries, np.int64) if self._visible is None else self._visible.astype(np.int64)
        at = np.flatnonzero(rep > self._lists)
        before = np.cumsum(inner) - inner
        null_level = self._taken + 1 if layer in (m.NULLABLE_LIST, m.NULL_AND_EMPTY_LIST) else -1
        self._taken += _width(layer)
        self._lists += 1
        if len(at) and at[0] != 0:
            raise Broken("a list that begins before its page")
        starts = before[at]
        total = int(inner.sum())
        self._entries = len(at)
        self._rep = rep[at]
        self._defs = None if self._defs is None else self._defs[at]
        self._visible = self._visibility()
        if self._visible is not None:
            starts = starts[self._visible]
        offsets = np.append(starts, total)
        valid = None
        if self._defs is not None:
            seen = self._defs if self._visible is None else self._defs[self._visible]
            valid = (seen <= self._taken) & (seen != null_level)
        return offsets, valid


def _width(layer: int) -> int:
    if layer in (m.ALL_VALID_ITEM, m.ALL_VALID_LIST):
        return 0
    return 2 if layer == m.NULL_AND_EMPTY_LIST else 1


def assemble(path: Sequence[Node], decoded: Decoded) -> pa.Array:
    """The requested rows, as the nested array of one leaf: structs have that one child, maps are lists."""
    cursor = _Cursor(decoded)
    if decoded.values is not None and len(decoded.values) != cursor.slots:
        raise Broken(f"{len(decoded.values)} values for {cursor.slots} slots")
    slots = cursor.slots
    array = leaf_array(path[-1], decoded, slots, cursor.item())
    for parent, child in zip(path[-2::-1], path[:0:-1]):
        kind = parent.logical_type
        field = pa.field(child.name, array.type, child.field.nullable, dict(child.field.metadata) or None)
        if kind == "struct":
            array = _nest(pa.struct([field]), len(array), cursor.item(), [], [array])
        elif kind.startswith("fixed_size_list:"):
            dimension = int(kind.rsplit(":", 1)[1])
            cursor.rows(dimension)
            array = _nest(pa.list_(field, dimension), len(array) // dimension, cursor.item(), [], [array])
        else:
            array = _list(kind, field, cursor, array)
    if isinstance(decoded.pick, slice):
        array = array.slice(decoded.pick.start, decoded.pick.stop - decoded.pick.start)
    elif decoded.pick is not None:
        array = array.take(pa.array(decoded.pick))
    return array


def _list(kind: str, field: pa.Field, cursor: _Cursor, child: pa.Array) -> pa.Array:
    offsets, valid = cursor.list()
    large = kind.startswith("large_list")
    made = pa.large_list(field) if large else pa.list_(field)
    ends = buffer(offsets if large else offsets.astype(np.int32))
    if not large and int(offsets[-1]) > 0x7FFFFFFF:
        raise NotRead("lists of more than 2**31 elements together")
    return _nest(made, len(offsets) - 1, valid, [ends], [child])


def _nest(kind: pa.DataType, n: int, valid: Mask | None, buffers: list[Any], children: list[pa.Array]) -> pa.Array:
    mask = validity(valid)
    return pa.Array.from_buffers(kind, n, [mask, *buffers], 0 if mask is None else -1, 0, children)


def leaf_array(node: Node, decoded: Decoded, slots: int, valid: Mask | None) -> pa.Array:
    """The Arrow array of a leaf. Raises Broken if the values are not of the field's type."""
    kind = arrow_type(node)
    values = decoded.values
    if values is None:
        if pa.types.is_struct(kind) and not node.children and not node.is_blob:
            return _nest(kind, slots, None, [], [])
        return pa.nulls(slots, kind)
    if isinstance(values, Packed):
        if not pa.types.is_struct(kind) or len(values.members) != kind.num_fields:
            raise Broken(f"a packed struct of {len(values.members)} fields")
        members = [typed(v, kind.field(i).type, None) for i, v in enumerate(values.members)]
        return _nest(kind, slots, valid, [], members)
    if decoded.dictionary is None:
        if pa.types.is_dictionary(kind):
            plain = typed(values, kind.value_type, valid)
            return plain.dictionary_encode().cast(kind)
        return typed(values, kind, valid)
    return _look_up(values, decoded.dictionary, kind, valid)


def _look_up(keys: Plain, dictionary: Plain, kind: pa.DataType, valid: Mask | None) -> pa.Array:
    if not isinstance(keys, Fixed) or keys.width not in (1, 2, 4, 8):
        raise Broken("keys that are not integers")
    indices = np.ascontiguousarray(keys.data).view(f"<u{keys.width}").reshape(-1)
    if valid is not None:
        indices = np.where(valid, indices, 0)
    if len(indices) and int(indices.max()) >= len(dictionary) and (valid is None or valid.any()):
        raise Broken(f"key {int(indices.max())} of a dictionary of {len(dictionary)}")
    mask = validity(valid)
    if pa.types.is_dictionary(kind):
        words = typed(dictionary, kind.value_type, None)
        raw = indices.astype(numpy_type(kind.index_type))
        plain = pa.Array.from_buffers(kind.index_type, len(raw), [mask, buffer(raw)], 0 if mask is None else -1)
        return dictionary_of(plain, words, kind)
    raw_keys = pa.Array.from_buffers(
        pa.int64(), len(indices), [mask, buffer(indices.astype(np.int64))], 0 if mask is None else -1
    )
    return typed(dictionary, kind, None).take(raw_keys)


def dictionary_of(keys: pa.Array, words: pa.Array, kind: pa.DataType) -> pa.Array:
    """A dictionary column whose values are never null: keys of a null value become null, so that pages can be
    concatenated."""
    if words.null_count:
        there = words.is_valid()
        places = pc.if_else(there, pc.subtract(pc.cumulative_sum(there.cast(pa.int64())), 1), None)
        keys, words = places.take(keys), words.drop_null()
    return pa.DictionaryArray.from_arrays(keys.cast(kind.index_type), words)


def typed(values: Plain, kind: pa.DataType, valid: Mask | None) -> pa.Array:
    """Plain values as an Arrow array, after a check that they are of that type."""
    t = pa.types
    if t.is_null(kind):
        return pa.nulls(len(values))
    if t.is_fixed_size_list(kind) and isinstance(values, Fixed):
        values = _unflatten(values, kind)
    _check(values, kind)
    if isinstance(values, Var) and values.offsets[-1] > 0x7FFFFFFF and (t.is_string(kind) or t.is_binary(kind)):
        raise NotRead("more than 2 GB of strings of one page at once")
    array = to_arrow(values, kind, valid)
    if t.is_string(kind) or t.is_large_string(kind):
        array.validate(full=True)  # strings that are not UTF-8 would otherwise only fail when they are accessed
    return array


def _unflatten(values: Fixed, kind: pa.DataType) -> Plain:
    if not pa.types.is_fixed_size_list(kind):
        return values
    if kind.list_size == 0 and values.width == 0:
        return Vectors(0, Nulls(0), rows=len(values))
    if kind.list_size < 1 or values.width % kind.list_size:
        raise Broken(f"values of {values.width} bytes for {kind}")
    items = Fixed(np.ascontiguousarray(values.data).reshape(-1, values.width // kind.list_size))
    return Vectors(kind.list_size, _unflatten(items, kind.value_type))


def _check(values: Plain, kind: pa.DataType) -> None:
    t = pa.types
    if isinstance(values, Vectors):
        if not t.is_fixed_size_list(kind) or kind.list_size != values.dimension:
            raise Broken(f"lists of {values.dimension} items for {kind}")
        if values.dimension and len(values.items) % values.dimension:
            raise Broken(f"{len(values.items)} items for lists of {values.dimension}")
        _check(values.items, kind.value_type)
    elif isinstance(values, Nulls):
        pass
    elif isinstance(values, Var):
        if not (t.is_string(kind) or t.is_binary(kind) or t.is_large_string(kind) or t.is_large_binary(kind)):
            raise Broken(f"strings for {kind}")
    elif isinstance(values, Bits):
        if not t.is_boolean(kind):
            raise Broken(f"bits for {kind}")
    elif (
        t.is_boolean(kind)
        or not (t.is_primitive(kind) or t.is_fixed_size_binary(kind) or t.is_decimal(kind))
        or byte_width(kind) != values.width
    ):
        raise Broken(f"values of {values.width} bytes for {kind}")


# --- leaves to fields ------------------------------------------------------------------------------


def merge(node: Node, parts: dict[int, pa.Array], rows: int) -> pa.Array:
    """One array of a field from the nested arrays of its leaves, by leaf id; missing leaves are null."""
    found = [leaf.id for leaf in node.leaves() if leaf.id in parts]
    if not found:
        return pa.nulls(rows, arrow_type(node))
    return _merge(node, [(leaf.id, parts[leaf.id]) for leaf in node.leaves() if leaf.id in parts])


def _merge(node: Node, parts: list[tuple[int, pa.Array]]) -> pa.Array:
    first = parts[0][1]
    if any(len(array) != len(first) for _, array in parts):
        raise Broken(f"leaves of `{node.name}` with different numbers of values")
    if node.is_leaf:
        return first
    kind = arrow_type(node)
    mask = _mask(first)
    if node.logical_type == "struct":
        return _nest(kind, len(first), mask, [], _members(node, [(i, a.field(0)) for i, a in parts], len(first)))
    if node.logical_type.startswith("fixed_size_list:"):
        size = kind.list_size
        inner = [(i, a.values.slice(a.offset * size, len(a) * size)) for i, a in parts]
        return _nest(kind, len(first), mask, [], [_merge(node.children[0], inner)])
    inner = [(i, _elements(a)) for i, a in parts]
    offsets = np.asarray(first.offsets)
    ends = buffer(offsets - offsets[0])
    return _nest(kind, len(first), mask, [ends], [_merge(node.children[0], inner)])


def _members(node: Node, parts: list[tuple[int, pa.Array]], rows: int) -> list[pa.Array]:
    out = []
    for child in node.children:
        ids = {leaf.id for leaf in child.leaves()}
        mine = [(i, a) for i, a in parts if i in ids]
        out.append(_merge(child, mine) if mine else _without_leaves(child, rows))
    return out


def _without_leaves(node: Node, rows: int) -> pa.Array:
    """A nested field of which the file has no leaf: null, except for a struct without fields, which is not null."""
    if node.logical_type == "struct" and not node.children:
        return _nest(arrow_type(node), rows, None, [], [])
    return pa.nulls(rows, arrow_type(node))


def _mask(array: pa.Array) -> Mask | None:
    if array.null_count == 0:
        return None
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)


def _elements(array: pa.Array) -> pa.Array:
    offsets = array.offsets
    start, stop = (offsets[0].as_py(), offsets[-1].as_py()) if len(offsets) else (0, 0)
    return array.values.slice(start, stop - start)


__all__ = ["Decoded", "Packed", "arrow_field", "assemble", "merge", "typed"]
