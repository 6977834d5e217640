"""Encodes the descriptors of a blob column as a page: where the bytes are, which are already written.

Version 2.0 has pairs of position and size, without nulls: a null is of size 0 at position 1. In 2.1 they are a packed
struct in mini-blocks, and a null has its definition level above bit 16 of the position. In 2.2 each row is packed with
the text of its URI.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse.bits.protobuf import Message
from boathouse.lance.file import messages as m
from boathouse.lance.file.encode_full_zip import full_zip_page
from boathouse.lance.file.encode_page import absent_page, mini_block_page
from boathouse.lance.file.encode_values import flat_encoding, variable_encoding
from boathouse.lance.file.encoded_page import EncodedPage
from boathouse.lance.file.fields import Field
from boathouse.lance.file.plain import Fixed, Var, plain_of
from boathouse.lance.file.schema import BLOB_V2, Node, fields_of
from boathouse.lance.file.shred import Leaf

_BITS = (8, 64, 64, 32)
"""Of the numbers of a descriptor of 2.2."""
_NULL = 1 << 16


def blob_column_encoding(version: str) -> m.ColumnEncoding:
    """What the metadata of a blob column says."""
    values = m.ColumnEncoding(values=Message())
    return m.ColumnEncoding(blob=m.BlobColumn(inner=values)) if version == "2.0" else values


def stored_fields(nodes: tuple[Node, ...]) -> tuple[Field, ...]:
    """The fields in the schema of a file, where a blob of 2.2 has those of its descriptor, without ids."""
    out: list[Field] = []
    for node in nodes:
        if not node.is_blob or node.logical_type != "struct":
            out += [below.field for below in node.walk()]
            continue
        packed = {"lance-encoding:packed": b"true", "lance-encoding:blob": b"true"}
        out.append(replace(node.field, extension_name="", encoding=0, metadata=packed))
        out += [replace(f, id=-1, parent_id=-1) for f in fields_of(pa.schema(list(BLOB_V2)))]
    return tuple(out)


def encode_pairs(array: pa.StructArray) -> EncodedPage:
    """A page of 2.0."""
    pairs = _pairs(array, 1)
    number = m.ArrayEncoding(flat=m.ArrayFlat(bits_per_value=64, buffer=m.BufferRef()))
    inner = m.ArrayEncoding(nullable=m.Nullable(no_nulls=m.NoNulls(values=number)))
    made = m.ArrayEncoding(packed_struct=m.ArrayPackedStruct(inner=(inner, inner), buffer=m.BufferRef()))
    return EncodedPage([pairs.tobytes()], made, len(array))


def encode_descriptors(leaf: Leaf, version: str) -> EncodedPage:
    """A page of 2.1 or 2.2."""
    array = leaf.values
    if version != "2.1":
        return absent_page(leaf, len(array)) if array.null_count == len(array) else _packed_rows(leaf)
    plain = replace(leaf, layers=(m.ALL_VALID_ITEM,), defs=None)
    page = mini_block_page(plain, Fixed(_pairs(array, _NULL).view(np.uint8)), len(array), version)
    assert isinstance(page.layout, m.PageLayout) and page.layout.mini_block is not None
    packed = m.PackedStruct(bits_per_value=(64, 64), values=flat_encoding(128))
    inner = replace(page.layout.mini_block, value_compression=m.CompressiveEncoding(packed_struct=packed))
    blob = m.BlobLayout(inner_layout=m.PageLayout(mini_block=inner), layers=leaf.layers)
    return replace(page, layout=m.PageLayout(blob=blob))


def _pairs(array: pa.StructArray, null: int) -> npt.NDArray[np.uint64]:
    """(n, 2): position and size."""
    columns = [_numbers(part, np.uint64) for part in array.flatten()]
    pairs = np.stack(columns, axis=1)
    if array.null_count:
        pairs[array.is_null().to_numpy(zero_copy_only=False)] = (null, 0)
    return pairs


def _numbers(array: pa.Array, kind: Any) -> npt.NDArray[Any]:
    return (array.fill_null(0) if array.null_count else array).to_numpy(zero_copy_only=False).astype(kind)


def _packed_rows(leaf: Leaf) -> EncodedPage:
    """Numbers, then the length of the URI and the URI, of each row; none of a null one."""
    array = leaf.values
    *numbers, uris = array.flatten()
    texts = plain_of(uris.fill_null("") if uris.null_count else uris)
    assert isinstance(texts, Var)
    lengths = np.diff(texts.offsets)
    columns = [_numbers(part, f"<u{bits // 8}") for part, bits in zip(numbers, _BITS, strict=True)]
    heads = np.concatenate(
        [np.ascontiguousarray(c).view(np.uint8).reshape(len(array), -1) for c in (*columns, lengths.astype("<u4"))],
        axis=1,
    )
    width = heads.shape[1]
    offsets = np.concatenate(([0], np.cumsum(lengths + width)))
    data = np.empty(int(offsets[-1]), np.uint8)
    is_head = np.zeros(len(data), np.bool_)
    is_head[(offsets[:-1, None] + np.arange(width)).reshape(-1)] = True
    data[is_head] = heads.reshape(-1)
    data[~is_head] = texts.data
    page = full_zip_page(leaf, Var(offsets, data), len(array))
    assert isinstance(page.layout, m.PageLayout) and page.layout.full_zip is not None
    members = [m.PackedField(value=flat_encoding(bits), bits_per_value=bits) for bits in _BITS]
    uri = m.PackedField(value=variable_encoding(32), bits_per_length=32)
    packed = m.CompressiveEncoding(variable_packed_struct=m.VariablePackedStruct(fields=(*members, uri)))
    layout = m.PageLayout(full_zip=replace(page.layout.full_zip, value_compression=packed))
    return replace(page, layout=layout)
