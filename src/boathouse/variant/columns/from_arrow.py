"""Nested Arrow data as a column of variants: structs and maps become objects, lists arrays, every leaf its own type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from boathouse.bits.unaligned import Ints
from boathouse.errors import InvalidArgumentError
from boathouse.variant.columns.assemble import arrays, objects, structs
from boathouse.variant.columns.assemble import nulls as null_values
from boathouse.variant.columns.byte_columns import Ragged, Rope, interleave, loose, rope, spread
from boathouse.variant.columns.byte_slices import imported
from boathouse.variant.columns.leaves import leaf
from boathouse.variant.columns.metadata_builder import dictionary, row_dictionaries, variant_array
from boathouse.variant.columns.tree import Kind, Node, Options, grow

_SMALL = 512  # bytes of a dictionary that each row may carry, however little of it the row uses


def from_arrow(
    data: Any, *, nulls: Literal["null", "omit"] = "null", narrow: bool = False
) -> pa.StructArray | pa.ChunkedArray:
    """The column `struct<metadata, value>` of the same rows; null rows stay null.

    Structs become objects: a null field is written as variant null, as Spark's to_variant_object does, or left out
    (`nulls="omit"`). Maps with string keys become objects, their null values and those of lists variant nulls. Integers
    keep the width of the column (unsigned ones the next wider, uint64 beyond int64 decimal16), or take the least width
    that each needs (`narrow`). Fields marked as variants (`boathouse:type`, `arrow.parquet.variant`, Spark's mark) are
    copied with their exact types. Dictionaries, run ends, views and chunks do not affect the result.

    Raises UnsupportedTypeError for durations, intervals, unions, maps with other keys and decimals beyond 38 digits;
    InvalidArgumentError for values that a variant cannot hold (a name twice in one object, a time with nanoseconds,
    text that is not UTF-8); MalformedVariant for a variant inside.

    >>> column = bh.variant.from_arrow(pa.array([{"a": 1, "b": None}]))
    >>> bh.variant.to_json(column).to_pylist()
    ['{"a":1,"b":null}']
    """
    if nulls not in ("null", "omit"):
        raise InvalidArgumentError(f"nulls={nulls!r}: it is 'null' or 'omit'")
    options = Options(nulls == "omit", narrow)
    if isinstance(data, pa.Table | pa.RecordBatch):
        data = data.to_struct_array()
    data = imported(data, "pass an array or a table")
    if isinstance(data, pa.ChunkedArray):
        return _chunked([_converted(chunk, options) for chunk in data.chunks] or [_converted(_empty(data), options)])
    return _converted(data, options)


def _empty(data: pa.ChunkedArray) -> pa.Array:
    return pa.nulls(0, data.type)


def _chunked(chunks: Sequence[pa.StructArray]) -> pa.ChunkedArray:
    """Chunks of one type: if one has 64-bit offsets, all have."""
    types = {chunk.type for chunk in chunks}
    if len(types) > 1:
        wide = pa.struct([pa.field(name, pa.large_binary(), False) for name in ("metadata", "value")])
        chunks = [chunk.cast(wide) for chunk in chunks]
    return pa.chunked_array(chunks)


def _converted(array: pa.Array, options: Options) -> pa.StructArray:
    try:
        if len(array):
            array.validate(full=True)  # UTF-8, offsets, digits of decimals, times of day
    except pa.ArrowInvalid as error:
        raise InvalidArgumentError(f"the Arrow data is not valid: {error}") from None
    nodes = grow(array, options)
    book = _Book(len(array), nodes)
    for node in reversed(nodes):
        node.rope = _built(node, book)
    root = nodes[0]
    return variant_array(book.metadata, root.rope.join(), root.present)


class _Book:
    """The dictionary of the column, or dictionaries of its rows where a common one would be large compared with what
    rows use."""

    def __init__(self, rows: int, nodes: Sequence[Node]) -> None:
        fixed = {name for node in nodes if node.kind is Kind.STRUCT for name in node.names}
        varying = [node for node in nodes if node.kind in (Kind.MAP, Kind.VARIANT)]
        self._names = sorted(fixed.union(*[node.names for node in varying]))
        self._rank = {name: i for i, name in enumerate(self._names)}
        size = sum(map(len, self._names)) + len(self._names)
        uses = [node.uses() for node in varying] if size > _SMALL else []
        used = sum(len(name) for name in fixed) * rows + sum(len(row) for row, _ in uses) * size // max(
            len(self._names), 1
        )
        self.metadata: bytes | Ragged
        self._rows = None
        if not uses or rows * size <= 4 * used:
            self.metadata = dictionary(self._names)[0]
            return
        always = self.ranks(sorted(fixed))
        pairs = [(np.repeat(np.arange(rows), len(always)), np.tile(always, rows))]
        pairs += [(row, self.ranks(node.names)[name]) for node, (row, name) in zip(varying, uses, strict=True)]
        row, name = (np.concatenate(parts) for parts in zip(*pairs))
        self._rows = row_dictionaries(rows, row, name, Ragged.of(self._names))
        self.metadata = self._rows.metadata

    def ranks(self, names: Sequence[bytes]) -> Ints:
        return np.array([self._rank[name] for name in names], np.int64)

    def ids(self, top: Ints | None, ranks: Ints) -> Ints:
        """Ids of names, each in the dictionary of its own row of the column (`top`)."""
        if self._rows is None:
            return ranks
        assert top is not None
        return self._rows.ids(top, ranks)

    def struct_ids(self, node: Node) -> Sequence[int] | Ints:
        """One id for each field, or a matrix (rows, fields) where rows have dictionaries of their own."""
        ranks = self.ranks(node.names)
        if self._rows is None:
            return ranks.tolist()
        rows = node.tops()
        return self._rows.ids(np.repeat(rows, len(ranks)), np.tile(ranks, len(rows))).reshape(len(rows), len(ranks))


def _built(node: Node, book: _Book) -> Rope:
    rows = len(node.array)
    if node.kind is Kind.STRUCT:
        present = [node.presence(child) for child in node.children]
        fields = [child.rope for child in node.children]
        content = structs(rows, book.struct_ids(node), fields, present, node.present)
    elif node.kind is Kind.LIST:
        content = arrays(node.splits, node.children[0].rope.join()).within(node.present)
    elif node.kind is Kind.MAP:
        ids = book.ids(node.children[0].tops(), book.ranks(node.names)[node.ranks])
        content = objects(node.splits, ids, node.children[0].rope.join()).within(node.present)
    elif node.kind is Kind.VARIANT:
        content = _rewritten(node, book)
    elif node.kind is Kind.NULL:
        content = Rope(rows, ())
    else:
        content = leaf(node.array, node.present, node.where, narrow=node.narrow, uuid=node.uuid).within(node.present)
    for child in node.children:
        child.rope = content  # it contains its parts: release the rest
    if node.lifted is not None:
        content = loose(spread(content.join(), node.lifted))
    return content if node.void is None else rope(content, null_values(content.rows).within(node.void))


def _rewritten(node: Node, book: _Book) -> Rope:
    ranks = book.ranks(node.names)
    tops = node.tops()
    values = node.rewriter.write(lambda rows, names: book.ids(tops[rows], ranks[names]))
    if node.present is None:
        return loose(values)
    return loose(interleave([values], [np.flatnonzero(node.present)], len(node.array)))
