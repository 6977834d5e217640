"""Full readings of a column by batches of rows; what is wrong with a row is said by the one-value path."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np

from boathouse.errors import MalformedVariant, UnsupportedFeatureError
from boathouse.variant.columns.faults import Lenient
from boathouse.variant.columns.gather import Ints
from boathouse.variant.columns.layout import Column
from boathouse.variant.columns.expand import Faulty, Tree, expand
from boathouse.variant.value import Variant

_BYTES = 1 << 19  # of values in a batch: what is made of them still fits into the cache
_ROWS = 1 << 14
_ATTEMPTS = 4

T = TypeVar("T")


def variant_at(column: Column, row: int) -> Variant:
    """One row, not null. Raises MalformedVariant."""
    return Variant(column.metadata_bytes(row), column.value(row))


def batches(column: Column) -> Iterator[tuple[int, int]]:
    """Ranges of rows whose values have about _BYTES together."""
    total = np.cumsum(column.end - column.start)
    first = 0
    while first < column.rows:
        before = int(total[first - 1]) if first else 0
        last = int(np.searchsorted(total, before + _BYTES, side="right"))
        last = min(max(last, first + 1), first + _ROWS, column.rows)
        yield first, last
        first = last


def read(
    column: Column,
    first: int,
    last: int,
    work: Callable[[Tree], T],
    check: Callable[[Variant], object],
    lenient: Lenient | None,
) -> tuple[Ints, T]:
    """`work` of the tree of the rows from `first` to `last` that are neither null nor malformed, and which those are.

    Malformed ones: the error that `check` of the value raises, with its row; if lenient, left out and noted.
    """
    rows = np.arange(first, last)
    if column.valid is not None:
        rows = rows[column.valid[first:last]]
    attempts = 0
    while True:
        try:
            return rows, work(expand(column, rows))
        except Faulty as found:
            wrong = found.rows
        if lenient is None:
            raise fault(column, int(rows[wrong[0]]), check)
        attempts += 1
        if attempts == _ATTEMPTS:
            # Each attempt finds what the last one did not reach: rows by themselves end that.
            wrong = np.array([i for i, row in enumerate(rows) if not _readable(column, int(row), check)], np.int64)
        lenient.add(rows[wrong] + column.first_row)
        rows = np.delete(rows, wrong)


def _readable(column: Column, row: int, check: Callable[[Variant], object]) -> bool:
    try:
        check(variant_at(column, row))
    except (MalformedVariant, UnsupportedFeatureError):
        return False
    return True


def fault(column: Column, row: int, check: Callable[[Variant], object]) -> Exception:
    """What is wrong with a row."""
    number = column.first_row + row
    try:
        check(variant_at(column, row))
    except MalformedVariant as problem:
        return MalformedVariant(problem.message, offset=problem.offset, row=number, advice=problem.advice)
    except UnsupportedFeatureError as problem:
        return UnsupportedFeatureError(problem.message, where=f"row {number:,}", advice=problem.advice)
    return MalformedVariant("the value breaks a rule of the encoding", row=number)
