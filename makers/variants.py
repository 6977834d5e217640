"""Hypothesis strategies for variants, and an encoder that writes them in every legal form, not only the canonical one.

`Tree` is the content of a variant with its exact types, independent of any bytes: `tree_of(variant) == tree` is the
strictest equality, except that short and long strings are equal. Needs hypothesis, which is a requirement of the tests.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from random import Random
from typing import Any, Literal

import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from boathouse.variant import Variant, VariantBuilder
from boathouse.variant.primitives import DAY_MICROS, KINDS, width_of

TYPE_NAMES = tuple(kind.name for kind in KINDS)
_INT_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "date": 32}
_LONGS = ("timestamp", "timestamp_ntz", "timestamp_nanos", "timestamp_ntz_nanos")
_DECIMALS = {"decimal4": (9, 4), "decimal8": (18, 8), "decimal16": (38, 16)}


@dataclass(frozen=True, slots=True)
class Tree:
    """`content`: as `Variant.scalar` for scalars (floats as their bytes), (name, Tree) pairs by name, or Trees."""

    type: str
    content: Any


def _signed(bits: int) -> SearchStrategy[int]:
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    return st.one_of(st.sampled_from([low, -1, 0, 1, high]), st.integers(low, high))


def _float_bytes(width: Literal[32, 64]) -> SearchStrategy[bytes]:
    return st.floats(width=width).map(lambda number: struct.pack("<d" if width == 64 else "<f", number))


def names() -> SearchStrategy[str]:
    """Field names: few and short so that they repeat, some with dots, quotes, beyond the BMP, empty."""
    return st.one_of(
        st.sampled_from(["a", "b", "A", "", "a.b", "it's", "é", "～", "😀", "id", "type", "x" * 70]),
        st.text(max_size=4),
    )


def scalars(types: tuple[str, ...] = TYPE_NAMES) -> SearchStrategy[Tree]:
    """Scalars of the given types, limits included."""
    found: list[SearchStrategy[Tree]] = []
    for type in dict.fromkeys(types):
        content: SearchStrategy[Any]
        if type in _INT_BITS:
            content = _signed(_INT_BITS[type])
        elif type in _LONGS:
            content = _signed(64)
        elif type in _DECIMALS:
            limit = 10 ** _DECIMALS[type][0] - 1
            content = st.tuples(
                st.one_of(st.sampled_from([0, 1, -1, limit, -limit]), st.integers(-limit, limit)), st.integers(0, 38)
            )
        else:
            content = {
                "null": st.none(), "boolean": st.booleans(), "double": _float_bytes(64), "float": _float_bytes(32),
                "time": st.integers(0, DAY_MICROS - 1), "binary": st.binary(max_size=80),
                "string": st.one_of(st.text(max_size=10), st.text(min_size=60, max_size=70)),
                "uuid": st.binary(min_size=16, max_size=16),
            }[type]  # fmt: skip
        found.append(st.builds(Tree, st.just(type), content))
    return st.one_of(found)


def trees(max_leaves: int = 12, types: tuple[str, ...] = TYPE_NAMES) -> SearchStrategy[Tree]:
    """Any variant's content."""

    def containers(children: SearchStrategy[Tree]) -> SearchStrategy[Tree]:
        fields = st.dictionaries(names(), children, max_size=5)
        return st.one_of(
            st.lists(children, max_size=5).map(lambda found: Tree("array", tuple(found))),
            fields.map(lambda found: Tree("object", tuple(sorted(found.items(), key=lambda pair: pair[0])))),
        )

    return st.recursive(scalars(types), containers, max_leaves=max_leaves)


def variants(max_leaves: int = 12, types: tuple[str, ...] = TYPE_NAMES) -> SearchStrategy[Variant]:
    """Canonically encoded variants of any content."""
    return trees(max_leaves, types).map(encode)


def loose_variants(max_leaves: int = 12) -> SearchStrategy[Variant]:
    """Variants in any legal encoding: see `encode_loosely`."""
    return st.builds(lambda tree, seed: encode_loosely(tree, Random(seed)), trees(max_leaves), st.integers(0, 2**32))


