"""Lance data files of versions 2.0, 2.1 and 2.2, written batch by batch: a page per column for about 8 MB each.

The file: page buffers, each on a 64-byte boundary; global buffer 0 with schema and row count; the
metadata of the columns; the offset tables of columns and global buffers; a footer of 40 bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol

import pyarrow as pa

from boathouse.bits.protobuf import Message
from boathouse.errors import InvalidArgumentError, SchemaMismatchError, UnsupportedFeatureError
from boathouse.lance.file import messages as m
from boathouse.lance.file.container import DESCRIPTIONS
from boathouse.lance.file.encode_array import encode_arrays
from boathouse.lance.file.encode_blobs import blob_column_encoding, encode_descriptors, encode_pairs, stored_fields
from boathouse.lance.file.encode_packed import packed_page
from boathouse.lance.file.encode_page import encode_leaf
from boathouse.lance.file.encoded_page import EncodedPage, TooLarge
from boathouse.lance.file.fields import Field, SchemaMessage
from boathouse.lance.file.schema import Node, arrow_type, fields_of, tree
from boathouse.lance.file.shred import shred
from boathouse.lance.file.storable import check_storable

ALIGNMENT = 64
PAGE_BYTES = 8 << 20
MAGIC = b"LANC"
# The versions in the footer; manifests have (2, 0) for the first.
_FOOTER_VERSIONS = {"2.0": (0, 3), "2.1": (2, 1), "2.2": (2, 2)}


class Sink(Protocol):
    """The target of a file: a pyarrow stream, an open file, a BytesIO."""

    def write(self, data: bytes, /) -> object: ...


@dataclass(frozen=True)
class FileSummary:
    """The description of a data file in a manifest: rows, bytes, and the field of each column."""

    rows: int
    size: int
    fields: list[int]
    column_indices: list[int]
    version: str


class LanceWriter:
    """One data file. `fields` gives the ids (the table's own, flat, depth first); else they count from 0.

    `close` returns the summary; the sink stays open and is the caller's. Raises UnsupportedTypeError for
    types that Lance cannot store, UnsupportedFeatureError for what the version does not support (2.0: null structs,
    maps; 2.1: maps, fixed-size lists of structs) and for other versions.
    """

    def __init__(
        self,
        sink: Sink,
        schema: pa.Schema,
        fields: Sequence[Field] | None = None,
        *,
        version: str = "2.2",
        page_bytes: int = PAGE_BYTES,
    ) -> None:
        self._sink = sink
        self._position = 0
        self._fields = tuple(fields) if fields is not None else fields_of(schema)
        self._nodes = tree(self._fields)
        check_storable(self._nodes, version)
        self._schema = schema
        self._version = version
        self._columns = [_Column(node, arrow_type(node), self._owners(node)) for node in self._nodes]
        self._page_bytes = page_bytes
        self._rows = 0
        self._closed = False

    def _owners(self, node: Node) -> list[Node]:
        """The fields of a tree that own a column."""
        return list(node.walk() if self._version == "2.0" else node.leaves())

    def write(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Add rows; columns are matched by position and must have the schema's names."""
        if batch.schema.names != [node.name for node in self._nodes]:
            raise SchemaMismatchError(
                f"columns {batch.schema.names} where {[node.name for node in self._nodes]} are expected"
            )
        for i, column in enumerate(self._columns):
            data = batch.column(i)
            for chunk in data.chunks if isinstance(data, pa.ChunkedArray) else [data]:
                column.add(chunk)
            self._flush(column, every=False)
        self._rows += batch.num_rows

    def _flush(self, column: _Column, *, every: bool) -> None:
        while column.rows and (every or column.bytes >= self._page_bytes):
            array = column.take(self._page_bytes)
            self._write_rows(column, array, column.written)
            column.written += len(array)

    def _write_rows(self, column: _Column, array: pa.Array, first_row: int) -> None:
        try:
            pages = self._pages(column.node, array)
        except TooLarge:
            if len(array) == 1:
                raise UnsupportedFeatureError(
                    f"more than 65,535 absent lists between two values in one row of `{column.node.name}`"
                ) from None
            half = len(array) // 2
            self._write_rows(column, array.slice(0, half), first_row)
            self._write_rows(column, array.slice(half), first_row + half)
            return
        for done, page in zip(column.pages, pages):
            if done and isinstance(page.layout, m.ArrayEncoding) and page.layout.struct is not None:
                done[0] = replace(done[0], length=done[0].length + page.length)  # a struct of 2.0 has one page
            elif page.length:
                done.append(self._write_page(page, first_row))

    def _pages(self, node: Node, array: pa.Array) -> list[EncodedPage]:
        if self._version == "2.0":
            return [encode_pairs(array)] if node.is_blob else list(encode_arrays(node, array))
        if node.is_blob:
            return [encode_descriptors(leaf, self._version) for leaf in shred(node, array)]
        return [
            (packed_page if leaf.node.is_packed else encode_leaf)(leaf, self._version) for leaf in shred(node, array)
        ]

    def _write_page(self, page: EncodedPage, first_row: int) -> m.Page:
        offsets = [self._write_aligned(data) for data in page.buffers]
        return m.Page(
            buffer_offsets=tuple(offsets),
            buffer_sizes=tuple(map(len, page.buffers)),
            length=page.length,
            encoding=_described(page.layout),
            priority=first_row,
        )

    def write_bytes(self, pieces: Iterable[bytes]) -> int:
        """Adds bytes that no column has, of a blob; where they begin."""
        at = self._write_aligned(b"")
        for piece in pieces:
            self._write(piece)
        return at

    @property
    def size(self) -> int:
        """The bytes that are written so far; pages are later than their rows."""
        return self._position

    def _write(self, data: bytes) -> int:
        at = self._position
        self._sink.write(data)
        self._position += len(data)
        return at

    def _write_aligned(self, data: bytes) -> int:
        pad = -self._position % ALIGNMENT
        if pad:
            self._write(b"\0" * pad)
        return self._write(data)

    def close(self, buffers: Sequence[bytes] = ()) -> FileSummary:
        """Writes the remaining rows, global buffers after that of the schema, and the footer."""
        if self._closed:
            raise InvalidArgumentError("the file is already closed")
        self._closed = True
        for column in self._columns:
            self._flush(column, every=True)
            if self._version == "2.0" and self._rows:  # readers expect a page even if no list has an item
                for done, page in zip(column.pages, self._pages(column.node, pa.array([], column.kind))):
                    if not done:
                        done.append(self._write_page(page, 0))
        metadata = {k.decode(): v for k, v in (self._schema.metadata or {}).items()}
        schema = SchemaMessage(fields=stored_fields(self._nodes), metadata=metadata)
        descriptor = m.FileDescriptor(schema=schema, length=self._rows).encode()
        kept = [(self._write_aligned(data), len(data)) for data in (descriptor, *buffers)]
        table = []
        for column in self._columns:
            encoding = _column_encoding(column.node.is_blob, self._version)
            for pages in column.pages:
                raw = m.ColumnMetadata(encoding=encoding, pages=tuple(pages)).encode()
                table.append((self._write(raw), len(raw)))
        columns_at = table[0][0] if table else self._position
        table_at = self._write(b"".join(struct.pack("<QQ", *entry) for entry in table))
        globals_at = self._write(b"".join(struct.pack("<QQ", *entry) for entry in kept))
        numbers = (len(kept), len(table), *_FOOTER_VERSIONS[self._version])
        self._write(struct.pack("<QQQIIHH", columns_at, table_at, globals_at, *numbers) + MAGIC)
        ids = [owner.id for column in self._columns for owner in column.owners]
        return FileSummary(self._rows, self._position, ids, list(range(len(ids))), self._version)


@lru_cache(DESCRIPTIONS)
def _described(layout: m.PageLayout | m.ArrayEncoding) -> m.Encoding:
    kind = "encodings.ArrayEncoding" if isinstance(layout, m.ArrayEncoding) else "encodings21.PageLayout"
    return _direct(f"/lance.{kind}", layout.encode())


@lru_cache(DESCRIPTIONS)
def _column_encoding(blob: bool, version: str) -> m.Encoding:
    made = blob_column_encoding(version) if blob else m.ColumnEncoding(values=Message())
    return _direct("/lance.encodings.ColumnEncoding", made.encode())


def _direct(type_url: str, value: bytes) -> m.Encoding:
    wrapped = m.AnyMessage(type_url=type_url, value=value).encode()
    return m.Encoding(direct=m.DirectEncoding(encoding=wrapped))


class _Column:
    """Buffered rows of one top-level column, and the pages of its leaves."""

    def __init__(self, node: Node, kind: pa.DataType, owners: list[Node]) -> None:
        self.node = node
        self.kind = kind
        self.waiting: list[pa.Array] = []
        self.rows = 0
        self.bytes = 0
        self.written = 0
        self.owners = owners
        self.pages: list[list[m.Page]] = [[] for _ in owners]

    def add(self, array: pa.Array) -> None:
        if isinstance(array.type, pa.BaseExtensionType):
            array = array.storage
        if array.type != self.kind:
            array = _fit(array, self.kind, self.node.name)
        if len(array):
            self.waiting.append(array)
            self.rows += len(array)
            self.bytes += array.nbytes

    def take(self, page_bytes: int) -> pa.Array:
        """The rows of the next page: about `page_bytes`, at least one row, at most 2**20."""
        array = self.waiting[0] if len(self.waiting) == 1 else _concat(self.waiting)
        rows = min(len(array), 1 << 20, max(1, int(len(array) * page_bytes / max(self.bytes, 1))))
        if len(array) - rows < rows // 8:  # avoids a tiny page at the end
            rows = min(len(array), 1 << 20)
        rest = array.slice(rows)
        self.waiting = [rest] if len(rest) else []
        self.rows, self.bytes = len(rest), rest.nbytes if len(rest) else 0
        return array.slice(0, rows)


def _concat(arrays: list[pa.Array]) -> pa.Array:
    if pa.types.is_dictionary(arrays[0].type):
        return pa.chunked_array(arrays).unify_dictionaries().combine_chunks()
    return pa.concat_arrays(arrays)


def _fit(array: pa.Array, kind: pa.DataType, name: str) -> pa.Array:
    """The array in the column's storage type: names of fields and string views may differ."""
    try:
        return array.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaMismatchError(f"column `{name}` is {array.type} where {kind} is expected") from error
