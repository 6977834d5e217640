"""Splits Arrow columns into leaves: repetition and definition levels and the visible values.

Levels count from the inside out. Definition 0 is fully valid; going outward each nullable item, nullable
list or emptyable list takes the next number, a list that is both takes two (null, then empty). Repetition
0 continues the innermost list, k starts a new list at depth k from the inside, the greatest a new row.
A null or empty list has a level entry and no value; a null item, or an item of a null struct, has both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse.errors import SchemaMismatchError, UnsupportedFeatureError
from boathouse.lance.file.messages import (
    ALL_VALID_ITEM,
    ALL_VALID_LIST,
    EMPTYABLE_LIST,
    NULL_AND_EMPTY_LIST,
    NULLABLE_ITEM,
    NULLABLE_LIST,
)
from boathouse.lance.file.schema import Node

Levels = npt.NDArray[np.uint16]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Leaf:
    """One column of a page.

    `values` are the visible ones only; `layers` innermost first; `rep` and `defs` have one entry per level or are None
    if all zero; `visible` marks the entries that have a value (None: all).
    """

    node: Node
    values: pa.Array
    layers: tuple[int, ...]
    rep: Levels | None
    defs: Levels | None
    visible: Mask | None
    rows: int

    @property
    def entries(self) -> int:
        return len(self.values) if self.visible is None else len(self.visible)


@dataclass(frozen=True)
class _State:
    """The state on the way down: codes number the kinds of absence from the outside (0: present), starts the lists."""

    entries: int
    rows: int
    layers: tuple[int, ...] = ()  # outermost first
    codes: Levels | None = None
    starts: Levels | None = None  # 0: first of a row, j + 1: continues list j counted from the outside
    visible: Mask | None = None

    def marked(self, mask: Mask, code: int) -> Levels:
        """The codes with `code` at the visible entries of `mask` that are present so far."""
        codes = np.zeros(self.entries, np.uint16) if self.codes is None else self.codes.copy()
        if self.visible is None:
            codes[mask & (codes == 0)] = code
        else:
            at = np.flatnonzero(self.visible)[mask]
            codes[at[codes[at] == 0]] = code
        return codes


def shred(node: Node, array: pa.Array) -> Iterator[Leaf]:
    """The leaves of one top-level column, in column order."""
    yield from _shred(node, array, _State(len(array), len(array)))


def _shred(node: Node, array: pa.Array, state: _State) -> Iterator[Leaf]:
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        array, kind = array.storage, kind.storage_type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind):
        yield from _shred_list(node, array, state)
        return
    state = _item(array, state, always=node.field.nullable and _has_list(node))
    if pa.types.is_struct(kind) and not node.is_leaf:
        for i, child in enumerate(node.children):
            yield from _shred(child, array.field(i), state)
    elif pa.types.is_fixed_size_list(kind) and node.children:
        yield from _shred_rows(node, array, state)
    else:
        yield _finish(node, array, state)


def _nulls(array: pa.Array) -> Mask:
    return ~np.asarray(array.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)


def _codes_used(layers: tuple[int, ...]) -> int:
    return sum(_width(layer) for layer in layers)


def _width(layer: int) -> int:
    """The number of definition levels of a layer."""
    if layer in (ALL_VALID_ITEM, ALL_VALID_LIST):
        return 0
    return 2 if layer == NULL_AND_EMPTY_LIST else 1


def _has_list(node: Node) -> bool:
    return any(
        below.logical_type == "map" or below.logical_type.startswith(("list", "large_list")) for below in node.walk()
    )


def _item(array: pa.Array, state: _State, *, always: bool) -> _State:
    """An item layer: with nulls if there are any, or `always`.

    pylance 14 cannot read a struct of lists if some pages have null structs and others a layer without nulls.
    """
    if array.null_count == 0 and not always:
        return replace(state, layers=(*state.layers, ALL_VALID_ITEM))
    codes = state.marked(_nulls(array), _codes_used(state.layers) + 1)
    return replace(state, layers=(*state.layers, NULLABLE_ITEM), codes=codes)


def _shred_rows(node: Node, array: pa.Array, state: _State) -> Iterator[Leaf]:
    """A fixed-size list of structs: an item layer, then `dimension` entries for each row."""
    if state.starts is not None:
        raise UnsupportedFeatureError(f"writing `{node.name}`: a fixed-size list of structs inside a list")
    dim = array.type.list_size
    codes = None if state.codes is None else np.repeat(state.codes, dim)
    inner = replace(state, entries=state.entries * dim, codes=codes)
    yield from _shred(node.children[0], array.values.slice(array.offset * dim, len(array) * dim), inner)


def _shred_list(node: Node, array: pa.Array, state: _State) -> Iterator[Leaf]:
    offsets = np.asarray(array.offsets, dtype=np.int64)
    lengths = np.diff(offsets)
    present = np.ones(len(array), np.bool_)
    if state.codes is not None:
        present = (state.codes if state.visible is None else state.codes[state.visible]) == 0
    nulls = _nulls(array) & present if array.null_count else np.zeros(len(array), np.bool_)
    live = present & ~nulls
    lengths = np.where(live, lengths, 0)
    empty = live & (lengths == 0)
    # Below anything absent a list counts as null too: pylance cannot read it from a layer without nulls.
    absent = state.codes is not None and bool(state.codes.any())
    has_null, has_empty = bool(nulls.any()) or absent, bool(empty.any())
    layer = {
        (False, False): ALL_VALID_LIST,
        (True, False): NULLABLE_LIST,
        (False, True): EMPTYABLE_LIST,
        (True, True): NULL_AND_EMPTY_LIST,
    }[has_null, has_empty]
    base = _codes_used(state.layers)
    # Numbered from the inside, null comes before empty: seen from the outside, empty comes first.
    if has_empty:
        state = replace(state, codes=state.marked(empty, base + 1))
    if has_null:
        state = replace(state, codes=state.marked(nulls, base + (2 if has_empty else 1)))
    depth = sum(1 for x in state.layers if _is_list(x))
    inner = _expand(state, lengths, depth, (*state.layers, layer))
    children = _children(array, offsets, lengths)
    if pa.types.is_map(array.type):
        entries = node.children[0]
        inner = replace(inner, layers=(*inner.layers, ALL_VALID_ITEM))
        for child, part in zip(entries.children, children):
            yield from _shred(child, part, inner)
    else:
        yield from _shred(node.children[0], children[0], inner)


def _is_list(layer: int) -> bool:
    return layer in (ALL_VALID_LIST, NULLABLE_LIST, EMPTYABLE_LIST, NULL_AND_EMPTY_LIST)


def _expand(state: _State, lengths: npt.NDArray[np.int64], depth: int, layers: tuple[int, ...]) -> _State:
    """One entry per list element; one invisible entry for each list without elements."""
    if state.visible is None:
        per_entry = lengths
    else:
        per_entry = np.zeros(state.entries, np.int64)
        per_entry[state.visible] = lengths
    counts = np.maximum(per_entry, 1)
    total = int(counts.sum())
    starts = np.full(total, depth + 1, np.uint16)
    first = np.cumsum(counts) - counts
    starts[first] = 0 if state.starts is None else state.starts
    visible = None if per_entry.all() else np.repeat(per_entry > 0, counts)
    codes = None if state.codes is None else np.repeat(state.codes, counts)
    return replace(state, entries=total, layers=layers, codes=codes, starts=starts, visible=visible)


def _children(array: pa.Array, offsets: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> list[pa.Array]:
    """The elements of the lists that count, in order, without elements below null lists."""
    parts = [array.keys, array.items] if pa.types.is_map(array.type) else [array.values]
    total = int(lengths.sum())
    start = int(offsets[0]) if len(offsets) else 0
    if total == (int(offsets[-1]) - start if len(offsets) else 0):
        return [part.slice(start, total) for part in parts]
    first = np.repeat(offsets[:-1] - (np.cumsum(lengths) - lengths), lengths)
    indices = pa.array(first + np.arange(total))
    return [part.take(indices) for part in parts]


def _finish(node: Node, array: pa.Array, state: _State) -> Leaf:
    lists = sum(1 for layer in state.layers if _is_list(layer))
    rep = None if state.starts is None else (lists - state.starts).astype(np.uint16)
    total = _codes_used(state.layers)
    # a code counted from the outside becomes one counted from the inside
    defs = None
    if state.codes is not None and total:
        renumber = np.arange(total + 1, 0, -1, dtype=np.uint16)
        renumber[0] = 0
        defs = renumber[state.codes]
    expected = state.entries if state.visible is None else int(np.count_nonzero(state.visible))
    if len(array) != expected:
        raise SchemaMismatchError(f"column `{node.name}` has {len(array)} values where {expected} are expected")
    return Leaf(node, array, state.layers[::-1], rep, defs, state.visible, state.rows)
