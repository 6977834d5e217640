"""Arrays without extensions, dictionaries and views; lists of every layout as the ordinary list, with our own offsets,
because Arrow's casts of list views give corrupt arrays."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.schema import to_arrow_type
from boathouse.arrow.selection import run_end_decoded, take
from boathouse.arrow.vector import Ints, decoded, nulls, ragged
from boathouse.types import DataType


def unwrapped(array: pa.Array) -> pa.Array:
    """The values without extension types, dictionaries and run ends around them."""
    while isinstance(array, pa.ExtensionArray | pa.DictionaryArray | pa.RunEndEncodedArray):
        if isinstance(array, pa.RunEndEncodedArray):
            array = run_end_decoded(array)
        elif isinstance(array, pa.DictionaryArray):
            nested = pa.types.is_nested(array.type.value_type)
            array = take(array.dictionary, array.indices) if nested else decoded(array)
        elif array.type.extension_name == "arrow.bool8":
            array = array.storage.cast(pa.bool_())
        else:
            array = array.storage
    return array


def is_list_view(type: pa.DataType) -> bool:
    return bool(pa.types.is_list_view(type) or pa.types.is_large_list_view(type))


def plain_list(array: pa.Array) -> pa.Array:
    """Large lists, list views and fixed-size lists as the ordinary list; lists and maps as they are.

    Raises ArrowInvalid if the offsets are outside the elements, or need more than 32 bits.
    """
    if pa.types.is_list(array.type) or pa.types.is_map(array.type):
        return array
    offsets, (inner,), mask = laid_out(array)
    return pa.ListArray.from_arrays(offsets, inner, pa.list_(array.type.value_field.with_type(inner.type)), mask=mask)


def laid_out(array: pa.Array) -> tuple[pa.Array, list[pa.Array], pa.Array | None]:
    """The offsets (32 bits), the concatenated elements (for a map its keys and its items) and the null mask.

    Of a list of any layout. Null rows have no elements. Raises ArrowInvalid as `plain_list` does.
    """
    starts, counts = _extents(array)
    missing = nulls(array)
    if missing is not None:
        counts = np.where(missing, 0, counts)
    children = [array.keys, array.items] if pa.types.is_map(array.type) else [array.values]
    filled = counts != 0
    at, long = starts[filled], counts[filled]
    if len(at) and (min(long.min(), at.min()) < 0 or (at + long).max() > len(children[0])):
        raise pa.ArrowInvalid(f"a {array.type} whose offsets are outside its {len(children[0]):,} elements")
    offsets = pa.array(np.concatenate(([0], np.cumsum(counts)))).cast(pa.int32())
    mask = None if missing is None else pa.array(missing)
    return offsets, _picked(children, at, long), mask


def _picked(children: list[pa.Array], at: Ints, long: Ints) -> list[pa.Array]:
    """For each child the runs of elements from `at` on, of the lengths `long`."""
    if not len(at):
        return [c.slice(0, 0) for c in children]
    if (at[1:] == at[:-1] + long[:-1]).all():
        return [c.slice(int(at[0]), int(long.sum())) for c in children]
    owner, slot = ragged(long)
    places = at[owner] + slot
    return [take(c, places) for c in children]


def _extents(array: pa.Array) -> tuple[Ints, Ints]:
    """Where the elements of each row begin, and how many there are."""
    if pa.types.is_fixed_size_list(array.type):
        size = array.type.list_size
        return (np.arange(len(array)) + array.offset) * size, np.full(len(array), size)
    edges = np.asarray(array.offsets.to_numpy(zero_copy_only=False), np.int64)
    if is_list_view(array.type):
        return edges, np.asarray(array.sizes.to_numpy(zero_copy_only=False), np.int64)
    return edges[:-1], np.diff(edges)


def member(array: pa.StructArray, at: int) -> pa.Array:
    """One field of a struct, null where the struct is, in a time that does not grow with the number of fields."""
    child = array.field(at)
    if not array.null_count:
        return child
    alone = pa.StructArray.from_arrays([child], fields=[array.type.field(at)], mask=array.is_null())
    return pc.struct_field(alone, [0])


def members(array: pa.StructArray) -> list[pa.Array]:
    """The fields of a struct, null where the struct is."""
    children = [array.field(i) for i in range(array.type.num_fields)]
    if not array.null_count:
        return children
    # Arrow adds a null bitmap to run ends, where it is not allowed, and does not support extension types.
    plain = [unwrapped(c) for c in children]
    fields = [f.with_type(c.type) for f, c in zip(array.type, plain)]
    whole = pa.StructArray.from_arrays(plain, fields=fields, mask=pc.is_null(array))
    return [pc.struct_field(whole, [i]) for i in range(len(children))]


def plain(array: pa.Array, type: DataType) -> pa.Array:
    """`array` in the layout of `to_arrow_type(type)`: without dictionaries, large and view layouts."""
    want = to_arrow_type(type)
    if array.type == want:
        return array
    array = unwrapped(array)
    if array.type == want or pa.types.is_nested(want):
        return array
    if pa.types.is_timestamp(want) and pa.types.is_timestamp(array.type) and array.type.unit == want.unit:
        return array.view(want)
    return array.cast(want)
