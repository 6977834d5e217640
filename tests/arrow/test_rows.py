"""Whole rows as a multiset, nested columns included, against counting in Python."""

from __future__ import annotations

import math
from collections import Counter

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from boathouse.arrow.rows import RowIndex, subtract

TYPES = pa.schema(
    [
        ("n", pa.int32()),
        ("x", pa.float64()),
        ("t", pa.string()),
        ("s", pa.struct([("a", pa.int64()), ("l", pa.list_(pa.float32()))])),
        ("l", pa.list_(pa.struct([("k", pa.string()), ("v", pa.list_(pa.int8()))]))),
        ("m", pa.map_(pa.string(), pa.int64())),
        ("f", pa.list_(pa.int16(), 2)),
    ]
)
floats = st.sampled_from([None, 0.0, -0.0, 1.5, float("nan")])
words = st.sampled_from([None, "", "a", "ab"])
small = st.none() | st.integers(0, 2)
rows = st.fixed_dictionaries(
    {
        "n": small,
        "x": floats,
        "t": words,
        "s": st.none() | st.fixed_dictionaries({"a": small, "l": st.none() | st.lists(floats, max_size=2)}),
        "l": st.none()
        | st.lists(
            st.none() | st.fixed_dictionaries({"k": words, "v": st.none() | st.lists(small, max_size=2)}), max_size=2
        ),
        "m": st.none() | st.lists(st.tuples(st.sampled_from(["a", "b"]), small), max_size=2),
        "f": st.none() | st.lists(small, min_size=2, max_size=2),
    }
)


def canonical(value: object) -> object:
    """A hashable value that is equal for equal values only."""
    if isinstance(value, float):
        return ("float", "nan" if math.isnan(value) else value + 0.0)
    if isinstance(value, dict):
        return ("dict", *((k, canonical(v)) for k, v in value.items()))
    if isinstance(value, list | tuple):
        return ("list", *map(canonical, value))
    return value


def counted(table: pa.Table) -> Counter:
    return Counter(canonical(r) for r in table.to_pylist())


@settings(max_examples=150, deadline=None)
@given(st.lists(rows, max_size=4), st.data(), st.integers(1, 3))
def test_subtract_is_the_difference_of_multisets(pool, data, chunk):
    pick = st.lists(st.sampled_from(pool), max_size=8) if pool else st.just([])
    left, right = (pa.Table.from_pylist(data.draw(pick), TYPES) for _ in range(2))
    found = list(subtract(iter(left.to_batches(max_chunksize=chunk)), right))
    assert counted(pa.Table.from_batches(found, TYPES)) == counted(left) - counted(right)


def test_slices_and_chunks_are_compared_by_their_rows():
    values = [[1, 2], None, [], [1, 2], [2, 1], [1, None]]
    whole = pa.table({"l": pa.chunked_array([values[:2], values[2:]], pa.list_(pa.int64()))})
    found = list(subtract(iter(whole.slice(1).to_batches()), whole.slice(3)))
    assert pa.Table.from_batches(found)["l"].to_pylist() == [None, []]


def test_a_null_struct_is_not_a_struct_of_nulls():
    type = pa.struct([("a", pa.int64())])
    index = RowIndex.of([pa.array([None, {"a": None}], type)])
    assert index.lookup([pa.array([{"a": None}, None, {"a": 1}], type)]).tolist() == [1, 0, -1]


def test_columns_are_chosen_after_the_comparison():
    left = pa.table({"a": [1, 1], "b": [1, 2]})
    found = list(subtract(iter(left.to_batches()), left.slice(0, 1), ["a"]))
    assert [b.to_pylist() for b in found] == [[{"a": 1}]]
