"""Near-identical dictionaries: those that share header, count and offsets with a template are read together.

Nothing is assumed about a dictionary: its header and its complete offsets are compared with those of the template
(`_Model`), and names are compared in the bytes of each dictionary. Dictionaries without a template are left to
`names.Dictionaries`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from boathouse.variant.columns.gather import Bools, Bytes, Ints, prefix
from boathouse.variant.columns.unaligned import window

Rows: TypeAlias = Ints | slice
Words: TypeAlias = npt.NDArray[np.uint64]

ABSENT = -1
SEVERAL = -2
# The longest dictionary that becomes a template, and the longest header with offsets; short names are compared too.
_SIZE = 8192
_HEAD = 1024
_NAMES = 4096
# Dictionaries that are compared in one numpy call, so that its loops are long.
_SIDE = 32
_MODELS = 16
# A template that fewer dictionaries of a window, or a smaller share of them, match does not pay.
_LEAST = 64
_SHARE = 32
# How many searches for templates may fail in one window, and for how many windows at most the search then pauses.
_FAILURES = 4
_REST = 31


class Model:
    """A well-formed dictionary. `edges` are where its names start and end, in bytes from its start, starting with the
    end of its offsets; `slots` the ids by length of name.

    `common` has 255 for each byte in which all dictionaries seen so far equal the template, else 0; in whole words of
    eight bytes (as `words`). Header and offsets are always among them.
    """

    def __init__(self, raw: bytes, edges: Sequence[int]) -> None:
        self.head, self.size = edges[0], edges[-1]
        self.edges = tuple(edges)
        self.names = tuple(raw[low:high] for low, high in pairwise(edges))
        self.slots: dict[int, list[int]] = {}
        for slot, name in enumerate(self.names):
            self.slots.setdefault(len(name), []).append(slot)
        self.words = np.frombuffer(raw[: self.size] + bytes(-self.size % 8), "<u8")
        self._tiles: dict[int, Words] = {}
        # Header, count and first offsets, and the last offsets: they distinguish most dictionaries.
        last = (self.head - 1) // 8 * 8
        self.keys = tuple(
            (at // 8, np.uint64((1 << 8 * (stop - at)) - 1), np.uint64(int.from_bytes(raw[at:stop], "little")))
            for at, stop in ((0, min(8, self.head)), (last, self.head))
        )
        self.common = _whole(b"\xff" * (self.size if self.size - self.head <= _NAMES else self.head))

    def side_by_side(self, width: int) -> Words:
        """The first `width` bytes, _SIDE times."""
        if width not in self._tiles:
            self._tiles[width] = np.tile(self.words[: width // 8], _SIDE)
        return self._tiles[width]

    @staticmethod
    def of(raw: bytes) -> Model | None:
        """The template from one dictionary and what may follow it; None if it is malformed, too long, or begins with a
        gap."""
        width = (raw[0] >> 6) + 1 if raw else 0
        if not raw or raw[0] & 15 != 1 or len(raw) < 1 + width:
            return None
        count = int.from_bytes(raw[1 : 1 + width], "little")
        head = 1 + width + (count + 1) * width
        if head > _HEAD or head > len(raw):
            return None
        edges = [head + int.from_bytes(raw[at : at + width], "little") for at in range(1 + width, head, width)]
        if edges[0] != head or edges[-1] > len(raw) or any(low > high for low, high in pairwise(edges)):
            return None
        return Model(raw, edges)


def _whole(mask: bytes) -> bytes:
    """In whole words, without trailing empty ones."""
    mask = mask.rstrip(b"\0")
    return mask + bytes(-len(mask) % 8)


@dataclass
class Models:
    """The templates found so far, to be tried on the next window of the same column.

    After a window without any, the next `rest` windows are not searched; `last_rest` is the previous such number.
    """

    known: list[Model] = field(default_factory=list)
    rest: int = 0
    last_rest: int = 0


class Group:
    """The dictionaries `rows` of a window, at `start` in `data`, all with the header and offsets of `model`, and with
    its bytes where `common` is 255."""

    def __init__(self, data: Bytes, model: Model, rows: Rows, start: Ints, common: bytes) -> None:
        self.data, self.model, self.rows, self.start, self.common = data, model, rows, start, common

    def ids(self, name: bytes) -> int | npt.NDArray[np.int32]:
        """The id of `name`, one for all or one each; see `Dictionaries.ids`."""
        found: int | npt.NDArray[np.int32] = ABSENT
        for slot in self.model.slots.get(len(name), ()):
            low, high = self.model.edges[slot : slot + 2]
            known = high <= len(self.common) and b"\0" not in self.common[low:high]
            if known and self.model.names[slot] != name:
                continue
            hit = None if known else equal(self.data, self.start + low, name)
            if hit is not None and not hit.any():
                continue
            if isinstance(found, int):
                if found == ABSENT and (hit is None or hit.all()):
                    found = slot
                    continue
                found = np.full(len(self.start), found, np.int32)
            fresh = np.where(found == ABSENT, np.int32(slot), np.int32(SEVERAL))
            found = fresh if hit is None else np.where(hit, fresh, found)
        return found


def equal(data: Bytes, at: Ints, name: bytes) -> Bools:
    """Where the bytes at `at` equal `name`; there must be enough bytes."""
    same = np.ones(len(at), np.bool_)
    for low in range(0, len(name), 8):
        piece = name[low : low + 8]
        if len(piece) in (1, 2, 4, 8):
            kind = f"<u{len(piece)}"
            hit = window(data, kind)[at + low if low else at] == np.frombuffer(piece, kind)[0]
        else:
            words = prefix(data, at + low if low else at, 8).view("<u8")[:, 0]
            words &= np.uint64((1 << 8 * len(piece)) - 1)
            hit = words == np.uint64(int.from_bytes(piece, "little"))
        same &= hit
        if not same.any():
            break
    return same


def group(data: Bytes, start: Ints, end: Ints, models: Models) -> tuple[list[Group], Ints]:
    """The dictionaries `data[start:end]` by template, and those without one. New templates are added to `models`."""
    if models.rest:
        models.rest -= 1
        return [], np.arange(len(start))
    search = _Search(data, start, end)
    least = max(_LEAST, len(start) // _SHARE)
    search.words(max((len(model.common) for model in models.known), default=0))
    models.known = [model for model in models.known if search.take(model, min(least, len(start)))]
    failures = 0
    while search.remain >= least and failures < _FAILURES and len(models.known) < _MODELS:
        model = search.candidate(failures / _FAILURES)
        if model is not None and search.take(model, least):
            models.known = [*models.known, model]
        else:
            failures += 1
    models.last_rest = 0 if search.groups else min(2 * models.last_rest + 1, _REST)
    models.rest = models.last_rest
    return search.groups, np.flatnonzero(search.left)


class _Search:
    """The dictionaries of one window: those in `left` have no group yet."""

    def __init__(self, data: Bytes, start: Ints, end: Ints) -> None:
        self.data, self.start, self.end = data, start, end
        self.room = end - start
        self.left = np.ones(len(start), np.bool_)
        self.remain = len(start)
        self.groups: list[Group] = []
        # The first bytes of each in words, as many as the longest template so far needs; and columns of that.
        self._block: Words = np.zeros((len(start), 0), np.uint64)
        self._columns: dict[int, Words] = {}

    def words(self, width: int) -> Words:
        """At least the first `width` bytes of each."""
        if self._block.shape[1] * 8 < width:
            self._block = prefix(self.data, self.start, width).view("<u8")
        return self._block

    def column(self, at: int) -> Words:
        """The word `at` of each."""
        if at not in self._columns:
            self._columns[at] = self._block[:, at].copy()
        return self._columns[at]

    def candidate(self, place: float) -> Model | None:
        """A template from one of those that are left: the first for place 0, the last for place 1."""
        row = np.flatnonzero(self.left)[int(place * self.remain)]
        start = self.start[row]
        return Model.of(self.data[start : min(start + _SIZE, self.end[row])].tobytes())

    def take(self, model: Model, least: int) -> bool:
        """Makes a group of those that match the template, if there are enough of them."""
        self.words(len(model.common))
        (first, first_mask, first_key), (last, last_mask, last_key) = model.keys
        hit = self.column(last) & last_mask == last_key
        hit &= self.column(first) & first_mask == first_key
        rows = np.flatnonzero(hit)
        if len(rows) < least:
            return False
        if int(self.room[rows].min()) < model.size:
            rows = rows[self.room[rows] >= model.size]
        rows, common = self._compared(model, rows)
        if len(rows) < max(least, 1):
            return False
        self.remain -= len(rows)
        self.left[rows] = False
        whole = len(rows) == len(self.left)
        start = self.start if whole else self.start[rows]
        self.groups.append(Group(self.data, model, slice(None) if whole else rows, start, common))
        return True

    def _compared(self, model: Model, rows: Ints) -> tuple[Ints, bytes]:
        """Those of `rows` with the header and offsets of the template, and which bytes they have in common with it."""
        common = model.common
        mask = np.frombuffer(common, np.uint8)
        differ, block = self._differences(model, rows, len(common))
        differ &= mask
        if differ[: model.head].any():
            rows = rows[~block[: len(rows), : model.head].any(axis=1)]
            if not len(rows):
                return rows, common
            differ = self._differences(model, rows, len(common))[0] & mask
        if differ.any():
            common = model.common = _whole(np.where(differ, np.uint8(0), mask).tobytes())
        return rows, common

    def _differences(self, model: Model, rows: Ints, width: int) -> tuple[Bytes, Bytes]:
        """The bits of each byte in which any of `rows` differs from the template, and those of each row."""
        if len(rows) % _SIDE:
            rows = np.concatenate([rows, np.full(-len(rows) % _SIDE, rows[0])])
        words = self.words(width)
        first = np.ndarray(len(words), f"V{width}", words, 0, words.strides[:1])
        block: Words = first[rows].view("<u8").reshape(-1, _SIDE * width // 8)
        block ^= model.side_by_side(width)
        differ = np.bitwise_or.reduce(np.bitwise_or.reduce(block, axis=0).reshape(_SIDE, -1), axis=0)
        return differ.view(np.uint8), block.view(np.uint8).reshape(-1, width)
