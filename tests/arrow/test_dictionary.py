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
@pytest.mark.parametrize("type", [pa.string(), pa.binary()])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 300])
def test_small_dictionaries_are_spread_by_runs(count: int, type: pa.DataType, nulls: bool) -> None:
    random = np.random.default_rng(count)
    words = ["é" * int(random.integers(0, 6)) + str(i) * (i % 3) for i in range(count + 2)]
    values = pa.array(words).cast(type).slice(1, count)
    for rows, size in ((4097, 5000), (20_000, 5000), (9999, 8192), (12_000, 12_001)):
        absent = random.random(rows) < 0.1 if nulls else None
        codes = random.integers(0, count, rows).astype(np.int32)
        array = pa.DictionaryArray.from_arrays(pa.array(codes, mask=absent), values).slice(int(random.integers(0, 9)))
        got = list(pieces(array, size))
        assert [len(piece) for piece in got] == [min(size, len(array) - at) for at in range(0, len(array), size)]
        for piece in got:
            piece.validate(full=True)
        assert pa.chunked_array(got, type).equals(pa.chunked_array([array.cast(type)]))


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
    with pytest.raises(pa.ArrowIndexError, match=f"index {index} in a dictionary of 2 values"):
        spread(wild)
    assert spread(wild.slice(0, 1)).to_pylist() == ["a"]
