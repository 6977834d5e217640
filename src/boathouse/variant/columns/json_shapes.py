"""What rows of JSON have in common: their text without the contents of strings and scalars.

Rows with the same skeleton differ in their leaves only, so grammar, nesting, duplicate keys, the order of fields and
the metadata are determined once for each distinct skeleton, for all skeletons together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from boathouse.bits.unaligned import Bytes, Ints, Mask, copy, put
from boathouse.variant.columns.assemble import widths
from boathouse.variant.columns.byte_columns import Ragged, splits_of
from boathouse.variant.columns.json_bits import between, padded
from boathouse.variant.columns.json_names import Names, names_of
from boathouse.variant.columns.json_scan import FRONT, Scan, Texts, real_quotes
from boathouse.variant.columns.json_tree import (
    END,
    KEY,
    KINDS,
    OBJECT,
    SCALAR,
    STRING,
    Placed,
    Tokens,
    Tree,
    grammar,
    placed_of,
    tree_of,
)
from boathouse.variant.columns.metadata_builder import dictionary_rows
from boathouse.variant.primitives import array_header, object_header

# By whether it is an object, whether it is large, and the bytes of an id (of objects only); offsets of one byte.
_HEADERS = np.array(
    [
        [[array_header(large, 1)] * 5 for large in (False, True)],
        [[0, *(object_header(large, size, 1) for size in range(1, 5))] for large in (False, True)],
    ],
    np.uint8,
)


@dataclass(frozen=True, eq=False)
class Runs:
    """For each skeleton a range: the entries of skeleton s are at `splits[s]:splits[s + 1]` of other arrays."""

    splits: Ints
    counts: Ints

    @staticmethod
    def of(row: Ints, rows: int) -> Runs:
        counts = np.bincount(row, minlength=rows)
        return Runs(splits_of(counts), counts)


@dataclass(frozen=True, eq=False)
class LeafNodes:
    """Strings and scalars: `rank` counts them in the order of the text."""

    runs: Runs
    node: Ints
    rank: Ints


@dataclass(frozen=True, eq=False)
class Boxes:
    """Containers in the order of the nodes; header, count and ids of each are `head` bytes at `place` of `heads`."""

    runs: Runs
    node: Ints
    end: Ints  # the node after the last one inside
    count: Ints  # values inside
    head: Ints
    place: Ints
    heads: Bytes  # with headers for offsets of one byte


@dataclass(frozen=True, eq=False)
class Items:
    """Values inside containers: the container of each, and its index there."""

    runs: Runs
    node: Ints
    box: Ints
    rank: Ints


@dataclass(frozen=True, eq=False)
class Shapes:
    """The values of each skeleton as the nodes of a tree in the order in which they are written: pre-order, the
    fields of an object by the UTF-8 bytes of their names.

    Nodes, boxes and leaves are numbered from 0 in each skeleton. The numbers of skeletons that are not `good` are
    undefined; `text_leaves`, the strings and scalars in the text of each, is valid for all.
    """

    good: Mask
    text_leaves: Ints
    nodes: Ints  # of each skeleton
    leaves: LeafNodes
    boxes: Boxes
    items: Items
    metadata: Ragged


def skeletons(scan: Scan) -> Ragged:
    """The skeleton of each text: the byte STRING or SCALAR in place of each leaf, a zero byte at the end."""
    leaves = len(scan.opens) + len(scan.starts)
    at, ends = np.zeros(leaves + 1, np.int64), np.full(leaves + 1, scan.texts.size)
    ends[scan.string_slots], ends[scan.scalar_slots] = scan.opens + 1, scan.starts + 1
    at[scan.string_slots + 1], at[scan.scalar_slots + 1] = scan.closes + 1, scan.stops
    lengths = ends - at
    to = splits_of(lengths)
    out = np.empty(int(to[-1]), np.uint8)
    copy(out, to[:-1], scan.texts.body, at, lengths)
    marks = to[1:] - 1
    out[marks[scan.string_slots]], out[marks[scan.scalar_slots]] = STRING, SCALAR
    offsets = np.zeros(len(scan.texts.ends) + 1, np.int64)
    np.add(np.flatnonzero(out == 0), 1, out=offsets[1:])
    return Ragged(offsets, out)


def distinct(rows: Ragged) -> tuple[Ints, Texts]:
    """For each skeleton its number among the distinct ones, and the distinct ones themselves."""
    coded = rows.to_arrow().dictionary_encode()
    found = Ragged.from_arrow(coded.dictionary)
    first, last = int(found.offsets[0]), int(found.offsets[-1])
    buffer = padded(found.data[first:last], last - first, FRONT)
    texts = Texts(buffer, found.offsets[1:] - first - 1, np.arange(found.rows))
    return coded.indices.to_numpy().astype(np.int64), texts


def shapes_of(texts: Texts) -> Shapes:
    """The trees of skeletons."""
    rows = len(texts.ends)
    quotes, _ = real_quotes(texts.body)
    inside = between(quotes)
    place = np.flatnonzero((inside == quotes)[: texts.size])  # neither inside a string nor its closing quote
    kind = KINDS.take(texts.body.take(place))
    row = np.repeat(np.arange(rows), np.diff(np.flatnonzero(kind == END), prepend=-1))
    leaves = np.bincount(row.take(np.flatnonzero((kind == STRING) | (kind == SCALAR))), minlength=rows)
    bad, depth = grammar(kind, row, rows)
    keys, closes = np.flatnonzero(kind == KEY), np.flatnonzero(quotes & ~inside)
    tokens = Tokens(kind, row, depth)
    if bad.any():
        keep = np.flatnonzero(~bad.take(row))
        good = np.flatnonzero(~bad.take(row.take(keys)))
        keys, closes = keys.take(good), closes.take(good)
        tokens = Tokens(kind.take(keep), row.take(keep), depth.take(keep))
    names = names_of(texts.body, place.take(keys), closes)
    bad[row.take(keys.take(np.flatnonzero(names.broken)))] = True
    tree = tree_of(tokens, bad)
    keyed = np.empty(len(tree.kind), np.bool_)
    keyed[tree.text] = tree.keyed
    ranks = np.zeros(len(tree.kind), np.int64)
    ranks[np.flatnonzero(keyed)] = names.rank
    return _shapes(tree, ranks.take(tree.text), names, bad, leaves)


def _shapes(tree: Tree, name: Ints, names: Names, bad: Mask, leaves: Ints) -> Shapes:
    placed = placed_of(tree, name, bad)
    at = np.empty(len(tree.kind), np.int64)
    at[placed.place] = np.arange(len(at))
    row = tree.row.take(at)
    nodes = Runs.of(row, len(bad))
    written = _Written(at, row, nodes.splits.take(row), tree.kind.take(at) >= OBJECT)
    metadata, ids = _metadata(tree, name, names, len(bad))
    boxes, items = _containers(tree, placed, written, ids, len(bad))
    return Shapes(~bad, leaves, nodes.counts, _leaf_nodes(tree, written, len(bad)), boxes, items, metadata)


@dataclass(frozen=True, eq=False)
class _Written:
    """Nodes in the order of writing: their index in the tree, their skeleton, the skeleton's first node, which are
    containers."""

    at: Ints
    row: Ints
    first: Ints
    is_box: Mask


def _leaf_nodes(tree: Tree, written: _Written, rows: int) -> LeafNodes:
    in_text = np.empty(len(written.at), np.int64)
    in_text[tree.text] = tree.kind < OBJECT
    in_text = np.cumsum(in_text) - 1
    leaf = np.flatnonzero(~written.is_box)
    row = written.row.take(leaf)
    runs = Runs.of(row, rows)
    rank = in_text.take(tree.text.take(written.at.take(leaf))) - runs.splits.take(row)
    return LeafNodes(runs, leaf - written.first.take(leaf), rank)


def _containers(tree: Tree, placed: Placed, written: _Written, ids: Ints, rows: int) -> tuple[Boxes, Items]:
    """Containers and their contents; `ids` are those of the names in the dictionary, by node of the tree."""
    box = np.flatnonzero(written.is_box)
    box_at, first = written.at.take(box), written.first.take(box)
    runs = Runs.of(written.row.take(box), rows)
    parents = tree.parent.take(written.at)
    item = np.flatnonzero(parents >= 0)
    parent, item_at, row = parents.take(item), written.at.take(item), written.row.take(item)
    owner = (np.cumsum(written.is_box) - 1).take(placed.place.take(parent))
    count = np.bincount(parent, minlength=len(parents)).take(box_at)
    rank = placed.rank.take(item_at)
    heads, head, place = _heads(tree.kind.take(box_at) == OBJECT, count, owner, rank, ids.take(item_at))
    end = box - first + tree.inside.take(box_at)
    items = Items(Runs.of(row, rows), item - written.first.take(item), owner - runs.splits.take(row), rank)
    return Boxes(runs, box - first, end, count, head, place, heads), items


def _metadata(tree: Tree, name: Ints, names: Names, rows: int) -> tuple[Ragged, Ints]:
    """The dictionary of each skeleton, and the id of each node's name there (-1 without a name)."""
    ids = np.full(len(tree.kind), -1)
    known = max(names.names.rows, 1)
    keyed = np.flatnonzero(tree.keyed)
    row = tree.row.take(keyed)
    pairs, which = np.unique(row * known + name.take(keyed), return_inverse=True)
    splits = np.searchsorted(pairs, np.arange(rows + 1) * known)
    ids[keyed] = which - splits.take(row)
    used = names.names.take(pairs % known) if len(pairs) else names.names
    return dictionary_rows(splits, used), ids


def _heads(is_object: Mask, count: Ints, item_box: Ints, item_rank: Ints, ids: Ints) -> tuple[Bytes, Ints, Ints]:
    """Header, count and ids of each container: the bytes of all, their sizes, where they start."""
    largest = np.zeros(len(count), np.int64)
    np.maximum.at(largest, item_box, ids)
    id_size = np.where(is_object, widths(np.maximum(largest, 0)), 0)
    large = count > 255
    before_ids = np.where(large, 5, 2)
    size = before_ids + count * id_size
    start = splits_of(size)
    heads = np.empty(int(start[-1]), np.uint8)
    at = start[:-1]
    heads[at] = _HEADERS[is_object.view(np.uint8), large.view(np.uint8), id_size]
    put(heads, at + 1, count, np.where(large, 4, 1))
    named = np.flatnonzero(ids >= 0)
    named = named[is_object[item_box[named]]]
    box = item_box.take(named)
    each = id_size.take(box)
    put(heads, (at + before_ids).take(box) + item_rank.take(named) * each, ids.take(named), each)
    return heads, size, at
