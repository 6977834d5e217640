"""Whole columns as Python objects, the same as `Variant.to_python` of each row.

All values of a batch of rows are located at once, then converted kind by kind; containers are filled from the deepest
level up.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from boathouse.bits.unaligned import Ints
from boathouse.errors import EvaluationError
from boathouse.variant.columns.expand import Tree
from boathouse.variant.columns.faults import Lenient
from boathouse.variant.columns.layout import Column, chunks
from boathouse.variant.columns.nodes import OBJECT
from boathouse.variant.columns.reading import read
from boathouse.variant.columns.scalars import binaries, decimals, numbers, strings, uuids
from boathouse.variant.primitives import TRUE, Family, Kind
from boathouse.variant.to_python import date_of, datetime_of, decimal_of, nanos_of, time_of

Objects = npt.NDArray[np.object_]

# The range that numpy converts to date and datetime: the years 1 to 9999.
_DAYS = (-719_162, 2_932_896)
_MICROS = (_DAYS[0] * 86_400_000_000, (_DAYS[1] + 1) * 86_400_000_000 - 1)


def to_pylist(data: Any, *, lenient: Lenient | None = None) -> list[Any]:
    """The rows of a column of variants as Python values, of the types that `Variant.to_python` gives; None for null
    rows.

    `data` is a struct<metadata, value> array, a chunked one, or what exports one. Raises MalformedVariant with the row
    and offset of the first malformed row found, and UnsupportedFeatureError for primitive types above 20, unless
    `lenient` is given: such rows are None then, and counted. EvaluationError for dates and timestamps that Python
    cannot hold.

    >>> bh.variant.to_pylist(bh.variant.from_json(pa.array(['{"a": 1}', None])))
    [{'a': 1}, None]
    """
    out: list[Any] = []
    for column in chunks(data):
        out += _decoded(column, lenient)
    return out


def _decoded(column: Column, lenient: Lenient | None) -> list[Any]:
    out: list[Any] = []
    for first, last, rows, values in read(column, python_values, lenient):
        if len(rows) < last - first:
            spread = np.empty(last - first, np.object_)
            spread[rows - first] = values
            values = spread
        out += values.tolist()
    return out


def python_values(tree: Tree) -> Objects:
    """The values of the top level. Raises Faulty for scalars that are malformed."""
    out = np.empty(len(tree), np.object_)
    for kind, which in tree.scalars():
        out[which] = _MAKERS[kind.family](tree, which, kind)
    _fill(tree, out)
    return out[: len(tree.numbers)]


def _fill(tree: Tree, out: Objects) -> None:
    """Builds the objects and arrays, from the deepest level up."""
    words = _array([*(name.decode(errors="replace") for name in tree.names.raw.to_pylist()), ""])
    levels = [*tree.levels, tree.levels[-1]]
    for depth in reversed(range(len(levels) - 2)):
        start, below, end = levels[depth : depth + 3]
        boxes = start + np.flatnonzero(tree.kind[start:below] >= OBJECT)
        if not len(boxes):
            continue
        values, names = out[below:end], words[tree.name[below:end]]
        objects = tree.kind[boxes] == OBJECT
        if not objects.all():
            mine = np.repeat(objects, tree.count[boxes])
            rest = boxes[~objects]
            out[rest] = _arrays(values[~mine], tree.count[rest])
            boxes, values, names = boxes[objects], values[mine], names[mine]
        out[boxes] = _objects(names, values, tree.count[boxes])


def _objects(names: Objects, values: Objects, counts: Ints) -> Objects:
    fields = zip(names.tolist(), values.tolist())
    return np.fromiter([dict(islice(fields, count)) for count in counts.tolist()], np.object_, len(counts))


def _arrays(values: Objects, counts: Ints) -> Objects:
    elements = iter(values.tolist())
    return np.fromiter([list(islice(elements, count)) for count in counts.tolist()], np.object_, len(counts))


def _array(values: list[Any]) -> Objects:
    return np.fromiter(values, np.object_, len(values))


def _numbers(tree: Tree, which: Ints, kind: Kind) -> Objects:
    return numbers(tree, which, kind).astype(np.object_)


def _floats(tree: Tree, which: Ints, kind: Kind) -> Objects:
    with np.errstate(invalid="ignore"):  # signalling NaNs
        return numbers(tree, which, kind).astype(np.float64).astype(np.object_)


def _strings(tree: Tree, which: Ints, kind: Kind) -> Objects:
    found: Objects = strings(tree, which).to_numpy(zero_copy_only=False)
    return found


def _binaries(tree: Tree, which: Ints, kind: Kind) -> Objects:
    found: Objects = binaries(tree, which).to_numpy(zero_copy_only=False)
    return found


def _decimals(tree: Tree, which: Ints, kind: Kind) -> Objects:
    unscaled, scale = decimals(tree, which, kind)
    plain = unscaled if isinstance(unscaled, list) else unscaled.tolist()
    return _array([decimal_of(number, digits) for number, digits in zip(plain, scale.tolist())])


def _times(tree: Tree, which: Ints, kind: Kind) -> Objects:
    return _array([time_of(micros) for micros in numbers(tree, which, kind).tolist()])


def _uuids(tree: Tree, which: Ints, kind: Kind) -> Objects:
    return _array(uuids(tree, which, kind))


def _dates(tree: Tree, which: Ints, kind: Kind) -> Objects:
    days = numbers(tree, which, kind)
    _within(tree, which, days, _DAYS, date_of)
    return days.astype("datetime64[D]").astype(np.object_)


def _timestamps(tree: Tree, which: Ints, kind: Kind) -> Objects:
    ticks = numbers(tree, which, kind)
    if kind.digits == 9:
        _within(tree, which, ticks, (-(2**63) + 1, 2**63 - 1), nanos_of)
        return _array(list(ticks.astype("datetime64[ns]")))
    _within(tree, which, ticks, _MICROS, lambda one: datetime_of(one, kind.utc))
    naive = ticks.astype("datetime64[us]").astype(np.object_)
    return _array([one.replace(tzinfo=UTC) for one in naive.tolist()]) if kind.utc else naive


def _within(
    tree: Tree, which: Ints, found: npt.NDArray[Any], limits: tuple[int, int], convert: Callable[[int], object]
) -> None:
    """Raises the EvaluationError of `convert`, with its row, for the first number beyond the limits."""
    wild = np.flatnonzero((found < limits[0]) | (found > limits[1]))
    if len(wild):
        try:
            convert(int(found[wild[0]]))
        except EvaluationError as problem:
            row = int(tree.numbers[tree.row[which[wild[0]]]])
            raise EvaluationError(problem.message, where=f"row {row:,}", advice=problem.advice) from None


_MAKERS: dict[Family, Callable[[Tree, Ints, Kind], Any]] = {
    Family.NULL: lambda tree, which, kind: None,
    Family.BOOLEAN: lambda tree, which, kind: kind.id == TRUE,
    Family.INTEGER: _numbers,
    Family.FLOAT: _floats,
    Family.DECIMAL: _decimals,
    Family.DATE: _dates,
    Family.TIME: _times,
    Family.TIMESTAMP: _timestamps,
    Family.BINARY: _binaries,
    Family.STRING: _strings,
    Family.UUID: _uuids,
}
