"""Partially shredded objects: the fields of `value` put among the shredded ones, in the order of names.

(VariantShredding.md, "Objects": a shredded field found in `value` as well is dropped there, typed_value wins.)
"""

from __future__ import annotations

import numpy as np

from boathouse.variant.columns.ragged import Ragged
from boathouse.variant.shredding.masks import Ints, Mask, pick
from boathouse.variant.shredding.plans import Entries, ObjectField
from boathouse.variant.shredding.rows import Rows


def merge(
    rows: Rows, owners: Ints, row: Ints, values: Ragged, at: Ints, fields: list[ObjectField], names: list[str]
) -> Entries:
    """The entries of the objects `owners`, whose residual fields are those of `values[at]`, in rows `row`."""
    codes = rows.meta.codes[row]
    order = rows.names()
    nodes = rows.nodes(values, at, row)
    with rows.located(nodes, row):
        below = nodes.children()
        sizes = below.nodes.sizes()
    rank = order.ranks(codes[below.owner], np.maximum(below.id, 0))
    kept = np.flatnonzero((order.known(names)[rank] < 0) & (below.id >= 0))
    object_, id_, rank_, size_ = [below.owner[kept]], [below.id[kept]], [rank[kept]], [sizes[kept]]
    first = [len(kept)]
    for field in fields:
        mask = field.plan.mask
        there = np.arange(len(owners)) if mask is None else np.flatnonzero(mask[owners])
        at_owner = owners[there]
        ids = np.broadcast_to(np.asarray(pick(field.id, at_owner)), len(there)).astype(np.int64)
        object_.append(there)
        id_.append(ids)
        rank_.append(order.ranks(codes[there], ids))
        size_.append(np.broadcast_to(np.asarray(pick(field.plan.size, at_owner)), len(there)).astype(np.int64))
        first.append(len(there))
    owner, id, rank = np.concatenate(object_), np.concatenate(id_), np.concatenate(rank_)
    size = np.concatenate(size_)
    key = owner * (len(order) + 1) + rank
    sort = np.argsort(key, kind="stable")
    _refuse_repeats(rows, key[sort], row[owner[sort]])
    return _entries(owners, owner, id, size, sort, first, values, below.nodes.pos[kept], sizes[kept])


def _refuse_repeats(rows: Rows, keys: Ints, row: Ints) -> None:
    again: Mask = np.zeros(len(keys), np.bool_)
    again[1:] = keys[1:] == keys[:-1]
    rows.refuse(again, row, "an object has a field twice")


def _entries(
    owners: Ints, owner: Ints, id: Ints, size: Ints, sort: Ints, first: list[int], values: Ragged, pos: Ints, length: Ints
) -> Entries:
    count = len(owners)
    counts = np.bincount(owner, minlength=count)
    starts = np.cumsum(counts) - counts
    ends = np.concatenate([[0], np.cumsum(size[sort])])
    base = ends[starts]
    slot, offset = np.empty(len(owner), np.int64), np.empty(len(owner), np.int64)
    slot[sort] = np.arange(len(owner)) - starts[owner[sort]]
    offset[sort] = ends[:-1] - base[owner[sort]]
    max_ids = np.zeros(count, np.int64)
    np.maximum.at(max_ids, owner, id)
    groups = np.split(np.arange(len(owner)), np.cumsum(first)[:-1])
    return Entries(
        owners, counts, ends[starts + counts] - base, max_ids, owners[owner], slot, id, offset,
        tuple(groups[1:]), groups[0], values.data, pos, length,
    )  # fmt: skip
