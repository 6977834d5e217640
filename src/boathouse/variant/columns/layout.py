"""Any Arrow layout of a variant column as flat buffers: one of value bytes, one of distinct metadata."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.bits.unaligned import Bytes, Ints, Mask
from boathouse.errors import InvalidArgumentError, SchemaMismatchError
from boathouse.variant.columns.byte_slices import imported
from boathouse.variant.columns.faults import Faults, Lenient
from boathouse.variant.columns.names import Dictionaries

_SAMPLE = 1024
_LIMIT = (1 << 31) - 1
_ADVICE = "pass an Arrow array of struct<metadata, value>"
_EMPTY = np.zeros(0, np.uint8)


@dataclass(frozen=True, eq=False)
class Column:
    """`rows` variants: row i is `data[start[i]:end[i]]` with dictionary `meta.codes[i]`, unless `valid[i]` is False.

    A row that is not null but lacks its value or metadata has no bytes or code -1: readers report it as malformed.
    `first_row` is the number of row 0 in messages (a chunk of a longer column). `metadata` is the Arrow child that the
    codes were made from, aligned with the rows; None where the struct itself was dictionary-encoded.
    """

    data: Bytes
    start: Ints
    end: Ints
    meta: Dictionaries
    valid: Mask | None = None
    first_row: int = 0
    metadata: pa.Array | None = None

    @property
    def rows(self) -> int:
        return len(self.start)

    def __len__(self) -> int:
        return len(self.start)

    def slice(self, first: int, last: int) -> Column:
        """Rows first to last (exclusive); copies no bytes."""
        return replace(
            self,
            start=self.start[first:last],
            end=self.end[first:last],
            meta=self.meta.slice(first, last),
            valid=None if self.valid is None else self.valid[first:last],
            first_row=self.first_row + first,
            metadata=None if self.metadata is None else self.metadata.slice(first, last - first),
        )

    def is_null(self, row: int) -> bool:
        return self.valid is not None and not self.valid[row]

    def value(self, row: int) -> bytes:
        """The value bytes of a row; b"" for a null one."""
        return self.data[self.start[row] : self.end[row]].tobytes()

    def metadata_bytes(self, row: int) -> bytes:
        return self.meta.raw(int(self.meta.codes[row]))

    def metadata_array(self) -> pa.Array:
        """The metadata of every row as binary or large_binary, without a copy if it already is."""
        if self.metadata is not None:
            return self.metadata
        distinct = pa.array([self.meta.raw(code) for code in range(len(self.meta))], pa.binary())
        return _spread(distinct, pa.array(self.meta.codes, mask=self.meta.codes < 0))

    def faults(self, lenient: Lenient | None = None) -> Faults:
        return Faults(self.rows, lenient, self.first_row)


def chunks(data: Any) -> list[Column]:
    """A Column for each chunk of `data`, without empty ones; rows are numbered across chunks."""
    if isinstance(data, Column):
        return [data]
    source = imported(data, _ADVICE)
    out: list[Column] = []
    first = 0
    for chunk in source.chunks if isinstance(source, pa.ChunkedArray) else [source]:
        if len(chunk):
            out.append(replace(_column(chunk), first_row=first))
        first += len(chunk)
    return out


def column(data: Any) -> Column:
    """`data` as one Column: an Arrow struct array <metadata, value> (any order and binary layout, dictionary-encoded
    or not, sliced), chunked (its chunks are concatenated: a copy), an extension array of that storage, or any object
    that exports such an array through the Arrow C interface.

    Raises SchemaMismatchError naming the child that is not binary; UnsupportedFeatureError for a shredded column.
    """
    if isinstance(data, Column):
        return data
    source = imported(data, _ADVICE)
    if isinstance(source, pa.ChunkedArray):
        if source.num_chunks == 1:
            return _column(source.chunk(0))
        return _column(_joined(source))
    return _column(source)


def storage_of(data: Any) -> pa.StructArray | pa.ChunkedArray:
    """The plain struct array of whatever `column` reads, chunked if the input is; no bytes are copied unless the struct
    is dictionary-encoded. Raises as `column`."""
    source = imported(data, _ADVICE)
    if not isinstance(source, pa.ChunkedArray):
        _column(source.slice(0, 0))
        return _struct(source)
    none = pa.array([], source.type)
    _column(none)
    return pa.chunked_array([_struct(chunk) for chunk in source.chunks], _struct(none).type)


def _joined(source: pa.ChunkedArray) -> pa.Array:
    """The chunks as one array with 64-bit offsets: together they may hold more than 2 GiB."""
    parts = [_struct(chunk) for chunk in source.chunks]
    if not parts:
        parts = [_struct(pa.array([], source.type))]
    children = [
        pa.concat_arrays([_plain(_child(part, name), name).cast(pa.large_binary()) for part in parts])
        for name in ("metadata", "value")
    ]
    mask = None
    if any(part.null_count for part in parts):
        mask = pa.concat_arrays([part.is_null() for part in parts])
    return pa.StructArray.from_arrays(children, ["metadata", "value"], mask=mask)


def _struct(array: pa.Array) -> pa.StructArray:
    """The plain struct array below extension and dictionary layers."""
    while isinstance(array, pa.ExtensionArray):
        array = array.storage
    if isinstance(array, pa.DictionaryArray):
        words = _struct(array.dictionary)
        return words.take(array.indices)
    if not isinstance(array, pa.StructArray):
        raise SchemaMismatchError(f"a column of variants is a struct<metadata, value>, not {array.type}")
    return array


def _child(array: pa.StructArray, name: str) -> pa.Array:
    """A child by name, as long as its sliced parent. SchemaMismatchError if it is missing or not binary."""
    found = [i for i in range(array.type.num_fields) if array.type.field(i).name == name]
    if len(found) != 1:
        raise SchemaMismatchError(
            f"a column of variants has one binary child `{name}`, this is {array.type}",
            advice="read shredded columns with boathouse.variant.shredding",
        )
    return array.field(found[0])


def _plain(array: pa.Array, name: str) -> pa.Array:
    """A binary child with plain offsets, dictionaries decoded."""
    while isinstance(array, pa.ExtensionArray):
        array = array.storage
    t = pa.types
    if isinstance(array, pa.DictionaryArray):
        array = _plain(array.dictionary, name).take(array.indices)
    kind = array.type
    if t.is_binary(kind) or t.is_large_binary(kind):
        return array
    if t.is_binary_view(kind) or t.is_fixed_size_binary(kind):
        return array.cast(pa.large_binary())
    raise SchemaMismatchError(
        f"`{name}` of a column of variants is {kind}, it must be binary", advice=f"cast `{name}` to binary first"
    )


def _spans(array: pa.Array) -> tuple[Bytes, Ints, Ints]:
    """The bytes of a binary array, and where each row starts and ends; null rows have none."""
    large = pa.types.is_large_binary(array.type)
    _, offsets, data = array.buffers()
    if len(array) == 0 or offsets is None:
        return _EMPTY, np.zeros(len(array), np.int64), np.zeros(len(array), np.int64)
    width = np.int64 if large else np.int32
    edges = np.frombuffer(offsets, width, len(array) + 1, array.offset * (8 if large else 4)).astype(
        np.int64, copy=False
    )
    start, end = edges[:-1], edges[1:]
    if int(edges[0]) < 0 or int(edges[-1]) > (0 if data is None else data.size) or not (start <= end).all():
        raise InvalidArgumentError(
            "an Arrow array whose offsets decrease or point beyond its buffer", advice="validate() it"
        )
    if array.null_count:
        end = np.where(_mask(array), start, end)
    return (_EMPTY if data is None else np.frombuffer(data, np.uint8)), start, end


def _mask(array: pa.Array) -> Mask:
    return np.asarray(array.is_null().to_numpy(zero_copy_only=False), np.bool_)


def _column(array: pa.Array) -> Column:
    outer = array
    while isinstance(outer, pa.ExtensionArray):
        outer = outer.storage
    if isinstance(outer, pa.DictionaryArray):
        return _repeated(outer)
    struct = _struct(outer)
    if struct.type.get_field_index("typed_value") >= 0:
        raise SchemaMismatchError(
            "the column is shredded: it has a `typed_value`",
            advice="rebuild it with boathouse.variant.unshred, or read paths with boathouse.variant.shredding.get",
        )
    data, start, end = _spans(_plain(_child(struct, "value"), "value"))
    valid = None if struct.null_count == 0 else ~_mask(struct)
    meta, metadata = _dictionaries(_child(struct, "metadata"))
    return Column(data, start, end, meta, valid, 0, metadata)


def _repeated(array: pa.DictionaryArray) -> Column:
    """A dictionary-encoded struct: its dictionary is read once, the rows point into it."""
    words = _column(array.dictionary)
    empty = _mask(array)
    if not words.rows:
        nothing = np.zeros(len(array), np.int64)
        codes = np.full(len(array), -1, np.int32)
        return Column(words.data, nothing, nothing, words.meta.with_codes(codes), ~empty, 0, None)
    at = np.asarray(pc.fill_null(array.indices, 0).to_numpy(zero_copy_only=False), np.int64)
    valid = ~empty if words.valid is None else ~empty & words.valid[at]
    meta = words.meta.with_codes(words.meta.codes[at])
    return Column(words.data, words.start[at], words.end[at], meta, None if valid.all() else valid, 0, None)


def _spread(words: pa.Array, codes: pa.Array) -> pa.Array:
    """`words[codes]`, as large_binary where 32-bit offsets do not suffice."""
    size = pc.sum(pc.take(pc.binary_length(words).cast(pa.int64()), codes)).as_py() or 0
    return (words.cast(pa.large_binary()) if size > _LIMIT else words).take(codes)


def _dictionaries(child: pa.Array) -> tuple[Dictionaries, pa.Array]:
    while isinstance(child, pa.ExtensionArray):
        child = child.storage
    if isinstance(child, pa.DictionaryArray):
        words = _plain(child.dictionary, "metadata")
        codes = _codes(child.indices)
        if words.null_count:
            codes = np.where(_mask(words)[codes], -1, codes).astype(np.int32)
        return Dictionaries(*_spans(words), codes), _spread(words, child.indices)
    plain = _plain(child, "metadata")
    if len(plain) > _SAMPLE:
        step = plain.slice(0, _SAMPLE)
        if len(pc.unique(step)) > _SAMPLE // 2:
            codes = np.arange(len(plain), dtype=np.int32)
            if plain.null_count:
                codes[_mask(plain)] = -1
            return Dictionaries(*_spans(plain), codes, distinct=False), plain
    coded = plain.dictionary_encode()
    return Dictionaries(*_spans(coded.dictionary), _codes(coded.indices)), plain


def _codes(indices: pa.Array) -> npt.NDArray[np.int32]:
    if indices.null_count:
        indices = pc.fill_null(indices.cast(pa.int32()), -1)
    return np.asarray(indices.to_numpy(zero_copy_only=False)).astype(np.int32, copy=False)
