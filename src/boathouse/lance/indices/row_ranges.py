"""Rows of one fragment as ranges of positions: an array of (first, after the last), ascending and apart."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

Ranges = npt.NDArray[np.int64]
NOTHING: Final = np.empty((0, 2), np.int64)


def of_positions(positions: npt.NDArray[np.int64]) -> Ranges:
    """The ranges of positions in any order, repetitions included."""
    if not len(positions):
        return NOTHING
    ascending = np.unique(positions)
    cuts = np.flatnonzero(np.diff(ascending) != 1) + 1
    firsts = ascending[np.concatenate(([0], cuts))]
    lasts = ascending[np.concatenate((cuts - 1, [len(ascending) - 1]))]
    return np.stack((firsts, lasts + 1), axis=1)


def merged(ranges: Ranges, gap: int = 0) -> Ranges:
    """Ranges in any order as ascending ones; those that overlap, or between which at most `gap` rows lie, are one."""
    ranges = ranges[ranges[:, 1] > ranges[:, 0]]
    if not len(ranges):
        return NOTHING
    ranges = ranges[np.argsort(ranges[:, 0], kind="stable")]
    reach = np.maximum.accumulate(ranges[:, 1])
    begins = np.concatenate(([0], np.flatnonzero(ranges[1:, 0] > reach[:-1] + gap) + 1))
    ends = np.concatenate((begins[1:] - 1, [len(ranges) - 1]))
    return np.stack((ranges[begins, 0], reach[ends]), axis=1)


def without(rows: int, ranges: Ranges) -> Ranges:
    """The other ones of so many rows; `ranges` are in any order."""
    gone = merged(np.clip(ranges, 0, rows))
    edges = np.concatenate(([0], gone.reshape(-1), [rows])).reshape(-1, 2)
    return edges[edges[:, 1] > edges[:, 0]]


def both(a: Ranges, b: Ranges) -> Ranges:
    """The rows that are in both."""
    if not len(a) or not len(b):
        return NOTHING
    # For each range of `a` those of `b` that it touches.
    first = np.searchsorted(b[:, 1], a[:, 0], side="right")
    after = np.searchsorted(b[:, 0], a[:, 1], side="left")
    counts = np.maximum(after - first, 0)
    mine = np.repeat(np.arange(len(a)), counts)
    within = np.arange(len(mine)) - np.repeat(np.cumsum(counts) - counts, counts)
    theirs = np.repeat(first, counts) + within
    return np.stack((np.maximum(a[mine, 0], b[theirs, 0]), np.minimum(a[mine, 1], b[theirs, 1])), axis=1)


def count(ranges: Ranges) -> int:
    return int((ranges[:, 1] - ranges[:, 0]).sum())


def positions_of(ranges: Ranges) -> npt.NDArray[np.int64]:
    """Every position, ascending."""
    lengths = ranges[:, 1] - ranges[:, 0]
    within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return np.repeat(ranges[:, 0], lengths) + within


def encode(ranges: Ranges) -> bytes:
    return ranges.astype("<i8").tobytes()


def decode(data: bytes) -> Ranges:
    return np.frombuffer(data, "<i8").astype(np.int64).reshape(-1, 2)
