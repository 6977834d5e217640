"""Decides from statistics which files may contain, or contain only, rows that satisfy a condition; all files at once.

For every node three vectors are computed over the files: whether it may be true, false or null for some row. They err
on the side of True, so `may_match` (inclusive) never loses a row and `must_match` (strict) never over-claims; NOT, AND
and OR follow by three-valued logic. NaN is outside bounds and counts as the greatest value.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow import kernels, literals
from boathouse.arrow.intervals import Interval, interval, true_of
from boathouse.arrow.vector import Bools
from boathouse.compute.evaluate import fold_constants
from boathouse.errors import InvalidArgumentError
from boathouse.expr.simplify import like_parts, sort_key
from boathouse.expr.tree import (
    And,
    Column,
    Comparison,
    Expr,
    Function,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    Path,
)
from boathouse.types import BOOLEAN, BooleanType

_TRIED = 64


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Per file: whether some row may be true, false, null."""

    true: Bools
    false: Bools
    null: Bools


class Pruner:
    """A bound condition, ready for batches of statistics.

    `columns[i]` is the path whose statistics are the child named "i" of the `stats` struct, with fields lower,
    upper, lower_exact, upper_exact, nulls, nans, values; `rows` is the number of rows of each file, deleted ones
    included. Null statistics are unknown, never zero.
    """

    def __init__(self, expr: Expr, columns: Sequence[Path]) -> None:
        if expr.type is None:
            raise InvalidArgumentError(f"not bound to a schema: {expr}", advice="call expr.resolve.bind first")
        self.expr = fold_constants(expr)
        self.columns = tuple(tuple(c) for c in columns)

    def may_match(self, stats: pa.StructArray, rows: pa.Array) -> pa.BooleanArray:
        """False only for files in which certainly no row satisfies the condition."""
        files = _Files(self.columns, stats, rows)
        return pa.array(_judge(self.expr, files).true & ~files.empty)

    def must_match(self, stats: pa.StructArray, rows: pa.Array) -> pa.BooleanArray:
        """True only for files in which certainly every row satisfies the condition."""
        files = _Files(self.columns, stats, rows)
        out = _judge(self.expr, files)
        return pa.array((~out.false & ~out.null) | files.empty)


class _Files:
    """The statistics of one batch of files, decoded on demand."""

    def __init__(self, columns: tuple[Path, ...], stats: pa.StructArray, rows: pa.Array) -> None:
        self.columns = columns
        self.stats = stats
        self.rows = rows
        self.count = len(rows)
        self.empty = true_of(pc.equal(rows, 0))
        self._seen: dict[Expr, Interval | None] = {}

    @property
    def yes(self) -> Bools:
        return np.ones(self.count, np.bool_)

    @property
    def no(self) -> Bools:
        return np.zeros(self.count, np.bool_)

    def interval(self, e: Expr) -> Interval | None:
        if e not in self._seen:
            self._seen[e] = interval(e, self.member, self.rows)
        return self._seen[e]

    def member(self, column: Column) -> pa.StructArray | None:
        """The statistics of a column; None if they were not requested."""
        if column.path not in self.columns:
            return None
        name = str(self.columns.index(column.path))
        index = self.stats.type.get_field_index(name)
        return None if index < 0 else pc.struct_field(self.stats, [index])


def _judge(e: Expr, files: _Files) -> Outcomes:
    match e:
        case Literal(value):
            known = {True: files.no, False: files.no, None: files.no}
            key = None if value is None else bool(value)
            known[key] = files.yes
            return Outcomes(known[True], known[False], known[None])
        case Not(arg):
            inner = _judge(arg, files)
            return Outcomes(inner.false, inner.true, inner.null)
        case And(args):
            return _all([_judge(a, files) for a in args])
        case Or(args):
            flipped = _all([_swap(_judge(a, files)) for a in args])
            return _swap(flipped)
        case IsNull(arg):
            return _is_null(arg, files)
        case Comparison(op, left, Literal() as right):
            return _comparison(op, left, right, files)
        case In(value, options) if all(isinstance(o, Literal) for o in options):
            return _in(value, [o for o in options if isinstance(o, Literal)], files)
        case Function("startswith", (value, Literal(str(prefix)))):
            return _prefix(value, prefix, True, files)
        case Like(value, Literal(str(pattern)), ignore_case=False):
            parts = like_parts(pattern, e.escape)
            return _prefix(value, parts[0], False, files) if parts and parts[0] else _unknown(files)
        case Function("isnan", (value,)):
            return _is_nan(value, files)
        case Column() if isinstance(e.type, BooleanType):
            return _comparison("=", e, Literal(True, type=BOOLEAN), files)
    return _unknown(files)


def _unknown(files: _Files) -> Outcomes:
    return Outcomes(files.yes, files.yes, files.yes)


def _swap(o: Outcomes) -> Outcomes:
    return Outcomes(o.false, o.true, o.null)


def _all(parts: list[Outcomes]) -> Outcomes:
    """AND: true needs all, false needs one, null needs one null and no part that is always false."""
    true = reduce(np.logical_and, [p.true for p in parts])
    false = reduce(np.logical_or, [p.false for p in parts])
    null = reduce(np.logical_or, [p.null for p in parts])
    return Outcomes(true, false, null & reduce(np.logical_and, [p.true | p.null for p in parts]))


