"""Encodes a column as pages of version 2.0: one for the field and one for each field below it, depth first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse.bits.protobuf import Message
from boathouse.errors import UnsupportedFeatureError
from boathouse.lance.file import messages as m
from boathouse.lance.file.encoded_page import EncodedPage
from boathouse.lance.file.plain import Bits, Fixed, Nulls, Plain, Var, Vectors, compact, plain_of
from boathouse.lance.file.schema import Node

Mask = npt.NDArray[np.bool_]
_ADVICE = "write the table with version 2.2"


def encode_arrays(node: Node, array: pa.Array) -> Iterator[EncodedPage]:
    """The page of each column, whose types are storable. Raises UnsupportedFeatureError for null structs, which version
    2.0 has no place for."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        array, kind = array.storage, kind.storage_type
    if pa.types.is_struct(kind):
        if array.null_count:
            raise UnsupportedFeatureError(f"null structs in `{node.name}` in a file of version 2.0", advice=_ADVICE)
        yield EncodedPage([], m.ArrayEncoding(struct=Message()), len(array))
        for i, child in enumerate(node.children):
            yield from encode_arrays(child, array.field(i))
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _list(node, array)
    else:
        buffers: list[bytes] = []
        yield EncodedPage(buffers, _leaf(array, buffers), len(array))


def _valid(array: pa.Array) -> Mask:
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)


def _list(node: Node, array: pa.Array) -> Iterator[EncodedPage]:
    """END offsets from the first item of the page; a null list has the number of items + 1 added."""
    offsets = np.asarray(array.offsets, dtype=np.int64)
    valid = _valid(array)
    lengths = np.where(valid, np.diff(offsets), 0)
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    buffers: list[bytes] = []
    indices = _flat(np.where(valid, ends, ends + total + 1).astype("<u8"), 64, buffers)
    encoding = m.ArrayList(offsets=_no_nulls(indices), null_offset_adjustment=total + 1, num_items=total)
    yield EncodedPage(buffers, m.ArrayEncoding(list=encoding), len(array))
    start = int(offsets[0]) if len(offsets) else 0
    items = array.values.slice(start, int(offsets[-1]) - start) if len(offsets) else array.values
    if total != len(items):
        items = items.take(pa.array(np.flatnonzero(np.repeat(valid, np.diff(offsets)))))
    yield from encode_arrays(node.children[0], items)


def _flat(data: npt.NDArray[Any], bits: int, buffers: list[bytes]) -> m.ArrayEncoding:
    buffers.append(np.ascontiguousarray(data).tobytes())
    return m.ArrayEncoding(flat=m.ArrayFlat(bits_per_value=bits, buffer=m.BufferRef(buffer_index=len(buffers) - 1)))


def _no_nulls(values: m.ArrayEncoding) -> m.ArrayEncoding:
    return m.ArrayEncoding(nullable=m.Nullable(no_nulls=m.NoNulls(values=values)))


def _leaf(array: pa.Array, buffers: list[bytes]) -> m.ArrayEncoding:
    kind = array.type
    if pa.types.is_null(kind):
        return m.ArrayEncoding(nullable=m.Nullable(all_nulls=Message()))
    if pa.types.is_dictionary(kind):
        return _dictionary(array, buffers)
    valid = _valid(array) if array.null_count else None
    plain = plain_of(array)
    if isinstance(plain, Var):
        return _strings(plain, valid, buffers)
    if not len(array) or (valid is not None and not valid.any()):
        return m.ArrayEncoding(nullable=m.Nullable(all_nulls=Message()))
    return _values(plain, valid, buffers)


def _values(plain: Plain, valid: Mask | None, buffers: list[bytes]) -> m.ArrayEncoding:
    if isinstance(plain, Nulls):
        return m.ArrayEncoding(nullable=m.Nullable(all_nulls=Message()))
    if valid is None:
        return _no_nulls(_items(plain, buffers))
    bitmap = _flat(np.packbits(valid, bitorder="little"), 1, buffers)
    some = m.SomeNulls(validity=bitmap, values=_items(plain, buffers))
    return m.ArrayEncoding(nullable=m.Nullable(some_nulls=some))


def _items(plain: Plain, buffers: list[bytes]) -> m.ArrayEncoding:
    if isinstance(plain, Vectors):
        items = _values(plain.items, plain.valid, buffers)
        return m.ArrayEncoding(fixed_size_list=m.ArrayFixedSizeList(dimension=plain.dimension, items=items))
    if isinstance(plain, Bits):
        return _flat(np.packbits(plain.data, bitorder="little"), 1, buffers)
    assert isinstance(plain, Fixed)
    return _flat(plain.data, plain.width * 8, buffers)


def _strings(plain: Var, valid: Mask | None, buffers: list[bytes]) -> m.ArrayEncoding:
    if valid is not None:
        plain = compact(plain, valid)
    ends = plain.offsets[1:]
    adjustment = len(plain.data) + 1
    if valid is not None:
        ends = np.where(valid, ends, ends + adjustment)
    indices = _no_nulls(_flat(ends.astype("<u8"), 64, buffers))
    body = _flat(plain.data, 8, buffers)
    return m.ArrayEncoding(binary=m.ArrayBinary(indices=indices, bytes=body, null_adjustment=adjustment))


def _dictionary(array: pa.Array, buffers: list[bytes]) -> m.ArrayEncoding:
    """Keys from 0; a null key points to a null item after the others."""
    items, keys = array.dictionary, array.indices
    if keys.null_count:
        items = pa.concat_arrays([items, pa.nulls(1, items.type)])
        keys = keys.fill_null(pa.scalar(len(items) - 1, keys.type))
    indices = _leaf(keys, buffers)
    made = m.ArrayDictionary(indices=indices, items=_leaf(items, buffers), num_items=len(items))
    return m.ArrayEncoding(dictionary=made)
