"""Full readings of a column in batches of rows; the single-value implementation reports what is wrong with a row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np

from boathouse.bits.unaligned import Ints
from boathouse.errors import MalformedVariant, UnsupportedFeatureError
from boathouse.variant.columns.expand import Faulty, Names, Tree, expand
from boathouse.variant.columns.faults import Lenient
from boathouse.variant.columns.layout import Column
from boathouse.variant.decode import read_scalar
from boathouse.variant.value import Variant
from boathouse.variant.walk import Event, walk

_BYTES = 1 << 19  # of values in a batch: the intermediate arrays still fit into the cache
_ROWS = 1 << 14
_ATTEMPTS = 4

T = TypeVar("T")


def variant_at(column: Column, row: int) -> Variant:
    """One row, not null. Raises MalformedVariant with the row."""
    try:
        return Variant(column.metadata_bytes(row), column.value(row))
    except MalformedVariant as problem:
        number = column.first_row + row
        raise MalformedVariant(problem.message, offset=problem.offset, row=number, advice=problem.advice) from None


def batches(column: Column) -> Iterator[tuple[int, int]]:
    """Ranges of rows whose values have about _BYTES bytes together."""
    total = np.cumsum(column.end - column.start)
    first = 0
    while first < column.rows:
        before = int(total[first - 1]) if first else 0
        last = int(np.searchsorted(total, before + _BYTES, side="right"))
        last = min(max(last, first + 1), first + _ROWS, column.rows)
        yield first, last
        first = last


def read(
    column: Column, work: Callable[[Tree], T], lenient: Lenient | None = None
) -> Iterator[tuple[int, int, Ints, T]]:
    """Batch by batch: its first and last (exclusive) row, those of them that are neither null nor malformed, and `work`
    of their tree. `work` may raise Faulty.

    Malformed rows: MalformedVariant or UnsupportedFeatureError with the row; if lenient, left out and noted.
    """
    names = Names.of_all(column)
    for first, last in batches(column):
        rows = np.arange(first, last)
        if column.valid is not None:
            rows = rows[column.valid[first:last]]
        yield first, last, *_readable(column, rows, names, work, lenient)


def _readable(
    column: Column, rows: Ints, names: Names | None, work: Callable[[Tree], T], lenient: Lenient | None
) -> tuple[Ints, T]:
    attempts = 0
    while True:
        try:
            return rows, work(expand(column, rows, names))
        except Faulty as found:
            wrong = found.rows
        if lenient is None:
            row = int(rows[wrong[0]])
            raise fault(column, row) or MalformedVariant("a rule is violated", row=column.first_row + row)
        attempts += 1
        if attempts == _ATTEMPTS:
            # Each attempt finds faults that the previous one did not reach; checking every row by itself ends that.
            wrong = np.union1d(wrong, np.flatnonzero([fault(column, row) is not None for row in rows.tolist()]))
        lenient.add(rows[wrong] + column.first_row)
        rows = np.delete(rows, wrong)


def fault(column: Column, row: int) -> MalformedVariant | UnsupportedFeatureError | None:
    """What the single-value implementation finds wrong with a row that is not null."""
    number = column.first_row + row
    try:
        value = variant_at(column, row)
        for step in walk(value.buffer, *value.span, value.dictionary):
            if step.event is Event.SCALAR:
                read_scalar(value.buffer, step.pos, step.end)
    except MalformedVariant as problem:
        return MalformedVariant(problem.message, offset=problem.offset, row=number, advice=problem.advice)
    except UnsupportedFeatureError as problem:
        return UnsupportedFeatureError(problem.message, where=f"row {number:,}", advice=problem.advice)
    return None
