"""Columns of files of version 2.0: every field has one, whose pages have an ArrayEncoding.

Lists and strings store END offsets without a leading 0; a null one is stored with a fixed number added.
Structs have no validity. Keys of dictionaries that the writer chose itself count from 1, with 0 for null; those of
dictionary columns count from 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from boathouse.lance.file import messages as m
from boathouse.lance.file.assemble import Packed, dictionary_of, typed
from boathouse.lance.file.columns import naming, split
from boathouse.lance.file.container import Container
from boathouse.lance.file.decode_values import budget, decompress, undo_fsst
from boathouse.lance.file.pages import Wanted
from boathouse.lance.file.plain import (
    Bits,
    Bytes,
    Fixed,
    Ints,
    Nulls,
    Plain,
    Var,
    Vectors,
    buffer,
    unpack_bits,
    validity,
)
from boathouse.lance.file.schema import Node, arrow_type
from boathouse.lance.file.segments import Broken, NotRead, unsigned

Mask = npt.NDArray[np.bool_]
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_NEAR = 2048  # wanted rows nearer than this are decoded together


@dataclass(frozen=True)
class _Values:
    values: Plain | Packed | None  # None: all null
    valid: Mask | None = None
    dictionary: Plain | None = None
    items_valid: Mask | None = None


class _Page:
    """Buffers of one page, read in ranges."""

    def __init__(self, container: Container, page: m.Page) -> None:
        self._source = container.source
        self._page = page
        self.length = page.length
        held = container.encoding(page.encoding)
        if not held.type_url.endswith("encodings.ArrayEncoding"):
            raise NotRead(f"a page of {held.type_url}")
        self.encoding = m.ArrayEncoding.decode(held.value, where=container.source.uri)

    def piece(self, ref: m.BufferRef | None, offset: int, size: int) -> Bytes:
        """Bytes of a buffer of the page."""
        ref = ref or m.BufferRef()
        if ref.buffer_type != 0:
            raise NotRead("buffers of a column or file")
        if ref.buffer_index >= min(len(self._page.buffer_offsets), len(self._page.buffer_sizes)):
            raise Broken(f"buffer {ref.buffer_index} of {len(self._page.buffer_offsets)}")
        if offset < 0 or offset + size > self._page.buffer_sizes[ref.buffer_index]:
            raise Broken(
                f"bytes {offset} to {offset + size} of a buffer of {self._page.buffer_sizes[ref.buffer_index]}"
            )
        return self._source.read(self._page.buffer_offsets[ref.buffer_index] + offset, size)

    def size(self, ref: m.BufferRef | None) -> int:
        sizes = self._page.buffer_sizes
        index = (ref or m.BufferRef()).buffer_index
        return sizes[index] if index < len(sizes) else 0

    def values(self, encoding: m.ArrayEncoding | None, start: int, stop: int) -> _Values:
        """Values `start` to `stop` of an encoding."""
        if encoding is None:
            raise Broken("a page without an encoding")
        if encoding.nullable is not None:
            return self._nullable(encoding.nullable, start, stop)
        if encoding.flat is not None:
            return _Values(self._flat(encoding.flat, start, stop))
        if encoding.fixed_size_list is not None:
            return self._vectors(encoding.fixed_size_list, start, stop)
        if encoding.binary is not None:
            return self._binary(encoding.binary, start, stop)
        if encoding.fsst is not None:
            coded = self.values(encoding.fsst.binary, start, stop)
            if not isinstance(coded.values, Var):
                raise Broken("FSST over values that are not strings")
            return replace(coded, values=undo_fsst(encoding.fsst.symbol_table, coded.values))
        if encoding.dictionary is not None:
            return self._dictionary(encoding.dictionary, start, stop)
        if encoding.packed_struct is not None:
            return self._packed(encoding.packed_struct, start, stop)
        names = [name for name, value in encoding.__dict__.items() if value is not None and name != "unknown"]
        raise NotRead(f"{names[0] if names else 'an unknown encoding'} of version 2.0")

    def _nullable(self, nullable: m.Nullable, start: int, stop: int) -> _Values:
        if nullable.no_nulls is not None:
            return self.values(nullable.no_nulls.values, start, stop)
        if nullable.some_nulls is not None:
            bits = self.values(nullable.some_nulls.validity, start, stop).values
            inner = self.values(nullable.some_nulls.values, start, stop)
            if not isinstance(bits, Bits):
                raise Broken("validity that is not a bitmap")
            valid = bits.data if inner.valid is None else bits.data & inner.valid
            return _Values(inner.values, valid, inner.dictionary, inner.items_valid)
        return _Values(None)

    def _flat(self, flat: m.ArrayFlat, start: int, stop: int) -> Plain:
        bits, compression = flat.bits_per_value, flat.compression
        if bits == 1 and (compression is None or compression.scheme in ("", "none")):
            first = start // 8
            return Bits(unpack_bits(self.piece(flat.buffer, first, (stop + 7) // 8 - first), start % 8, stop - start))
        if bits % 8:
            raise NotRead(f"flat values of {bits} bits")
        width = bits // 8
        if compression is not None and compression.scheme not in ("", "none"):
            raw = self._inflated(flat, compression.scheme, stop * width)[start * width : stop * width]
            return Fixed(raw.reshape(stop - start, width))
        return Fixed(self.piece(flat.buffer, start * width, (stop - start) * width).reshape(stop - start, width))

    def _inflated(self, flat: m.ArrayFlat, scheme: str, wanted: int) -> Bytes:
        """The first `wanted` bytes of a compressed buffer, or more. pylance up to 0.30 writes no length before zstd."""
        if scheme not in ("zstd", "lz4"):
            raise NotRead(f"compression {scheme!r}")
        raw = self.piece(flat.buffer, 0, self.size(flat.buffer))
        left = budget(len(raw))
        if scheme == "zstd" and raw[:4].tobytes() == _ZSTD_MAGIC:
            left.take(wanted)
            stream = pa.CompressedInputStream(pa.BufferReader(raw), "zstd")
            try:
                return np.frombuffer(stream.read(wanted), np.uint8)
            except OSError as error:
                raise Broken(f"a compressed block: {error}") from error
        codec, prefix = (pa.Codec("zstd"), 8) if scheme == "zstd" else (pa.Codec("lz4_raw"), 4)
        return np.frombuffer(decompress(raw.data, codec, prefix, left), np.uint8)

    def _vectors(self, lists: m.ArrayFixedSizeList, start: int, stop: int) -> _Values:
        dim = lists.dimension
        if not dim:
            return _Values(Vectors(0, Nulls(0), rows=stop - start))
        inner = self.values(lists.items, start * dim, stop * dim)
        if inner.values is None:
            return _Values(Vectors(dim, Nulls((stop - start) * dim)))
        if isinstance(inner.values, Packed):
            return inner  # the fields of the structs in the list
        return _Values(Vectors(dim, inner.values, inner.valid))

    def ends(
        self, encoding: m.ArrayEncoding | None, adjustment: int, start: int, stop: int
    ) -> tuple[Ints, Mask | None]:
        """Offsets of values `start` to `stop`, one more than values, and which of them are null."""
        first = max(start - 1, 0)
        found = self.values(encoding, first, stop).values
        if not isinstance(found, Fixed) or found.width not in (4, 8):
            raise Broken("offsets that are not integers")
        raw = unsigned(np.ascontiguousarray(found.data).reshape(-1), found.width).astype(np.int64)
        nulls = raw >= adjustment if adjustment else np.zeros(len(raw), np.bool_)
        raw = np.where(nulls, raw - adjustment, raw)
        if start == 0:
            raw = np.append(0, raw)
        else:
            nulls = nulls[1:]
        if int(raw[0]) < 0 or (np.diff(raw) < 0).any():
            raise Broken("offsets that decrease")
        return raw, ~nulls if nulls.any() else None

    def _binary(self, binary: m.ArrayBinary, start: int, stop: int) -> _Values:
        offsets, valid = self.ends(binary.indices, binary.null_adjustment, start, stop)
        inner = self.values(binary.bytes, int(offsets[0]), int(offsets[-1])).values
        if not isinstance(inner, Fixed) or inner.width != 1 or len(inner) != offsets[-1] - offsets[0]:
            raise Broken("strings whose bytes are missing")
        return _Values(Var(offsets - offsets[0], inner.data.reshape(-1)), valid)

    def _dictionary(self, coded: m.ArrayDictionary, start: int, stop: int) -> _Values:
        keys = self.values(coded.indices, start, stop)
        items = self.values(coded.items, 0, coded.num_items)
        if isinstance(items.values, Packed) or isinstance(keys.values, Packed):
            raise NotRead("a dictionary of structs")
        if items.values is None:  # every value is null
            return _Values(None)
        return _Values(keys.values, keys.valid, items.values, items.valid)

    def _packed(self, packed: m.ArrayPackedStruct, start: int, stop: int) -> _Values:
        widths = [_width(inner) for inner in packed.inner]
        total = sum(widths)
        rows = self.piece(packed.buffer, start * total, (stop - start) * total).reshape(-1, total)
        ends = np.cumsum(widths).tolist()
        return _Values(Packed(tuple(Fixed(rows[:, end - width : end]) for end, width in zip(ends, widths))))


def _width(encoding: m.ArrayEncoding) -> int:
    """Bytes of a value of fixed width."""
    if encoding.nullable is not None and encoding.nullable.no_nulls is not None:
        return _width(encoding.nullable.no_nulls.values or m.ArrayEncoding())
    if encoding.flat is not None and encoding.flat.bits_per_value and encoding.flat.bits_per_value % 8 == 0:
        return encoding.flat.bits_per_value // 8
    if encoding.fixed_size_list is not None and encoding.fixed_size_list.items is not None:
        return encoding.fixed_size_list.dimension * _width(encoding.fixed_size_list.items)
    raise NotRead("a packed struct with fields that are not plain")


class ArrayReader:
    """Fields of a file of version 2.0."""

    def __init__(self, container: Container, columns: Mapping[int, int], rows: int) -> None:
        self._container, self._columns, self._rows = container, columns, rows
        self._pages: dict[int, list[_Page]] = {}

    def _column(self, node: Node) -> list[_Page] | None:
        index = self._columns.get(node.id)
        return None if index is None or index < 0 else self._pages_of(index, node)

    def _pages_of(self, index: int, node: Node) -> list[_Page]:
        if index not in self._pages:
            with naming(self._container.source.uri, f"column {index} (`{node.name}`)"):
                metadata = self._container.column(index)
                self._pages[index] = [_Page(self._container, page) for page in metadata.pages]
        return self._pages[index]

    def size(self, node: Node) -> int:
        sizes = (self._container.column(self._columns[n.id]) for n in node.walk() if self._columns.get(n.id, -1) >= 0)
        return sum(sum(page.buffer_sizes) for column in sizes for page in column.pages)

    def read(self, node: Node, wanted: Wanted) -> list[pa.Array]:
        with naming(self._container.source.uri, f"field `{node.name}`"):
            if isinstance(wanted, range):
                return self._read(node, wanted, self._rows)
            out = []
            cuts = np.flatnonzero(np.diff(wanted) > _NEAR) + 1
            for group in np.split(wanted, cuts):
                near = range(int(group[0]), int(group[-1]) + 1)
                parts = self._read(node, near, self._rows)
                whole = parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
                out.append(whole if len(near) == len(group) else whole.take(pa.array(group - near.start)))
            return out

    def _read(self, node: Node, rows: range, total: int) -> list[pa.Array]:
        """The rows of a field, one array per page."""
        if node.logical_type == "struct" and not node.is_packed and not node.is_blob:
            children = [_whole(self._read(child, rows, total), arrow_type(child)) for child in node.children]
            return [pa.Array.from_buffers(arrow_type(node), len(rows), [None], 0, 0, children)]
        pages = self._column(node)
        if pages is None:
            if any(self._columns.get(below.id, -1) >= 0 for below in node.walk()):
                raise NotRead("a list whose own column is missing, although its items exist")
            return [pa.nulls(len(rows), arrow_type(node))]
        stops = np.cumsum([page.length for page in pages], dtype=np.int64).tolist()
        firsts = [stop - page.length for stop, page in zip(stops, pages)]
        if (stops[-1] if stops else 0) != total:
            raise Broken(f"pages of {stops[-1] if stops else 0} values where {total} are expected")
        is_list = node.children and "list" in node.logical_type and not node.logical_type.startswith("fixed")
        out = []
        for i, part in split(rows, firsts, stops):
            assert isinstance(part, range)
            with naming(self._container.source.uri, f"column {self._columns[node.id]} (`{node.name}`), page {i}"):
                if is_list:
                    out.append(self._list(node, pages, i, part))
                elif pages[i].encoding.list is not None:
                    out.append(self._listed_bytes(node, pages, i, part))
                else:
                    out.append(_leaf(node, pages[i], part))
        return out

    def _listed_bytes(self, node: Node, pages: list[_Page], index: int, part: range) -> pa.Array:
        """Strings as pylance 0.12 wrote them: lists whose items, the bytes, are the next column."""
        offsets, valid, items, total = self._items(pages, index, part)
        data = self._pages_of(self._columns[node.id] + 1, node)
        stops = np.cumsum([page.length for page in data], dtype=np.int64).tolist()
        if (stops[-1] if stops else 0) != total:
            raise Broken(f"{stops[-1] if stops else 0} bytes of strings where {total} are expected")
        parts = []
        for i, piece in split(items, [stop - page.length for stop, page in zip(stops, data)], stops):
            assert isinstance(piece, range)
            found = data[i].values(data[i].encoding, piece.start, piece.stop).values
            if not isinstance(found, Fixed) or found.width != 1:
                raise Broken("strings whose items are not bytes")
            parts.append(found.data.reshape(-1))
        raw = np.concatenate(parts) if parts else np.empty(0, np.uint8)
        return typed(Var(offsets - offsets[0], raw), arrow_type(node), valid)

    def _items(self, pages: list[_Page], index: int, part: range) -> tuple[Ints, Mask | None, range, int]:
        """Offsets of lists and which are valid, their items, and how many items the column has.

        Offsets count from the first item of their page.
        """
        lists = [page.encoding.list for page in pages]
        if any(one is None for one in lists):
            raise NotRead("a list page of another encoding")
        counts = [one.num_items for one in lists if one is not None]
        mine = lists[index]
        assert mine is not None
        offsets, valid = pages[index].ends(mine.offsets, mine.null_offset_adjustment, part.start, part.stop)
        if int(offsets[-1]) > mine.num_items:
            raise Broken(f"lists of {int(offsets[-1])} items in a page of {mine.num_items}")
        base = sum(counts[:index])
        return offsets, valid, range(base + int(offsets[0]), base + int(offsets[-1])), sum(counts)

    def _list(self, node: Node, pages: list[_Page], index: int, part: range) -> pa.Array:
        offsets, valid, items, total = self._items(pages, index, part)
        child = node.children[0]
        kind = arrow_type(node)
        inner = _whole(self._read(child, items, total), arrow_type(child))
        ends: npt.NDArray[Any] = offsets - offsets[0]
        ends = ends if pa.types.is_large_list(kind) else ends.astype(np.int32)
        mask = validity(valid)
        return pa.Array.from_buffers(kind, len(part), [mask, buffer(ends)], 0 if mask is None else -1, 0, [inner])


def _whole(arrays: list[pa.Array], kind: pa.DataType) -> pa.Array:
    if not arrays:
        return pa.array([], kind)
    return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)


def _leaf(node: Node, page: _Page, part: range) -> pa.Array:
    found = page.values(page.encoding, part.start, part.stop)
    kind = arrow_type(node)
    values, valid = found.values, found.valid
    if values is None:
        return pa.nulls(len(part), kind)
    if isinstance(values, Packed):
        return _structs(values, kind, len(part))
    if found.dictionary is None:
        if len(values) != len(part):
            raise Broken(f"{len(values)} values where {len(part)} are expected")
        return typed(values, kind, valid)
    return _look_up(values, found, found.dictionary, kind)


def _structs(values: Packed, kind: pa.DataType, rows: int) -> pa.Array:
    if pa.types.is_fixed_size_list(kind):
        inner = _structs(values, kind.value_type, rows * kind.list_size)
        return pa.Array.from_buffers(kind, rows, [None], 0, 0, [inner])
    if not pa.types.is_struct(kind) or kind.num_fields != len(values.members):
        raise Broken(f"a packed struct of {len(values.members)} fields for {kind}")
    children = [typed(v, kind.field(i).type, None) for i, v in enumerate(values.members)]
    return pa.Array.from_buffers(kind, rows, [None], 0, 0, children)


def _look_up(keys: Plain, found: _Values, items: Plain, kind: pa.DataType) -> pa.Array:
    if not isinstance(keys, Fixed) or keys.width not in (1, 2, 4, 8):
        raise Broken("keys that are not integers")
    raw = unsigned(np.ascontiguousarray(keys.data).reshape(-1), keys.width).astype(np.int64)
    is_dictionary = pa.types.is_dictionary(kind)
    present = np.ones(len(raw), np.bool_) if found.valid is None else found.valid
    if not is_dictionary:  # 0 is null, and values count from 1
        present = present & (raw > 0)
        raw = raw - 1
    if int(np.where(present, raw, -1).max(initial=-1)) >= len(items) or int(raw[present].min(initial=0)) < 0:
        raise Broken(f"a key beyond a dictionary of {len(items)}")
    words = typed(items, kind.value_type if is_dictionary else kind, found.items_valid)
    index = pa.array(np.where(present, raw, 0), mask=~present)
    return dictionary_of(index, words, kind) if is_dictionary else words.take(index)
