"""FastLanes blocks: the layout spelled out value by value, and round trips at every width."""

from __future__ import annotations

import numpy as np
import pytest

from boathouse.bits import fastlanes

ORDER = [0, 4, 2, 6, 1, 5, 3, 7]


def slow_unpack(block, width, bits):
    """One block, one bit at a time."""
    lanes = 1024 // bits
    out = [0] * 1024
    for lane in range(lanes):
        stream = sum(int(block[w * lanes + lane]) << (w * bits) for w in range(width))
        for row in range(bits):
            out[ORDER[row // 8] * 16 + row % 8 * 128 + lane] = stream >> (row * width) & ((1 << width) - 1)
    return out


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_every_width(bits):
    rng = np.random.default_rng(bits)
    for width in range(bits + 1):
        values = rng.integers(0, 1 << 63, (3, 1024), dtype=np.uint64) * np.uint64(2) + np.uint64(1)
        values = (values >> np.uint64(64 - width) if width else values * np.uint64(0)).astype(f"u{bits // 8}")
        packed = fastlanes.pack(values, width)
        assert packed.shape == (3, fastlanes.words(width, bits))
        assert (fastlanes.unpack(packed, width) == values).all()
        if width in (1, 3, bits // 2 + 1, bits):
            assert slow_unpack(packed[1], width, bits) == values[1].tolist()


def test_widths():
    rows = np.zeros((6, 1024), np.uint64)
    for i, value in enumerate([0, 1, 255, 256, (1 << 53) + 1, (1 << 64) - 1]):
        rows[i, 7] = value
    assert fastlanes.widths(rows).tolist() == [0, 1, 8, 9, 54, 64]
    assert fastlanes.widths(rows[:4].astype(np.uint16)).tolist() == [0, 1, 8, 9]
