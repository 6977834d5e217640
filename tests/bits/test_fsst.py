"""FSST decoding against a decoder that goes byte by byte."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boathouse.bits.fsst import Table

SYMBOLS = [b"a", b"the ", b"\xff\xff", b"boathous", b"xyz"]


def table(symbols=SYMBOLS):
    padded = np.frombuffer(b"".join(s.ljust(8, b"\0") for s in symbols), np.uint8).reshape(-1, 8)
    return Table(padded, np.array([len(s) for s in symbols], np.uint8))


def encode(parts):
    return b"".join(bytes([255, p]) if literal else bytes([p % len(SYMBOLS)]) for literal, p in parts)


def slow(parts):
    return b"".join(bytes([p]) if literal else SYMBOLS[p % len(SYMBOLS)] for literal, p in parts)


value = st.lists(st.tuples(st.booleans(), st.integers(0, 255) | st.just(255)), max_size=20)


@given(st.lists(value, max_size=30))
def test_decodes_as_byte_by_byte(values):
    coded = [encode(v) for v in values]
    offsets = np.cumsum([0, *map(len, coded)])
    ends, data = table().decode(np.frombuffer(b"".join(coded), np.uint8), offsets)
    raw = data.tobytes()
    assert [raw[a:b] for a, b in pairwise(ends)] == [slow(v) for v in values]


def test_across_slabs():
    rng = np.random.default_rng(1)
    parts = [(bool(a), int(b)) for a, b in zip(rng.random(200_000) < 0.3, rng.integers(0, 256, 200_000))]
    coded = encode(parts)
    _, data = table().decode(np.frombuffer(coded, np.uint8), np.array([0, len(coded)]))
    assert data.tobytes() == slow(parts)


def test_broken_codes():
    with pytest.raises(ValueError, match="no symbol"):
        table().decode(np.array([0, 9], np.uint8), np.array([0, 2]))
    with pytest.raises(ValueError, match="escape"):
        table().decode(np.array([0, 255], np.uint8), np.array([0, 2]))
    with pytest.raises(ValueError, match="symbols"):
        Table(np.zeros((1, 8), np.uint8), np.array([9], np.uint8))
