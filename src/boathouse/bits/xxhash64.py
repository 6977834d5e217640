"""XXH64 with seed 0, of single values (the xxHash specification)."""

from __future__ import annotations

import struct
from typing import Final

_P1: Final = 0x9E3779B185EBCA87
_P2: Final = 0xC2B2AE3D27D4EB4F
_P3: Final = 0x165667B19E3779F9
_P4: Final = 0x85EBCA77C2B2AE63
_P5: Final = 0x27D4EB2F165667C5
_MASK: Final = (1 << 64) - 1
_STRIPE: Final = struct.Struct("<4Q")


def xxhash64(data: bytes) -> int:
    """The hash as an unsigned number of 64 bits."""
    size, at = len(data), 0
    if size >= _STRIPE.size:
        lanes = [(_P1 + _P2) & _MASK, _P2, 0, -_P1 & _MASK]
        while at + _STRIPE.size <= size:
            words = _STRIPE.unpack_from(data, at)
            lanes = [_round(lane, word) for lane, word in zip(lanes, words)]
            at += _STRIPE.size
        found = sum(_rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18))) & _MASK
        for lane in lanes:
            found = ((found ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        found = _P5
    found = (found + size) & _MASK
    while at + 8 <= size:
        found = (_rotated(found ^ _round(0, int.from_bytes(data[at : at + 8], "little")), 27) * _P1 + _P4) & _MASK
        at += 8
    if at + 4 <= size:
        word = int.from_bytes(data[at : at + 4], "little")
        found = (_rotated(found ^ (word * _P1 & _MASK), 23) * _P2 + _P3) & _MASK
        at += 4
    for byte in data[at:]:
        found = _rotated(found ^ (byte * _P5 & _MASK), 11) * _P1 & _MASK
    found = (found ^ found >> 33) * _P2 & _MASK
    found = (found ^ found >> 29) * _P3 & _MASK
    return found ^ found >> 32


def _round(lane: int, word: int) -> int:
    return _rotated((lane + word * _P2) & _MASK, 31) * _P1 & _MASK


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> 64 - bits) & _MASK
