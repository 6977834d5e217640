"""Rows given as Python values: a whole number or a fraction has no width, so the table's columns give it one."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.schema import to_arrow_type
from boathouse.engines.sources import columns_of_rows
from boathouse.types import Schema


def fitted(data: Any, schema: Schema) -> Any:
    """A list of dicts as columns in which numbers have the types that columns of the same name have in `schema`, if
    every value fits; other data as it is.

    Raises InvalidArgumentError for what is not a row, or values of several types in one column.
    """
    if not isinstance(data, list):
        return data
    found = columns_of_rows(data)
    exact = {f.name: f for f in schema}
    folded = {f.name.casefold(): f for f in schema}
    columns = {}
    for name, column in zip(found.column_names, found.columns, strict=True):
        field = exact.get(name) or folded.get(name.casefold())
        columns[name] = column if field is None else _fitted(data, name, column, to_arrow_type(field.type))
    return pa.table(columns)


def _fitted(rows: list[Any], name: str, column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray | pa.Array:
    narrow = _narrowed(column.type, wanted)
    if narrow == column.type:
        return column
    try:
        made = pa.array([row.get(name) for row in rows], narrow)
    except (pa.ArrowInvalid, OverflowError):
        return column  # the write says which type does not fit
    return column if _infinities(made) > _infinities(column) else made


def _narrowed(found: pa.DataType, wanted: pa.DataType) -> pa.DataType:
    """The type inferred from Python values, with the numbers in it as wide as wanted."""
    if pa.types.is_int64(found) and (pa.types.is_integer(wanted) or pa.types.is_floating(wanted)):
        return wanted
    if pa.types.is_float64(found) and pa.types.is_floating(wanted):
        return wanted
    if pa.types.is_struct(found) and pa.types.is_struct(wanted):
        there = {f.name: f.type for f in wanted}
        return pa.struct([f.with_type(_narrowed(f.type, there.get(f.name, f.type))) for f in found])
    if pa.types.is_list(found) and hasattr(wanted, "value_type"):
        return pa.list_(found.value_field.with_type(_narrowed(found.value_type, wanted.value_type)))
    return found


def _infinities(values: pa.Array | pa.ChunkedArray) -> int:
    """How many fractions are infinite, as one becomes that is too large; those inside of lists and structs are not
    looked at."""
    if not pa.types.is_floating(values.type):
        return 0
    return pc.sum(pc.is_inf(values)).as_py() or 0
