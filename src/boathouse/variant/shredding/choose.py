"""A shredding schema chosen from the values of a column.

A field is shredded if at least one value in ten has it, up to 300 fields and 50 levels deep, as Spark and Iceberg do.
Its type is its most frequent exact type: integers and decimals of other widths stay in `value`, so that every value is
restored exactly. For shredding that widens, all integers count as int64, and decimals of one scale as decimal8 or
decimal16. Variant nulls are ignored.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from boathouse.errors import InvalidArgumentError
from boathouse.types import DataType, DecimalType
from boathouse.variant import primitives as ids
from boathouse.variant.columns.layout import Column
from boathouse.variant.columns.layout import column as to_column
from boathouse.variant.columns.names import Dictionaries
from boathouse.variant.columns.nodes import ARRAY, OBJECT, Nodes, roots
from boathouse.variant.shredding.masks import groups
from boathouse.variant.shredding.rows import Names
from boathouse.variant.shredding.schema import MAX_DEPTH, ShreddedArray, ShreddedObject, ShreddingSchema

_BITS = 8


def choose(
    column: Any,
    *,
    min_frequency: float = 0.1,
    max_fields: int = 300,
    max_depth: int = 50,
    sample: int = 10_000,
    widen: bool = False,
) -> ShreddingSchema:
    """The schema for `column` (variants in any Arrow layout), from at most `sample` rows spread evenly over it.

    `min_frequency`: the part of the values (of the elements, below an array) that must have a field. `max_fields`: how
    many fields and elements get columns, the most frequent first. `max_depth`: nested typed columns. `widen`: the
    schema is for `shred(..., widen=True)`. A column in which nothing can be typed gives `ShreddingSchema()`. Raises
    MalformedVariant, InvalidArgumentError.

    >>> column = bh.variant.from_json(pa.array(['{"id": 1, "n": "x"}', '{"id": 2, "n": "y"}']))
    >>> print(bh.variant.choose(column))
    struct<id:tinyint,n:string>
    """
    if not (0 < min_frequency <= 1 and max_fields >= 1 and 0 <= max_depth <= MAX_DEPTH and sample >= 1):
        raise InvalidArgumentError(
            f"min_frequency={min_frequency}, max_fields={max_fields}, max_depth={max_depth}, sample={sample}",
            advice=f"give a frequency in (0, 1], at least one field, a depth of 0 to {MAX_DEPTH}, at least one row",
        )
    nodes = roots(_sampled(to_column(column), sample))
    root = _Branch("", 1.0, len(nodes), 0, nodes)
    found = _grow(root, Names(nodes.column.meta), min_frequency, max_depth, widen)
    kept = sorted(found, key=lambda branch: (-branch.share, branch.depth, branch.order))[:max_fields]
    return _schema(root, {id(branch) for branch in kept})


def _sampled(column: Column, most: int) -> Column:
    rows = np.arange(column.rows) if column.valid is None else np.flatnonzero(column.valid)
    if len(rows) > most:
        rows = rows[np.linspace(0, len(rows) - 1, most).astype(np.int64)]
    meta = column.meta.with_codes(column.meta.codes[rows])
    if len(meta) > 2 * most:
        # Dictionaries of rows outside the sample need not be read.
        used, numbers = np.unique(meta.codes, return_inverse=True)
        if len(used) and used[0] < 0:
            used, numbers = used[1:], numbers - 1
        meta = Dictionaries(meta.data, meta.start[used], meta.end[used], numbers.astype(np.int32))
    return Column(column.data, column.start[rows], column.end[rows], meta)


@dataclass(eq=False)
class _Branch:
    """A field, an element or the root: `nodes` of it among `base` values that could have it."""

    name: str
    share: float
    base: int
    depth: int
    nodes: Nodes | None
    order: int = 0
    typed: DataType | None = None
    kind: int | None = None
    children: list[_Branch] = field(default_factory=list)


def _grow(root: _Branch, names: Names, least: float, max_depth: int, widen: bool) -> list[_Branch]:
    """Gives each branch its kind or type, and the branches below it; returns all of them except the root."""
    found: list[_Branch] = []
    waiting = deque([root])
    while waiting:
        branch = waiting.popleft()
        nodes, branch.nodes = branch.nodes, None
        assert nodes is not None
        branch.kind, branch.typed = _most_frequent(nodes, widen)
        if branch.kind in (OBJECT, ARRAY) and branch.depth < max_depth:
            mine = nodes.take(nodes.kinds() == branch.kind)
            branch.children = _fields(branch, mine, names, least) if branch.kind == OBJECT else _element(branch, mine)
        for child in branch.children:
            child.order = len(found)
            found.append(child)
            waiting.append(child)
    return found


def _most_frequent(nodes: Nodes, widen: bool) -> tuple[int | None, DataType | None]:
    """The container kind, or the typed column's type, that most of the values have; neither if nothing fits."""
    kinds = nodes.kinds().astype(np.int64)
    kinds[kinds == ids.FALSE] = ids.TRUE
    if widen:
        kinds[(kinds >= ids.INT8) & (kinds <= ids.INT64)] = ids.INT64
        largest = ids.DECIMAL16 if (kinds == ids.DECIMAL16).any() else ids.DECIMAL8
        kinds[(kinds >= ids.DECIMAL4) & (kinds <= ids.DECIMAL16)] = largest
    keys = kinds << _BITS
    decimals = np.flatnonzero((kinds >= ids.DECIMAL4) & (kinds <= ids.DECIMAL16))
    if len(decimals):
        some = nodes.take(decimals)
        some.sizes()
        keys[decimals] |= nodes.data[some.pos + 1]
    found, counts = np.unique(keys[kinds != ids.NULL], return_counts=True)
    # The last of equally frequent ones: the widest integer, the container.
    for key in found[np.argsort(counts, kind="stable")[::-1]].tolist():
        kind, scale = key >> _BITS, key & (1 << _BITS) - 1
        if kind in (OBJECT, ARRAY):
            return kind, None
        type = _type_of(kind, scale)
        if type is not None:
            return None, type
    return None, None


