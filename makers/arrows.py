"""Hypothesis strategies for nested Arrow arrays of every type and layout, with their contents as `variants.Tree`s.

Arrays are deliberately hard to read: sliced, with elements in null lists, values below null structs, views out of
order, dictionaries and run ends. Needs hypothesis, which is a requirement of the tests.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from boathouse.arrow.schema import from_arrow_type, to_arrow_field, to_arrow_type
from boathouse.types import Field
from boathouse.variant.primitives import DAY_MICROS
from makers.variants import Tree, names


@dataclass(frozen=True)
class Leaf:
    """A type, values for it as `pa.array` accepts them, and the variant of each (integers not narrowed)."""

    type: pa.DataType
    values: SearchStrategy[Any]
    tree: Callable[[Any], Tree]

    def __repr__(self) -> str:
        return f"Leaf({self.type})"


@dataclass(frozen=True)
class Struct:
    fields: tuple[tuple[str, Shape], ...]


@dataclass(frozen=True)
class List:
    """`kind`: list, large_list, fixed, list_view or large_list_view."""

    kind: str
    element: Shape


@dataclass(frozen=True)
class Map:
    value: Shape


Shape = Leaf | Struct | List | Map
FIXED = 2  # elements of fixed-size lists
_LONG = st.one_of(st.sampled_from([-(1 << 63), -1, 0, 1, (1 << 63) - 1]), st.integers(-(1 << 63), (1 << 63) - 1))


def _plain(type: pa.DataType, values: SearchStrategy[Any], name: str) -> Leaf:
    return Leaf(type, values, lambda value: Tree(name, value))


def _whole(bits: int, signed: bool) -> Leaf:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    values = st.one_of(st.sampled_from([low, 0, high]), st.integers(low, high))
    type = getattr(pa, f"{'' if signed else 'u'}int{bits}")()
    if bits == 64 and not signed:
        return Leaf(type, values, lambda v: Tree("int64", v) if v < 1 << 63 else Tree("decimal16", (v, 0)))
    return _plain(type, values, f"int{bits if signed else 2 * bits}")


def _floating(bits: int) -> Leaf:
    values = st.floats(width=bits)  # type: ignore[arg-type]
    if bits == 64:
        return Leaf(pa.float64(), values, lambda v: Tree("double", struct.pack("<d", v)))
    if bits == 32:
        return Leaf(pa.float32(), values, lambda v: Tree("float", struct.pack("<f", v)))
    halves = values.map(np.float16)
    return Leaf(pa.float16(), halves, lambda v: Tree("float", np.float32(v).tobytes()))


def _decimal(kind: Callable[[int, int], pa.DataType], precision: int, scale: int) -> Leaf:
    limit = 10**precision - 1
    unscaled = st.one_of(st.sampled_from([0, -1, limit, -limit]), st.integers(-limit, limit))
    name = "decimal4" if precision <= 9 else "decimal8" if precision <= 18 else "decimal16"

    def tree(value: Decimal) -> Tree:
        sign, digits, _ = value.as_tuple()
        return Tree(name, ((-1 if sign else 1) * int("".join(map(str, digits))), scale))

    return Leaf(kind(precision, scale), unscaled.map(lambda n: Decimal(n).scaleb(-scale, _EXACT)), tree)


def _timestamp(unit: str, zone: str | None) -> Leaf:
    factor = {"s": 1_000_000, "ms": 1_000}.get(unit, 1)
    limit = (1 << 63) // factor
    values = st.one_of(st.sampled_from([-limit, -1, limit - 1]), st.integers(-limit, limit - 1))
    name = f"timestamp{'' if zone else '_ntz'}{'_nanos' if unit == 'ns' else ''}"
    return Leaf(pa.timestamp(unit, zone), values, lambda v: Tree(name, v * factor))


def _time(type: pa.DataType, times: int, over: int) -> Leaf:
    """`times`: microseconds of one unit; or `over` units a microsecond."""
    values = st.integers(0, DAY_MICROS // times - 1).map(lambda v: v * over)
    return Leaf(type, values, lambda v: Tree("time", v // over * times))


def _bytes(*types: pa.DataType) -> list[Leaf]:
    values = st.one_of(st.binary(max_size=8), st.binary(min_size=60, max_size=70))
    return [_plain(type, values, "binary") for type in types]


def _strings(*types: pa.DataType) -> list[Leaf]:
    values = st.one_of(st.text(max_size=8), st.text(min_size=60, max_size=70))
    return [_plain(type, values, "string") for type in types]


_EXACT = Context(prec=80)
_DAY = 86_400_000

LEAVES: tuple[Leaf, ...] = (
    _plain(pa.null(), st.none(), "null"),
    _plain(pa.bool_(), st.booleans(), "boolean"),
    *[_whole(bits, signed) for bits in (8, 16, 32, 64) for signed in (True, False)],
    *[_floating(bits) for bits in (16, 32, 64)],
    *[_decimal(pa.decimal32, p, s) for p, s in ((1, 0), (9, 9))],
    *[_decimal(pa.decimal64, p, s) for p, s in ((9, 2), (10, 0), (18, 18))],
    *[_decimal(pa.decimal128, p, s) for p, s in ((9, 2), (10, 10), (18, 3), (19, 0), (38, 38))],
    *[_decimal(pa.decimal256, p, s) for p, s in ((5, 2), (18, 0), (38, 5))],
    _plain(pa.date32(), st.integers(-(1 << 31), (1 << 31) - 1), "date"),
    Leaf(pa.date64(), st.integers(-(10**6), 10**6).map(lambda d: d * _DAY), lambda v: Tree("date", v // _DAY)),
    *[_timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC", "+05:30")],
    _time(pa.time32("s"), 1_000_000, 1),
    _time(pa.time32("ms"), 1_000, 1),
    _time(pa.time64("us"), 1, 1),
    _time(pa.time64("ns"), 1, 1_000),
    *_strings(pa.string(), pa.large_string(), pa.string_view()),
    *_bytes(pa.binary(), pa.large_binary(), pa.binary_view()),
    _plain(pa.binary(3), st.binary(min_size=3, max_size=3), "binary"),
    _plain(pa.uuid(), st.binary(min_size=16, max_size=16), "uuid"),
)


# Types whose values compare as in Arrow: without the null type, which no schema of a table has, and without NaN.
COMPARABLE = tuple(
    [
        Leaf(leaf.type, leaf.values.filter(lambda v: v == v), leaf.tree) if pa.types.is_floating(leaf.type) else leaf
        for leaf in LEAVES
        if not pa.types.is_null(leaf.type)
    ]
)


def shapes(leaves: tuple[Leaf, ...] = LEAVES, *, maps: bool = True) -> SearchStrategy[Shape]:
    """Types nested a few levels deep."""

    def around(inner: SearchStrategy[Shape]) -> SearchStrategy[Shape]:
        kinds = st.sampled_from(["list", "large_list", "fixed", "list_view", "large_list_view"])
        fields = st.lists(st.tuples(names(), inner), max_size=4, unique_by=lambda pair: pair[0])
        found = [st.builds(List, kinds, inner), fields.map(tuple).map(Struct)]
        return st.one_of(*found, st.builds(Map, inner)) if maps else st.one_of(*found)

    return st.recursive(st.sampled_from(leaves), around, max_leaves=8)


def values(shape: Shape) -> SearchStrategy[Any]:
    """None, or a value: a tuple for structs, a dict for maps, a list for lists."""
    inner: SearchStrategy[Any]
    if isinstance(shape, Leaf):
        inner = shape.values
    elif isinstance(shape, Struct):
        inner = st.tuples(*[values(child) for _, child in shape.fields])
    elif isinstance(shape, Map):
        inner = st.dictionaries(names(), values(shape.value), max_size=3)
    else:
        size = FIXED if shape.kind == "fixed" else 3
        inner = st.lists(values(shape.element), min_size=FIXED if shape.kind == "fixed" else 0, max_size=size)
    return st.one_of(st.none(), inner, inner)


def tree(shape: Shape, value: Any, *, omit: bool = False) -> Tree:
    """The result of `from_arrow` for a value: null fields of structs as nulls, or left out (`omit`)."""
    if value is None:
        return Tree("null", None)
    if isinstance(shape, Leaf):
        return shape.tree(value)
    if isinstance(shape, List):
        return Tree("array", tuple([tree(shape.element, one, omit=omit) for one in value]))
    pairs = [(name, shape.value, one) for name, one in value.items()] if isinstance(shape, Map) else []
    if isinstance(shape, Struct):
        pairs = [(name, child, one) for (name, child), one in zip(shape.fields, value) if one is not None or not omit]
    return Tree("object", tuple(sorted([(name, tree(child, one, omit=omit)) for name, child, one in pairs])))


def plain_type(shape: Shape) -> pa.DataType:
    """The type without dictionaries, run ends, views and large layouts; list_view and fixed-size lists are lists."""
    if isinstance(shape, Leaf):
        return to_arrow_type(from_arrow_type(shape.type))
    if isinstance(shape, Struct):
        return pa.struct([plain_field(name, child) for name, child in shape.fields])
    if isinstance(shape, Map):
        return pa.map_(pa.string(), plain_field("value", shape.value))
    return pa.list_(plain_field("element", shape.element))


def plain_field(name: str, shape: Shape) -> pa.Field:
    """The type with the mark for what Arrow has no type for: UUIDs."""
    if isinstance(shape, Leaf):
        return to_arrow_field(Field(name, from_arrow_type(shape.type)))
    return pa.field(name, plain_type(shape))


def plain(shape: Shape, rows: list[Any], by_name: bool = True) -> pa.Array:
    """The rows as an array of the plain type; entries of maps sorted by name, or in their order."""
    return pa.array([_plain_value(shape, row, by_name) for row in rows], plain_type(shape))


def _plain_value(shape: Shape, value: Any, by_name: bool) -> Any:
    if value is None:
        return None
    if isinstance(shape, Leaf):
        return value // _DAY if shape.type == pa.date64() else value
    if isinstance(shape, Struct):
        return {name: _plain_value(child, one, by_name) for (name, child), one in zip(shape.fields, value)}
    if isinstance(shape, Map):
        entries = sorted(value.items()) if by_name else value.items()
        return [(name, _plain_value(shape.value, one, by_name)) for name, one in entries]
    return [_plain_value(shape.element, one, by_name) for one in value]


def array(shape: Shape, rows: list[Any], random: Random) -> pa.Array:
    """The Arrow array of `rows`, in a random layout."""
    before, after = random.randrange(3), random.randrange(3)
    spare = [random.choice([None, *rows]) for _ in range(before + after)]
    whole = _array(shape, [*spare[:before], *rows, *spare[before:]], random)
    return whole.slice(before, len(rows))


def _array(shape: Shape, rows: list[Any], random: Random) -> pa.Array:
    if isinstance(shape, Leaf):
        return _encoded(pa.array(rows, shape.type), random)
    missing = pa.array([row is None for row in rows], pa.bool_())
    # Below a null there are the values of another row.
    there = [row for row in rows if row is not None]
    filled = [random.choice(there) if row is None and there else row for row in rows]
    if isinstance(shape, Struct):
        filled = [(None,) * len(shape.fields) if row is None else row for row in filled]
        children = [array(child, [row[i] for row in filled], random) for i, (_, child) in enumerate(shape.fields)]
        fields = [pa.field(name, child.type) for (name, _), child in zip(shape.fields, children)]
        if not fields:
            return pa.array([None if row is None else {} for row in rows], pa.struct([]))
        return pa.StructArray.from_arrays(children, fields=fields, mask=missing)
    if isinstance(shape, Map):
        entries = [list((row or {}).items()) for row in filled]
        flat = [pair for one in entries for pair in one]
        keys = pa.array([key for key, _ in flat], pa.string())
        items = array(shape.value, [value for _, value in flat], random)
        offsets = pa.array(np.cumsum([0, *map(len, entries)]), pa.int32())
        return pa.MapArray.from_arrays(offsets, keys, items, mask=missing)
    return _list(shape, [row or [] for row in filled], missing, random)


def _list(shape: List, rows: list[list[Any]], missing: pa.Array, random: Random) -> pa.Array:
    if shape.kind == "fixed":
        flat = [one for row in rows for one in (row or [None] * FIXED)]
        return pa.FixedSizeListArray.from_arrays(array(shape.element, flat, random), FIXED, mask=missing)
    large = shape.kind.startswith("large")
    width = pa.int64() if large else pa.int32()
    if shape.kind.endswith("list"):
        elements = array(shape.element, [one for row in rows for one in row], random)
        offsets = pa.array(np.cumsum([0, *map(len, rows)]), width)
        return (pa.LargeListArray if large else pa.ListArray).from_arrays(offsets, elements, mask=missing)
    order = random.sample(range(len(rows)), len(rows))
    starts, flat = [0] * len(rows), []
    for i in order:
        starts[i] = len(flat)
        flat += rows[i]
    kind = pa.LargeListViewArray if large else pa.ListViewArray
    sizes = pa.array([len(row) for row in rows], width)
    return kind.from_arrays(pa.array(starts, width), sizes, array(shape.element, flat, random), mask=missing)


def _encoded(plain: pa.Array, random: Random) -> pa.Array:
    """The same values dictionary- or run-end-encoded, where Arrow supports it."""
    choice = random.randrange(4)
    try:
        if choice == 0:
            return plain.dictionary_encode()
        if choice == 1:
            return pc.run_end_encode(plain)
    except pa.ArrowNotImplementedError:
        pass
    return plain


@dataclass(frozen=True)
class Sample:
    """A shape, the rows, and an array that holds them."""

    shape: Shape
    rows: list[Any]
    array: pa.Array

    def __repr__(self) -> str:
        return f"Sample({self.array.type}, {self.rows!r})"


def samples(leaves: tuple[Leaf, ...] = LEAVES, *, maps: bool = True, max_rows: int = 5) -> SearchStrategy[Sample]:
    """Nested arrays of a few rows."""

    def of(shape: Shape) -> SearchStrategy[Sample]:
        rows = st.lists(values(shape), max_size=max_rows)
        return st.builds(
            lambda rows, seed: Sample(shape, rows, array(shape, rows, Random(seed))), rows, st.integers(0, 1 << 32)
        )

    return shapes(leaves, maps=maps).flatmap(of)
