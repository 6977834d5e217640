"""The kernels of the functions on variants.

They are implemented in `boathouse.variant`, which is above this package in the import layers because it works on Arrow
arrays; so it is named here, and imported when a variant first occurs.
"""

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
from boathouse.bits.lazy_import import Late
from boathouse.bits.zones import Zone
from boathouse.types import DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ, VARIANT, DataType, TimestampType

variant = Late("boathouse.variant")
layout = Late("boathouse.variant.columns.layout")
one = Late("boathouse.variant.schemas")
get = Late("boathouse.variant.shredding.get")
unshred = Late("boathouse.variant.shredding.unshred")

Kernel = Callable[[list[Value], DataType], Value]
ZonedKernel = Callable[[list[Value], DataType, Zone | None], Value]


def _is_shredded(array: pa.Array) -> bool:
    """Whether variants have the layout of a shredded file: a path into them does not need whole values."""
    return bool(pa.types.is_struct(array.type) and array.type.get_field_index("typed_value") >= 0)


def _whole(array: pa.Array) -> pa.Array:
    return unshred.unshred(array) if _is_shredded(array) else array


def _get(safe: bool) -> ZonedKernel:
    def run(args: list[Value], type: DataType, zone: Zone | None) -> Value:
        column, path = args[0], args[1].as_py()
        home = get.get if _is_shredded(column) else variant.extract
        if zone is None or zone.utc:
            return _one_array(home(column, path, type, safe=safe), type)
        found = home(column, path, VARIANT, safe=safe)
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
    out = _one_array(variant.extract(_only(found, ~used), "$", type, safe=safe), type)
    for rows, held in ways:
        if rows.any():
            values = _one_array(variant.extract(_only(found, rows), "$", held, safe=safe), held)
            out = pc.coalesce(out, cast(values, held, type, safe, zone))
    return out


def _only(array: pa.Array, rows: npt.NDArray[np.bool_]) -> pa.Array:
    """The chosen rows, null elsewhere."""
    return array.take(pa.array(np.arange(len(array)), mask=~rows))


def _from_json(safe: bool) -> Kernel:
    def run(args: list[Value], type: DataType) -> Value:
        lenient = variant.Lenient() if safe else None
        return _one_array(variant.from_json(args[0], lenient=lenient), type)

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
        None if column.is_null(i) else str(one.schema_of(variant.Variant(column.metadata_bytes(i), column.value(i))))
        for i in rows
    ]
    return pa.array(texts, pa.string())


ZONED: dict[str, ZonedKernel] = {"variant_get": _get(False), "try_variant_get": _get(True)}
KERNELS: dict[str, Kernel] = {
    "is_variant_null": _is_null,
    "parse_json": _from_json(False),
    "try_parse_json": _from_json(True),
    "to_json": lambda a, t: _one_array(variant.to_json(_whole(a[0]), special="string"), t),
    "schema_of_variant": _schema_of,
}
