"""Keys are equal exactly as a dictionary of Python values says, with Spark's rules for nulls, NaN and zeros."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boathouse.arrow import hashing
from boathouse.arrow.keys import KeyIndex
from boathouse.errors import SchemaMismatchError, UnsupportedTypeError

NAN = math.nan
TYPES = {
    pa.int8(): st.integers(-3, 3),
    pa.int64(): st.sampled_from([0, 1, -1, 2**63 - 1, -(2**63), 7]),
    pa.uint64(): st.sampled_from([0, 1, 2**64 - 1]),
    pa.bool_(): st.booleans(),
    pa.float32(): st.sampled_from([0.0, -0.0, 1.5, NAN, math.inf]),
    pa.float64(): st.sampled_from([0.0, -0.0, 1.5, NAN, -math.inf, 5e-324]),
    pa.string(): st.sampled_from(["", "a", "a\0", "12345678", "123456789", "ü" * 9, "ab" * 40, "ab" * 39 + "aa"]),
    pa.large_string(): st.sampled_from(["", "x", "xy"]),
    pa.binary(): st.binary(max_size=2),
    pa.binary(3): st.sampled_from([b"abc", b"abd", b"\0\0\0"]),
    pa.decimal128(20, 2): st.sampled_from([Decimal("1.00"), Decimal("-1.00"), Decimal("1.01"), Decimal(2**50)]),
    pa.decimal256(50, 0): st.sampled_from([Decimal(1), Decimal(2**150)]),
    pa.date32(): st.sampled_from([dt.date(1, 1, 1), dt.date(1970, 1, 1)]),
    pa.timestamp("us", "UTC"): st.sampled_from([dt.datetime(2020, 1, d, tzinfo=dt.UTC) for d in (1, 2)]),
    pa.timestamp("us"): st.sampled_from([dt.datetime(2020, 1, d) for d in (1, 2)]),
    pa.time64("us"): st.sampled_from([dt.time(0), dt.time(1)]),
    pa.duration("us"): st.sampled_from([dt.timedelta(0), dt.timedelta(1)]),
    pa.null(): st.none(),
}


@st.composite
def sides(draw):
    """Types, then for each of two sides its rows and how they are cut into chunks."""
    types = draw(st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=3))
    row = st.tuples(*(st.none() | TYPES[t] for t in types))
    return types, [draw(st.lists(row, max_size=12)) for _ in range(2)], draw(st.integers(1, 5))


def chunked(rows, types, size):
    """One chunked array per type; the chunks are slices, so that their offsets are not zero."""
    columns = [pa.array([row[i] for row in rows], t) for i, t in enumerate(types)]
    return [pa.chunked_array([c.slice(s, size) for s in range(0, len(rows), size)], t) for c, t in zip(columns, types)]


def key(row, matches, signed):
    """The row as a Python key; None if it equals nothing."""
    out = []
    for value, match in zip(row, matches):
        if value is None and not match:
            return None
        if value != value:
            value = "NaN"
        elif isinstance(value, float) and signed and str(value) == "-0.0":
            value = "-0.0"
        out.append(value)
    return tuple(out)


@settings(max_examples=300)
@given(sides(), st.lists(st.booleans(), min_size=3, max_size=3), st.booleans())
def test_lookups_find_the_rows_with_equal_keys(data, matches, signed):
    types, (built, asked), size = data
    matches = matches[: len(types)]
    index = KeyIndex.of(chunked(built, types, size), matches, signed_zeros=signed)
    keys = [key(row, matches, signed) for row in built]
    assert [g >= 0 for g in index.groups] == [k is not None for k in keys]
    assert index.size >= len({k for k in keys if k is not None})
    groups = index.lookup(chunked(asked, types, size))
    counts = index.counts(groups)
    for row, group, count in zip(asked, groups, counts, strict=True):
        k = key(row, matches, signed)
        expected = [i for i, other in enumerate(keys) if k is not None and other == k]
        assert index.row(np.full(count, group), np.arange(count)).tolist() == expected
        assert (group >= 0) == bool(expected)


def test_many_keys_with_repetitions():
    rng = np.random.default_rng(7)
    built, asked = rng.integers(0, 50_000, 40_000), rng.integers(0, 50_000, 70_000)
    strings = [pa.array([f"key {i % 9 * 'x'}{i}" for i in side]) for side in (built, asked)]
    for left, right in ([[pa.array(built)], [pa.array(asked)]], [[strings[0]], [strings[1]]],
                        [[pa.array(built % 100), strings[0]], [pa.array(asked % 100), strings[1]]]):  # fmt: skip
        index = KeyIndex.of(left)
        groups = index.lookup(right)
        assert (groups >= 0).tolist() == np.isin(asked, built).tolist()
        found = groups >= 0
        assert (built[index.row(groups[found])] == asked[found]).all()
        assert index.counts(groups).sum() == np.bincount(built, minlength=50_000)[asked].sum()


def test_different_strings_with_one_hash_are_told_apart(monkeypatch):
    """With the first seeds all strings collide, so another seed is taken; what is looked up is compared."""
    real = hashing.ByteKeys.hashes
    monkeypatch.setattr(
        hashing.ByteKeys,
        "hashes",
        lambda self, rows, seed: real(self, rows, seed) if seed > 2 else np.zeros(len(rows), np.uint64),
    )
    index = KeyIndex.of([pa.array(["a", "b", "a", None])])
    assert index.lookup([pa.array(["b", "a", "c", None])]).tolist() == [index.groups[1], index.groups[0], -1, -1]
    # Among equal strings nothing collides, so the first seed is kept.
    assert KeyIndex.of([pa.array(["a", "a"])]).lookup([pa.array(["a", "b"])]).tolist() == [0, -1]


def test_every_word_can_be_looked_up():
    """Also the word whose hash is the greatest, which marks the end of the table."""
    words = np.arange(1000, dtype=np.uint64)
    greatest = np.array([2**64 - 1], np.uint64)
    inverse = greatest
    for multiplier in hashing._MULTIPLIERS[::-1]:
        inverse = inverse ^ (inverse >> np.uint64(32))
        inverse = inverse * np.uint64(pow(int(multiplier), -1, 2**64))
    assert hashing._mixed(inverse) == greatest
    table, _ = hashing.HashTable.of(words)
    assert table.lookup(inverse).tolist() == [-1]
    table, numbers = hashing.HashTable.of(np.append(words, inverse))
    assert table.lookup(inverse).tolist() == [numbers[-1]] == [1000]
    assert hashing.HashTable.of(words[:0])[0].lookup(np.append(words, inverse)).tolist() == [-1] * 1001


def test_layouts_of_one_type_are_one_key():
    index = KeyIndex.of([pa.array(["a", "b"]), pa.array([1, 2], pa.int32())])
    for layout in (pa.string_view(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())):
        assert index.lookup([pa.array(["b", "a"]).cast(layout), pa.array([2, 9], pa.int16())]).tolist() == [
            index.groups[1], -1,
        ]  # fmt: skip


def test_keys_of_other_types_and_nested_ones_are_refused():
    with pytest.raises(SchemaMismatchError, match="double"):
        KeyIndex.of([pa.array([1])]).lookup([pa.array([1.0])])
    with pytest.raises(UnsupportedTypeError, match="struct"):
        KeyIndex.of([pa.array([{"a": 1}])])
