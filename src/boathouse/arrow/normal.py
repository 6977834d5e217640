"""Arrow data as writers take it that see only values: nothing below a null, and no offsets into what is below."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.layouts import laid_out, members


def _itself(array: pa.Array) -> pa.Array:
    return array


def normal(array: pa.Array, leaf: Callable[[pa.Array], pa.Array] = _itself) -> pa.Array:
    """The array with what `leaf` makes of each of its leaves, also of another type; every field may be null. What is
    below a null is null, or nothing."""
    type = array.type
    if pa.types.is_struct(type):
        children = [normal(child, leaf) for child in members(array)]
        fields = [pa.field(f.name, c.type) for f, c in zip(type, children)]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(children, fields=fields, mask=mask)
    if not (pa.types.is_list(type) or pa.types.is_map(type)):
        return leaf(array)
    offsets, below, mask = laid_out(array)
    children = [normal(child, leaf) for child in below]
    if pa.types.is_map(type):
        fields = [pa.field("key", children[0].type, False), pa.field("value", children[1].type)]
        child = pa.StructArray.from_arrays(children, fields=fields)
        made = pa.map_(fields[0].type, fields[1].type)
    else:
        child = children[0]
        made = pa.list_(pa.field("element", child.type))
    valid = None if mask is None else pc.invert(mask).buffers()[1]
    return pa.Array.from_buffers(made, len(array), [valid, offsets.buffers()[1]], children=[child])
