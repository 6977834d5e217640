"""Converts encoded primitives to the typed column of exactly their type, or of a wider one of the same class."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse import types as T
from boathouse.arrow.schema import to_arrow_type
from boathouse.bits.unaligned import Ints, Mask, copy, gather
from boathouse.variant import primitives as ids
from boathouse.variant.columns.byte_columns import splits_of
from boathouse.variant.columns.byte_slices import is_utf8, validity
from boathouse.variant.columns.nodes import SIZE, Nodes
from boathouse.variant.shredding.primitives import beyond, kind_of

Kinds = npt.NDArray[np.uint8]


def decode(
    type: T.DataType, nodes: Nodes, kinds: Kinds, index: Ints, count: int, widen: bool = False
) -> tuple[pa.Array, Ints]:
    """The typed column, `count` long (node k is instance `index[k]`), and the nodes that do not fit it.

    A decimal fits by its width, scale and precision; a string must be UTF-8; a time of day must be one. With `widen`,
    narrower integers fit too, and narrower decimals of the same scale.
    MalformedVariant for nodes that are cut short or not UTF-8.
    """
    kind = kind_of(type)
    fits = (kinds == ids.TRUE) | (kinds == ids.FALSE) if isinstance(type, T.BooleanType) else kinds == kind.id
    if widen and isinstance(type, T.IntegerType | T.DecimalType):
        # The ids of integers, and of decimals, are in the order of their widths.
        narrowest = ids.INT8 if isinstance(type, T.IntegerType) else ids.DECIMAL4
        fits = (kinds >= narrowest) & (kinds <= kind.id)
    if isinstance(type, T.StringType | T.BinaryType):
        mine = np.flatnonzero(fits)
        return _texts(type, nodes.take(mine), index[mine], count), np.flatnonzero(~fits)
    if isinstance(type, T.BooleanType):
        mine = np.flatnonzero(fits)
        values = np.zeros(count, np.bool_)
        values[index[mine]] = kinds[mine] == ids.TRUE
        bits = pa.py_buffer(np.packbits(values, bitorder="little"))
        return pa.Array.from_buffers(pa.bool_(), count, [validity(index[mine], count), bits]), np.flatnonzero(~fits)
    mine = np.flatnonzero(fits)
    some = nodes.take(mine)
    sizes = some.sizes()
    if some.faults.bad is not None:
        # Malformed ones cannot be read; their rows are recorded.
        whole = some.pos + sizes <= some.end
        whole &= sizes == SIZE[kinds[mine] << 2]
        fits[mine[~whole]] = False
        mine, some = mine[whole], some.take(whole)
    values, good = _contents(type, kind, some, kinds[mine])
    if good is not None:
        fits[mine[~good]] = False
        mine, values = mine[good], values[good]
    return _fixed(type, values, index[mine], count), np.flatnonzero(~fits)


def _contents(type: T.DataType, kind: ids.Kind, nodes: Nodes, kinds: Kinds) -> tuple[npt.NDArray[Any], Mask | None]:
    """The content of Arrow's buffer for each node, and which nodes fit (None: all)."""
    if isinstance(type, T.DecimalType):
        return _decimals(type, nodes, kinds)
    if isinstance(type, T.IntegerType):
        whole = np.empty(len(nodes), kind.number)
        for id in np.unique(kinds).tolist():
            mine = kinds == id
            whole[mine] = gather(nodes.data, nodes.pos[mine] + 1, ids.KINDS[id].number)
        return whole, None
    values = gather(nodes.data, nodes.pos + 1, kind.number)
    if isinstance(type, T.TimeType):
        return values, (values >= 0) & (values < ids.DAY_MICROS)
    return values, None


def _decimals(type: T.DecimalType, nodes: Nodes, kinds: Kinds) -> tuple[npt.NDArray[Any], Mask | None]:
    words = np.empty((len(nodes), 2), "<i8")
    for id in np.unique(kinds).tolist():
        mine = kinds == id
        pos = nodes.pos[mine] + 2
        if id == ids.DECIMAL16:
            words[mine] = gather(nodes.data, pos, "V16").view("<i8").reshape(-1, 2)
        else:
            words[mine, 0] = gather(nodes.data, pos, ids.KINDS[id].number)
            words[mine, 1] = words[mine, 0] >> 63
    good = nodes.data[nodes.pos + 1] == type.scale
    good &= ~beyond(words[:, 0], words[:, 1], type.precision)
    return words.view("V16").ravel(), good


def _fixed(type: T.DataType, values: npt.NDArray[Any], index: Ints, count: int) -> pa.Array:
    whole = np.zeros(count, values.dtype)
    whole[index] = values
    storage = pa.binary(16) if isinstance(type, T.UUIDType) else to_arrow_type(type)
    made = pa.Array.from_buffers(storage, count, [validity(index, count), pa.py_buffer(whole.view(np.uint8))])
    return pa.ExtensionArray.from_storage(pa.uuid(), made) if isinstance(type, T.UUIDType) else made


def _texts(type: T.DataType, nodes: Nodes, index: Ints, count: int) -> pa.Array:
    sizes = nodes.sizes()
    lead = np.where((nodes.headers() & 3) == ids.SHORT_STRING, 1, 5)
    lengths = np.zeros(count, np.int64)
    lengths[index] = np.maximum(sizes - lead, 0)
    offsets = splits_of(lengths)
    data = np.empty(int(offsets[-1]), np.uint8)
    copy(data, offsets[index], nodes.data, nodes.pos + lead, lengths[index])
    buffers = [validity(index, count), pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    binary = pa.Array.from_buffers(pa.binary(), count, buffers)
    if isinstance(type, T.BinaryType):
        return binary
    try:
        return binary.cast(pa.string())
    except pa.ArrowInvalid:
        return _checked(binary, nodes, index, count)


def _checked(binary: pa.Array, nodes: Nodes, index: Ints, count: int) -> pa.Array:
    """Strings, some of which are not UTF-8: MalformedVariant for the first; in lenient reading they become empty."""
    raw = binary.to_pylist()
    good = np.array([is_utf8(raw[i]) for i in index.tolist()], np.bool_)
    nodes.check(good, "a string is not UTF-8")
    for i in index[~good].tolist():
        raw[i] = b""
    return pa.array(raw, pa.binary()).cast(pa.string())
