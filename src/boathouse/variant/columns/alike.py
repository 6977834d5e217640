"""Dictionaries that differ in little: those that share header, count and offsets with a model are read as one.

Nothing is assumed of a dictionary: its header and its whole table of offsets are compared with those of the model, and
names are compared in the bytes of every single dictionary. What has no model is left to `names.Dictionaries`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from boathouse.variant.columns.gather import Bools, Bytes, Ints, prefix, view

Rows: TypeAlias = Ints | slice
Words: TypeAlias = npt.NDArray[np.uint64]

ABSENT = -1
SEVERAL = -2
# Header and offsets of a model, in words of eight bytes; longer ones are not worth a comparison as a whole.
_WORDS = 16
# Bytes of names that are compared as a whole.
_NAMES = 512
_MODELS = 16
# A model with fewer dictionaries among those of one window does not pay.
_LEAST = 64
_FAILURES = 4


class Model:
    """A well-formed dictionary: header and offsets as `words`, of which the last counts under `last`; `edges` are where
    its names start and end, in bytes from its start, and `slots` the ids by length of name.

    `common`: 255 for each byte that the dictionaries met so far agreed in, else 0; from its start, in whole words.
    """

    def __init__(self, raw: bytes, head: int, edges: Sequence[int]) -> None:
        self.words = tuple(np.uint64(int.from_bytes(raw[at : min(at + 8, head)], "little")) for at in range(0, head, 8))
        self.last = np.uint64((1 << 8 * ((head - 1) % 8 + 1)) - 1)
        self.edges = tuple(edges)
        self.size = edges[-1]
        self.names = tuple(raw[low:high] for low, high in pairwise(edges))
        self.slots: dict[int, list[int]] = {}
        for slot, name in enumerate(self.names):
            self.slots.setdefault(len(name), []).append(slot)
        blank = bytes(-self.size % 8)
        self.bytes = np.frombuffer(raw[: self.size] + blank, "<u8")
        self.common = b"\xff" * self.size + blank if self.size - head <= _NAMES else bytes(self.size + len(blank))

    @staticmethod
    def of(raw: bytes) -> Model | None:
        """That of one dictionary and what may follow it; None if it is malformed, or too long."""
        width = (raw[0] >> 6) + 1 if raw else 0
        if not raw or raw[0] & 15 != 1 or len(raw) < 1 + width:
            return None
        count = int.from_bytes(raw[1 : 1 + width], "little")
        head = 1 + width + (count + 1) * width
        if head > 8 * _WORDS or head > len(raw):
            return None
        edges = [head + int.from_bytes(raw[at : at + width], "little") for at in range(1 + width, head, width)]
        if edges[-1] > len(raw) or any(low > high for low, high in pairwise(edges)):
            return None
        return Model(raw, head, edges)


@dataclass
class Models:
    """The models that were met so far, to be tried on the next window of the same column."""

    known: list[Model] = field(default_factory=list)


class Group:
    """The dictionaries `rows` of a window, at `start` in `data`, all with header and offsets of `model`."""

    def __init__(self, data: Bytes, model: Model, rows: Rows, start: Ints) -> None:
        self.data, self.model, self.rows, self.start = data, model, rows, start

    @cached_property
    def common(self) -> bytes:
        """255 for each byte that all have as the model has it; 0 for others, and for some that they do have so."""
        common = self.model.common
        if b"\xff" not in common:
            return common
        mask = np.frombuffer(common, "<u8")
        block: Words = prefix(self.data, self.start, len(common)).view("<u8")
        block ^= self.model.bytes
        block &= mask
        if np.bitwise_or.reduce(block, axis=None):
            differ = np.bitwise_or.reduce(block, axis=0).view(np.uint8) != 0
            common = self.model.common = np.where(differ, np.uint8(0), mask.view(np.uint8)).tobytes()
        return common

    def ids(self, name: bytes) -> int | npt.NDArray[np.int32]:
        """The id of `name`, one for all or one each; see `Dictionaries.ids`."""
        found: int | npt.NDArray[np.int32] = ABSENT
        for slot in self.model.slots.get(len(name), ()):
            low, high = self.model.edges[slot : slot + 2]
            known = b"\0" not in self.common[low:high]
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
    """Where the bytes at `at` are those of `name`. There must be as many bytes."""
    same = np.ones(len(at), np.bool_)
    for low in range(0, len(name), 8):
        piece = name[low : low + 8]
        if len(piece) in (1, 2, 4, 8):
            kind = f"<u{len(piece)}"
            hit = view(data, kind)[at + low if low else at] == np.frombuffer(piece, kind)[0]
        else:
            words = prefix(data, at + low if low else at, 8).view("<u8")[:, 0]
            words &= np.uint64((1 << 8 * len(piece)) - 1)
            hit = words == np.uint64(int.from_bytes(piece, "little"))
        same &= hit
        if not same.any():
            break
    return same


def group(data: Bytes, start: Ints, end: Ints, models: Models) -> tuple[list[Group], Ints]:
    """The dictionaries `data[start:end]` by model, and which have none. `models` learns from them."""
    search = _Search(data, start, end)
    models.known = [model for model in models.known if search.take(model, 1)]
    failures = 0
    while search.remain >= _LEAST and failures < _FAILURES and len(models.known) < _MODELS:
        model = search.candidate(failures / _FAILURES)
        if model is not None and search.take(model, _LEAST):
            models.known = [*models.known, model]
        else:
            failures += 1
    return search.groups, np.flatnonzero(search.left)


class _Search:
    """The dictionaries of one window: those that are `left` have no group yet."""

    def __init__(self, data: Bytes, start: Ints, end: Ints) -> None:
        self.data, self.start, self.end = data, start, end
        self.room = end - start
        self.left = np.ones(len(start), np.bool_)
        self.remain = len(start)
        self.groups: list[Group] = []
        # Header and offsets, word by word: as many as the longest model yet has.
        self._words: list[npt.NDArray[np.uint64]] = []

    def candidate(self, place: float) -> Model | None:
        """One of those that are left, as a model: the first for place 0, towards the last for 1."""
        row = np.flatnonzero(self.left)[int(place * self.remain)]
        return Model.of(self.data[self.start[row] : self.end[row]].tobytes())

    def take(self, model: Model, least: int) -> bool:
        """Makes a group of those that are as the model, if they are at least so many."""
        same = self._same(model)
        rows = np.flatnonzero(same)
        if len(rows) < least:
            return False
        self.remain -= len(rows)
        self.left ^= same
        if len(rows) == len(same):
            self.groups.append(Group(self.data, model, slice(None), self.start))
        else:
            self.groups.append(Group(self.data, model, rows, self.start[rows]))
        return True

    def _same(self, model: Model) -> Bools:
        """Where header and offsets are those of the model, and the names have room."""
        if len(self._words) < len(model.words):
            block = prefix(self.data, self.start, 8 * len(model.words)).view("<u8")
            self._words = list(np.ascontiguousarray(block.T))
        last = len(model.words) - 1
        same: Bools = (self._words[last] & model.last) == model.words[last]
        for j in range(last):
            same &= self._words[j] == model.words[j]
        same &= self.room >= model.size
        same &= self.left
        return same
