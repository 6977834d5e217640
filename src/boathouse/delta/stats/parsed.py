"""`stats_parsed` of a checkpoint: file statistics as a struct with the table's types (PROTOCOL.md, "Checkpoint
Schema").

Its bounds may have been converted from JSON, with JSON's truncation (`stats`), so they are not trusted any further: a
string of 32 characters or an instant of whole milliseconds may have been truncated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from boathouse import types as T
from boathouse.arrow.schema import to_arrow_type
from boathouse.delta.stats.bounds import STRING_PREFIX, StatsColumn, decimal_bound, rounded_to_float
from boathouse.delta.stats.written import NAN_COUNT
from boathouse.errors import SchemaMismatchError
from boathouse.parquet.convert import leaf_cast
from boathouse.table.units import column_stats_type

PARSED: Final = "stats_parsed"
ROWS, TIGHT, LOW, HIGH, NULLS = "numRecords", "tightBounds", "minValues", "maxValues", "nullCount"
_PLAIN: Final = (T.IntegerType, T.BooleanType, T.DateType)
_MS: Final = 1_000
_LATEST: Final = (1 << 63) - 1


def leaves(columns: Sequence[StatsColumn]) -> list[str]:
    """The columns of an add action that hold the statistics of these columns."""
    kinds = (LOW, HIGH, NULLS, NAN_COUNT)
    return [f"{PARSED}.{ROWS}", f"{PARSED}.{TIGHT}"] + [
        f"{PARSED}.{k}.{'.'.join(c.path)}" for c in columns for k in kinds
    ]


def member(array: pa.Array, *path: str) -> pa.Array | None:
    """The column at a path of structs, null where one of them is; None if it is absent."""
    for name in path:
        if not pa.types.is_struct(array.type) or array.type.get_field_index(name) < 0:
            return None
        array = array.flatten()[array.type.get_field_index(name)]
    return None if pa.types.is_struct(array.type) and path[-1] not in (LOW, HIGH, NULLS, NAN_COUNT) else array


def parsed_rows(parsed: pa.Array) -> pa.Array:
    """numRecords of each file; null if it is missing."""
    return _count(member(parsed, ROWS), len(parsed))


def decode_parsed(parsed: pa.Array, columns: Sequence[StatsColumn]) -> pa.StructArray:
    """The result of `decode_stats`, from structs."""
    fields = [pa.field(str(i), column_stats_type(to_arrow_type(c.type))) for i, c in enumerate(columns)]
    if not fields:
        return pa.array([{}] * len(parsed), pa.struct([]))
    return pa.StructArray.from_arrays([_column(parsed, c) for c in columns], fields=fields)


def _column(parsed: pa.Array, column: StatsColumn) -> pa.StructArray:
    count = len(parsed)
    tight = member(parsed, TIGHT)
    wide = pc.fill_null(pc.invert(tight), False) if tight is not None and tight.type == pa.bool_() else None
    bounds, exact = [], []
    for kind, upper in ((LOW, False), (HIGH, True)):
        found = member(parsed, kind, *column.path)
        values, sure = _bound(found, column, upper) if found is not None else _unknown(column.type, count)
        bounds.append(values)
        sure = sure if wide is None else pc.and_(sure, pc.invert(wide))
        exact.append(pc.if_else(pc.is_valid(values), sure, pa.scalar(None, pa.bool_())))
    rows = parsed_rows(parsed)
    nulls = _count(member(parsed, NULLS, *column.path), count)
    if wide is not None:
        sure = pc.or_(pc.equal(nulls, 0), pc.fill_null(pc.equal(nulls, rows), False))
        nulls = pc.if_else(pc.and_(wide, pc.invert(pc.fill_null(sure, False))), pa.scalar(None, pa.int64()), nulls)
    nans = _count(member(parsed, NAN_COUNT, *column.path), count)
    type = column_stats_type(to_arrow_type(column.type))
    return pa.StructArray.from_arrays([*bounds, *exact, nulls, nans, rows], fields=list(type))


def _count(found: pa.Array | None, count: int) -> pa.Array:
    if found is None or not pa.types.is_integer(found.type):
        return pa.nulls(count, pa.int64())
    found = cast_or_null(found, pa.int64())
    return pc.if_else(pc.greater_equal(found, 0), found, pa.scalar(None, pa.int64()))


def cast_or_null(array: pa.Array, type: pa.DataType, safe: bool = True) -> pa.Array:
    """The array as `type`; if that cannot hold it, all values are unknown."""
    try:
        return array if array.type == type else array.cast(type, safe=safe)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.nulls(len(array), type)


def _unknown(type: T.DataType, count: int) -> tuple[pa.Array, pa.Array]:
    return pa.nulls(count, to_arrow_type(type)), pa.nulls(count, pa.bool_())


def _bound(found: pa.Array, column: StatsColumn, upper: bool) -> tuple[pa.Array, pa.Array]:
    """Bounds in the table's type, and which are attained."""
    type = column.type
    target = to_arrow_type(type)
    kinds = (found.type, target)
    if _is_narrower(found.type, type):
        values = _widened(found, target)
        return values, pc.is_valid(values)
    if isinstance(type, _PLAIN) and (all(map(pa.types.is_integer, kinds)) or found.type == target):
        values = cast_or_null(found, target)
        return values, pc.is_valid(values)
    if isinstance(type, T.FloatType) and all(map(pa.types.is_floating, kinds)):
        values = cast_or_null(found, target)
        values = pc.if_else(pc.fill_null(pc.is_nan(values), False), pa.scalar(None, target), values)
        if column.was_float and found.type == target:
            near = pa.array([None if v is None else rounded_to_float(v) for v in values.to_pylist()], target)
            return (pc.max_element_wise if upper else pc.min_element_wise)(values, near), pc.equal(values, near)
        return values, pc.is_valid(values)
    if isinstance(type, T.StringType) and found.type in (pa.string(), pa.large_string()):
        values = cast_or_null(found, target)
        return values, pc.less(pc.utf8_length(values), STRING_PREFIX)
    if isinstance(type, T.TimestampType) and pa.types.is_timestamp(found.type):
        return _instants(found, target, upper)
    if isinstance(type, T.DecimalType) and pa.types.is_decimal(found.type):
        pairs = [decimal_bound(v, upper, type) for v in found.to_pylist()]
        return pa.array([v for v, _ in pairs], target), pa.array([e for _, e in pairs], pa.bool_())
    return _unknown(type, len(found))