def _is_null(arg: Expr, files: _Files) -> Outcomes:
    known = files.interval(arg)
    if known is None:
        return Outcomes(files.yes, files.yes, files.no)
    return Outcomes(known.has_null, known.has_value, files.no)


def _is_nan(arg: Expr, files: _Files) -> Outcomes:
    known = files.interval(arg)
    if known is None:
        return Outcomes(files.yes, files.yes, files.no)
    return Outcomes(known.has_nan, known.has_number | known.has_null, files.no)


def _comparison(op: str, left: Expr, right: Literal, files: _Files) -> Outcomes:
    known = files.interval(left)
    if known is None:
        return Outcomes(files.yes, files.yes, files.no if op == "<=>" else files.yes)
    if op == "!=":
        return _swap(_comparison("=", left, right, files))
    if op in (">", ">="):
        return _swap(_comparison("<=" if op == ">" else "<", left, right, files))
    if isinstance(right.value, float) and math.isnan(right.value):
        true, false = _against_nan(op, known, files)
    else:
        true, false = _against_number(op, known, right)
    if op == "<=>":
        return Outcomes(true, false | known.has_null, files.no)
    return Outcomes(true, false, known.has_null)


def _against_nan(op: str, known: Interval, files: _Files) -> tuple[Bools, Bools]:
    if op == "<":
        return known.has_number, known.has_nan
    return (known.has_value, files.no) if op == "<=" else (known.has_nan, known.has_number)


def _against_number(op: str, known: Interval, right: Literal) -> tuple[Bools, Bools]:
    """(may be true, may be false) of values within the bounds; a NaN is greater than all of them."""
    value = literals.to_array((right,), known.lower.type)[0]
    if op in ("=", "<=>"):
        below = true_of(kernels.compare(">", known.lower, value))
        above = true_of(kernels.compare("<", known.upper, value))
        single = true_of(kernels.compare("=", known.lower, value)) & true_of(kernels.compare("=", known.upper, value))
        true = known.has_number & ~below & ~above
        return true, (known.has_number & ~(single & known.exact)) | known.has_nan
    strict = op == "<"
    none = true_of(kernels.compare(">=" if strict else ">", known.lower, value))
    every = true_of(kernels.compare("<" if strict else "<=", known.upper, value))
    return known.has_number & ~none, (known.has_number & ~every) | known.has_nan


def _in(value: Expr, options: list[Literal], files: _Files) -> Outcomes:
    """An IN list: may be true if an option is within the bounds; an option NULL makes every miss null."""
    given = [o for o in options if o.value is not None]
    holds_null = len(given) < len(options)
    known = files.interval(value)
    if known is None:
        return _unknown(files)
    true = _any_within(known, given) & known.has_number
    always = files.no
    # A long list rarely decides a file: its options are not tried one by one.
    for o in given[:_TRIED]:
        nan = isinstance(o.value, float) and math.isnan(o.value)
        one_true, one_false = _against_nan("=", known, files) if nan else _against_number("=", known, o)
        true, always = true | one_true, always | ~one_false
    if len(given) > _TRIED:
        true = true | known.has_nan
    false = known.has_value & ~always
    return Outcomes(true, files.no if holds_null else false, known.has_null | (false if holds_null else files.no))


def _any_within(known: Interval, given: list[Literal]) -> Bools:
    """Whether one of the literals is in [lower, upper]; an unknown bound does not limit."""
    numbers = [o for o in given if not (isinstance(o.value, float) and math.isnan(o.value))]
    if not numbers:
        return np.zeros(len(known.lower), np.bool_)
    keys = sorted(sort_key(o.value) for o in numbers)
    low = [0 if b is None else bisect_left(keys, sort_key(b)) for b in _physical(known.lower)]
    high = [len(keys) if b is None else bisect_right(keys, sort_key(b)) for b in _physical(known.upper)]
    return np.array(low, np.int64) < np.array(high, np.int64)


def _physical(bounds: pa.Array) -> list[Any]:
    """The bounds as physical values, as in literals: days and micros are integers."""
    storage = literals.storage(bounds.type)
    return bounds.view(storage).to_pylist() if storage != bounds.type else bounds.to_pylist()


def _prefix(value: Expr, prefix: str, whole: bool, files: _Files) -> Outcomes:
    """Strings that begin with `prefix`; `whole` if that is the entire condition, so that it can also hold strictly."""
    known = files.interval(value)
    if known is None or not pa.types.is_string(known.lower.type):
        return _unknown(files)
    start = pa.scalar(prefix)
    width = len(prefix)
    lower, upper = (pc.utf8_slice_codeunits(b, 0, width) for b in (known.lower, known.upper))
    beyond = true_of(pc.greater(lower, start))
    short = true_of(pc.less(upper, start))
    inside = true_of(pc.equal(lower, start)) & true_of(pc.equal(upper, start))
    true = known.has_value & ~beyond & ~short
    return Outcomes(true, known.has_value & ~inside if whole else known.has_value, known.has_null)
