"""Structs whose metadata asks for storage as one column, row by row (file format, "Packed Struct")."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse.errors import UnsupportedFeatureError
from boathouse.lance.file import messages as m
from boathouse.lance.file.encode_full_zip import full_zip_page
from boathouse.lance.file.encode_page import absent_page, mini_block_page
from boathouse.lance.file.encode_values import flat_encoding, flatten_vectors, variable_encoding, vector_encoding
from boathouse.lance.file.encoded_page import EncodedPage
from boathouse.lance.file.plain import Bits, Bytes, Fixed, Nulls, Plain, Var, Vectors, plain_of
from boathouse.lance.file.shred import Leaf


def packed_page(leaf: Leaf, version: str) -> EncodedPage:
    """The rows of numbers as one value each in chunks; with texts or vectors, from 2.2 on, zipped. Raises
    UnsupportedFeatureError for fields that cannot be packed, and for a null in one: there is no place for it."""
    length = leaf.entries if leaf.rep is None else leaf.rows
    if leaf.values.null_count == len(leaf.values):
        return absent_page(leaf, length)
    members = [_member(leaf, i, version) for i in range(leaf.values.type.num_fields)]
    if all(isinstance(member, Fixed) for member in members):
        return _numbers(leaf, [_bytes(member) for member in members], length, version)
    return _mixed(leaf, members, length)


def _member(leaf: Leaf, i: int, version: str) -> Plain:
    array, child = leaf.values.field(i), leaf.node.children[i]
    name = f"{leaf.node.name}.{child.name}"
    if array.null_count and (array.is_null().to_numpy(zero_copy_only=False) & _there(leaf.values)).any():
        raise UnsupportedFeatureError(
            f"a null in `{name}`, a field of a packed struct, which has no place for it",
            advice="fill it, or make the whole struct null",
        )
    if child.children:
        raise _not_packed(name, child.logical_type, version)
    plain = plain_of(array)
    bare = isinstance(plain, Vectors) and plain.valid is None and isinstance(plain.items, Fixed)
    if isinstance(plain, Bits | Nulls) or (isinstance(plain, Vectors) and not bare):
        raise _not_packed(name, child.logical_type, version)
    if version == "2.1" and not isinstance(plain, Fixed):
        raise _not_packed(name, child.logical_type, version)
    return plain


def _not_packed(name: str, kind: str, version: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"writing `{name}`, a {kind}, in a packed struct of a file of version {version}",
        advice="drop the field metadata of the struct, or the field",
    )


def _there(values: pa.StructArray) -> npt.NDArray[np.bool_]:
    return np.asarray(values.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)


def _bytes(member: Plain) -> Bytes:
    """The bytes of each row."""
    return member.data if isinstance(member, Fixed) else flatten_vectors(member)[0]  # type: ignore[arg-type]


def _numbers(leaf: Leaf, columns: list[Bytes], length: int, version: str) -> EncodedPage:
    rows = np.concatenate(columns, axis=1)
    page = mini_block_page(leaf, Fixed(rows), length, version)
    assert isinstance(page.layout, m.PageLayout) and page.layout.mini_block is not None
    packed = m.PackedStruct(
        bits_per_value=tuple(column.shape[1] * 8 for column in columns), values=flat_encoding(rows.shape[1] * 8)
    )
    block = replace(page.layout.mini_block, value_compression=m.CompressiveEncoding(packed_struct=packed))
    return replace(page, layout=m.PageLayout(mini_block=block))


def _mixed(leaf: Leaf, members: list[Plain], length: int) -> EncodedPage:
    """Each row: its fields in order, of a text its length before it."""
    fields, parts = [], []
    for member in members:
        if isinstance(member, Var):
            bits = member.offset_bytes * 8
            fields.append(m.PackedField(value=variable_encoding(bits), bits_per_length=bits))
            parts.append(_texts(member))
        else:
            data = _bytes(member)
            fields.append(m.PackedField(value=vector_encoding(member), bits_per_value=data.shape[1] * 8))
            parts.append([row.tobytes() for row in data])
    there = _there(leaf.values).tolist()
    rows = [b"".join(row) if present else b"" for row, present in zip(zip(*parts), there, strict=True)]
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([len(row) for row in rows], out=offsets[1:])
    page = full_zip_page(leaf, Var(offsets, np.frombuffer(b"".join(rows), np.uint8), 4), length)
    assert isinstance(page.layout, m.PageLayout) and page.layout.full_zip is not None
    packed = m.CompressiveEncoding(variable_packed_struct=m.VariablePackedStruct(fields=tuple(fields)))
    return replace(page, layout=m.PageLayout(full_zip=replace(page.layout.full_zip, value_compression=packed)))


def _texts(member: Var) -> list[bytes]:
    ends, data = member.offsets.tolist(), np.ascontiguousarray(member.data).data
    return [(b - a).to_bytes(member.offset_bytes, "little") + bytes(data[a:b]) for a, b in pairwise(ends)]
