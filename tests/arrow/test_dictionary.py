"""Dictionaries spread out, against Arrow's own decoding."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boathouse.arrow.dictionary import pieces, spread

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


@pytest.mark.parametrize("nulls", [False, True])
def test_pieces_are_parts_of_the_whole(nulls: bool) -> None:
    random = np.random.default_rng(7)
    values = pa.array(["é" * i for i in range(9)]).slice(1, 7)
    absent = random.random(9999) < 0.1 if nulls else None
    codes = pa.array(random.integers(0, 7, 9999).astype(np.int32), mask=absent)
    array = pa.DictionaryArray.from_arrays(codes, values).slice(3)
    got = list(pieces(array, 5000))
    assert [len(piece) for piece in got] == [5000, 4996]
    for piece in got:
        piece.validate(full=True)
    assert pa.chunked_array(got).equals(pa.chunked_array([array.cast(pa.string())]))


def test_what_lies_below_a_null_does_not_matter() -> None:
    wild = pa.py_buffer(np.tile(np.array([99, 0, 1, 1], np.int32), 2048))
    codes = pa.Array.from_buffers(pa.int32(), 8192, [pa.py_buffer(b"\xee" * 1024), wild])
    got = spread(pa.DictionaryArray.from_arrays(codes, pa.array(["a", "bcd"]), safe=False))
    got.validate(full=True)
    assert got.to_pylist() == [None, "a", "bcd", "bcd"] * 2048


@pytest.mark.parametrize("index", [2, 7, -1, -(2**31)])
@pytest.mark.parametrize("words", [["a", "b"], ["a", "bcd"]])
def test_a_wild_index_is_no_crash(words: list[str], index: int) -> None:
    wild = pa.DictionaryArray.from_arrays(pa.array([0, index], pa.int32()), pa.array(words), safe=False)
    with pytest.raises(pa.ArrowIndexError, match="out of bounds"):
        spread(wild)
    assert spread(wild.slice(0, 1)).to_pylist() == ["a"]
