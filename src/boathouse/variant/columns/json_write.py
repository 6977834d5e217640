"""Variant bytes of many rows from the shapes of the rows and their leaves.

Every node of a row is one byte slice: for a leaf the encoded value, for a container its header, count and ids, which
rows of one shape share. The slices are copied in the order of writing; then offsets are
written into the gaps after the ids.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from boathouse.bits.unaligned import Bytes, Ints, copy, put, scatter
from boathouse.variant.columns.assemble import widths
from boathouse.variant.columns.byte_columns import Ragged, splits_of
from boathouse.variant.columns.json_bits import ragged_range
from boathouse.variant.columns.json_shapes import Runs, Shapes
from boathouse.variant.primitives import STRING

SHORT = 64  # strings of fewer bytes have one byte of header
LONG_HEADER = 5


@dataclass(frozen=True, eq=False)
class Leaves:
    """Leaf i is `source[at[i]:at[i] + sizes[i]]`; `long` are strings whose first five bytes are still to be written."""

    source: Bytes
    at: Ints
    sizes: Ints
    long: Ints


def write(shapes: Shapes, shape: Ints, first_leaf: Ints, leaves: Leaves, room: Callable[[int], Bytes]) -> Ragged:
    """The values of rows: row i is of `shape[i]`, and its leaves begin at `first_leaf[i]`.

    They are written to the start of the buffer that `room(number of bytes)` returns.
    """
    first_node = splits_of(shapes.nodes.take(shape))
    total = int(first_node[-1])
    at, sizes = np.empty(total, np.int64), np.empty(total, np.int64)
    place, counts = _expand(shapes.leaves.runs, shape)
    node = shapes.leaves.node.take(place) + np.repeat(first_node[:-1], counts)
    leaf = shapes.leaves.rank.take(place) + np.repeat(first_leaf, counts)
    at[node], sizes[node] = leaves.at.take(leaf), leaves.sizes.take(leaf)
    boxes, counts = _expand(shapes.boxes.runs, shape)
    first = np.repeat(first_node[:-1], counts)
    box, end = shapes.boxes.node.take(boxes) + first, shapes.boxes.end.take(boxes) + first
    at[box] = shapes.boxes.place.take(boxes) + len(leaves.source)
    before_offsets = shapes.boxes.head.take(boxes)
    starts, head, width = _layout(sizes, box, end, before_offsets, shapes.boxes.count.take(boxes))
    lengths = sizes
    lengths[box] = before_offsets
    source = np.concatenate([leaves.source, shapes.boxes.heads])
    out = room(int(starts[-1]))
    copy(out, starts[:-1], source, at, lengths)
    begin = starts.take(box)
    out[begin] += ((width - 1) << 2).astype(np.uint8)
    inner = begin + head
    put(out, inner - width, starts.take(end) - inner, width)
    _offsets(out, shapes, shape, first_node, starts, _Written(begin + before_offsets, width, inner))
    if len(leaves.long):
        _long_headers(out, starts, node, leaf, leaves)
    return Ragged(starts[first_node], out)


@dataclass(frozen=True, eq=False)
class _Written:
    """Containers: where their offsets begin, the bytes of one, where their values begin."""

    table: Ints
    width: Ints
    inner: Ints


def _offsets(out: Bytes, shapes: Shapes, shape: Ints, first_node: Ints, starts: Ints, boxes: _Written) -> None:
    """Writes where each value begins into the container that it is in."""
    items, counts = _expand(shapes.items.runs, shape)
    first_box = splits_of(shapes.boxes.runs.counts.take(shape))[:-1]
    child = shapes.items.node.take(items) + np.repeat(first_node[:-1], counts)
    parent = shapes.items.box.take(items) + np.repeat(first_box, counts)
    width = boxes.width.take(parent)
    at = boxes.table.take(parent) + shapes.items.rank.take(items) * width
    put(out, at, starts.take(child) - boxes.inner.take(parent), width)


def _expand(runs: Runs, shape: Ints) -> tuple[Ints, Ints]:
    """The positions of the entries of each row's shape, and how many each row has."""
    counts = runs.counts.take(shape)
    return ragged_range(runs.splits.take(shape), counts), counts


def _layout(sizes: Ints, box: Ints, end: Ints, heads: Ints, counts: Ints) -> tuple[Ints, Ints, Ints]:
    """Where each node starts (and the last ends), the bytes of each container before its values, its offsets' width.

    Widths start at one byte and grow until the contents fit; `sizes` of containers are written.
    """
    slots = counts + 1
    width = np.ones(len(box), np.int64)
    while True:
        head = heads + slots * width
        sizes[box] = head
        starts = splits_of(sizes)
        wanted = widths(starts.take(end) - starts.take(box) - head)
        if np.array_equal(wanted, width):
            return starts, head, width
        width = np.maximum(wanted, width)


def _long_headers(out: Bytes, starts: Ints, node: Ints, leaf: Ints, leaves: Leaves) -> None:
    is_long = np.zeros(len(leaves.at), np.bool_)
    is_long[leaves.long] = True
    which = np.flatnonzero(is_long[leaf])
    to = starts[node[which]]
    out[to] = STRING << 2
    scatter(out, to + 1, (leaves.sizes[leaf[which]] - LONG_HEADER).astype("<u4"))
