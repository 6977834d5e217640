"""The partitions that written files are in: which units of a table are in the same ones, and which rows can be."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.keys import KeyIndex
from boathouse.arrow.literals import to_literal
from boathouse.expr.resolve import resolve_path
from boathouse.expr.text import UNITS_PER_SECOND, days_from_civil
from boathouse.expr.tree import TRUE, Column, Comparison, Expr, In, IsNull, Literal, all_of, any_of
from boathouse.types import (
    BOOLEAN,
    DataType,
    DateType,
    FloatType,
    PartitionField,
    PartitionSpec,
    Schema,
    TimestampType,
)

_LISTED: Final = 1000
"""A condition does not list more values than these."""
_SECONDS_PER_DAY: Final = 86_400


def units_among(units: pa.Table, files: pa.Table, spec: PartitionSpec) -> pa.Table:
    """The FILES rows of `spec` in the partitions of these files, OUTCOMES rows that were written with it.

    A unit of another spec is in no partition of this one, though some of its rows may be: Iceberg's reference leaves
    it, too.
    """
    units = units.filter(pc.equal(units.column("spec"), spec.id))
    written = [_values(files, f) for f in spec]
    there = [_values(units, f).cast(w.type) for f, w in zip(spec, written, strict=True)]
    index = KeyIndex.of(written, null_matches=True, signed_zeros=True)
    return units.filter(pa.array(index.lookup(there) >= 0))


def rows_among(files: pa.Table, spec: PartitionSpec, schema: Schema) -> Expr:
    """A condition, bound to the schema, that every row of the partitions of these files satisfies; others may, too."""
    return all_of([_rows_of(_values(files, f).unique(), f, schema) for f in spec])


def _values(rows: pa.Table, field: PartitionField) -> pa.ChunkedArray:
    return pc.struct_field(rows.column("partition"), [rows.column("partition").type.get_field_index(str(field.id))])


def _rows_of(values: pa.Array, field: PartitionField, schema: Schema) -> Expr:
    """What the values of one partition field say of its column; TRUE where that is not known or not worth it."""
    if field.transform.name in ("void", "unknown"):  # the column may have been dropped
        return TRUE
    path, type = resolve_path(field.source, schema)
    column = Column(path, type=type)
    found = values.drop_null()
    parts: list[Expr] = [] if len(found) == len(values) else [IsNull(column, type=BOOLEAN)]
    if len(found):
        some = (_identical if field.transform.name == "identity" else _between)(column, found, field)
        if some is None:
            return TRUE
        parts.append(some)
    return any_of(parts)


def _identical(column: Column, values: pa.Array, field: PartitionField) -> Expr | None:
    """Floats are left out: a zero of either sign is equal to the other, and is another partition."""
    type = column.type
    if type is None or type != field.type or isinstance(type, FloatType) or len(values) > _LISTED:
        return None
    return In(column, tuple(to_literal(v, type) for v in values), type=BOOLEAN)


def _between(column: Column, values: pa.Array, field: PartitionField) -> Expr | None:
    """From the start of the first year, month, day or hour to the end of the last."""
    type = column.type
    if field.transform.name not in ("year", "month", "day", "hour") or not isinstance(type, DateType | TimestampType):
        return None
    ends = pc.min_max(values.view(pa.int32()))
    # Early writers rounded instants before 1970 up.
    first = ends["min"].as_py() - (ends["min"].as_py() <= 0)
    lower, upper = _literal(field, first, type), _literal(field, ends["max"].as_py() + 1, type)
    tests: list[Expr] = [] if lower is None else [Comparison(">=", column, lower, type=BOOLEAN)]
    if upper is not None:
        tests.append(Comparison("<", column, upper, type=BOOLEAN))
    return all_of(tests)


def _literal(field: PartitionField, value: int, type: DateType | TimestampType) -> Literal | None:
    """Where this year, month, day or hour since 1970 begins; None beyond the type."""
    days: int | None = value
    match field.transform.name:
        case "year":
            days = days_from_civil(1970 + value, 1, 1)
        case "month":
            days = days_from_civil(1970 + value // 12, value % 12 + 1, 1)
    assert days is not None
    if isinstance(type, DateType):
        return _fitting(days, np.int32, type)
    seconds = value * 3600 if field.transform.name == "hour" else days * _SECONDS_PER_DAY
    return _fitting(seconds * UNITS_PER_SECOND[type.unit], np.int64, type)


def _fitting(value: int, bits: type[np.int32] | type[np.int64], type: DataType) -> Literal | None:
    return Literal(value, type=type) if np.iinfo(bits).min <= value <= np.iinfo(bits).max else None
