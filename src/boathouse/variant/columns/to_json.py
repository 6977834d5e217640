"""Whole columns as canonical JSON text, the same as `Variant.to_json` of each row.

The text of a batch of rows is a sequence of slices of one pool of bytes: the values' texts, and before each value the
separator between it and the previous one (a comma or an opening brace, the name, the quotes of both). Counts of slices
add up from the deepest level to the rows; from the top down this gives each slice its position; one pass joins them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.errors import InvalidArgumentError
from boathouse.variant.columns.byte_slices import LIMIT, as_text, flat, join_spans, spans
from boathouse.variant.columns.collect import TextColumn
from boathouse.variant.columns.expand import Tree
from boathouse.variant.columns.faults import Lenient
from boathouse.variant.columns.gather import Bytes, Ints
from boathouse.variant.columns.layout import Column, chunks
from boathouse.variant.columns.nodes import ARRAY, OBJECT
from boathouse.variant.columns.reading import read, variant_at
from boathouse.variant.columns.scalars import strings
from boathouse.variant.columns.text import escaped, text_of
from boathouse.variant.json_out import Special
from boathouse.variant.primitives import FALSE, NULL, STRING, TRUE

_CONSTANTS = b'"}"]{}[]nulltruefalse'
_QUOTE = 0 | 1 << 32
_WORDS = {NULL: 8 | 12 << 32, TRUE: 12 | 16 << 32, FALSE: 16 | 21 << 32}
# The end of a container: after another value, after a string, and if it is empty.
_CLOSING = {
    OBJECT: np.array([1 | 2 << 32, 0 | 2 << 32, 4 | 6 << 32]),
    ARRAY: np.array([3 | 4 << 32, 2 | 4 << 32, 6 | 8 << 32]),
}
_NO_NAME = b'","["'  # the separators of array elements, laid out as those of fields


def to_json(data: Any, *, special: Special = "refuse", lenient: Lenient | None = None) -> pa.Array | pa.ChunkedArray:
    """The rows of a column of variants (any layout that `layout.column` reads) as JSON text, null for null rows.

    A string array (large_string beyond 2 GiB), chunked if the column is. `special` says how NaN and infinities are
    written: "refuse" (EvaluationError), "string" or "null". Raises MalformedVariant with the row and offset of the
    first malformed row found, and UnsupportedFeatureError for primitive types above 20, unless `lenient` is given: such
    rows are null then, and counted.
    """
    if special not in ("refuse", "string", "null"):
        raise InvalidArgumentError(f"special={special!r}", advice="choose refuse, string or null")
    parts = [_texts(column, special, lenient) for column in chunks(data)]
    if isinstance(data, pa.ChunkedArray):
        wide = any(part.type == pa.large_string() for part in parts)
        type = pa.large_string() if wide else pa.string()
        return pa.chunked_array([part.cast(type) for part in parts], type)
    return parts[0] if parts else pa.array([], pa.string())


def _texts(column: Column, special: Special, lenient: Lenient | None) -> pa.Array:
    texts = TextColumn(column.rows)
    for _, _, rows, (data, offsets) in read(column, lambda tree: _row_texts(column, tree, special), lenient):
        texts.add(rows, data, offsets)
    return texts.finish()


def _row_texts(column: Column, tree: Tree, special: Special) -> tuple[Bytes, npt.NDArray[Any]]:
    """The bytes of the rows' JSON texts and their offsets."""
    try:
        return json_text(tree, special)
    except _TooLong:
        rows = (tree.numbers - column.first_row).tolist()
        texts = [variant_at(column, row).to_json(special=special).encode() for row in rows]
        return flat(pa.array(texts, pa.large_binary()))


class _TooLong(Exception):
    """The pool of one batch, or its text, is larger than 2 GiB: its rows are written one by one."""


@dataclass
class _Pool:
    """The bytes that slices are spans of."""

    parts: list[Bytes]
    size: int = 0

    def add(self, data: Bytes) -> int:
        """Where they start."""
        start = self.size
        self.parts.append(data)
        self.size += len(data)
        return start

    def add_texts(self, texts: pa.Array) -> Ints:
        """The span of each text."""
        data, offsets = flat(texts)
        start = self.add(data)
        if self.size > LIMIT:
            raise _TooLong
        edges = offsets.astype(np.int64) + start
        return spans(edges[:-1], edges[1:])


def json_text(tree: Tree, special: Special) -> tuple[Bytes, npt.NDArray[Any]]:
    """The bytes of the rows' JSON texts and their offsets. Raises Faulty, EvaluationError, _TooLong."""
    tree, parent = _arranged(tree)
    rows = len(tree.numbers)
    pool = _Pool([])
    texts = _texts_of(tree, pool, special)
    total, place = _places(tree, parent)
    pieces = np.empty(int(total[:rows].sum()), np.int64)
    pieces[place + total - 1] = texts
    pieces[place[rows:]] = _leading(tree, parent, pool)
    quoted = np.flatnonzero(tree.kind[:rows] == STRING)
    at = place[quoted]
    pieces[at] = pieces[at + 2] = _QUOTE
    pieces[at + 1] = texts[quoted]
    if int((pieces >> 32).sum() - (pieces & LIMIT).sum()) > LIMIT:
        raise _TooLong
    data, offsets = flat(join_spans(np.concatenate(pool.parts), pieces))
    return data, np.append(offsets[place[:rows]], offsets[-1])


