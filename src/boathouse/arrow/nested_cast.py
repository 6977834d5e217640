"""CAST of lists, vectors, maps and structs: their elements, keys, values and fields are cast one by one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.layouts import laid_out, members, unwrapped
from boathouse.arrow.schema import to_arrow_field, to_arrow_type
from boathouse.arrow.selection import take
from boathouse.errors import EvaluationError
from boathouse.types import DataType, FixedSizeListType, ListType, MapType, StructType

Cast = Callable[[pa.Array, DataType, DataType], pa.Array]


def nested(array: pa.Array, source: DataType, to: DataType, cast: Cast) -> pa.Array:
    """The values as `to`; `cast` casts what is below. Raises EvaluationError for a list of another size than that of
    the vector."""
    array = unwrapped(array)
    match source, to:
        case (StructType(), StructType()):
            return _struct(array, source, to, cast)
        case (ListType(element) | FixedSizeListType(element, _), ListType(into)):
            offsets, (inner,), mask = laid_out(array)
            inner = cast(inner, element.type, into.type)
            return pa.ListArray.from_arrays(offsets, inner, to_arrow_type(to), mask=mask)
        case (ListType(element) | FixedSizeListType(element, _), FixedSizeListType(into, _)):
            return _vector(array, to, lambda inner: cast(inner, element.type, into.type))
        case (MapType(key, value), MapType(to_key, to_value)):
            offsets, (keys, items), mask = laid_out(array)
            keys, items = cast(keys, key.type, to_key.type), cast(items, value.type, to_value.type)
            return pa.MapArray.from_arrays(offsets, keys, items, to_arrow_type(to), mask=mask)
    raise EvaluationError(f"{source} cannot be cast to {to}")


def _struct(array: pa.StructArray, source: StructType, to: StructType, cast: Cast) -> pa.Array:
    given, made = members(array), []
    for f in to.fields:
        places = source.places.at(f.name)
        if places:
            made.append(cast(given[places[0]], source.fields[places[0]].type, f.type))
        else:
            made.append(pa.nulls(len(array), to_arrow_type(f.type)))
    mask = pc.is_null(array) if array.null_count else None
    return pa.StructArray.from_arrays(made, fields=[to_arrow_field(f) for f in to.fields], mask=mask)


def _vector(array: pa.Array, to: FixedSizeListType, cast: Callable[[pa.Array], pa.Array]) -> pa.Array:
    size = to.size
    lengths = pc.list_value_length(array)
    other = lengths.filter(pc.fill_null(pc.not_equal(lengths, size), False))
    if len(other):
        raise EvaluationError(f"a list of {other[0]} elements does not fit {to}")
    _, (inner,), mask = laid_out(array)
    inner = cast(inner)
    if mask is not None:
        # A vector has elements for null rows too: the given ones are distributed over all rows.
        there = np.repeat(pc.is_valid(array).to_numpy(zero_copy_only=False), size)
        inner = take(inner, pa.array(np.cumsum(there) - 1, mask=~there))
    return pa.FixedSizeListArray.from_arrays(inner, type=to_arrow_type(to), mask=mask)
