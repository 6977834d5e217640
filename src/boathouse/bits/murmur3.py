"""Murmur3 x86 32-bit over whole numpy arrays: with seed 0 the hash of Iceberg's bucket transform (Appendix B)."""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.int32]
_C1 = np.uint32(0xCC9E2D51)
_C2 = np.uint32(0x1B873593)


def _rotl(x: npt.NDArray[np.uint32], r: int) -> npt.NDArray[np.uint32]:
    return (x << np.uint32(r)) | (x >> np.uint32(32 - r))


def _scramble(k: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    return _rotl(k * _C1, 15) * _C2


def _mix(h: npt.NDArray[np.uint32], k: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    return _rotl(h ^ _scramble(k), 13) * np.uint32(5) + np.uint32(0xE6546B64)


def _finish(h: npt.NDArray[np.uint32], length: npt.NDArray[np.uint32] | np.uint32) -> Hashes:
    h = h ^ length
    h = (h ^ (h >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    h = (h ^ (h >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return (h ^ (h >> np.uint32(16))).view(np.int32)


def hash_longs(values: npt.NDArray[np.int64]) -> Hashes:
    """The hash of each value as 8 little-endian bytes: int, long, date, time and timestamp alike."""
    words = np.ascontiguousarray(values, "<i8").view("<u4").reshape(-1, 2)
    h = np.zeros(len(words), np.uint32)
    h = _mix(h, words[:, 0].astype(np.uint32))
    h = _mix(h, words[:, 1].astype(np.uint32))
    return _finish(h, np.uint32(8))


def hash_ints(values: npt.NDArray[np.int32], seed: int) -> Hashes:
    """The hash of each value as 4 little-endian bytes, with a seed: Spark's, by which it distributes rows."""
    h = np.full(len(values), seed, np.uint32)
    return _finish(_mix(h, np.ascontiguousarray(values, "<i4").view("<u4").astype(np.uint32)), np.uint32(4))


def hash_bytes(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> Hashes:
    """The hash of each byte string `data[offsets[i]:offsets[i + 1]]`."""
    start = offsets[:-1].astype(np.int64)
    length = np.diff(offsets).astype(np.int64)
    h = np.zeros(len(start), np.uint32)
    # Room to gather whole words past the end of the last string.
    padded = np.concatenate([data, np.zeros(4, np.uint8)])
    blocks = length // 4
    for block in range(int(blocks.max(initial=0))):
        live = np.flatnonzero(blocks > block)
        h[live] = _mix(h[live], _words(padded, start[live] + 4 * block))
    tail = length % 4
    live = np.flatnonzero(tail)
    if len(live):
        keep = (np.uint32(1) << (np.uint32(8) * tail[live].astype(np.uint32))) - np.uint32(1)
        h[live] ^= _scramble(_words(padded, start[live] + 4 * blocks[live]) & keep)
    return _finish(h, length.astype(np.uint32))


def _words(data: npt.NDArray[np.uint8], at: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
    """The little-endian 32-bit words at byte positions `at`."""
    parts = [data[at + i].astype(np.uint32) << np.uint32(8 * i) for i in range(4)]
    return parts[0] | parts[1] | parts[2] | parts[3]


def hash_one(value: bytes) -> int:
    """The hash of one byte string."""
    return int(hash_bytes(np.frombuffer(value, np.uint8), np.array([0, len(value)], np.int64))[0])


def hash_long(value: int) -> int:
    """The hash of one 64-bit integer."""
    return hash_one(struct.pack("<q", value))


def decimal_bytes(unscaled: int) -> bytes:
    """Minimal big-endian two's complement, as decimals are hashed and stored in bounds."""
    bits = unscaled.bit_length() if unscaled >= 0 else (unscaled + 1).bit_length()
    return unscaled.to_bytes(bits // 8 + 1, "big", signed=True)
