"""Nested Arrow arrays to variants and back: nothing is lost."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from boathouse.variant.columns.from_arrow import from_arrow
from boathouse.variant.columns.to_arrow import to_arrow
from makers.arrows import COMPARABLE, Leaf, Sample, plain, plain_type, samples, values

QUICK = settings(max_examples=80, suppress_health_check=list(HealthCheck))


def check(found: Any, expected: pa.Array) -> None:
    assert found.type.equals(expected.type)
    found.validate(full=True)
    assert found.equals(expected), (found, expected)


@pytest.mark.few(17)
@pytest.mark.spec("V-045", "V-046", "V-047", "V-050", "V-051", "V-053")
@pytest.mark.parametrize("leaf", COMPARABLE, ids=lambda leaf: str(leaf.type))
@given(data=st.data(), narrow=st.booleans())
@settings(max_examples=10)
def test_each_leaf_type_comes_back(leaf: Leaf, data: st.DataObject, narrow: bool) -> None:
    rows = data.draw(st.lists(values(leaf), max_size=6))
    check(to_arrow(from_arrow(pa.array(rows, leaf.type), narrow=narrow), plain_type(leaf)), plain(leaf, rows))


@given(sample=samples(COMPARABLE), omit=st.booleans(), narrow=st.booleans())
@QUICK
def test_any_nested_array_comes_back(sample: Sample, omit: bool, narrow: bool) -> None:
    variants = from_arrow(sample.array, nulls="omit" if omit else "null", narrow=narrow)
    check(to_arrow(variants, plain_type(sample.shape)), plain(sample.shape, sample.rows))


@given(sample=samples(COMPARABLE, maps=False))
@QUICK
def test_and_is_the_same_variants_again(sample: Sample) -> None:
    # A bare array has no field that says it holds UUIDs.
    assume(sample.shape != next(leaf for leaf in COMPARABLE if leaf.type == pa.uuid()))
    variants = from_arrow(sample.array)
    again = from_arrow(to_arrow(variants, plain_type(sample.shape)))
    assert again.field("value").equals(variants.field("value"))
    assert again.equals(variants)


@given(first=samples(COMPARABLE, max_rows=3), sizes=st.lists(st.integers(0, 3), max_size=3))
@QUICK
def test_chunks_come_back_as_their_rows(first: Sample, sizes: list[int]) -> None:
    chunks = pa.chunked_array([first.array.slice(0, size) for size in sizes], first.array.type)
    rows = [row for size in sizes for row in first.rows[:size]]
    found = to_arrow(from_arrow(chunks), plain_type(first.shape))
    whole = pa.concat_arrays(found.chunks) if found.num_chunks else pa.array([], found.type)
    check(whole, plain(first.shape, rows))