def _arranged(tree: Tree) -> tuple[Tree, Ints]:
    """The tree with the fields of each object in the order of their names, and the container of each value."""
    boxes = np.flatnonzero(tree.count)
    parent = np.full(len(tree), -1)
    parent[len(tree.numbers) :] = np.repeat(boxes, tree.count[boxes])
    if not ((tree.name[1:] < tree.name[:-1]) & (parent[1:] == parent[:-1])).any():
        return tree, parent
    order = np.lexsort((tree.name, parent))
    place = np.empty(len(order) + 1, np.int64)
    place[order] = np.arange(len(order))
    place[-1] = -1
    moved = {name: getattr(tree, name)[order] for name in ("row", "pos", "end", "kind", "name", "count", "first")}
    return replace(tree, **moved), place[parent[order]]


def _texts_of(tree: Tree, pool: _Pool, special: Special) -> Ints:
    """The spans of the scalars' texts and of the ends of containers in the pool."""
    out = np.empty(len(tree), np.int64)
    pool.add(np.frombuffer(_CONSTANTS, np.uint8))
    for kind, which in tree.kinds.items():
        if kind in _WORDS:
            out[which] = _WORDS[kind]
        elif kind == STRING:
            out[which] = pool.add_texts(escaped(strings(tree, which)))
        elif kind < OBJECT:
            out[which] = pool.add_texts(text_of(tree, which, kind, special))
        else:
            count = tree.count[which]
            last = np.minimum(tree.first[which] + count, len(tree)) - 1
            out[which] = _CLOSING[kind][np.where(count == 0, 2, tree.kind[last] == STRING)]
    return out


def _places(tree: Tree, parent: Ints) -> tuple[Ints, Ints]:
    """How many slices each value takes with everything below it, and the index of its first.

    One before it (not at the top) and one for its text or its end; a string at the top has quotes of its own.
    """
    rows = len(tree.numbers)
    total = np.full(len(tree), 2)
    total[:rows] = np.where(tree.kind[:rows] == STRING, 3, 1)
    place = np.empty(len(tree), np.int64)
    before = []
    levels = tree.levels
    for depth in reversed(range(len(levels) - 1)):
        top, below = levels[depth], levels[depth + 1]
        running = np.zeros(below - top + 1, np.int64)
        np.cumsum(total[top:below], out=running[1:])
        before.append(running)
        if depth:
            boxes = levels[depth - 1] + np.flatnonzero(tree.count[levels[depth - 1] : top])
            first = tree.first[boxes] - top
            total[boxes] += running[first + tree.count[boxes]] - running[first]
    for depth, running in enumerate(reversed(before)):
        top, below = levels[depth], levels[depth + 1]
        if not depth:
            place[:below] = running[:-1]
            continue
        mine = parent[top:below]
        place[top:below] = place[mine] + (depth > 1) + running[:-1] - running[tree.first[mine] - top]
    return total, place


def _leading(tree: Tree, parent: Ints, pool: _Pool) -> Ints:
    """The spans of the separators before each value below the top.

    For a name this is a part of `","name":"{"name":"`: from 0 or 1 (whether the value before is a string) or from the
    brace, to the quote (if the value is a string) or before it.
    """
    raw = tree.names.raw
    if tree.names.broken is not None:
        raw = pc.if_else(pa.array(tree.names.broken), pa.scalar(b"", raw.type), raw)
    raw = escaped(as_text(raw)).cast(raw.type)
    parts = [b'","', raw, b'":"{"', raw, b'":"', b""]
    texts = pc.binary_join_element_wise(*(part if part is raw else pa.scalar(part, raw.type) for part in parts))
    start = pool.add_texts(texts) & LIMIT
    start = np.append(start, pool.add(np.frombuffer(_NO_NAME, np.uint8)))[:, None]
    size = np.append(pc.binary_length(raw).to_numpy(zero_copy_only=False).astype(np.int64), -3)[:, None]
    # By name, then 4 for the first of its container, or else 2 after a string, and 1 for a string.
    first = start + size + 6
    begin = np.concatenate([start + 1, start + 1, start, start, first, first], axis=1)
    stop = np.concatenate([start + size + 5] * 4 + [first + size + 4] * 2, axis=1) + np.array([0, 1, 0, 1, 0, 1])
    rows = len(tree.numbers)
    quoted = (tree.kind == STRING).view(np.uint8)
    case = np.where(parent[rows:] != parent[rows - 1 : -1], np.uint8(4), quoted[rows - 1 : -1] << 1)
    case += quoted[rows:]
    at = tree.name[rows:] * np.int64(6)
    at += case
    return spans(begin, stop).reshape(-1)[at]
