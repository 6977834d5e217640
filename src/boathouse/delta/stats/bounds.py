"""File statistics: JSON in the log, typed bounds in FILES (PROTOCOL.md, "Per-file Statistics").

What writers do to bounds: strings are truncated at 32 characters, instants at milliseconds, decimals may have been
converted to doubles, NaN is never counted, wide bounds are marked (`tightBounds` false). A bound that may have been
changed is inexact.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from boathouse import types as T
from boathouse.arrow.longs import longs
from boathouse.arrow.schema import to_arrow_type
from boathouse.bits.text import json_value
from boathouse.delta.features.type_changes import was_float
from boathouse.delta.partition_values import physical_array, timestamp_us
from boathouse.delta.schema import physical_name
from boathouse.delta.stats.written import NAN_COUNT
from boathouse.errors import CorruptTableError
from boathouse.table.units import column_stats_type

STRING_PREFIX: Final = 32
_FIRST: Final = '{"numRecords":'
_LEADING: Final = re.compile(re.escape(_FIRST) + "([0-9]{1,17})[,}]")
_FRACTION: Final = re.compile(r"\.(\d+)")
_OFFSET: Final = re.compile(r"[+-]\d\d:?(\d\d)$")
_MS_REST: Final = 999
EXACT_DOUBLE: Final = 10**15
DOUBLE_DIGITS: Final = 17
_WIDE: Final = Context(prec=80)

Bounds = tuple[Any, Any, bool, bool]
"""Lower, upper, and whether each is attained; None is unknown."""


@dataclass(frozen=True, slots=True)
class StatsColumn:
    """A leaf whose statistics are requested: its type, its physical path in the JSON, and whether it is a double that
    was a float, so that bounds may be the rounded text of a float."""

    type: T.DataType
    path: tuple[str, ...]
    was_float: bool = False


def stats_column(schema: T.Schema, path: Sequence[str]) -> StatsColumn:
    """The column at a logical path. Raises ColumnNotFoundError for an unknown top-level one."""
    found: T.Field = schema.field(path[0])
    physical = [physical_name(found)]
    for name in path[1:]:
        if not isinstance(found.type, T.StructType):
            break
        found = T.Schema(found.type.fields).field(name)
        physical.append(physical_name(found))
    return StatsColumn(found.type, tuple(physical), was_float(found))


def row_counts(stats: pa.Array) -> pa.Array:
    """numRecords of each file; null if it is missing.

    Almost every writer writes it as the first key; it is then read from the bytes without parsing JSON.
    """
    found = _leading_counts(stats)
    odd = (found < 0) & np.asarray(stats.is_valid().to_numpy(zero_copy_only=False), bool)
    for i in np.flatnonzero(odd):
        count = row_count(stats[int(i)].as_py())
        found[i] = -1 if count is None else count
    return longs(found, found >= 0)


def row_count(text: str | None) -> int | None:
    """numRecords of one file; None if it is missing. The rest of a text that begins with it is not parsed."""
    leading = _LEADING.match(text or "")
    return int(leading[1]) if leading else natural((document_of(text) or {}).get("numRecords"))


def _leading_counts(stats: pa.Array) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The number after `{"numRecords":`, and -1 if the text does not begin so."""
    count = len(stats)
    _, offsets, data = stats.buffers()
    good = np.asarray(pc.fill_null(pc.starts_with(stats, _FIRST), False).to_numpy(zero_copy_only=False), bool)
    if not good.any():
        return np.full(count, -1, np.int64)
    ends = np.frombuffer(offsets, np.int32)[stats.offset : stats.offset + count + 1]
    text = np.frombuffer(data, np.uint8)
    at, end = ends[:-1] + len(_FIRST), ends[1:] - 1
    number = np.zeros(count, np.int64)
    digits = np.zeros(count, np.int64)
    open_ = good
    while open_.any():
        chars = text[np.minimum(at, end)]
        open_ = open_ & (chars >= 48) & (chars <= 57) & (at < end)
        number = np.where(open_, number * 10 + chars - 48, number)
        digits += open_
        at = at + 1
    last = text[np.minimum(ends[:-1] + len(_FIRST) + digits, end)]
    return np.where(good & (digits > 0) & (digits < 18) & ((last == ord(",")) | (last == ord("}"))), number, -1)


