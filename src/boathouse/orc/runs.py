"""The run lengths of ORC's unsigned integers, in both of its versions; some writers put negative numbers there, as 64
bits."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
_WIDTHS: Final = (*range(1, 25), 26, 28, 30, 32, 40, 48, 56, 64)
_MOST_SHIFTS: Final = 63
_ALL: Final = (1 << 64) - 1


def unsigned(data: bytes, count: int, *, first_version: bool) -> Ints:
    """`count` numbers. Raises ValueError or IndexError for other data."""
    runs = _Runs(data)
    parts: list[Ints] = []
    left = count
    while left > 0:
        parts.append(runs.literal() if first_version else runs.next())
        left -= len(parts[-1])
    if left:
        raise ValueError(f"{count - left} numbers where {count} are expected")
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _signed(bits: int) -> int:
    bits &= _ALL
    return bits - (1 << 64) if bits >> 63 else bits


class _Runs:
    """Runs one after another, from the first byte on."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def literal(self) -> Ints:
        """A run of version 1: numbers that differ by the same delta, or each by itself."""
        head = self._byte()
        if head >= 128:
            return np.array([self._varint() for _ in range(256 - head)], np.int64)
        delta = self._byte()
        delta -= 256 * (delta >= 128)
        base = self._varint()
        return base + delta * np.arange(head + 3, dtype=np.int64)

    def next(self) -> Ints:
        """A run of version 2."""
        head = self._byte()
        match head >> 6:
            case 0:
                return np.full((head & 7) + 3, _signed(self._big((head >> 3 & 7) + 1)), np.int64)
            case 1:
                length = self._length(head)
                return self._packed(length, _WIDTHS[head >> 1 & 31])
            case 2:
                return self._patched(head)
        return self._deltas(head)

    def _patched(self, head: int) -> Ints:
        """Packed numbers above a base; the high bits of some follow, each with the distance from the one before."""
        length = self._length(head)
        width, third, fourth = _WIDTHS[head >> 1 & 31], self._byte(), self._byte()
        size = (third >> 5) + 1
        base, sign = self._big(size), 1 << (8 * size - 1)
        base = sign - base if base & sign else base
        found = self._packed(length, width)
        wide, gap = _WIDTHS[third & 31], (fourth >> 5) + 1
        patches = self._packed(fourth & 31, next(w for w in _WIDTHS if w >= wide + gap))
        at = 0
        for patch in patches.tolist():
            at += patch >> wide
            found[at] |= (patch & ((1 << wide) - 1)) << width
        return found + base

    def _deltas(self, head: int) -> Ints:
        code, length = head >> 1 & 31, self._length(head)
        base, first = self._varint(), self._varint() & _ALL
        first = (first >> 1) ^ -(first & 1)
        steps = np.full(length - 1, first, np.int64)
        if code:
            steps[1:] = self._packed(length - 2, _WIDTHS[code]) * (-1 if first < 0 else 1)
        return np.concatenate(([base], base + np.cumsum(steps)))

    def _length(self, head: int) -> int:
        return ((head & 1) << 8 | self._byte()) + 1

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _big(self, size: int) -> int:
        self._at += size
        return int.from_bytes(self._data[self._at - size : self._at], "big")

    def _varint(self) -> int:
        found = shift = 0
        while shift <= _MOST_SHIFTS:
            byte = self._byte()
            found |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return _signed(found)
        raise ValueError("a number of more than 64 bits")

    def _packed(self, count: int, width: int) -> Ints:
        """Numbers of `width` bits, the highest bit first; the last byte is filled up."""
        size = -(-count * width // 8)
        raw = np.frombuffer(self._data, np.uint8, size, self._at)
        self._at += size
        bits = np.unpackbits(raw)[: count * width].reshape(count, width)
        found = np.zeros(count, np.int64)
        for i in range(width):
            found = found << 1 | bits[:, i]
        return found


_BYTES: Final = {1: 7, 2: 15, 3: 23, 4: 27, 5: 28, 6: 29, 7: 30, 8: 31}
"""The codes of widths of whole bytes."""
_LONGEST: Final = 512


def direct(numbers: npt.NDArray[np.uint64]) -> bytes:
    """The numbers in runs of version 2, none of them shorter than its bytes; signed ones are zigzag already."""
    width = max(1, (int(numbers.max(initial=0)).bit_length() + 7) // 8)
    raw = numbers.astype(">u8").view(np.uint8).reshape(-1, 8)[:, 8 - width :]
    parts = []
    for start in range(0, len(numbers), _LONGEST):
        run = raw[start : start + _LONGEST]
        parts += [bytes((0x40 | _BYTES[width] << 1 | (len(run) - 1) >> 8, (len(run) - 1) & 255)), run.tobytes()]
    return b"".join(parts)
