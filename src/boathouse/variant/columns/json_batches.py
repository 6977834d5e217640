"""JSON texts of an array to variants, in steps whose intermediate arrays stay in the processor's cache.

A step reads leaves and skeletons of about half a megabyte of text; the shapes of several steps are determined together,
as long as few skeletons are distinct; then the steps are written one after another, into one buffer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from boathouse.bits.unaligned import Bytes, Ints, Mask
from boathouse.errors import InvalidJsonError
from boathouse.variant.columns.byte_columns import Ragged, interleave, splits_of, stack
from boathouse.variant.columns.faults import Lenient
from boathouse.variant.columns.json_leaves import leaves_of
from boathouse.variant.columns.json_scan import Texts, scan
from boathouse.variant.columns.json_shapes import Shapes, distinct, shapes_of, skeletons
from boathouse.variant.columns.json_write import Leaves, write
from boathouse.variant.json_in import encode_json
from boathouse.variant.primitives import EMPTY_METADATA, NULL_VALUE

_STEP = 1 << 19  # bytes of text
_STEPS = 8
_MANY = 0.25  # distinct skeletons by rows


@dataclass(frozen=True, eq=False)
class Made:
    """Variants of texts, and one more row: null for the `bad` rows and for those without text."""

    metadata: Ragged
    values: Ragged
    bad: Mask


def build(array: pa.LargeBinaryArray, rows: Ints, lenient: Lenient | None) -> Made:
    """The variants of texts, of which none is null; `rows` are their numbers in messages.

    Raises InvalidJsonError for the first text that is refused, unless there is a `lenient` to count it.
    """
    out = _Rows(array, rows, lenient)
    steps, at_once = list(_steps(out.offsets)), 1
    while steps:
        reads = [_read(array, first, last) for first, last in steps[:at_once]]
        steps = steps[at_once:]
        which, texts = distinct(stack([read.skeletons for read in reads]))
        shapes = shapes_of(texts)
        at_once = _STEPS if len(texts.ends) < _MANY * len(which) else 1
        base = out.dictionary(shapes.metadata)
        for read in reads:
            here, which = which[: read.skeletons.rows], which[read.skeletons.rows :]
            out.add(read, shapes, here, base)
    return out.finish()


def _steps(offsets: Ints) -> Iterator[tuple[int, int]]:
    """Runs of rows of about _STEP bytes."""
    first, rows = 0, len(offsets) - 1
    while first < rows:
        last = int(np.searchsorted(offsets, offsets[first] + _STEP, "right")) - 1
        last = min(max(last, first + 1), rows)
        yield first, last
        first = last


@dataclass(frozen=True, eq=False)
class _Read:
    """Rows [first, last) of the array. The texts with numbers `kept` have skeletons and leaves; `broken` are the
    numbers, among them, of those with a malformed leaf."""

    first: int
    last: int
    kept: Ints
    skeletons: Ragged
    leaves: Leaves
    broken: Ints


def _read(array: pa.LargeBinaryArray, first: int, last: int) -> _Read:
    found = scan(Texts.of(array.slice(first, last - first)))
    common = skeletons(found)  # before the leaves, which overwrite parts of the text
    leaves, broken = leaves_of(found)
    return _Read(first, last, found.texts.rows + first, common, leaves, broken)


def _fresh(size: int) -> Bytes:
    return np.empty(size, np.uint8)


class _Rows:
    """The variants so far: values in one buffer that grows, metadata by number."""

    def __init__(self, array: pa.LargeBinaryArray, rows: Ints, lenient: Lenient | None) -> None:
        self.array = array
        self.rows = rows
        self.lenient = lenient
        self.offsets = Ragged.from_arrow(array).offsets
        self.bad = np.zeros(len(array), np.bool_)
        self.codes = np.zeros(len(array) + 1, np.int64)
        self.dictionaries = [Ragged.of([EMPTY_METADATA])]
        self.known = 1
        self.splits = np.zeros(len(array) + 2, np.int64)
        self.size = 0
        self.data = np.empty(int(self.offsets[-1] - self.offsets[0]) + (1 << 16), np.uint8)

    def dictionary(self, metadata: Ragged) -> int:
        """Adds dictionaries; returns the number of the first."""
        self.dictionaries.append(metadata)
        self.known += metadata.rows
        return self.known - metadata.rows

    def room(self, size: int) -> Bytes:
        """At least `size` free bytes after the bytes written so far."""
        if len(self.data) - self.size < size:
            larger = np.empty(max(self.size + size, len(self.data) * 3 // 2), np.uint8)
            larger[: self.size] = self.data[: self.size]
            self.data = larger
        return self.data[self.size :]

    def add(self, read: _Read, shapes: Shapes, which: Ints, base: int) -> None:
        """Writes rows; `which` is the shape of each, and their dictionaries begin at number `base`."""
        first_leaf = splits_of(shapes.text_leaves[which])[:-1]
        good = shapes.good[which]
        good[read.broken] = False
        which, first_leaf, done = which[good], first_leaf[good], read.kept[good]
        self.codes[done] = which + base
        if len(done) == read.last - read.first:
            offsets = write(shapes, which, first_leaf, read.leaves, self.room).offsets
        else:
            values = write(shapes, which, first_leaf, read.leaves, _fresh)
            offsets = self.mixed(read, values, done)
        self.splits[read.first + 1 : read.last + 1] = offsets[1:] + self.size
        self.size += int(offsets[-1])

    def mixed(self, read: _Read, values: Ragged, done: Ints) -> Ints:
        """Adds the remaining rows through the single-value implementation."""
        left = np.setdiff1d(np.arange(read.first, read.last), done)
        made = [self.one(row) for row in left.tolist()]
        self.codes[left] = np.arange(self.known, self.known + len(left))
        self.dictionary(Ragged.of([metadata for metadata, _ in made]))
        both = [values, Ragged.of([value for _, value in made])]
        mixed = interleave(both, [done - read.first, left - read.first], read.last - read.first)
        size = int(mixed.offsets[-1])
        self.room(size)[:size] = mixed.data[:size]
        return mixed.offsets

    def one(self, row: int) -> tuple[bytes, bytes]:
        """Metadata and value of one text; null if it is refused and counted."""
        try:
            return encode_json(self.array[row].as_py())
        except InvalidJsonError as problem:
            number = int(self.rows[row])
            if self.lenient is None:
                raise InvalidJsonError(problem.message, offset=problem.offset, row=number) from None
            self.lenient.add(np.array([number]))
            self.bad[row] = True
            return EMPTY_METADATA, NULL_VALUE

    def finish(self) -> Made:
        self.room(len(NULL_VALUE))[: len(NULL_VALUE)] = np.frombuffer(NULL_VALUE, np.uint8)
        self.splits[-1] = self.size + len(NULL_VALUE)
        return Made(stack(self.dictionaries).take(self.codes), Ragged(self.splits, self.data), self.bad)
