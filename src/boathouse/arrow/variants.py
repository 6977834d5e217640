"""The kernels of the functions on variants.

The work is done by `boathouse.variant`, which stands above this package because it is made of Arrow arrays; so it is
named here, and loaded when a variant is first met.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from boathouse.arrow.schema import to_arrow_type
from boathouse.arrow.vector import Value
from boathouse.bits.late import Late
from boathouse.types import DataType

variant = Late("boathouse.variant")
layout = Late("boathouse.variant.columns.layout")
one = Late("boathouse.variant.schemas")
get = Late("boathouse.variant.shredding.get")
unshred = Late("boathouse.variant.shredding.unshred")

Kernel = Callable[[list[Value], DataType], Value]


def _is_shredded(array: pa.Array) -> bool:
    """Whether variants are as a shredded file has them: a path into them need not put the values together."""
    return bool(pa.types.is_struct(array.type) and array.type.get_field_index("typed_value") >= 0)


def _whole(array: pa.Array) -> pa.Array:
    return unshred.unshred(array) if _is_shredded(array) else array


def _get(safe: bool) -> Kernel:
    def run(args: list[Value], type: DataType) -> Value:
        column, path = args[0], args[1].as_py()
        home = get.get if _is_shredded(column) else variant.extract
        return _one_array(home(column, path, type, safe=safe), type)

    return run


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


KERNELS: dict[str, Kernel] = {
    "variant_get": _get(False),
    "try_variant_get": _get(True),
    "is_variant_null": _is_null,
    "parse_json": _from_json(False),
    "try_parse_json": _from_json(True),
    "to_json": lambda a, t: _one_array(variant.to_json(_whole(a[0]), special="string"), t),
    "schema_of_variant": _schema_of,
}
