"""Decodes many Avro records together: a vector of places, one for each record, steps over the same field at once.

An Avro record has no index: where a field begins shows only after everything before it is read. A vector of places
makes each such step one numpy operation for many records. A step notes the places of the fields that are wanted; their
values are decoded later, for the records that are still of interest (module avro_columns).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from boathouse.avro.codec import is_pair, read_long, skipper

Schema = Any
Path = tuple[str, ...]
Longs = npt.NDArray[np.int64]
Marks = dict[Path, Longs]
"""The place of a field's value in each record; ABSENT where it is null."""
ABSENT: Final = -1
BEYOND: Final = -(1 << 63)
"""Stands for a number of more than 64 bits, which some writers leave where nothing is read."""
PADDING: Final = 256
"""Bytes that follow the records, so that a window at their end is whole."""
TOGETHER: Final = 4096
"""Values that are stepped over at once: more do not fit the processor's cache."""
_FEW: Final = 8
_FRAMES: Final = (3, 300)
"""How many frames of maps are remembered, and the items of the longest: their bytes are compared in one matrix."""
_WIDTHS: Final = {"null": 0, "boolean": 1, "float": 4, "double": 8}
_VARINTS: Final = ("int", "long")


def in_64_bits(value: int) -> int:
    """The number, or BEYOND."""
    return value if BEYOND < value < -BEYOND else BEYOND


