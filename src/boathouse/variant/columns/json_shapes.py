"""What rows of JSON have in common: their text without the contents of strings and scalars.

Rows with the same skeleton are alike in everything but the leaves, so grammar, nesting, duplicate keys, the order of
fields and the metadata are found out once for each distinct skeleton, for all of them side by side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from boathouse.variant.columns.assemble import put, widths
from boathouse.variant.columns.json_bits import SPARE, between, copy_rising, padded
from boathouse.variant.columns.json_names import Names, names_of
from boathouse.variant.columns.json_scan import FRONT, Scan, Texts, real_quotes
from boathouse.variant.columns.json_tree import (
    END,
    KEY,
    KINDS,
    OBJECT,
    SCALAR,
    STRING,
    Tokens,
    Tree,
    grammar,
    placed_of,
    tree_of,
)
from boathouse.variant.columns.lexicon import dictionary_rows
from boathouse.variant.columns.ragged import Bytes, Ints, Mask, Ragged, splits_of
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
    """For each skeleton a run of numbers: those of skeleton s are at `splits[s]:splits[s + 1]` of other arrays."""

    splits: Ints
    counts: Ints

    @staticmethod
    def of(row: Ints, rows: int) -> Runs:
        counts = np.bincount(row, minlength=rows)
        return Runs(splits_of(counts), counts)


@dataclass(frozen=True, eq=False)
class Shapes:
    """The values of each skeleton as the nodes of a tree in the order in which they are written: pre-order, the
    fields of an object by the UTF-8 bytes of their names.

    Nodes, boxes (containers) and leaves are numbered from 0 in each skeleton; boxes in the order of the nodes, leaves
    in the order of the text. Skeletons that are not `good` have numbers without meaning.
    """

    good: Mask
    text_leaves: Ints  # strings and scalars of each skeleton, good or not
    nodes: Ints  # of each skeleton
    leaves: Runs
    leaf_node: Ints
    leaf_rank: Ints  # which leaf of the text
    boxes: Runs
    box_node: Ints
    box_end: Ints  # the node behind the last one inside
    box_count: Ints  # values inside
    box_head: Ints  # bytes of header, count and ids
    box_place: Ints  # where they lie in `heads`
    heads: Bytes  # the header says offsets of one byte
    items: Runs  # values inside containers
    item_node: Ints
    item_box: Ints
    item_rank: Ints  # its place there
    metadata: Ragged


def skeletons(scan: Scan) -> Ragged:
    """The skeleton of each text: the byte STRING or SCALAR in place of each leaf, a zero byte at the end."""
    leaves = len(scan.opens) + len(scan.starts)
    at, ends = np.zeros(leaves + 1, np.int64), np.full(leaves + 1, scan.texts.size)
    ends[scan.string_slots], ends[scan.scalar_slots] = scan.opens + 1, scan.starts + 1
    at[scan.string_slots + 1], at[scan.scalar_slots + 1] = scan.closes + 1, scan.stops
    lengths = ends - at
    to = splits_of(lengths)
    size = int(to[-1])
    out = np.empty(size + SPARE, np.uint8)
    copy_rising(out, to[:-1], scan.texts.body_and_more, at, lengths)
    marks = to[1:] - 1
    out[marks[scan.string_slots]], out[marks[scan.scalar_slots]] = STRING, SCALAR
    offsets = np.zeros(len(scan.texts.ends) + 1, np.int64)
    np.add(np.flatnonzero(out[:size] == 0), 1, out=offsets[1:])
    return Ragged(offsets, out)


def distinct(rows: Ragged) -> tuple[Ints, Texts]:
    """For each skeleton its number among the distinct ones, and these as texts."""
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
    place = np.flatnonzero((inside == quotes)[: texts.size])  # neither within a string nor its closing quote
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
    rows, nodes = len(bad), len(tree.kind)
    at = np.empty(nodes, np.int64)  # by the order of writing, which node of the tree
    at[placed.place] = np.arange(nodes)
    kind, row = tree.kind.take(at), tree.row.take(at)
    node = Runs.of(row, rows)
    first = node.splits.take(row)
    is_box = kind >= OBJECT
    leaf, box = np.flatnonzero(~is_box), np.flatnonzero(is_box)
    leaf_runs, box_runs = Runs.of(row.take(leaf), rows), Runs.of(row.take(box), rows)
    leaf_in_text = np.empty(nodes, np.int64)
    leaf_in_text[tree.text] = tree.kind < OBJECT
    leaf_in_text = np.cumsum(leaf_in_text) - 1
    parents = tree.parent.take(at)
    item = np.flatnonzero(parents >= 0)
    parent, item_at = parents.take(item), at.take(item)
    metadata, ids = _metadata(tree, name, names, rows)
    count = np.bincount(parent, minlength=nodes).take(at.take(box))
    item_box = (np.cumsum(is_box) - 1).take(placed.place.take(parent))
    item_rank = placed.rank.take(item_at)
    heads, head, head_at = _heads(kind.take(box) == OBJECT, count, item_box, item_rank, ids.take(item_at))
    return Shapes(
        good=~bad,
        text_leaves=leaves,
        nodes=node.counts,
        leaves=leaf_runs,
        leaf_node=leaf - first.take(leaf),
        leaf_rank=leaf_in_text.take(tree.text.take(at.take(leaf))) - leaf_runs.splits.take(row.take(leaf)),
        boxes=box_runs,
        box_node=box - first.take(box),
        box_end=box - first.take(box) + tree.inside.take(at.take(box)),
        box_count=count,
        box_head=head,
        box_place=head_at,
        heads=heads,
        items=Runs.of(row.take(item), rows),
        item_node=item - first.take(item),
        item_box=item_box - box_runs.splits.take(row.take(item)),
        item_rank=item_rank,
        metadata=metadata,
    )


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
