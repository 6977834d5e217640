"""Finds whole rows, with nested columns, and subtracts rows as a multiset.

Two rows are equal as in Spark's set operations: null equals null, NaN equals NaN, and 0.0 equals -0.0; maps are equal
if their entries are, in order. A struct is compared by its presence and its fields; a list by the numbers of its
elements among the distinct ones, as bytes. So every column becomes columns of keys, and the result is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.keys import Column, KeyIndex
from boathouse.arrow.layouts import laid_out, members, unwrapped
from boathouse.arrow.vector import Bools, Ints


@dataclass(frozen=True, slots=True)
class RowIndex:
    """Equal rows have the same group; `_elements` are the indexes of the lists' elements, in the order of columns."""

    _keys: KeyIndex
    _elements: tuple[RowIndex, ...]

    @staticmethod
    def of(columns: Sequence[Column]) -> RowIndex:
        """Indexes the rows of these columns, at least one."""
        elements: list[RowIndex] = []

        def numbers(children: Sequence[pa.Array]) -> Ints:
            elements.append(RowIndex.of(children))
            return elements[-1]._keys.groups

        flat = [key for column in columns for key in _keys(column, numbers)]
        return RowIndex(KeyIndex.of(flat, null_matches=True), tuple(elements))

    @property
    def counts(self) -> Ints:
        """The number of indexed rows of each group."""
        return self._keys.counts(np.arange(self._keys.size))

    def lookup(self, columns: Sequence[Column]) -> Ints:
        """The group of each row of these columns, -1 if no indexed row is equal."""
        elements = iter(self._elements)
        flat = [key for column in columns for key in _keys(column, lambda c: next(elements).lookup(c))]
        return self._keys.lookup(flat)


Numbers = Callable[[Sequence[pa.Array]], Ints]
"""Gives each row of the columns that make up the elements of lists the number of its value, -1 for an unknown one."""


def _keys(column: Column, numbers: Numbers) -> Iterator[Column]:
    """Columns of keys that are equal where the values of this column are."""
    if not pa.types.is_nested(_inner(column.type)):
        yield column
        return
    array = unwrapped(column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column)
    if pa.types.is_struct(array.type):
        yield pc.is_valid(array)
        for child in members(array):
            yield from _keys(child, numbers)
        return
    offsets, children, mask = laid_out(array)
    edges = offsets.to_numpy().astype(np.int64) * 8
    codes = np.ascontiguousarray(numbers(children), np.int64)
    valid = None if mask is None else pc.invert(mask).buffers()[1]
    buffers = [valid, pa.py_buffer(edges), pa.py_buffer(codes)]
    yield pa.Array.from_buffers(pa.large_binary(), len(array), buffers)


def _inner(type: pa.DataType) -> pa.DataType:
    """The type without extensions, dictionaries and run ends around it."""
    while True:
        if isinstance(type, pa.BaseExtensionType):
            type = type.storage_type
        elif pa.types.is_dictionary(type) or pa.types.is_run_end_encoded(type):
            type = type.value_type
        else:
            return type


def subtract(
    left: Iterator[pa.RecordBatch], right: pa.Table, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of `left`, but for as many equal ones as `right` has; of them these columns. No batch is empty."""
    index = RowIndex.of(right.columns) if right.num_rows else None
    left_over = np.empty(0, np.int64) if index is None else index.counts
    for batch in left:
        rows = batch
        if index is not None:
            rows = batch.filter(pa.array(_without(index.lookup(batch.columns), left_over)))
        if rows.num_rows:
            yield rows if columns is None else rows.select(list(columns))


def _without(groups: Ints, left_over: Ints) -> Bools:
    """Which rows stay; takes the others off the numbers that are left to remove."""
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    first = np.concatenate(([0], np.flatnonzero(np.diff(ordered)) + 1)) if len(ordered) else np.empty(0, np.int64)
    lengths = np.diff(np.append(first, len(ordered)))
    number = np.arange(len(ordered)) - np.repeat(first, lengths)
    stay = np.ones(len(groups), np.bool_)
    known = ordered >= 0
    stay[order[known]] = number[known] >= left_over[ordered[known]]
    present = ordered[first] >= 0
    found = ordered[first][present]
    left_over[found] -= np.minimum(left_over[found], lengths[present])
    return stay
