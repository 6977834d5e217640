"""Whole columns as canonical JSON text, the same as `Variant.to_json` of each row.

The text of a batch of rows is a sequence of strings of one pool: the values' texts, and before each value the separator
between it and the previous one (a comma or an opening brace, the name, the quotes of both). Counts of strings add up
from the deepest level to the rows; from the top down this gives each string its position; one `take` joins them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.bits.unaligned import Bytes, Ints
from boathouse.errors import InvalidArgumentError
from boathouse.variant.columns.byte_slices import LIMIT, as_text, flat
from boathouse.variant.columns.collect import TextColumn
from boathouse.variant.columns.expand import Tree
from boathouse.variant.columns.faults import Lenient
from boathouse.variant.columns.layout import Column, chunks
from boathouse.variant.columns.nodes import ARRAY, OBJECT
from boathouse.variant.columns.reading import read, variant_at
from boathouse.variant.columns.scalars import strings
from boathouse.variant.columns.text import escaped, text_of
from boathouse.variant.json_out import Special
from boathouse.variant.primitives import FALSE, KINDS, NULL, STRING, TRUE

_CONSTANTS = [b'"', b"null", b"true", b"false", b"}", b'"}', b"{}", b"]", b'"]', b"[]"]
_QUOTE = 0
_WORDS = {NULL: 1, TRUE: 2, FALSE: 3}
# The end of a container: after another value, after a string, and if it is empty.
_CLOSING = {OBJECT: np.array([4, 5, 6]), ARRAY: np.array([7, 8, 9])}
# Before the name and after its colon: after a value that is not a string, after a string, and first in its container;
# each before a value that is not a string, and before a string.
_SEPARATORS = [(opening, quote) for opening in (b",", b'",', b"{") for quote in (b"", b'"')]


def to_json(data: Any, *, special: Special = "refuse", lenient: Lenient | None = None) -> pa.Array | pa.ChunkedArray:
    """The rows of a column of variants as canonical JSON text, null for null rows.

    `data` is a struct<metadata, value> array, a chunked one, or what exports one. The result is a string array
    (large_string beyond 2 GiB), chunked if the column is. `special` says how NaN and infinities are written: "refuse"
    (EvaluationError), "string" or "null". Raises MalformedVariant with the row and offset of the first malformed row
    found, and UnsupportedFeatureError for primitive types above 20, unless `lenient` is given: such rows are null then,
    and counted.

    >>> bh.variant.to_json(bh.variant.from_json(pa.array(['{"b": 1.0, "a": []}']))).to_pylist()
    ['{"a":[],"b":1.0}']
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
    """The text of one batch is longer than 2 GiB: its rows are written one by one."""


class _Pool:
    """The strings of which the texts of a batch consist, by number."""

    def __init__(self) -> None:
        self.parts: list[pa.Array] = []
        self.size = 0

    def add(self, texts: pa.Array) -> int:
        """The number of the first."""
        first = self.size
        self.parts.append(texts.cast(pa.large_binary()))
        self.size += len(texts)
        return first

    def take(self, numbers: Ints) -> pa.Array:
        """Raises _TooLong."""
        strings = pa.concat_arrays(self.parts)
        _, offsets = flat(strings)
        if int(np.diff(offsets)[numbers].sum()) > LIMIT:
            raise _TooLong
        return strings.take(pa.array(numbers))


def json_text(tree: Tree, special: Special) -> tuple[Bytes, npt.NDArray[Any]]:
    """The bytes of the rows' JSON texts and their offsets. Raises Faulty, EvaluationError, _TooLong."""
    tree, parent = _arranged(tree)
    rows = len(tree.numbers)
    pool = _Pool()
    texts = _texts_of(tree, pool, special)
    total, place = _places(tree, parent)
    pieces = np.empty(int(total[:rows].sum()), np.int64)
    pieces[place + total - 1] = texts
    pieces[place[rows:]] = _leading(tree, parent, pool)
    quoted = np.flatnonzero(tree.kind[:rows] == STRING)
    at = place[quoted]
    pieces[at] = pieces[at + 2] = _QUOTE
    pieces[at + 1] = texts[quoted]
    data, offsets = flat(pool.take(pieces))
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
    """The numbers in the pool of the scalars' texts and of the ends of containers."""
    out = np.empty(len(tree), np.int64)
    pool.add(pa.array(_CONSTANTS))
    for kind, which in tree.kinds.items():
        if kind in _WORDS:
            out[which] = _WORDS[kind]
        elif kind == STRING:
            texts = escaped(strings(tree, which))
            out[which] = pool.add(texts) + np.arange(len(which))
        elif kind < OBJECT:
            texts = text_of(tree, which, KINDS[kind], special)
            out[which] = pool.add(texts) + np.arange(len(which))
        else:
            count = tree.count[which]
            last = np.minimum(tree.first[which] + count, len(tree)) - 1
            out[which] = _CLOSING[kind][np.where(count == 0, 2, tree.kind[last] == STRING)]
    return out


def _places(tree: Tree, parent: Ints) -> tuple[Ints, Ints]:
    """How many strings each value takes with everything below it, and the index of its first.

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
    """The number in the pool of the separator before each value below the top."""
    raw = tree.names.raw
    if tree.names.broken is not None:
        raw = pc.if_else(pa.array(tree.names.broken), pa.scalar(b"", raw.type), raw)
    names = escaped(as_text(raw)).cast(pa.large_binary())
    empty, end = pa.scalar(b"", names.type), pa.scalar(b'":', names.type)
    first = pool.size
    for opening, quote in _SEPARATORS:
        start, after = pa.scalar(opening + b'"', names.type), pa.scalar(quote, names.type)
        pool.add(pc.binary_join_element_wise(start, names, end, after, empty))
        pool.add(pa.array([opening.replace(b"{", b"[") + quote]))  # of array elements
    rows = len(tree.numbers)
    quoted = tree.kind == STRING
    opens = parent[rows:] != parent[rows - 1 : -1]
    case = np.where(opens, 4, 2 * quoted[rows - 1 : -1]) + quoted[rows:]
    name = tree.name[rows:]
    return first + case * (len(names) + 1) + np.where(name < 0, len(names), name)
