"""The grammar and the trees of many JSON texts at once: brackets matched and siblings found by sorting on depth."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from boathouse.bits.unaligned import Bytes, Ints, Mask
from boathouse.variant.primitives import MAX_DEPTH

# Tokens; in a skeleton a string that is not a key is the byte 1, a number or literal the byte 2.
END, STRING, SCALAR, OBJECT, ARRAY, OBJECT_END, ARRAY_END, COMMA, COLON, KEY, OTHER = range(11)
KINDS = np.full(256, OTHER, np.uint8)
KINDS[[0, 1, 2, *b'{[}],:"']] = [END, STRING, SCALAR, OBJECT, ARRAY, OBJECT_END, ARRAY_END, COMMA, COLON, KEY]
_VALUES = (STRING, SCALAR, OBJECT, ARRAY)
_AFTER_VALUE = (COMMA, OBJECT_END, ARRAY_END, END)
_FOLLOWS = {
    END: _VALUES,
    STRING: _AFTER_VALUE,
    SCALAR: _AFTER_VALUE,
    OBJECT_END: _AFTER_VALUE,
    ARRAY_END: _AFTER_VALUE,
    OBJECT: (KEY, OBJECT_END),
    ARRAY: (*_VALUES, ARRAY_END),
    COMMA: (*_VALUES, KEY),
    COLON: _VALUES,
    KEY: (COLON,),
}
_MAY_FOLLOW = np.zeros(256, np.bool_)
for _kind, _next in _FOLLOWS.items():
    _MAY_FOLLOW[[_kind << 4 | other for other in _next]] = True
_STEP = np.zeros(16, np.int8)
_STEP[[OBJECT, ARRAY]], _STEP[[OBJECT_END, ARRAY_END]] = 1, -1


@dataclass(frozen=True, eq=False)
class Tokens:
    """Tokens of skeletons that are balanced and follow each other legally: kind, skeleton, depth after it."""

    kind: Bytes
    row: Ints
    depth: Ints


def grammar(kind: Bytes, row: Ints, rows: int) -> tuple[Mask, Ints]:
    """Which skeletons have tokens that may not follow each other, or brackets out of balance; the depth after each
    token, counted from its row's start."""
    pairs = kind.copy()
    pairs[1:] |= kind[:-1] << 4
    bad = np.zeros(rows, np.bool_)
    bad[row[np.flatnonzero(~_MAY_FOLLOW.take(pairs))]] = True
    if not rows:
        return bad, np.empty(0, np.int64)
    depth = np.cumsum(_STEP.take(kind).astype(np.int64))
    last = np.flatnonzero(kind == END)
    if depth[last].any():
        base = np.zeros(rows, np.int64)
        base[1:] = depth[last[:-1]]
        depth -= base.take(row)
    first = np.zeros(rows, np.int64)
    first[1:] = last[:-1] + 1
    bad |= depth[last] != 0
    bad |= np.minimum.reduceat(depth, first) < 0
    bad |= np.maximum.reduceat(depth, first) > MAX_DEPTH
    return bad, depth


@dataclass(frozen=True, eq=False)
class Tree:
    """Nodes by level, then in the order of the text (so that the children of a container are adjacent)."""

    kind: Bytes
    level: Ints
    text: Ints  # position in the order of the text
    row: Ints
    parent: Ints  # -1 for roots
    keyed: Mask
    inside: Ints  # nodes of its subtree, itself included


def tree_of(tokens: Tokens, bad: Mask) -> Tree:
    kind = tokens.kind
    is_node = (kind >= STRING) & (kind <= ARRAY)
    at = np.flatnonzero(is_node)
    level = tokens.depth.take(at) - _STEP.take(kind.take(at))
    order = np.argsort(level.astype(np.uint16), kind="stable")
    at, level = at.take(order), level.take(order)
    keyed = kind.take(at - 1, mode="wrap") == COLON
    before = kind.take(at - np.where(keyed, 3, 1), mode="wrap")
    first = (before == OBJECT) | (before == ARRAY)
    kinds, row = kind.take(at), tokens.row.take(at)
    roots = int(np.searchsorted(level, 1))
    bad[row[:roots][keyed[:roots] | (before[:roots] != END)]] = True
    boxes = np.flatnonzero(kinds >= OBJECT)
    following = kind[at[boxes] + 1]
    full = boxes[(following != OBJECT_END) & (following != ARRAY_END)]
    parent = np.full(len(at), -1)
    parent[roots:] = full[np.cumsum(first[roots:]) - 1]
    unlike = (kinds.take(parent[roots:]) == OBJECT) != keyed[roots:]
    bad[row[roots:][unlike]] = True
    closers = np.flatnonzero((kind == OBJECT_END) | (kind == ARRAY_END))
    closers = closers[np.argsort(tokens.depth[closers].astype(np.uint16), kind="stable")]
    bad[row[boxes][kind[closers] != kinds[boxes] + 2]] = True
    inside = np.ones(len(at), np.int64)
    inside[boxes] = np.cumsum(is_node).take(closers) - order.take(boxes)
    return Tree(kinds, level, order, row, parent, keyed, inside)


@dataclass(frozen=True, eq=False)
class Placed:
    """For each node of a tree: its position in the order of writing, and its rank among its siblings."""

    place: Ints
    rank: Ints


def placed_of(tree: Tree, name: Ints, bad: Mask) -> Placed:
    """Sorts fields by name; marks rows with a repeated name as bad. `name` is the rank of each keyed node's name."""
    nodes = len(tree.kind)
    index = np.arange(nodes)
    by_name = tree.parent << 32 | np.where(tree.keyed, name, index)
    order = np.argsort(by_name, kind="stable")
    by_name = by_name.take(order)
    twice = np.flatnonzero(by_name[1:] == by_name[:-1])
    bad[tree.row[order[twice]]] = True
    parent, inside = tree.parent.take(order), tree.inside.take(order)
    before = np.cumsum(inside) - inside
    start = np.zeros(nodes, np.int64)
    start[1:] = np.where(parent[1:] != parent[:-1], index[1:], 0)
    start = np.maximum.accumulate(start)
    step = before - before[start] + 1
    place, rank = np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    rank[order] = index - start
    levels = int(tree.level[-1]) + 1 if nodes else 0
    bounds = np.searchsorted(tree.level, np.arange(levels + 1)).tolist()
    if levels:
        place[: bounds[1]] = tree.text[: bounds[1]]
    for first, last in pairwise(bounds[1:]):
        nodes_here = order[first:last]
        place[nodes_here] = place[tree.parent[nodes_here]] + step[first:last]
    return Placed(place, rank)