def _type_of(kind: int, scale: int) -> DataType | None:
    if kind >= ids.PRIMITIVES:
        return None
    found = ids.KINDS[kind]
    if found in ids.DECIMALS:
        return DecimalType(found.digits, scale) if scale <= found.digits else None
    return found.type


def _fields(branch: _Branch, objects: Nodes, names: Names, least: float) -> list[_Branch]:
    below = objects.children()
    if not len(below.id):
        return []
    codes = objects.column.meta.codes[below.nodes.row]
    name = names.numbers(codes, below.id)
    counts = np.bincount(name, minlength=len(names.distinct))
    frequent = np.flatnonzero(counts >= least * branch.base)
    position = np.full(len(counts), -1, np.int64)
    position[frequent] = np.arange(len(frequent))
    children = []
    for which, at in zip(frequent.tolist(), groups(position[name], len(frequent)), strict=True):
        mine = below.nodes.take(at)
        if bool((mine.headers() == 0).all()):
            continue
        share = branch.share * min(1.0, int(counts[which]) / branch.base)
        text = names.distinct[which].as_py().decode("utf-8", "replace")
        children.append(_Branch(text, share, branch.base, branch.depth + 1, mine))
    # The columns are in the order of the names, whatever the order of the rows.
    return sorted(children, key=lambda child: child.name)


def _element(branch: _Branch, arrays: Nodes) -> list[_Branch]:
    below = arrays.children().nodes
    share = branch.share * len(arrays) / max(branch.base, 1)
    return [_Branch("", share, len(below), branch.depth + 1, below)] if len(below) else []


def _schema(root: _Branch, kept: set[int]) -> ShreddingSchema:
    """The schema of a tree of branches; bottom-up, so that an object or array without typed parts is left whole."""
    order = [root]
    for branch in order:
        branch.children = [child for child in branch.children if id(child) in kept]
        order.extend(branch.children)
    made: dict[int, ShreddingSchema] = {}
    for branch in reversed(order):
        below = [(child.name, made[id(child)]) for child in branch.children]
        if branch.kind == OBJECT and below:
            made[id(branch)] = ShreddingSchema(ShreddedObject(tuple(below)))
        elif branch.kind == ARRAY and below and below[0][1].is_shredded:
            made[id(branch)] = ShreddingSchema(ShreddedArray(below[0][1]))
        else:
            made[id(branch)] = ShreddingSchema(branch.typed)
    return made[id(root)]