class DamagedError(Exception):
    """The data is not of the schema. Like IndexError, to be reported with the file's name."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """Encoded records of `size` bytes, followed by padding, as bytes and as numbers."""

    data: bytes
    numbers: npt.NDArray[np.uint8]
    size: int

    @classmethod
    def of(cls, parts: Sequence[bytes]) -> Buffer:
        data = b"".join((*parts, bytes(PADDING)))
        return cls(data, np.frombuffer(data, np.uint8), len(data) - PADDING)

    def longs(self, at: Longs) -> tuple[Longs, Longs]:
        """The zigzag varints at `at`, and the places after them."""
        first = self.numbers[at]
        if len(at) == 0 or first.max() < 128:
            value = first.astype(np.int64)
            return (value >> 1) ^ -(value & 1), at + 1
        return self._wide(first, at)

    def tags(self, at: Longs) -> tuple[npt.NDArray[Any], Longs]:
        """Which type of a union each value at `at` has, and the places after these numbers, as a rule single bytes."""
        first = self.numbers[at]
        if len(at) == 0 or (first.max() < 128 and not (first & 1).any()):
            return first >> 1, at + 1
        return self.longs(at)

    def after_long(self, at: Longs) -> Longs:
        """The places after the varints at `at`."""
        first = self.numbers[at]
        return at + 1 if len(at) == 0 or first.max() < 128 else self._wide(first, at)[1]

    def _wide(self, first: npt.NDArray[np.uint8], at: Longs) -> tuple[Longs, Longs]:
        value = (first & 127).astype(np.uint64)
        after = at + 1
        longer = beyond = np.flatnonzero(first > 127)
        shift = 7
        while len(longer):
            byte = self.numbers[after[longer]]
            if shift == 63:
                beyond = longer[byte > 1]
                if byte.max() > 127:
                    raise DamagedError("a number has more than ten bytes")
            value[longer] |= (byte & 127).astype(np.uint64) << np.uint64(shift)
            after[longer] += 1
            longer = longer[byte > 127]
            shift += 7
        half = (value >> np.uint64(1)).view(np.int64)
        found = half ^ -(value & np.uint64(1)).view(np.int64)
        if shift == 70:
            found[beyond] = BEYOND
        return found, after

    def sizes(self, at: Longs) -> tuple[Longs, Longs]:
        """Lengths in bytes, and the places after them."""
        size, at = self.longs(at)
        if len(size) and (size.min() < 0 or size.max() > self.size):
            raise DamagedError("a length is negative, or beyond the end")
        return size, at

    def counts(self, at: Longs) -> tuple[Longs, Longs]:
        """The numbers of items in the blocks of arrays at `at`, each item of at least one byte."""
        count, at = self.longs(at)
        sized = np.flatnonzero(count < 0)
        if len(sized):
            count = np.abs(count)
            at[sized] = self.longs(at[sized])[1]
        if len(count) and (count.min() < 0 or (count > self.size - at).any()):
            raise DamagedError("an array has more items than bytes")
        return count, at

    def after_longs(self, at: Longs, count: Longs) -> Longs:
        """The places after `count` varints each."""
        after, left = at.copy(), count.copy()
        rows = np.flatnonzero(left)
        while len(rows):
            if after[rows].max() >= self.size:
                raise DamagedError("the data ends within a list of numbers")
            width = min(PADDING, 16 + 2 * int(left[rows].max()))
            # The ends of all varints in the next `width` bytes of each row, and where those of each row begin.
            ends = np.flatnonzero(self.windows(width)[after[rows]] < 128)
            bounds = ends.searchsorted(np.arange(len(rows) + 1) * width)
            seen = np.diff(bounds)
            done = seen >= left[rows]
            full = rows[done]
            last = ends[bounds[:-1][done] + left[full] - 1] % width
            after[full] += last + 1
            rows, seen = rows[~done], seen[~done]
            after[rows] += width
            left[rows] -= seen
        return after

    def windows(self, width: int) -> npt.NDArray[np.uint8]:
        """At every place, the `width` bytes that begin there; they share memory."""
        return np.ndarray((self.size + PADDING - width + 1, width), np.uint8, self.data, strides=(1, 1))


@dataclass(frozen=True, slots=True)
class Blocks:
    """Where blocks of records begin and end in a buffer, and how many records each has."""

    begins: Longs
    counts: Longs
    ends: Longs

    @classmethod
    def of(cls, counts: Sequence[int], sizes: Sequence[int]) -> Blocks:
        ends = np.cumsum(np.array(sizes, np.int64))
        return cls(ends - np.array(sizes, np.int64), np.array(counts, np.int64), ends)

    def __len__(self) -> int:
        return len(self.counts)

    def take(self, which: npt.NDArray[np.bool_]) -> Blocks:
        return Blocks(self.begins[which], self.counts[which], self.ends[which])


Step = Callable[[Buffer, Longs, Marks], Longs]
"""Moves places from the beginning of a value to its end, and notes the places of what is wanted within it."""


def stepper(schema: Schema, wanted: frozenset[Path], path: Path = ()) -> Step:
    """The step over a value of the schema (`by_ids(...)`) at `path`, which marks `wanted`.

    A field with a value of several types is marked before the tag that says which, others after it.
    """
    inside = tuple(p for p in wanted if p[: len(path)] == path)
    if path in wanted:
        rest = wanted - {path}
        if varied(schema) or not isinstance(schema, list):
            return _marked(stepper(schema, rest, path), path)
        value = _marked(stepper(present(schema), rest, path), path)
        return _union([_step_null if s == "null" else value for s in schema], inside)
    if isinstance(schema, list):
        return _union([stepper(s, wanted, path) for s in schema], inside)
    if isinstance(schema, str):
        return _PRIMITIVES[schema]
    match schema["type"]:
        case "record":
            return _record([stepper(f["type"], wanted, (*path, f["name"])) for f in schema["fields"]])
        case "array":
            return _array(schema["items"])
        case "map":
            fields = [{"name": "key", "type": "string"}, {"name": "value", "type": schema["values"]}]
            return _array({"type": "record", "fields": fields})
        case "fixed":
            return _fixed(int(schema["size"]))
    return _step_long


def apart(buffer: Buffer, step: Step, starts: Longs) -> tuple[Longs, Marks]:
    """The places after values that begin at `starts`, and those of what is wanted within them."""
    ends: list[Longs] = [starts[:0]]
    marks: dict[Path, list[Longs]] = {}
    for first in range(0, len(starts), TOGETHER):
        found: Marks = {}
        ends.append(step(buffer, starts[first : first + TOGETHER], found))
        for path, places in found.items():
            marks.setdefault(path, []).append(places)
    return np.concatenate(ends), {path: np.concatenate(places) for path, places in marks.items()}


def present(schema: Schema) -> Schema:
    """The type of the values that are not null."""
    return next((s for s in schema if s != "null"), "null") if isinstance(schema, list) else schema


def varied(schema: Schema) -> bool:
    """Whether values may be of several types, besides null."""
    return isinstance(schema, list) and sum(s != "null" for s in schema) != 1


def _marked(step: Step, path: Path) -> Step:
    def mark(buffer: Buffer, at: Longs, marks: Marks) -> Longs:
        marks[path] = at
        return step(buffer, at, marks)

    return mark


def _union(branches: Sequence[Step], paths: Sequence[Path]) -> Step:
    def union(buffer: Buffer, at: Longs, marks: Marks) -> Longs:
        tag, at = buffer.tags(at)
        low, high = (int(tag.min()), int(tag.max())) if len(tag) else (0, 0)
        if low < 0 or high >= len(branches):
            raise DamagedError("a value is of a type that its union does not have")
        if paths:
            marks.update({path: np.full(len(at), ABSENT, np.int64) for path in paths})
        if low == high:
            return branches[low](buffer, at, marks)
        for i, step in enumerate(branches):
            rows = np.flatnonzero(tag == i)
            if len(rows) == len(at):
                return step(buffer, at, marks)
            if len(rows):
                inside: Marks = {}
                at[rows] = step(buffer, at[rows], inside)
                for path, places in inside.items():
                    marks[path][rows] = places
        return at

    return union


def _record(steps: Sequence[Step]) -> Step:
    def record(buffer: Buffer, at: Longs, marks: Marks) -> Longs:
        for step in steps:
            at = step(buffer, at, marks)
        return at

    return record


def _fixed(size: int) -> Step:
    return lambda buffer, at, marks: at + size


def _step_null(buffer: Buffer, at: Longs, marks: Marks) -> Longs:
    return at


def _step_long(buffer: Buffer, at: Longs, marks: Marks) -> Longs:
    return buffer.after_long(at)


def _step_bytes(buffer: Buffer, at: Longs, marks: Marks) -> Longs:
    size, at = buffer.sizes(at)
    return at + size


_PRIMITIVES: Final[Mapping[str, Step]] = {
    **{name: _fixed(size) for name, size in _WIDTHS.items()},
    **dict.fromkeys(_VARINTS, _step_long),
    **dict.fromkeys(("bytes", "string"), _step_bytes),
}  # fmt: skip


def _array(items: Schema) -> Step:
    numbers = [f["type"] for f in items["fields"]] if is_pair(items) else [items]
    if all(isinstance(t, str) and t in _VARINTS for t in numbers):
        width = len(numbers)

        def over(buffer: Buffer, at: Longs, count: Longs) -> Longs:
            return buffer.after_longs(at, count * width)
    else:
        step, skip = stepper(items, frozenset()), skipper(items)

        def one_by_one(buffer: Buffer, at: Longs, count: Longs) -> Longs:
            return over_items(
                at, count, lambda at, rows: step(buffer, at, {}), lambda place, row: skip(buffer.data, place)
            )

        over = _Frames(one_by_one).over if numbers[0] in _VARINTS and numbers[1:] == ["bytes"] else one_by_one

    def array(buffer: Buffer, at: Longs, marks: Marks) -> Longs:
        count, here = buffer.counts(at)
        after = over(buffer, here, count)
        rows = np.flatnonzero(count)
        while len(rows):
            if len(rows) == len(at) and not buffer.numbers[after].any():
                return after + 1
            count, here = buffer.counts(after[rows])
            after[rows] = over(buffer, here, count)
            rows = rows[count > 0]
        return after

    return array


@dataclass(frozen=True, slots=True)
class _Frame:
    """The bytes of a map that are not its values: `count` keys and lengths, and where they are from its beginning."""

    count: int
    places: Longs
    expected: npt.NDArray[np.uint8]
    size: int

    @classmethod
    def of(cls, buffer: Buffer, at: int, count: int) -> _Frame:
        places: list[int] = []
        place = at
        for _ in range(count):
            begin = place
            _, place = read_long(buffer.data, place)
            length, place = read_long(buffer.data, place)
            if length < 0 or place + length > buffer.size:
                raise DamagedError("a length is negative, or beyond the end")
            places += range(begin, place)
            place += length
        found = np.array(places, np.int64)
        return cls(count, found - at, buffer.numbers[found], place - at)

    def same(self, buffer: Buffer, at: Longs, count: Longs) -> npt.NDArray[np.bool_]:
        """Which of the maps at these places have the same frame, and so the same size."""
        places = np.minimum(at[:, None] + self.places, buffer.size)
        found: npt.NDArray[np.bool_] = (buffer.numbers[places] == self.expected).all(1) & (count == self.count)
        return found


class _Frames:
    """Steps over maps from numbers to bytes, such as the bounds of columns: most files of a table have the same keys
    and lengths, which one comparison shows, and `others` steps over the rest."""

    def __init__(self, others: Callable[[Buffer, Longs, Longs], Longs]) -> None:
        self._others = others
        self._known: list[_Frame] = []

    def over(self, buffer: Buffer, at: Longs, count: Longs) -> Longs:
        after = at.copy()
        rows = np.flatnonzero(count)
        for known in tuple(self._known):
            rows = self._over(known, buffer, rows, count, after)
        if len(rows) > _FEW and count[rows[0]] <= _FRAMES[1]:
            new = _Frame.of(buffer, int(at[rows[0]]), int(count[rows[0]]))
            self._known = [new, *self._known][: _FRAMES[0]]
            rows = self._over(new, buffer, rows, count, after)
        if len(rows):
            after[rows] = self._others(buffer, after[rows], count[rows])
        return after

    @staticmethod
    def _over(frame: _Frame, buffer: Buffer, rows: Longs, count: Longs, after: Longs) -> Longs:
        """The rows that are left."""
        if not len(rows):
            return rows
        same = frame.same(buffer, after[rows], count[rows])
        after[rows[same]] += frame.size
        return rows[~same]


def over_items(at: Longs, count: Longs, step: Callable[[Longs, Longs], Longs], one: Callable[[int, int], int]) -> Longs:
    """The places after `count` items each: `step(places, rows)` goes over an item of many rows together, and when few
    rows are left, `one(place, row)` over those of each."""
    at = at.copy()
    rows = np.flatnonzero(count)
    done = 0
    while len(rows) > _FEW:
        at[rows] = step(at[rows], rows)
        done += 1
        rows = rows[count[rows] > done]
    for row in rows.tolist():
        place = int(at[row])
        for _ in range(int(count[row]) - done):
            place = one(place, row)
        at[row] = place
    return at
