"""Theta sketches of distinct values, as Apache DataSketches stores compact ones: the least of their hashes, and the
bound below which all are kept. Values are bytes; the hash is Murmur3 x64 of 128 bits with the default seed."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]
NOMINAL: Final = 4096
"""How many hashes are kept: the estimate then has a standard error of 1.6 percent."""
_ALL: Final = (1 << 63) - 1
_SEED: Final = 9001
_SEED_HASH: Final = 0x93CC
_C1, _C2 = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)
_VERSION, _FAMILY = 3, 3
_READ_ONLY, _EMPTY, _COMPACT, _ORDERED = 2, 4, 8, 16


@dataclass(frozen=True, slots=True)
class Sketch:
    """`hashes` are ascending and below `theta`, each once; below 2^63 - 1 some values are not among them."""

    hashes: Hashes
    theta: int = _ALL

    @staticmethod
    def of(hashes: Hashes) -> Sketch:
        """The sketch of values with these hashes."""
        return _cut(np.unique(hashes[hashes > 0]), _ALL)

    @staticmethod
    def union(sketches: Iterable[Sketch]) -> Sketch:
        """The sketch of the values of all."""
        every = list(sketches)
        theta = min((s.theta for s in every), default=_ALL)
        found = np.unique(np.concatenate([np.zeros(0, np.uint64), *(s.hashes for s in every)]))
        return _cut(found[found < np.uint64(theta)], theta)

    @property
    def estimate(self) -> float:
        """How many distinct values there are; exact up to 4,096."""
        return len(self.hashes) if self.theta == _ALL else len(self.hashes) * 2.0**63 / self.theta

    def to_bytes(self) -> bytes:
        """The compact form, ordered."""
        count = len(self.hashes)
        longs = 3 if self.theta < _ALL else 2 if count > 1 else 1
        flags = _READ_ONLY | _COMPACT | _ORDERED | (_EMPTY if not count and longs == 1 else 0)
        head = struct.pack("<BBBBBBH", longs, _VERSION, _FAMILY, 0, 0, flags, _SEED_HASH)
        if longs > 1:
            head += struct.pack("<If", count, 0.0)
        if longs > 2:
            head += struct.pack("<Q", self.theta)
        return head + self.hashes.astype("<u8").tobytes()

    @staticmethod
    def parse(data: bytes) -> Sketch:
        """Raises ValueError for what is no compact sketch of this kind, or of another seed."""
        if len(data) < 8:
            raise ValueError("a sketch has 8 bytes at least")
        longs, version, family, _, _, flags, seed = struct.unpack_from("<BBBBBBH", data)
        if (version, family) != (_VERSION, _FAMILY) or flags & 1 or longs not in (1, 2, 3):
            raise ValueError(f"version {version}, family {family}, flags {flags} are of no compact theta sketch")
        if flags & _EMPTY:
            return Sketch(np.zeros(0, np.uint64))
        if seed != _SEED_HASH:
            raise ValueError(f"the hash of the seed is {seed}, not that of {_SEED}")
        if len(data) < 8 * longs:
            raise ValueError(f"{len(data)} bytes end within the head")
        count = 1 if longs == 1 else struct.unpack_from("<I", data, 8)[0]
        theta = struct.unpack_from("<Q", data, 16)[0] if longs == 3 else _ALL
        if len(data) != 8 * (longs + count) or not 0 < theta <= _ALL:
            raise ValueError(f"{len(data)} bytes are not {count} hashes, or the bound {theta} is none")
        hashes = np.frombuffer(data, "<u8", count, 8 * longs).astype(np.uint64)
        return Sketch(np.unique(hashes), theta)


def _cut(hashes: Hashes, theta: int) -> Sketch:
    if len(hashes) <= NOMINAL:
        return Sketch(hashes, theta)
    return Sketch(hashes[:NOMINAL], int(hashes[NOMINAL]))


def hashed(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> Hashes:
    """The hash of each byte string `data[offsets[i]:offsets[i + 1]]`, without those of empty ones: no sketch has
    them."""
    start, length = offsets[:-1].astype(np.int64), np.diff(offsets).astype(np.int64)
    start, length = start[length > 0], length[length > 0]
    padded = np.concatenate([data, np.zeros(16, np.uint8)])
    h1 = np.full(len(start), _SEED, np.uint64)
    h2 = h1.copy()
    blocks = length // 16
    for block in range(int(blocks.max(initial=0))):
        live = np.flatnonzero(blocks > block)
        at, whole = start[live] + 16 * block, np.full(len(live), 16)
        h1[live], h2[live] = _mixed(h1[live], h2[live], *_words(padded, at, whole))
    k1, k2 = _words(padded, start + 16 * blocks, length % 16)
    h2 ^= _rotl(k2 * _C2, 33) * _C1
    h1 ^= _rotl(k1 * _C1, 31) * _C2
    h1, h2 = h1 ^ length.astype(np.uint64), h2 ^ length.astype(np.uint64)
    h1 = h1 + h2
    h2 = h2 + h1
    return (_final(h1) + _final(h2)) >> np.uint64(1)


def _words(data: npt.NDArray[np.uint8], at: npt.NDArray[np.int64], length: npt.NDArray[np.int64]) -> tuple[Hashes, ...]:
    """The two little-endian words at these places, with zeros after so many bytes."""
    found = [np.zeros(len(at), np.uint64), np.zeros(len(at), np.uint64)]
    for i in range(16):
        byte = np.where(length > i, data[np.minimum(at + i, len(data) - 1)], 0).astype(np.uint64)
        found[i // 8] |= byte << np.uint64(8 * (i % 8))
    return tuple(found)


def _mixed(h1: Hashes, h2: Hashes, k1: Hashes, k2: Hashes) -> tuple[Hashes, Hashes]:
    h1 = _rotl(h1 ^ (_rotl(k1 * _C1, 31) * _C2), 27) + h2
    h1 = h1 * np.uint64(5) + np.uint64(0x52DCE729)
    h2 = _rotl(h2 ^ (_rotl(k2 * _C2, 33) * _C1), 31) + h1
    return h1, h2 * np.uint64(5) + np.uint64(0x38495AB5)


def _rotl(x: Hashes, r: int) -> Hashes:
    return (x << np.uint64(r)) | (x >> np.uint64(64 - r))


def _final(k: Hashes) -> Hashes:
    k = (k ^ (k >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    k = (k ^ (k >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return k ^ (k >> np.uint64(33))
