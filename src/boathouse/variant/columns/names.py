"""The metadata of a column: its distinct dictionaries, parsed together, and names looked up in all of them at once."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from boathouse.arrow.vector import classes, ragged
from boathouse.bits.unaligned import Bytes, Ints, Mask, integers, prefix, unsigned
from boathouse.errors import MalformedVariant
from boathouse.variant.columns.faults import Faults

T = TypeVar("T")

ABSENT = -1
SEVERAL = -2
_STEP = 1 << 13
_WRONG = (
    "",
    "the metadata is null or empty",
    "the metadata is of version {version}, this library reads version 1",
    "the metadata ends within its header",
    "the metadata counts more names than it has bytes for",
    "the names of the metadata end beyond its bytes",
    "the offsets of the metadata decrease",
)


class Dictionaries:
    """Distinct metadata `data[start:end]` and which of them each row has (`codes` int32; -1: its metadata is null).

    `distinct` is False where the search for repeats did not pay and every row has its own entry: row i entry i.
    """

    def __init__(
        self, data: Bytes, start: Ints, end: Ints, codes: npt.NDArray[np.int32], distinct: bool = True
    ) -> None:
        self.data, self.start, self.end, self.codes, self.distinct = data, start, end, codes, distinct
        # What is known about the dictionaries; shared by the objects that `with_codes` makes.
        self._known: dict[Any, Any] = {}

    def __len__(self) -> int:
        return len(self.start)

    def with_codes(self, codes: npt.NDArray[np.int32]) -> Dictionaries:
        """The same dictionaries for other rows; parsed parts are kept."""
        out = Dictionaries.__new__(Dictionaries)
        out.__dict__.update(self.__dict__)
        out.codes = codes
        out.distinct = True
        return out

    def slice(self, first: int, last: int) -> Dictionaries:
        """The dictionaries of the rows first to last (exclusive). Where each row has its own, only those are read."""
        codes = self.codes[first:last]
        if self.distinct:
            return self.with_codes(codes)
        own = np.where(codes >= 0, np.arange(len(codes), dtype=np.int32), np.int32(-1))
        return Dictionaries(self.data, self.start[first:last], self.end[first:last], own, distinct=False)

    def raw(self, code: int) -> bytes:
        """The bytes of one dictionary; b"" for code -1."""
        return b"" if code < 0 else self.data[self.start[code] : self.end[code]].tobytes()

    def _once(self, key: object, find: Callable[[], T]) -> T:
        if key not in self._known:
            self._known[key] = find()
        found: T = self._known[key]
        return found

    @property
    def _shape(self) -> tuple[Ints, Ints, Ints, Ints, npt.NDArray[np.int8]]:
        return self._once("shape", self._find_shape)

    def _find_shape(self) -> tuple[Ints, Ints, Ints, Ints, npt.NDArray[np.int8]]:
        """For each: width of its integers, number of names, where the offsets and the strings start, what is wrong
        (an index of _WRONG; 0: nothing; all numbers are 0 for a malformed one)."""
        room = self.end - self.start
        wrong = np.where(room > 0, 0, 1).astype(np.int8)
        header = np.full(len(self), 1, np.int64)
        header[wrong == 0] = self.data[self.start[wrong == 0]]
        wrong[(wrong == 0) & (header & 15 != 1)] = 2
        width = (header >> 6) + 1
        wrong[(wrong == 0) & (room < 1 + width)] = 3
        size = self._read(wrong, self.start + 1, width)
        offsets = self.start + 1 + width
        strings = offsets + (size + 1) * width
        wrong[(wrong == 0) & (strings > self.end)] = 4
        last = self._read(wrong, offsets + size * width, width)
        wrong[(wrong == 0) & (strings + last > self.end)] = 5
        size[wrong > 0] = 0
        return width, size, offsets, strings, wrong

    def _read(self, wrong: npt.NDArray[np.int8], pos: Ints, width: Ints) -> Ints:
        if not wrong.any():
            return unsigned(self.data, pos, width)
        out = np.zeros(len(wrong), np.int64)
        good = wrong == 0
        out[good] = unsigned(self.data, pos[good], width[good])
        return out

    @property
    def sizes(self) -> Ints:
        """The number of names in each; 0 for a malformed one."""
        return self._shape[1]

    @property
    def wrong(self) -> npt.NDArray[np.int8]:
        """0 for each that is well-formed (version, sizes, offsets that do not decrease), else why it is not."""
        return self._once("wrong", self._find_wrong)

    @property
    def sound(self) -> bool:
        """Whether all are well-formed."""
        return self._once("sound", lambda: not self.wrong.any())

    def _shapes(self) -> list[tuple[int, int, Ints]]:
        """The well-framed dictionaries that have names, by shape: (names, width of an integer, which); 0 names means
        rare shapes."""
        width, size, _, _, wrong = self._shape
        found: list[tuple[int, int, Ints]] = []
        for at in range(0, len(self), _STEP):
            part = slice(at, at + _STEP)
            keys = np.where(wrong[part] == 0, size[part] * 8 + width[part], 0)
            for key, rows in classes(keys):
                index = np.arange(at, min(at + _STEP, len(self)))[rows]
                if key is None:
                    index = index[size[index] > 0]
                    found.append((0, 0, index))
                elif key >> 3:
                    found.append((key >> 3, key & 7, index))
        return found

    def _find_wrong(self) -> npt.NDArray[np.int8]:
        width, size, offsets, _, found = self._shape
        wrong = found.copy()
        for count, unit, index in self._once("shapes", self._shapes):
            if count:
                table = integers(prefix(self.data, offsets[index], (count + 1) * unit), unit)
                falls = table[:, 1:] < table[:, :-1]
                if falls.any():
                    wrong[index[falls.any(axis=1)]] = 6
            else:
                owner, slot = ragged(size[index] + 1)
                w = width[index][owner]
                values = unsigned(self.data, offsets[index][owner] + slot * w, w)
                drops = (np.diff(values) < 0) & (owner[1:] == owner[:-1])
                wrong[index[owner[1:][drops]]] = 6
        return wrong

    def message(self, code: int) -> str:
        """What is wrong with one; "" if nothing is."""
        kind = 1 if code < 0 else int(self.wrong[code])
        return _WRONG[kind].format(version=int(self.data[self.start[code]]) & 15 if kind == 2 else 0)

    def check(self, row: Ints, faults: Faults) -> Mask | None:
        """Rows whose metadata is malformed: MalformedVariant for the first, or noted; None if there is none."""
        codes = self.codes[row]
        if self.sound and (not len(codes) or int(codes.min()) >= 0):
            return None
        ok = (codes >= 0) & (self.wrong[codes] == 0) if len(self) else np.zeros(len(row), np.bool_)
        first = int(np.argmin(ok)) if len(ok) else 0
        return faults.check(ok, row, np.zeros_like(row), self.message(int(codes[first]))) if len(ok) else None

    def ids(self, name: str) -> npt.NDArray[np.int32]:
        """The id of `name` in each dictionary: ABSENT, or SEVERAL if it occurs more than once (only without the sorted
        flag, or with a false one). The flag and the order are never relied on. Malformed ones: ABSENT."""
        try:
            key = name.encode()
        except UnicodeEncodeError:
            return np.full(len(self), ABSENT, np.int32)
        return self._once(key, lambda: self._look_up(key))

    def _look_up(self, name: bytes) -> npt.NDArray[np.int32]:
        out = np.full(len(self), ABSENT, np.int32)
        width, size, offsets, strings, _ = self._shape
        for count, unit, index in self._once("shapes", self._shapes):
            if count:
                table = integers(prefix(self.data, offsets[index], (count + 1) * unit), unit)
                fits = np.flatnonzero(table[:, 1:] - table[:, :-1] == len(name))
                owner = fits // count
                slot = fits - owner * count
                code = index[owner]
                start = table.ravel()[fits + owner] + strings[code]
            else:
                owner, slot = ragged(size[index])
                w = width[index][owner]
                low = unsigned(self.data, offsets[index][owner] + slot * w, w)
                high = unsigned(self.data, offsets[index][owner] + (slot + 1) * w, w)
                fits = np.flatnonzero(high - low == len(name))
                code, slot = index[owner[fits]], slot[fits]
                start = low[fits] + strings[code]
            self._match(out, name, code, slot, start)
        if not self.sound:
            out[self.wrong > 0] = ABSENT
        return out

    def _match(self, out: npt.NDArray[np.int32], name: bytes, code: Ints, slot: Ints, pos: Ints) -> None:
        """Of the strings as long as `name` at `pos`, those that equal it; `code` ascends."""
        for at in range(0, len(name), 8):
            # Eight bytes at a time: most others differ in the first.
            piece = name[at : at + 8]
            words = prefix(self.data, pos + at, 8).view("<u8")[:, 0]
            same = words & np.uint64((1 << 8 * len(piece)) - 1) == np.uint64(int.from_bytes(piece, "little"))
            if not same.all():
                code, slot, pos = code[same], slot[same], pos[same]
        out[code] = slot
        again = code[1:] == code[:-1]
        if again.any():
            out[code[1:][again]] = SEVERAL

    def places(self, code: int, name: str) -> Ints:
        """All ids of `name` in one well-formed dictionary, ascending; in time linear in its size."""
        return self._once((code, name), lambda: self._find_places(code, name.encode()))

    def _find_places(self, code: int, name: bytes) -> Ints:
        width, _, offsets, strings, _ = (int(part[code]) for part in self._shape)
        edges = integers(self.data[offsets:strings].reshape(1, -1), width)[0].astype(np.int64)
        fits = np.flatnonzero(np.diff(edges) == len(name))
        same = prefix(self.data, strings + edges[fits], len(name)) == np.frombuffer(name, np.uint8)
        return fits[same.all(axis=1)]

    def spans(self, codes: Ints) -> tuple[Ints, Ints, Ints]:
        """Where the names of the dictionaries `codes` start and end in `data`, one dictionary after another, and how
        many each has. They must be well-formed."""
        width, size, offsets, strings = (part[codes] for part in self._shape[:4])
        owner, slot = ragged(size)
        width = width[owner]
        at = offsets[owner] + slot * width
        base = strings[owner]
        return base + unsigned(self.data, at, width), base + unsigned(self.data, at + width, width), size

    def names(self, code: int) -> tuple[str, ...]:
        """All names of one dictionary, by id. MalformedVariant (also where a name is not UTF-8)."""
        if message := self.message(code):
            raise MalformedVariant(message, offset=0)
        width, size, offsets, strings, _ = (int(part[code]) for part in self._shape)
        raw = self.data[offsets:strings].reshape(1, -1)
        ends = integers(raw, width)[0].tolist()
        text = self.data[strings : strings + ends[size]].tobytes()
        try:
            return tuple(text[a:b].decode() for a, b in pairwise(ends))
        except UnicodeDecodeError as error:
            offset = strings - int(self.start[code])
            raise MalformedVariant("a name of the metadata is not UTF-8", offset=offset) from error
