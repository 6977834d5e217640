"""Sets of row positions, and their portable serialisation (RoaringFormatSpec, 32-bit and 64-bit).

A `Bitmap` is a sorted array of int64: fast at the sizes of tables (up to tens of millions of deleted rows), whatever
the distribution. The container structure exists in the serialised form only.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from boathouse.errors import CorruptTableError, InvalidArgumentError, UnsupportedFeatureError

Positions = npt.NDArray[np.int64]

COOKIE = 0x303A
"""First word of a stream without run containers."""
COOKIE_RUNS = 0x303B
"""Low half of the first word of a stream with run containers."""
ARRAY_MAX = 4096
"""The most values that an array container holds."""
MAX_CARDINALITY = 1 << 28
"""The most positions that one bitmap may hold (2 GiB): a few run containers could require any amount of memory."""

_BITMAP_BYTES = 8192
_NO_OFFSETS_BELOW = 4
_EMPTY = np.empty(0, np.int64)
_EMPTY.flags.writeable = False


class Bitmap:
    """An immutable set of row positions, 0 <= position < 2**63."""

    __slots__ = ("_values",)

    def __init__(self, sorted_unique: Positions) -> None:
        self._values = sorted_unique
        self._values.flags.writeable = False

    @classmethod
    def of(cls, positions: Iterable[int] | npt.NDArray[Any]) -> Bitmap:
        """The set of `positions`, in any order, repeats allowed. Raises InvalidArgumentError below 0."""
        values = positions if isinstance(positions, np.ndarray) else np.fromiter(positions, np.int64)
        values = values.astype(np.int64)
        if len(values) > 1 and not bool(np.all(values[1:] > values[:-1])):
            values.sort()
            values = _distinct(values)
        if len(values) and int(values[0]) < 0:
            raise InvalidArgumentError(
                f"row position {int(values[0])} is negative", advice="give positions of 0 or more"
            )
        return cls(values)

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, position: int) -> bool:
        i = int(np.searchsorted(self._values, position))
        return i < len(self._values) and int(self._values[i]) == position

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bitmap) and np.array_equal(self._values, other._values)

    def __hash__(self) -> int:
        return hash(self._values.tobytes())

    def __repr__(self) -> str:
        head = ", ".join(str(v) for v in self._values[:8])
        return f"Bitmap({len(self)}: {head}{', ...' if len(self) > 8 else ''})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (deserialize64, (serialize64(self),))

    def __or__(self, other: Bitmap) -> Bitmap:
        if not len(other):
            return self
        if not len(self):
            return other
        both = np.concatenate((self._values, other._values))
        both.sort(kind="stable")  # two sorted runs: a single merge
        return Bitmap(_distinct(both))

    def __and__(self, other: Bitmap) -> Bitmap:
        return Bitmap(self._values[self._found_in(other)])

    def __sub__(self, other: Bitmap) -> Bitmap:
        return Bitmap(self._values[~self._found_in(other)])

    def _found_in(self, other: Bitmap) -> npt.NDArray[np.bool_]:
        if not len(other):
            return np.zeros(len(self), bool)
        at = np.searchsorted(other._values, self._values)
        at[at == len(other)] = 0
        found: npt.NDArray[np.bool_] = other._values[at] == self._values
        return found

    def positions(self) -> Positions:
        """The positions in ascending order, read-only."""
        return self._values

    def within(self, start: int, length: int) -> Positions:
        """The positions p with start <= p < start + length, counted from `start`."""
        lo, hi = np.searchsorted(self._values, (start, start + length))
        out: Positions = self._values[lo:hi] - start
        return out

    def mask(self, start: int, length: int) -> npt.NDArray[np.bool_]:
        """`length` booleans for the rows from `start` on; True = in the set."""
        out = np.zeros(length, bool)
        out[self.within(start, length)] = True
        return out

    def words(self, start: int, length: int) -> Positions:
        """The mask as 64-bit words, row `start + 64 * i + j` at bit j of word i, for Spark's `bit_get`."""
        bits = np.packbits(self.mask(start, -(-length // 64) * 64 if length else 0), bitorder="little")
        if length % 64 and len(bits):
            last = bits[-8:].view("<u8")
            last &= np.uint64((1 << (length % 64)) - 1)
        return bits.view("<i8").astype(np.int64)


EMPTY = Bitmap(_EMPTY)


def _distinct(ordered: Positions) -> Positions:
    keep = np.empty(len(ordered), bool)
    keep[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=keep[1:])
    return ordered[keep]


def serialize32(bitmap: Bitmap, *, runs: bool = True) -> bytes:
    """The portable 32-bit format; run containers where they are smaller, unless `runs` is False.

    Raises InvalidArgumentError for a position of 2**32 or more.
    """
    values = bitmap.positions()
    if len(values) and int(values[-1]) >> 32:
        raise InvalidArgumentError(f"position {int(values[-1])} does not fit 32 bits", advice="use serialize64")
    return _write32(values, runs)


def serialize64(bitmap: Bitmap, *, runs: bool = True) -> bytes:
    """The portable 64-bit format: u64 count, then for every high half its u32 key and a 32-bit bitmap."""
    values = bitmap.positions()
    starts, keys = _groups(values >> 32)
    out = [struct.pack("<Q", len(keys))]
    for key, lo, hi in zip(keys.tolist(), starts[:-1].tolist(), starts[1:].tolist()):
        out += [struct.pack("<I", key), _write32(values[lo:hi] & 0xFFFFFFFF, runs)]
    return b"".join(out)


def _groups(keys: Positions) -> tuple[Positions, Positions]:
    """Where each run of equal `keys` starts (with the end appended), and its key."""
    if not len(keys):
        return np.zeros(1, np.int64), _EMPTY
    starts = np.concatenate(([0], np.flatnonzero(keys[1:] != keys[:-1]) + 1, [len(keys)])).astype(np.int64)
    return starts, keys[starts[:-1]]


def _write32(values: Positions, runs: bool) -> bytes:
    starts, keys = _groups(values >> 16)
    low = (values & 0xFFFF).astype("<u2")
    bodies: list[bytes] = []
    is_run = np.zeros(len(keys), bool)
    for i, (lo, hi) in enumerate(zip(starts[:-1].tolist(), starts[1:].tolist())):
        body, is_run[i] = _write_container(low[lo:hi], runs)
        bodies.append(body)
    head = np.empty((len(keys), 2), "<u2")
    head[:, 0], head[:, 1] = keys, np.diff(starts) - 1
    if is_run.any():
        start = struct.pack("<I", COOKIE_RUNS | (len(keys) - 1) << 16)
        start += np.packbits(is_run, bitorder="little").tobytes() + head.tobytes()
    else:
        start = struct.pack("<II", COOKIE, len(keys)) + head.tobytes()
    if not is_run.any() or len(keys) >= _NO_OFFSETS_BELOW:
        sizes = np.array([0, *(len(b) for b in bodies)], np.int64)
        start += (np.cumsum(sizes)[:-1] + len(start) + 4 * len(keys)).astype("<u4").tobytes()
    return b"".join((start, *bodies))


def _write_container(low: npt.NDArray[np.uint16], runs: bool) -> tuple[bytes, bool]:
    n = len(low)
    if runs:
        breaks = np.flatnonzero(np.diff(low) != 1)
        if 2 + 4 * (len(breaks) + 1) < min(2 * n, _BITMAP_BYTES):
            first = low[np.concatenate(([0], breaks + 1))]
            last = low[np.concatenate((breaks, [n - 1]))]
            pairs = np.stack((first, last - first), axis=1).astype("<u2")
            return struct.pack("<H", len(pairs)) + pairs.tobytes(), True
    if n <= ARRAY_MAX:
        return low.tobytes(), False
    bits = np.zeros(1 << 16, bool)
    bits[low] = True
    return np.packbits(bits, bitorder="little").tobytes(), False


def deserialize32(data: bytes | memoryview, *, where: str | None = None) -> Bitmap:
    """The set in portable 32-bit `data`, which must contain nothing else.

    Raises CorruptTableError where the bytes violate the format, UnsupportedFeatureError above MAX_CARDINALITY.
    """
    reader = _Reader(memoryview(data).cast("B"), where)
    parts = reader.bitmap32(0)
    reader.end()
    return Bitmap(np.concatenate(parts)) if parts else EMPTY


def deserialize64(data: bytes | memoryview, *, where: str | None = None) -> Bitmap:
    """The set in portable 64-bit `data`, which must contain nothing else; errors as for `deserialize32`."""
    reader = _Reader(memoryview(data).cast("B"), where)
    count = reader.u64()
    parts: list[Positions] = []
    previous = -1
    for _ in range(count):
        key = reader.u32()
        if key <= previous or key >> 31:
            raise reader.corrupt(f"high half {key} after {previous}")
        previous = key
        parts += reader.bitmap32(key << 32)
    reader.end()
    return Bitmap(np.concatenate(parts)) if parts else EMPTY


class _Reader:
    """A cursor over untrusted bytes."""

    def __init__(self, data: memoryview, where: str | None) -> None:
        self.data, self.where, self.at, self.total = data, where, 0, 0

    def corrupt(self, found: str) -> CorruptTableError:
        return CorruptTableError(f"corrupt roaring bitmap at byte {self.at}: {found}", where=self.where)

    def take(self, size: int) -> memoryview:
        end = self.at + size
        if end > len(self.data):
            raise self.corrupt(f"{size} bytes wanted, {len(self.data) - self.at} left")
        out, self.at = self.data[self.at : end], end
        return out

    def u16s(self, count: int) -> npt.NDArray[np.uint16]:
        return np.frombuffer(self.take(2 * count), "<u2")

    def u32(self) -> int:
        return int.from_bytes(self.take(4), "little")

    def u64(self) -> int:
        return int.from_bytes(self.take(8), "little")

    def end(self) -> None:
        if self.at != len(self.data):
            raise self.corrupt(f"{len(self.data) - self.at} bytes after the end")

    def bitmap32(self, base: int) -> list[Positions]:
        """The containers of one 32-bit bitmap, each value raised by `base`."""
        start = self.at
        size, is_run = self._cookie()
        head = self.u16s(2 * size).astype(np.int64).reshape(size, 2)
        keys, cards = head[:, 0], head[:, 1] + 1
        if np.any(keys[1:] <= keys[:-1]):
            raise self.corrupt("container keys do not ascend")
        self.total += int(cards.sum())
        if self.total > MAX_CARDINALITY:
            raise UnsupportedFeatureError(
                f"a bitmap of {self.total} positions; at most {MAX_CARDINALITY} are supported", where=self.where
            )
        offsets = None
        if is_run is None or size >= _NO_OFFSETS_BELOW:
            offsets = np.frombuffer(self.take(4 * size), "<u4").tolist()
        out: list[Positions] = []
        for i, (key, card) in enumerate(zip(keys.tolist(), cards.tolist())):
            if offsets is not None and offsets[i] != self.at - start:
                raise self.corrupt(f"container {i} is at {self.at - start}, its header says {offsets[i]}")
            low = self._run(card) if is_run is not None and is_run[i] else self._plain(card)
            out.append(low + (base | key << 16))
        return out

    def _cookie(self) -> tuple[int, npt.NDArray[np.uint8] | None]:
        cookie = self.u32()
        if cookie & 0xFFFF == COOKIE_RUNS:
            size = (cookie >> 16) + 1
            flags = np.frombuffer(self.take((size + 7) // 8), np.uint8)
            return size, np.unpackbits(flags, bitorder="little")[:size]
        if cookie != COOKIE:
            raise self.corrupt(f"first word {cookie:#x}, expected {COOKIE:#x} or {COOKIE_RUNS:#x}")
        size = self.u32()
        if size > 1 << 16:
            raise self.corrupt(f"{size} containers")
        return size, None

    def _plain(self, card: int) -> Positions:
        if card <= ARRAY_MAX:
            low: Positions = self.u16s(card).astype(np.int64)
            if np.any(low[1:] <= low[:-1]):
                raise self.corrupt("an array container does not ascend")
            return low
        bits = np.unpackbits(np.frombuffer(self.take(_BITMAP_BYTES), np.uint8), bitorder="little")
        low = np.flatnonzero(bits)
        if len(low) != card:
            raise self.corrupt(f"a bitmap container has {len(low)} bits, its header says {card}")
        return low

    def _run(self, card: int) -> Positions:
        pairs = self.u16s(2 * int(self.u16s(1)[0])).astype(np.int64).reshape(-1, 2)
        first, last = pairs[:, 0], pairs[:, 0] + pairs[:, 1]
        if np.any(first[1:] <= last[:-1]) or (len(last) and int(last[-1]) > 0xFFFF):
            raise self.corrupt("runs overlap, descend or leave the container")
        sizes = pairs[:, 1] + 1
        if int(sizes.sum()) != card:
            raise self.corrupt(f"runs hold {int(sizes.sum())} values, the header says {card}")
        skipped = np.repeat(first - np.concatenate(([0], np.cumsum(sizes)[:-1])), sizes)
        out: Positions = np.arange(card, dtype=np.int64) + skipped
        return out
