"""The schema of a whole column, as `schema_of_variant_agg`: types by path, merged over the rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from boathouse.bits.unaligned import Ints
from boathouse.types import DecimalType
from boathouse.variant.columns.expand import Tree
from boathouse.variant.columns.faults import Lenient
from boathouse.variant.columns.layout import chunks
from boathouse.variant.columns.nodes import ARRAY, OBJECT
from boathouse.variant.columns.reading import read
from boathouse.variant.columns.scalars import decimals
from boathouse.variant.columns.valid import check_scalars
from boathouse.variant.primitives import DECIMAL4, DECIMAL16, KINDS, Kind
from boathouse.variant.schemas import SchemaBuilder, Shape, VariantSchema, narrowest_decimal, type_of

_POW10 = np.array([10**i for i in range(19)], np.int64)


def schema_of(data: Any, *, lenient: Lenient | None = None) -> VariantSchema:
    """The schema that all rows of a column have in common, as Spark's `schema_of_variant_agg`; VOID where there are
    none.

    `data` is a struct<metadata, value> array, a chunked one, or what exports one. Raises MalformedVariant with the row,
    UnsupportedFeatureError; such rows are left out and counted if `lenient` is given.

    >>> print(bh.variant.schema_of(bh.variant.from_json(pa.array(['{"a": 1}', '{"a": null, "b": [true]}']))))
    OBJECT<a: BIGINT, b: ARRAY<BOOLEAN>>
    """
    builder = SchemaBuilder()
    for column in chunks(data):
        for _, _, _, seen in read(column, _sightings, lenient):
            _add(builder.root, *seen)
    return builder.finish()


Sightings = tuple[list[tuple[int, str | None]], list[tuple[int, int, list[DecimalType]]]]


def _sightings(tree: Tree) -> Sightings:
    """The paths of a tree: for each its parent's number and its name (None: an element; the root is the first);
    and (path, kind, decimals) seen there, parents first."""
    check_scalars(tree)
    paths: list[tuple[int, str | None]] = [(-1, None)]
    path = np.zeros(len(tree), np.int64)
    names = tree.names.raw.to_pylist()
    width = len(names) + 1
    for level in range(1, len(tree.levels) - 1):
        first, last = tree.levels[level], tree.levels[level + 1]
        above = slice(tree.levels[level - 1], first)
        keys = np.repeat(path[above], tree.count[above]) * width + tree.name[first:last] + 1
        distinct, place = np.unique(keys, return_inverse=True)
        path[first:last] = len(paths) + place
        for key in distinct.tolist():
            parent, name = divmod(key, width)
            paths.append((parent, names[name - 1].decode() if name else None))
    both = path * 256 + tree.kind
    seen = []
    for key in np.unique(both).tolist():
        number, kind = divmod(key, 256)
        found = _digits(tree, np.flatnonzero(both == key), KINDS[kind]) if _is_decimal(kind) else []
        seen.append((number, kind, found))
    return paths, seen


def _is_decimal(kind: int) -> bool:
    return DECIMAL4 <= kind <= DECIMAL16


def _digits(tree: Tree, which: Ints, kind: Kind) -> list[DecimalType]:
    """The types of the decimals among values."""
    unscaled, scales = decimals(tree, which, kind)
    if isinstance(unscaled, list):
        return list({narrowest_decimal(*one) for one in set(zip(unscaled, scales.tolist()))})
    whole, scale = np.abs(unscaled.astype(np.int64)), scales.astype(np.int64)
    while (zeros := np.flatnonzero((scale > 0) & (whole % 10 == 0))).size:
        whole[zeros] //= 10
        scale[zeros] -= 1
    digits = np.searchsorted(_POW10, whole, side="right")
    pairs = np.unique(np.maximum(np.maximum(digits, scale), 1) * 64 + scale).tolist()
    return [DecimalType(pair >> 6, pair & 63) for pair in pairs]


def _add(root: Shape, paths: list[tuple[int, str | None]], seen: list[tuple[int, int, list[DecimalType]]]) -> None:
    """Records what was seen; a container is added before its children."""
    shapes: list[Shape] = []
    at = 0
    for number, (parent, name) in enumerate(paths):
        shapes.append(shapes[parent].child(0 if name is None else name) if number else root)
        while at < len(seen) and seen[at][0] == number:
            _, kind, found = seen[at]
            at += 1
            if kind in (OBJECT, ARRAY):
                shapes[number].open(kind == OBJECT)
            for type in found:
                shapes[number].add(type)
            if kind < OBJECT and not _is_decimal(kind):
                shapes[number].add(type_of(KINDS[kind]))
