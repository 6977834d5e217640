"""Bitmaps against pyroaring (CRoaring) in both directions, against sets, and against broken bytes."""

from __future__ import annotations

import pickle
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyroaring import BitMap, BitMap64

from boathouse.bits import roaring
from boathouse.bits.roaring import Bitmap, deserialize32, deserialize64, serialize32, serialize64
from boathouse.errors import CorruptTableError, InvalidArgumentError, UnsupportedFeatureError


def _blocks(limit: int) -> st.SearchStrategy[list[int]]:
    """Sparse values, dense ranges and stepped ranges: array, run and bitmap containers."""
    run = st.builds(
        lambda start, length, step: list(range(start, min(start + length * step, limit), step)),
        st.integers(0, limit - 1),
        st.integers(1, 20_000),
        st.sampled_from([1, 1, 2, 3, 64]),
    )
    return st.lists(st.one_of(run, st.lists(st.integers(0, limit - 1), max_size=20)), max_size=6).map(
        lambda parts: [v for part in parts for v in part]
    )


POSITIONS32 = _blocks(2**32)
POSITIONS64 = st.one_of(_blocks(2**18), _blocks(2**40), _blocks(2**63))


@settings(max_examples=60)
@given(POSITIONS32, st.booleans())
@example([], True)
@example(list(range(65536)), True)
@example([65536 * k for k in range(5)], False)
def test_32_bit_both_directions(positions: list[int], runs: bool) -> None:
    theirs = BitMap(positions)
    if runs:
        theirs.run_optimize()
    ours = Bitmap.of(positions)
    assert deserialize32(theirs.serialize()) == ours
    written = serialize32(ours, runs=runs)
    assert BitMap.deserialize(written) == theirs
    assert deserialize32(written) == ours


@pytest.mark.spec("D-221")
@settings(max_examples=60)
@given(POSITIONS64, st.booleans())
@example([0, 2**32 - 1, 2**32, 2**63 - 1], True)
def test_64_bit_both_directions(positions: list[int], runs: bool) -> None:
    theirs = BitMap64(positions)
    if runs:
        theirs.run_optimize()
    ours = Bitmap.of(positions)
    assert deserialize64(theirs.serialize()) == ours
    written = serialize64(ours, runs=runs)
    assert BitMap64.deserialize(written) == theirs
    assert not runs or written == theirs.serialize()
    assert deserialize64(written) == ours


@settings(max_examples=60)
@given(POSITIONS32)
def test_same_bytes_as_croaring(positions: list[int]) -> None:
    theirs = BitMap(positions)
    theirs.run_optimize()
    assert serialize32(Bitmap.of(positions)) == theirs.serialize()


@settings(max_examples=60)
@given(POSITIONS64, POSITIONS64)
def test_algebra_is_that_of_sets(a: list[int], b: list[int]) -> None:
    x, y, s, t = Bitmap.of(a), Bitmap.of(b), set(a), set(b)
    for ours, theirs in ((x | y, s | t), (x & y, s & t), (x - y, s - t)):
        assert ours.positions().tolist() == sorted(theirs)
        assert len(ours) == len(theirs)
    assert all(v in x for v in a[:50])
    assert all((v in x) == (v in s) for v in b[:50])


@settings(max_examples=80)
@given(st.sets(st.integers(0, 400)), st.integers(0, 300), st.integers(0, 200))
def test_mask_and_words(values: set[int], start: int, length: int) -> None:
    bitmap = Bitmap.of(list(values))
    expected = [p in values for p in range(start, start + length)]
    assert bitmap.mask(start, length).tolist() == expected
    words = bitmap.words(start, length)
    assert words.dtype == np.int64
    assert len(words) == -(-length // 64)
    got = [bool((int(words[i // 64]) >> (i % 64)) & 1) for i in range(len(words) * 64)]
    assert got == expected + [False] * (len(got) - length)


def test_values_and_refusals() -> None:
    bitmap = Bitmap.of(np.array([5, 1, 5, 3], np.uint32))
    assert bitmap.positions().tolist() == [1, 3, 5]
    assert bitmap == Bitmap.of(iter([1, 3, 5]))
    assert hash(bitmap) == hash(Bitmap.of([3, 5, 1]))
    assert pickle.loads(pickle.dumps(bitmap)) == bitmap
    assert repr(bitmap) == "Bitmap(3: 1, 3, 5)"
    with pytest.raises(ValueError, match="read-only"):
        bitmap.positions()[0] = 9
    with pytest.raises(InvalidArgumentError):
        Bitmap.of([3, -1])
    with pytest.raises(InvalidArgumentError):
        serialize32(Bitmap.of([2**32]))


def test_a_bitmap_does_not_change_with_the_array_it_came_from() -> None:
    source = np.array([1, 2, 3], np.int64)
    bitmap = Bitmap.of(source)
    source[0] = 0
    assert bitmap.positions().tolist() == [1, 2, 3]


@pytest.mark.parametrize("is64", [False, True])
def test_mutated_bytes_are_read_or_refused(is64: bool) -> None:
    rng = random.Random(7)
    values = [*range(70_000, 75_000, 2), *range(200_000, 209_000), 5, 9, 400_000, *range(600_000, 612_000, 2), 900_000]
    for runs in (True, False):
        bitmap = Bitmap.of(values)
        good = serialize64(bitmap, runs=runs) if is64 else serialize32(bitmap, runs=runs)
        refused = 0
        for _ in range(1500):
            bad = bytearray(good)
            for _ in range(rng.randint(1, 3)):
                bad[rng.randrange(80) if rng.random() < 0.7 else rng.randrange(len(bad))] = rng.randrange(256)
            if rng.random() < 0.2:
                del bad[rng.randrange(len(bad)) :]
            try:
                got = (deserialize64 if is64 else deserialize32)(bytes(bad), where="dv.bin")
            except CorruptTableError as error:
                assert error.where == "dv.bin"
                refused += 1
                continue
            except UnsupportedFeatureError:
                refused += 1
                continue
            positions = got.positions()
            assert np.all(positions[1:] > positions[:-1])
        assert refused > 500


def test_every_truncation_is_refused() -> None:
    good = serialize64(Bitmap.of([1, 2, 3, 2**33, *range(70_000, 71_000)]))
    for size in range(len(good)):
        with pytest.raises(CorruptTableError):
            deserialize64(good[:size])
    with pytest.raises(CorruptTableError, match="after the end"):
        deserialize64(good + b"\0")


def test_a_small_stream_cannot_ask_for_any_amount_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roaring, "MAX_CARDINALITY", 100_000)
    with pytest.raises(UnsupportedFeatureError):
        deserialize32(serialize32(Bitmap.of(np.arange(200_000))))


def test_bitmaps_written_by_java(corpora: Path) -> None:
    folder = corpora / "iceberg/java-resources/org/apache/iceberg/deletes"
    for file in sorted(folder.glob("64map*.bin")):
        data = file.read_bytes()
        if b"\xef\xbf\xbd" in data:  # bytes that were once passed through UTF-8
            with pytest.raises(CorruptTableError):
                deserialize64(data)
            continue
        ours = deserialize64(data)
        assert ours.positions().tolist() == list(BitMap64.deserialize(data)), file.name
    for file in sorted(folder.glob("*-position-index.bin")):
        blob = file.read_bytes()
        payload = blob[8:-4]
        ours = deserialize64(payload)
        assert ours.positions().tolist() == list(BitMap64.deserialize(payload)), file.name
        assert serialize64(ours) == payload, file.name
