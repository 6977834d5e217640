"""Dictionaries spread out, against Arrow's own decoding."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boathouse.arrow.dictionary import spread

TYPES = [pa.string(), pa.binary(), pa.large_string(), pa.large_binary()]


@st.composite
def dictionaries(draw: st.DrawFn) -> pa.DictionaryArray:
    width = draw(st.sampled_from([0, 1, 2, 3, 4, 8, 9, None]))
    size = {"max_size": 12} if width is None else {"min_size": width, "max_size": width}
    letters = st.characters(max_codepoint=127)
    words = draw(st.lists(st.one_of(st.text(letters, **size), *[st.none()] * (width is None)), max_size=6))
    values = pa.array(words, pa.string()).cast(draw(st.sampled_from(TYPES)))
    values = values.slice(draw(st.integers(0, len(values))))
    index = st.integers(0, len(values) - 1) if len(values) else st.nothing()
    some = st.one_of(index, st.none()) if draw(st.booleans()) or not len(values) else index
    at = pa.array(draw(st.lists(some, max_size=20)), draw(st.sampled_from([pa.int8(), pa.int32(), pa.uint16()])))
    array = pa.DictionaryArray.from_arrays(at, values)
    return array.slice(draw(st.integers(0, len(array))))


@given(dictionaries())
def test_spreading_is_decoding(array: pa.DictionaryArray) -> None:
    got = spread(array)
    got.validate(full=True)
    assert got.type == array.type.value_type
    assert got.to_pylist() == array.to_pylist()


@pytest.mark.parametrize("words", [["a", "b"], ["a", "bcd"]])
def test_a_wild_index_is_no_crash(words: list[str]) -> None:
    wild = pa.DictionaryArray.from_arrays(pa.array([0, 7], pa.int32()), pa.array(words), safe=False)
    with pytest.raises(pa.ArrowIndexError):
        spread(wild)
