"""A variant as Python objects.

null None, boolean bool, int8 to int64 int, float and double float, decimals Decimal, date datetime.date, timestamp an
aware datetime in UTC, timestamp_ntz a naive datetime, time datetime.time, both nanosecond timestamps
numpy.datetime64[ns] (that of timestamp_nanos is UTC), binary bytes, string str, uuid uuid.UUID, object dict in stored
order, array list.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

from boathouse.errors import EvaluationError
from boathouse.variant.decode import (
    HEADER_SIZES,
    Container,
    check_layout,
    read_container,
    read_names,
    read_scalar,
    read_text,
    unknown_type,
    value_end,
)
from boathouse.variant.metadata import Metadata, unsigned
from boathouse.variant.primitives import KINDS, MAX_DEPTH, SHORT_STRING, Family, Kind, budget, kinds_of
from boathouse.variant.view import VariantView
from boathouse.variant.walk import over_budget, path_to, too_deep

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_EPOCH = datetime(1970, 1, 1)
_EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)
_ADVICE = "read `.scalar`, or extract it into an Arrow column"


def date_of(days: int) -> date:
    """Days since 1970-01-01 as a date. Raises EvaluationError outside the years 1 to 9999."""
    try:
        return date.fromordinal(days + _EPOCH_DAY)
    except (ValueError, OverflowError):
        raise EvaluationError(f"day {days:,} is outside Python's years 1 to 9999", advice=_ADVICE) from None


def datetime_of(micros: int, utc: bool) -> datetime:
    """Microseconds since 1970-01-01 as a datetime, aware if `utc`. Raises EvaluationError outside 1 to 9999."""
    try:
        return (_EPOCH_UTC if utc else _EPOCH) + timedelta(microseconds=micros)
    except OverflowError:
        raise EvaluationError(
            f"{micros:,} microseconds since 1970 are outside Python's years 1 to 9999", advice=_ADVICE
        ) from None


def nanos_of(nanos: int) -> Any:
    """Nanoseconds since 1970-01-01 as numpy.datetime64[ns]. Raises EvaluationError for the value that means NaT in
    numpy."""
    found = np.datetime64(nanos, "ns")
    if np.isnat(found):
        raise EvaluationError(f"{nanos:,} nanoseconds since 1970 are NaT in numpy", advice=_ADVICE)
    return found


def time_of(micros: int) -> time:
    """Microseconds since midnight as a time."""
    seconds, micros = divmod(micros, 1_000_000)
    return time(seconds // 3600, seconds // 60 % 60, seconds % 60, micros)


def decimal_of(unscaled: int, scale: int) -> Decimal:
    """The exact decimal, trailing zeros kept."""
    return Decimal(f"{unscaled}E-{scale}")


def _converter(kind: Kind) -> Callable[[Any], Any] | None:
    match kind.family:
        case Family.DECIMAL:
            return lambda pair: decimal_of(*pair)
        case Family.DATE:
            return date_of
        case Family.TIME:
            return time_of
        case Family.TIMESTAMP:
            return nanos_of if kind.digits == 9 else lambda micros: datetime_of(micros, kind.utc)
        case Family.UUID:
            return lambda raw: uuid.UUID(bytes=raw)
    return None


_CONVERTERS = [_converter(kind) for kind in KINDS]


def scalar_to_python(data: bytes, pos: int, end: int) -> Any:
    """The scalar at `pos` that ends at `end`."""
    header = data[pos]
    if header & 3:
        return read_text(data, pos + 1, end)
    found = read_scalar(data, pos, end)
    convert = _CONVERTERS[header >> 2]
    return found if convert is None else convert(found)


# By header byte: a reader for numbers, which need no checks.
_NUMBERS: list[Callable[[bytes, int], tuple[Any, ...]] | None] = [None] * 256
for _kind in kinds_of(Family.INTEGER, Family.FLOAT):
    _NUMBERS[_kind.id << 2] = struct.Struct(f"<{_kind.struct}").unpack_from


class _Reader:
    """The remaining work of one reading: containers found but not yet filled.

    `left` is the budget minus the bytes visited; a container's bytes are returned to it when the container is found in
    its parent and deducted when it is filled, so that those of a shared container are deducted each time.
    """

    __slots__ = ("data", "left", "metadata", "root", "work")

    def __init__(self, data: bytes, metadata: Metadata, pos: int, end: int) -> None:
        self.data = data
        self.metadata = metadata
        self.root = pos, end
        self.left = budget(end - pos) - (end - pos)
        self.work: list[tuple[Container, Any, int]] = []

    def found(self, pos: int, end: int, depth: int) -> tuple[Any, int]:
        """An empty container for the one at `pos`, to be filled later, and where it ends."""
        box = read_container(self.data, pos, end)
        if depth > MAX_DEPTH:
            raise too_deep(pos)
        target: Any = {} if box.is_object else []
        self.work.append((box, target, depth))
        self.left += box.end - pos
        return target, box.end

    def fill(self, box: Container, target: Any, depth: int) -> None:
        """Reads the children of one container into `target`."""
        data, stop = self.data, box.end
        self.left -= stop - box.pos
        items: list[Any] = []
        add = items.append
        expected, scattered = box.values_at, False
        for offset in unsigned(data, box.offsets_at, box.offset_size, box.elements):
            pos = box.values_at + offset
            if pos != expected and not scattered:
                scattered = self.scattered(box)
            header = data[pos] if pos < stop else 0
            expected = pos + HEADER_SIZES[header]
            if expected > stop:
                value_end(data, pos, stop)  # raises
            if header & 3 == SHORT_STRING:
                try:
                    add(data[pos + 1 : expected].decode())
                except UnicodeDecodeError:
                    read_text(data, pos + 1, expected)
            elif (number := _NUMBERS[header]) is not None:
                add(number(data, pos + 1)[0])
            elif header & 3:
                item, expected = self.found(pos, stop, depth + 1)
                add(item)
            else:
                expected = value_end(data, pos, stop)
                if expected < 0:
                    raise unknown_type(data, pos, path_to(data, *self.root, self.metadata, pos))
                add(scalar_to_python(data, pos, expected))
        if expected != stop and not scattered:
            check_layout(box, [box.values_at], [expected])
        if box.is_object:
            self.name(box, target, items)
        else:
            target.extend(items)

    def scattered(self, box: Container) -> bool:
        """Checks a container whose values are not consecutive, and the cost of sharing, before it is read."""
        offsets = unsigned(self.data, box.offsets_at, box.offset_size, box.elements)
        starts = [box.values_at + offset for offset in offsets]
        ends = [value_end(self.data, start, box.end) for start in starts]
        check_layout(box, starts, ends)
        spans = [(self.data[start] & 3 > SHORT_STRING, end - start) for start, end in zip(starts, ends) if end >= 0]
        self.left += box.end - box.values_at - sum(size for _, size in spans)
        # The bytes of containers are returned as they are found: only what is read at once may exceed the budget here.
        if self.left + sum(size for is_container, size in spans if is_container) < 0:
            raise over_budget(*self.root)
        return True

    def name(self, box: Container, target: dict[str, Any], items: list[Any]) -> None:
        """Puts the fields under their names."""
        target.update(zip(read_names(self.data, box, self.metadata), items))


def read_value(data: bytes, pos: int, end: int, metadata: Metadata) -> Any:
    """The value at `pos` as Python values; it may not extend beyond `end`.

    Raises MalformedVariant, UnsupportedFeatureError (primitive ids above 20, with the path), and EvaluationError
    for dates and timestamps that Python cannot hold.
    """
    stop = value_end(data, pos, end)
    if stop < 0:
        raise unknown_type(data, pos, path_to(data, 0, len(data), metadata, pos))
    if data[pos] & 3 <= SHORT_STRING:
        return scalar_to_python(data, pos, stop)
    reader = _Reader(data, metadata, pos, stop)
    root, _ = reader.found(pos, stop, 1)
    reader.left -= stop - pos
    while reader.work:
        reader.fill(*reader.work.pop())
        if reader.left < 0:
            raise over_budget(pos, stop)
    return root


def to_python(value: VariantView) -> Any:
    """The variant as Python values, by the rules of the module."""
    return read_value(value.buffer, *value.span, value.dictionary)