def decode_stats(stats: pa.Array, columns: Sequence[StatsColumn]) -> pa.StructArray:
    """The `stats` column of FILES for these columns. Statistics that cannot be parsed are unknown."""
    exact = any(isinstance(c.type, T.DecimalType) for c in columns)
    documents = [document_of(text, exact) if text else None for text in stats.to_pylist()]
    fields = [pa.field(str(i), column_stats_type(to_arrow_type(c.type))) for i, c in enumerate(columns)]
    arrays = [_decode_column(documents, c) for c in columns]
    if not fields:
        return pa.array([{}] * len(stats), pa.struct([]))
    return pa.StructArray.from_arrays(arrays, fields=fields)


def document_of(text: str | None, exact: bool = False) -> dict[str, Any] | None:
    """Statistics as JSON, None for text that is not JSON; `exact` reads numbers as decimals."""
    if not text:
        return None
    try:
        found = json.loads(text, parse_float=Decimal) if exact else orjson.loads(text)
    except (ValueError, RecursionError):
        try:
            found = json_value(text, None)
        except CorruptTableError:
            return None
    return found if isinstance(found, dict) else None


def _decode_column(documents: Sequence[dict[str, Any] | None], column: StatsColumn) -> pa.StructArray:
    reader = _reader(column.type, column.was_float)
    lower, upper, lower_exact, upper_exact, nulls, nans, values = ([] for _ in range(7))
    for document in documents:
        document = document or {}
        bounds = _bounds(document, column.path, reader)
        lower.append(bounds[0])
        upper.append(bounds[1])
        lower_exact.append(None if bounds[0] is None else bounds[2])
        upper_exact.append(None if bounds[1] is None else bounds[3])
        rows = natural(document.get("numRecords"))
        values.append(rows)
        nulls.append(_nulls(document, column.path, rows))
        nans.append(natural(value_at(document.get(NAN_COUNT), column.path)))
    type = to_arrow_type(column.type)
    count = len(documents)
    bounds_arrays = [physical_array(v, column.type) if reader else pa.nulls(count, type) for v in (lower, upper)]
    exact = [pa.array(v, pa.bool_()) for v in (lower_exact, upper_exact)]
    counts = [pa.array(v, pa.int64()) for v in (nulls, nans, values)]
    return pa.StructArray.from_arrays([*bounds_arrays, *exact, *counts], fields=list(column_stats_type(type)))


def _bounds(document: dict[str, Any], path: tuple[str, ...], reader: Reader | None) -> Bounds:
    if reader is None:
        return None, None, False, False
    low, high = value_at(document.get("minValues"), path), value_at(document.get("maxValues"), path)
    tight = document.get("tightBounds") is not False
    lower = _read(reader, low, False)
    upper = _read(reader, high, True)
    return lower[0], upper[0], tight and lower[1], tight and upper[1]


def _read(reader: Reader, value: Any, upper: bool) -> tuple[Any, bool]:
    if value is None:
        return None, False
    try:
        return reader(value, upper)
    except (ValueError, TypeError, ArithmeticError, OverflowError):
        return None, False


def value_at(values: Any, path: tuple[str, ...]) -> Any:
    """The scalar at a path of objects, None if there is none."""
    for name in path:
        if not isinstance(values, dict):
            return None
        values = values.get(name)
    return None if isinstance(values, dict | list) else values


def _nulls(document: dict[str, Any], path: tuple[str, ...], rows: int | None) -> int | None:
    count = natural(value_at(document.get("nullCount"), path))
    if document.get("tightBounds") is False and count not in (0, rows):
        return None
    return count


