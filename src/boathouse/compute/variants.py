"""The kernels of the functions on variants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.cast import cast
from boathouse.arrow.schema import to_arrow_type
from boathouse.arrow.vector import Value
from boathouse.bits.zones import Zone
from boathouse.types import DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ, VARIANT, DataType, TimestampType
from boathouse.variant.columns import layout
from boathouse.variant.columns.faults import Lenient
from boathouse.variant.columns.from_json import from_json
from boathouse.variant.columns.to_json import to_json
from boathouse.variant.extraction import extract, is_shredded
from boathouse.variant.schemas import schema_of
from boathouse.variant.shredding.unshred import unshred
from boathouse.variant.view import VariantView

Kernel = Callable[[list[Value], DataType], Value]
ZonedKernel = Callable[[list[Value], DataType, Zone | None], Value]


def _whole(array: pa.Array) -> pa.Array:
    return unshred(array) if is_shredded(array) else array


def _get(safe: bool) -> ZonedKernel:
    def run(args: list[Value], type: DataType, zone: Zone | None) -> Value:
        column, path = args[0], args[1].as_py()
        if zone is None or zone.utc:
            return _one_array(extract(column, path, type, safe=safe), type)
        found = extract(column, path, VARIANT, safe=safe)
        return _in_zone(found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found, type, safe, zone)

    return run


# Headers of primitive values (VariantEncoding.md, "Encoding types") whose cast to another type depends on a zone.
_DATE, _INSTANT, _CLOCK, _LONG_TEXT = 11 << 2, (12 << 2, 18 << 2), (13 << 2, 19 << 2), 16 << 2


def _in_zone(found: pa.Array, type: DataType, safe: bool, zone: Zone) -> pa.Array:
    """Scalars cast to a temporal type or to STRING: through their own type where the zone matters."""
    column = layout.column(found)
    there = column.start < column.end
    if column.valid is not None:
        there &= column.valid
    heads = np.zeros(column.rows, np.uint8)
    heads[there] = column.data[column.start[there]]
    if isinstance(type, TimestampType) and type.utc:
        ways: list[tuple[Any, DataType]] = [
            (there & ((heads & 3 == 1) | (heads == _LONG_TEXT)), STRING),
            (there & np.isin(heads, _CLOCK), TIMESTAMP_NTZ),
            (there & (heads == _DATE), DATE),
        ]
    else:
        ways = [(there & np.isin(heads, _INSTANT), TIMESTAMP)]
    used = np.logical_or.reduce([rows for rows, _ in ways])
    out = _one_array(extract(_only(found, ~used), "$", type, safe=safe), type)
    for rows, held in ways:
        if rows.any():
            values = _one_array(extract(_only(found, rows), "$", held, safe=safe), held)
            out = pc.coalesce(out, cast(values, held, type, safe, zone))
    return out


def _only(array: pa.Array, rows: npt.NDArray[np.bool_]) -> pa.Array:
    """The chosen rows, null elsewhere."""
    return array.take(pa.array(np.arange(len(array)), mask=~rows))


def _from_json(safe: bool) -> Kernel:
    def run(args: list[Value], type: DataType) -> Value:
        lenient = Lenient() if safe else None
        return _one_array(from_json(args[0], lenient=lenient), type)

    return run


def _one_array(made: Any, type: DataType) -> pa.Array:
    made = made.combine_chunks() if isinstance(made, pa.ChunkedArray) else made
    want = to_arrow_type(type)
    return made if made.type == want or pa.types.is_nested(want) else made.cast(want)


def _is_null(args: list[Value], type: DataType) -> Value:
    column = layout.column(_whole(args[0]))
    empty = column.start >= column.end
    null = ~empty
    null[null] = column.data[column.start[null]] == 0
    if column.valid is not None:
        null &= column.valid
    return pa.array(null)


def _schema_of(args: list[Value], type: DataType) -> Value:
    column = layout.column(_whole(args[0]))
    rows = range(column.rows)
    texts = [
        None if column.is_null(i) else str(schema_of(VariantView(column.metadata_bytes(i), column.value(i))))
        for i in rows
    ]
    return pa.array(texts, pa.string())


ZONED: dict[str, ZonedKernel] = {"variant_get": _get(False), "try_variant_get": _get(True)}
KERNELS: dict[str, Kernel] = {
    "is_variant_null": _is_null,
    "parse_json": _from_json(False),
    "try_parse_json": _from_json(True),
    "to_json": lambda a, t: _one_array(to_json(_whole(a[0]), special="string"), t),
    "schema_of_variant": _schema_of,
}
