"""Numbers of distinct 64-bit words and of distinct byte strings, looked up for whole columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from boathouse.arrow.vector import Bools, Ints
from boathouse.bits.unaligned import gather

Words = npt.NDArray[np.uint64]

_MULTIPLIERS = np.array([0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93], np.uint64)
_LAST = np.uint64(2**64 - 1)


@dataclass(frozen=True, slots=True)
class HashTable:
    """Distinct words, numbered from 0 to `size` - 1: sorted by a hash, with an index of the hash's first bits.

    The hash is a permutation of all words, so equal hashes are equal words.
    """

    size: int
    _sorted: Words
    _starts: npt.NDArray[np.int64]
    _shift: np.uint64

    @staticmethod
    def of(words: Words) -> tuple[HashTable, Ints]:
        """The table of the distinct words, and the number of each."""
        hashes = _mixed(words)
        order = np.argsort(hashes)
        ordered = hashes[order]
        new = np.ones(len(ordered), np.bool_)
        new[1:] = ordered[1:] != ordered[:-1]
        numbers = np.empty(len(words), np.int64)
        numbers[order] = np.cumsum(new) - 1
        distinct = ordered[new]
        bits = len(distinct).bit_length() or 1
        shift = np.uint64(64 - bits)
        starts = np.searchsorted(distinct >> shift, np.arange(1 << bits, dtype=np.uint64))
        # One more hash at the end stops the search there.
        return HashTable(len(distinct), np.append(distinct, _LAST), starts.astype(np.int64), shift), numbers

    def lookup(self, words: Words) -> Ints:
        """The number of each word, -1 if it is not in the table."""
        hashes = _mixed(words)
        at = self._starts[(hashes >> self._shift).view(np.int64)]
        there = self._sorted[at]
        out = np.where(there == hashes, at, -1)
        rows = np.flatnonzero(there < hashes)
        at, hashes = at[rows], hashes[rows]
        while len(rows):
            at += 1
            there = self._sorted[at]
            hit = there == hashes
            out[rows[hit]] = at[hit]
            further = there < hashes
            rows, at, hashes = rows[further], at[further], hashes[further]
        # The added hash may be the one looked for.
        out[out == self.size] = -1
        return out


@dataclass(frozen=True, slots=True)
class ByteKeys:
    """Byte strings within `data`, which has eight more bytes at the end, so that words can be read anywhere.

    After `distinct`: `first` is a row of each distinct string by its number, `seed` gives a hash without collisions.
    """

    data: npt.NDArray[np.uint8]
    starts: Ints
    lengths: Ints
    seed: int = 0
    first: Ints | None = None

    @staticmethod
    def of(data: npt.NDArray[np.uint8], starts: Ints, lengths: Ints) -> ByteKeys:
        padded = np.zeros(len(data) + 8, np.uint8)
        padded[: len(data)] = data
        return ByteKeys(padded, starts, lengths)

    @staticmethod
    def concatenated(parts: Sequence[ByteKeys]) -> ByteKeys:
        if len(parts) == 1:
            return parts[0]
        shifts = np.cumsum([0, *(len(p.data) for p in parts)])
        starts = np.concatenate([p.starts + shift for p, shift in zip(parts, shifts)])
        return ByteKeys(np.concatenate([p.data for p in parts]), starts, np.concatenate([p.lengths for p in parts]))

    @staticmethod
    def distinct(keys: ByteKeys, present: Bools) -> tuple[ByteKeys, HashTable, Ints]:
        """The keys with a seed and the first rows, the table of the hashes, and the number of each present row."""
        rows = np.flatnonzero(present)
        seed = 0
        while True:
            table, numbers = HashTable.of(keys.hashes(rows, seed))
            first = np.empty(table.size, np.int64)
            first[numbers] = rows
            if keys.equal(rows, keys, first[numbers]).all():
                return ByteKeys(keys.data, keys.starts, keys.lengths, seed, first), table, numbers
            seed += 1

    def lookup(self, table: HashTable, others: ByteKeys, present: Bools) -> Ints:
        """For each present row of `others` the number of the equal string here, -1 if there is none."""
        assert self.first is not None
        rows = np.flatnonzero(present)
        numbers = table.lookup(others.hashes(rows, self.seed))
        found = np.flatnonzero(numbers >= 0)
        same = others.equal(rows[found], self, self.first[numbers[found]])
        numbers[found[~same]] = -1
        return numbers

    def hashes(self, rows: Ints, seed: int) -> Words:
        """A hash of the string of each row."""
        starts, lengths = self.starts[rows], self.lengths[rows]
        out = _mixed(lengths.view(np.uint64) ^ np.uint64(seed << 32))
        for at, active in _steps(lengths):
            out[active] = _mixed(out[active] ^ self._words(starts[active] + at, lengths[active] - at))
        return out

    def equal(self, rows: Ints, other: ByteKeys, other_rows: Ints) -> Bools:
        """Whether the strings of `rows` equal those of `other_rows` of `other`, one by one."""
        starts, lengths = self.starts[rows], self.lengths[rows]
        theirs = other.starts[other_rows]
        same = lengths == other.lengths[other_rows]
        for at, active in _steps(np.where(same, lengths, 0)):
            left = lengths[active] - at
            mine = self._words(starts[active] + at, left)
            same[active] &= mine == other._words(theirs[active] + at, left)
        return same

    def _words(self, places: Ints, left: Ints) -> Words:
        """The eight bytes at each place, zero beyond the `left` ones."""
        words = gather(self.data, places, "<u8")
        used = 8 * np.minimum(left, 8)
        # A shift by 64 bits is undefined: it is done in two.
        half = ((64 - used) // 2).view(np.uint64)
        rest = (64 - used).view(np.uint64) - half
        return (words << half << rest) >> half >> rest


def _steps(lengths: Ints) -> Iterator[tuple[int, Ints | slice]]:
    """The offsets 0, 8, 16, ... and the rows that are longer."""
    longest = int(lengths.max(initial=0))
    shortest = int(lengths.min(initial=longest))
    active: Ints | slice = slice(None)
    for at in range(0, longest, 8):
        if at >= shortest:
            active = np.flatnonzero(lengths > at) if isinstance(active, slice) else active[lengths[active] > at]
        yield at, active


def _mixed(words: Words) -> Words:
    """A permutation of the 64-bit words after which all bits, the first ones most, depend on all."""
    out = words * _MULTIPLIERS[0]
    out ^= out >> np.uint64(32)
    out *= _MULTIPLIERS[1]
    out ^= out >> np.uint64(32)
    return out