def natural(value: Any) -> int | None:
    """A count; None for any other value."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63 else None


def has_bounds(type: T.DataType) -> bool:
    """Whether a column of the type has a least and a greatest value in statistics."""
    return _reader(type) is not None


def raw_bound(value: Any, column: StatsColumn, upper: bool) -> Any:
    """A bound of the JSON as stored in a struct: instants are not widened, as the reader of the struct does that."""
    type = column.type
    reader = _reader(type, column.was_float)
    if reader is None or value is None:
        return None
    found = _read(reader, value, upper)[0]
    if found is None or not isinstance(type, T.TimestampType):
        return found
    recorded = timestamp_us(value)
    if abs(found - recorded) <= _MS_REST:
        return recorded
    return -(-found // 1000) * 1000 if upper else found // 1000 * 1000


Reader = Callable[[Any, bool], tuple[Any, bool]]
"""(JSON value, is it the upper bound) -> physical value and whether it is attained; raises ValueError."""


def _reader(type: T.DataType, was_float: bool = False) -> Reader | None:
    match type:
        case T.IntegerType(bits):
            return lambda value, _: (_integer(value, bits), True)
        case T.FloatType():
            return _float_or_double if was_float else _float
        case T.DecimalType(precision, scale):
            return lambda value, upper: _decimal(value, upper, precision, scale)
        case T.StringType():
            return _string
        case T.BooleanType():
            return lambda value, _: (value if isinstance(value, bool) else None, True)
        case T.DateType():
            return lambda value, _: (timestamp_us(value[:10]) // 86_400_000_000, True)
        case T.TimestampType():
            return _timestamp
    return None


def _integer(value: Any, bits: int) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if -(1 << (bits - 1)) <= value < 1 << (bits - 1) else None


def _float(value: Any, upper: bool) -> tuple[float | None, bool]:
    if isinstance(value, bool):
        return None, False
    found = float(value)
    # Writers that order NaN below numbers, or leave it out, write the same bounds: a NaN bound is meaningless.
    return (None, False) if found != found else (found, True)


def _float_or_double(value: Any, upper: bool) -> tuple[float | None, bool]:
    """The bound of a column whose older files have floats: `3.4` is then the float next to 3.4."""
    found, _ = _float(value, upper)
    if found is None:
        return None, False
    near = rounded_to_float(found)
    return (max if upper else min)(found, near), near == found


def rounded_to_float(value: float) -> float:
    """The 32-bit float nearest to a number; the number itself if it is beyond them."""
    with np.errstate(over="ignore"):
        near = float(np.float32(value))
    return near if math.isfinite(near) else value


def _string(value: Any, upper: bool) -> tuple[str | None, bool]:
    if not isinstance(value, str):
        return None, False
    return value, len(value) < STRING_PREFIX


def _timestamp(value: Any, upper: bool) -> tuple[int | None, bool]:
    found = timestamp_us(value)
    fraction = _FRACTION.search(value)
    exact = fraction is not None and len(fraction[1]) > 3
    slack = 0 if exact else _MS_REST
    if (offset := _OFFSET.search(value)) is not None and int(offset[1]) % 15:
        slack += 60_000_000  # a local mean time whose seconds the writer may have dropped
        exact = False
    found += slack if upper else -slack if found < 0 or slack > _MS_REST else 0
    return (found, exact) if -(1 << 63) <= found < 1 << 63 else (None, False)


def decimal_bound(value: Decimal | None, upper: bool, type: T.DecimalType) -> tuple[Decimal | None, bool]:
    """A bound of a decimal column as stored in a struct, and whether it is attained."""
    if value is None:
        return None, False
    return _decimal(value, upper, type.precision, type.scale, typed=True)


def _decimal(value: Any, upper: bool, precision: int, scale: int, typed: bool = False) -> tuple[Decimal | None, bool]:
    """A value that is `typed` has all its digits, however it was converted."""
    if isinstance(value, bool):
        return None, False
    number = Decimal(value) if not isinstance(value, float) else Decimal(repr(value))
    unscaled = abs(_WIDE.scaleb(number, scale))
    exact = unscaled < EXACT_DOUBLE or (not typed and _spelled_in_full(number, scale))
    if not exact:
        # It may have been converted to a double: the true bound is at most one unit in the last place away.
        slack = _WIDE.multiply(abs(number), Decimal(2) ** -52)
        number = _WIDE.add(number, slack if upper else -slack)
    rounding = ROUND_CEILING if upper else ROUND_FLOOR
    found = number.quantize(Decimal(1).scaleb(-scale), rounding=rounding, context=_WIDE)
    if abs(_WIDE.scaleb(found, scale)) >= 10**precision:
        return None, False
    return found, exact and found == number


def _spelled_in_full(number: Decimal, scale: int) -> bool:
    _, digits, exponent = number.as_tuple()
    return len(digits) > DOUBLE_DIGITS and isinstance(exponent, int) and exponent in (0, -scale)
