"""Partially shredded objects: merges the fields of `value` with the shredded ones, in the order of names.

(VariantShredding.md, "Objects": a shredded field that is also in `value` is dropped there, typed_value wins.)
"""

from __future__ import annotations

import numpy as np

from boathouse.bits.unaligned import Bytes, Ints, Mask
from boathouse.variant.columns.byte_columns import Ragged, splits_of
from boathouse.variant.shredding.masks import pick
from boathouse.variant.shredding.plans import Entries, ObjectField
from boathouse.variant.shredding.rows import Rows, sizes_of


def merge(
    rows: Rows, owners: Ints, row: Ints, values: Ragged, at: Ints, fields: list[ObjectField], names: list[str]
) -> Entries:
    """The entries of the objects `owners`, whose residual fields are those of `values[at]`, in rows `row`."""
    codes = rows.meta.codes[row]
    nodes = rows.nodes(values, at, row)
    with rows.located(nodes, row):
        below = nodes.children()
        sizes = sizes_of(below.nodes)
    good = np.flatnonzero(below.id >= 0)
    kept = good[rows.names.which(codes[below.owner[good]], below.id[good], names) < 0]
    owner_, id_, size_ = [below.owner[kept]], [below.id[kept]], [sizes[kept]]
    for field in fields:
        mask = field.plan.mask
        there = np.arange(len(owners)) if mask is None else np.flatnonzero(mask[owners])
        owner_.append(there)
        id_.append(_each(pick(field.id, owners[there]), len(there)))
        size_.append(_each(pick(field.plan.size, owners[there]), len(there)))
    owner, id, size = np.concatenate(owner_), np.concatenate(id_), np.concatenate(size_)
    groups = np.split(np.arange(len(owner)), np.cumsum([len(part) for part in owner_])[:-1])
    return entries(rows, row, owners, owner, id, size, groups, values.data, below.nodes.pos[kept])


def _each(values: int | Ints, count: int) -> Ints:
    return np.full(count, values, np.int64) if isinstance(values, int) else values


def entries(
    rows: Rows, row: Ints, owners: Ints, owner: Ints, id: Ints, size: Ints, groups: list[Ints], data: Bytes, pos: Ints
) -> Entries:
    """Fields of the objects `owners` (in rows `row`) in the order of their names; `owner[k]` counts in `owners`.

    The fields `groups[0]` are residual, their bytes at `pos` of `data`; `groups[1:]` are those of each shredded
    field. A name twice in an object is malformed.
    """
    count = len(owners)
    rank = rows.names.ranks(rows.meta.codes[row[owner]], id)
    key = owner * (int(rank.max(initial=0)) + 1) + rank
    sort = np.argsort(key, kind="stable")
    again: Mask = np.zeros(len(key), np.bool_)
    again[1:] = key[sort][1:] == key[sort][:-1]
    rows.refuse(again, row[owner[sort]], "an object has a field twice")
    counts = np.bincount(owner, minlength=count)
    starts = np.cumsum(counts) - counts
    ends = splits_of(size[sort])
    base = ends[starts]
    slot, offset = np.empty(len(owner), np.int64), np.empty(len(owner), np.int64)
    slot[sort] = np.arange(len(owner)) - starts[owner[sort]]
    offset[sort] = ends[:-1] - base[owner[sort]]
    max_ids = np.zeros(count, np.int64)
    np.maximum.at(max_ids, owner, id)
    return Entries(
        owners, counts, ends[starts + counts] - base, max_ids, owners[owner], slot, id, offset,
        tuple(groups[1:]), groups[0], data, pos, size[groups[0]],
    )  # fmt: skip