def _is_narrower(stored: pa.DataType, type: T.DataType) -> bool:
    """Whether the struct was written before the column became one of another kind."""
    if pa.types.is_integer(stored):
        return isinstance(type, T.FloatType | T.DecimalType)
    return pa.types.is_date(stored) and isinstance(type, T.TimestampType) and not type.utc


def _widened(found: pa.Array, target: pa.DataType) -> pa.Array:
    """The bounds as the values of files are converted; if that is not possible, all are unknown."""
    try:
        convert = leaf_cast(found.type, target)
        return found if convert is None else convert(found)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, SchemaMismatchError):
        return pa.nulls(len(found), target)


def _instants(found: pa.Array, target: pa.DataType, upper: bool) -> tuple[pa.Array, pa.Array]:
    micros = cast_or_null(cast_or_null(found, pa.timestamp("us", target.tz), safe=False), pa.int64())
    exact = pc.not_equal(pc.subtract(micros, pc.multiply(pc.divide(micros, _MS), _MS)), 0)
    if upper:
        late = pc.greater(micros, _LATEST - _MS)
        moved = pc.add(pc.if_else(late, pa.scalar(None, pa.int64()), micros), _MS - 1)
    else:
        early = pc.less(micros, _MS - _LATEST)
        moved = pc.subtract(pc.if_else(early, pa.scalar(None, pa.int64()), micros), _MS - 1)
        moved = pc.if_else(pc.less(micros, 0), moved, micros)
    return pc.if_else(exact, micros, moved).view(target), exact


def overlaid(first: Any, second: Any, has_first: pa.Array) -> Any:
    """Values of `first` where it is not null, else of `second`."""
    if pc.all(has_first).as_py():
        return first
    return second if not pc.any(has_first).as_py() else pc.if_else(has_first, first, second)