def columns(max_rows: int = 6, *, loose: bool = True) -> SearchStrategy[list[Variant | None]]:
    """Rows of a column, some null; `to_column` makes the Arrow array."""
    one = st.one_of(variants(6), loose_variants(6)) if loose else variants(6)
    return st.lists(st.one_of(st.none(), one), max_size=max_rows)


def to_column(rows: list[Variant | None]) -> pa.StructArray:
    """struct<metadata: binary, value: binary> of the rows; null rows have null children."""
    kinds = [pa.field("metadata", pa.binary()), pa.field("value", pa.binary())]
    return pa.StructArray.from_arrays(
        [
            pa.array([None if row is None else row.metadata for row in rows], pa.binary()),
            pa.array([None if row is None else row.value for row in rows], pa.binary()),
        ],
        fields=kinds,
        mask=pa.array([row is None for row in rows], pa.bool_()),
    )


def scalar_bytes(tree: Tree, *, long: bool = False) -> bytes:
    """The encoding of a scalar, implemented a second time; `long` chooses the long form of short strings."""
    type, content = tree.type, tree.content
    if type == "string":
        raw: bytes = content.encode()
        if len(raw) < 64 and not long:
            return bytes([len(raw) << 2 | 1]) + raw
        return b"\x40" + struct.pack("<I", len(raw)) + bytes(raw)
    id = TYPE_NAMES.index(type) + (type == "boolean" and not content)
    head = bytes([id << 2])
    if type in ("null", "boolean"):
        return head
    if type == "binary":
        return head + struct.pack("<I", len(content)) + bytes(content)
    if type in ("double", "float", "uuid"):
        return head + bytes(content)
    if type in _DECIMALS:
        unscaled, scale = content
        return head + bytes([scale]) + int(unscaled).to_bytes(_DECIMALS[type][1], "little", signed=True)
    return head + int(content).to_bytes(_INT_BITS.get(type, 64) // 8, "little", signed=True)


def encode(tree: Tree) -> Variant:
    """The canonical variant of a tree, by `VariantBuilder`."""
    builder = VariantBuilder()

    def append(tree: Tree) -> None:
        if tree.type == "object":
            builder.begin_object()
            for name, child in tree.content:
                builder.key(name)
                append(child)
            builder.end()
        elif tree.type == "array":
            builder.begin_array()
            for child in tree.content:
                append(child)
            builder.end()
        else:
            builder.append_encoded(scalar_bytes(tree))

    append(tree)
    return builder.finish()


def encode_loosely(tree: Tree, random: Random, *, gaps: bool = False) -> Variant:
    """A random legal encoding: wide numbers, an unsorted dictionary with repeated and unused names, values in any
    order, equal values shared, long forms, reserved bits set; with `gaps`, bytes between values that belong to no
    value.
    """
    used = sorted(_names_of(tree))
    dictionary = [
        *used,
        *random.sample(used, len(used) // 3),
        *random.sample(["zz", "\u00fc", "q"], random.randint(0, 3)),
    ]
    random.shuffle(dictionary)
    ids: dict[str, list[int]] = {}
    for id, name in enumerate(dictionary):
        ids.setdefault(name, []).append(id)
    return Variant(_loose_metadata(dictionary, random), _loose_value(tree, ids, random, gaps))


def _names_of(tree: Tree) -> set[str]:
    if tree.type == "object":
        return {name for name, _ in tree.content}.union(*(_names_of(child) for _, child in tree.content))
    if tree.type == "array":
        return set().union(*(_names_of(child) for child in tree.content))
    return set()


def _loose_metadata(dictionary: list[str], random: Random) -> bytes:
    strings = [name.encode() for name in dictionary]
    offsets = [0]
    for string in strings:
        offsets.append(offsets[-1] + len(string))
    size = random.randint(width_of(max(offsets[-1], len(strings))), 4)
    header = 1 | (size - 1) << 6 | random.choice([0, 0x20])
    if strings == sorted(set(strings)):
        header |= random.choice([0, 0x10])
    numbers = [len(strings), *offsets]
    return bytes([header]) + b"".join(n.to_bytes(size, "little") for n in numbers) + b"".join(strings)


def _loose_value(tree: Tree, ids: dict[str, list[int]], random: Random, gaps: bool) -> bytes:
    if tree.type not in ("object", "array"):
        return scalar_bytes(tree, long=random.random() < 0.3)
    named = tree.type == "object"
    children = [_loose_value(pair[1] if named else pair, ids, random, gaps) for pair in tree.content]
    numbers = [random.choice(ids[name]) for name, _ in tree.content] if named else []
    order = list(range(len(children)))
    if random.random() < 0.5:
        random.shuffle(order)
    offsets, content = [0] * len(children), b""
    laid: dict[bytes, int] = {}
    for i in order:
        if children[i] in laid and random.random() < 0.5:
            offsets[i] = laid[children[i]]
            continue
        if gaps and random.random() < 0.2:
            content += bytes(random.randint(1, 3))
        offsets[i] = laid[children[i]] = len(content)
        content += children[i]
    offset_size = random.randint(width_of(len(content)), 4)
    id_size = random.randint(width_of(max(numbers, default=0)), 4)
    large = len(children) > 255 or random.random() < 0.3
    if named:
        header = (large << 4 | (id_size - 1) << 2 | offset_size - 1) << 2 | 2 | random.choice([0, 0x80])
    else:
        header = (large << 2 | offset_size - 1) << 2 | 3 | random.choice([0, 0x20, 0x40, 0x80])
    return b"".join(
        [
            bytes([header]),
            len(children).to_bytes(4 if large else 1, "little"),
            *(number.to_bytes(id_size, "little") for number in numbers),
            *(offset.to_bytes(offset_size, "little") for offset in (*offsets, len(content))),
            content,
        ]
    )


def tree_of(variant: Variant) -> Tree:
    """The content of a variant, with exact types, through the lazy accessors, level by level."""
    type = variant.type
    if type == "object":
        fields = sorted(variant.items(), key=lambda pair: pair[0])
        return Tree(type, tuple((name, tree_of(child)) for name, child in fields))
    if type == "array":
        return Tree(type, tuple(tree_of(child) for child in variant.values()))
    if type in ("double", "float"):
        return Tree(type, variant.value[1:])
    return Tree(type, variant.scalar)


def mutate(value: bytes, random: Random) -> bytes:
    """The bytes with one to three changes: a bit, a byte, a slice removed, duplicated or moved to the end."""
    found = bytearray(value)
    for _ in range(random.randint(1, 3)):
        at = random.randrange(len(found)) if found else 0
        to = min(len(found), at + random.randint(1, 4))
        match random.randrange(6):
            case 0 if found:
                found[at] ^= 1 << random.randrange(8)
            case 1 if found:
                found[at] = random.choice([0, 1, 0x7F, 0x80, 0xFE, 0xFF, random.randrange(256)])
            case 2:
                del found[at:to]
            case 3:
                found[at:at] = found[at:to]
            case 4:
                del found[at:]
            case _:
                found += random.randbytes(random.randint(1, 4))
    return bytes(found)


def python_values() -> SearchStrategy[Any]:
    """Python values that come back equal from `Variant.from_python(x).to_python()`."""
    digits = st.integers(-(10**38) + 1, 10**38 - 1)
    leaves = st.one_of(
        st.none(), st.booleans(), digits, st.integers(-300, 300), st.floats(allow_nan=False), st.text(max_size=70),
        st.binary(max_size=70), st.builds(lambda n, s: Decimal(f"{n}E-{s}"), digits, st.integers(1, 38)),
        st.dates(), st.times(), st.uuids(), st.datetimes(), st.datetimes(timezones=st.just(UTC)),
        st.sampled_from([date.min, date.max, time.max, datetime.min, datetime.max]),
    )  # fmt: skip
    return st.recursive(
        leaves, lambda inner: st.one_of(st.lists(inner), st.dictionaries(names(), inner)), max_leaves=12
    )


def json_values() -> SearchStrategy[Any]:
    """Possible results of `json.loads`, finite numbers only."""
    leaves = st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=70)
    )
    return st.recursive(
        leaves, lambda inner: st.one_of(st.lists(inner), st.dictionaries(names(), inner)), max_leaves=12
    )
