"""Reads Avro data files: some blocks at a time, their records as Arrow columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from boathouse.avro import columns as avro_columns
from boathouse.avro import container as avro
from boathouse.avro.arrays import decoded
from boathouse.avro.codec import read_long
from boathouse.avro.cursors import DamagedError, Schema
from boathouse.avro.schema import least
from boathouse.avro.types import AvroColumn, columns_of
from boathouse.bits.inflate import Budget
from boathouse.bits.text import json_value
from boathouse.errors import CorruptTableError
from boathouse.parquet.field_source import FieldSource
from boathouse.parquet.fields import file_fields
from boathouse.parquet.matching import Matching
from boathouse.parquet.read import without_columns
from boathouse.parquet.resolve import Resolver

if TYPE_CHECKING:
    from boathouse.arrow.filesystem import DataFiles

_GROUP: Final = 32 << 20
"""Bytes of decompressed blocks that are decoded together."""
_STEP: Final = 4 << 20
_HEADER: Final = 64 << 10
_LONGS: Final = 20
"""The most bytes of the two numbers before a block."""


def open_avro(files: DataFiles, uri: str, matching: Matching, size: int | None = None) -> FieldSource:
    """Opens an Avro file. Raises CorruptTableError, UnsupportedFeatureError, and the errors of `files`."""
    stream = files.open_input(uri, size)
    try:
        header = _header(stream, uri)
        if "avro.schema" not in header.metadata:
            raise CorruptTableError("the Avro file has no schema", where=uri)
        own = json_value(header.metadata["avro.schema"], uri, "the Avro schema")
        schema, columns = columns_of(own, uri)
        fields = file_fields(pa.schema([c.field for c in columns]), matching.file_ids)
    except BaseException:
        stream.close()
        raise
    found = _AvroFile(uri, stream, header, schema, {c.field.name: c for c in columns})
    return FieldSource(uri, stream, Resolver(fields, matching), found.tables)


def _header(stream: pa.NativeFile, uri: str) -> avro.Header:
    size, wanted = int(stream.size()), _HEADER
    while True:
        data = bytes(stream.read_at(min(size, wanted), 0))
        try:
            return avro.header(data, uri)
        except IndexError:
            if wanted >= size:
                raise CorruptTableError("the header of the Avro file is cut short", where=uri) from None
            wanted *= 8


@dataclass(frozen=True, slots=True)
class _AvroFile:
    uri: str
    stream: pa.NativeFile
    header: avro.Header
    schema: Schema
    columns: dict[str, AvroColumn]

    def tables(self, names: Sequence[str]) -> Iterator[pa.Table]:
        """A table for some blocks at a time."""
        for blocks in self._groups():
            if names:
                yield self._table([self.columns[name] for name in names], blocks)
            else:
                yield without_columns(sum(count for count, _ in blocks))

    def _table(self, columns: Sequence[AvroColumn], blocks: Sequence[tuple[int, bytes]]) -> pa.Table:
        wanted = frozenset(path for c in columns for path in c.type.wanted())
        found = avro_columns.decoded(blocks, self.schema, wanted, self.uri)
        try:
            with avro.decoding(self.uri):
                arrays = [decoded(found.buffer, c.type, found.places, len(found)) for c in columns]
        except (DamagedError, pa.ArrowException) as error:
            raise CorruptTableError(f"an Avro block cannot be decoded: {error}", where=self.uri) from None
        return pa.Table.from_arrays(arrays, names=[c.field.name for c in columns])

    def _groups(self) -> Iterator[list[tuple[int, bytes]]]:
        smallest = least(self.schema)
        group: list[tuple[int, bytes]] = []
        total = 0
        for count, packed in self._blocks():
            budget = Budget(len(packed), self.uri)
            data = avro.payload(self.header.codec, count, memoryview(packed), smallest, budget, self.uri)
            group.append((count, data))
            total += len(data)
            if total >= _GROUP:
                yield group
                group, total = [], 0
        if group:
            yield group

    def _blocks(self) -> Iterator[tuple[int, bytes]]:
        """The blocks as they are stored, each with the number of its records."""
        window = _Window(self.stream, self.header.size)
        while not window.ended:
            try:
                start = window.take(_LONGS, partly=True)
                count, at = read_long(start, 0)
                size, at = read_long(start, at)
                window.back(len(start) - at)
                if count < 0 or size < 0:
                    raise IndexError(at)
                packed = window.take(size + 16)
            except IndexError:
                raise CorruptTableError(
                    f"the Avro file is cut short, or corrupt, at byte {window.place:,}", where=self.uri
                ) from None
            if packed[size:] != self.header.sync:
                raise CorruptTableError(
                    f"the Avro block before byte {window.place:,} does not end with the sync marker", where=self.uri
                )
            yield count, packed[:size]


class _Window:
    """Reads a file from a place on, some megabytes at a time."""

    def __init__(self, stream: pa.NativeFile, place: int) -> None:
        self._stream, self._size = stream, int(stream.size())
        self._data, self._at = b"", 0
        self._next = place

    @property
    def place(self) -> int:
        return self._next - len(self._data) + self._at

    @property
    def ended(self) -> bool:
        return self.place >= self._size

    def take(self, size: int, partly: bool = False) -> bytes:
        """The next bytes. Raises IndexError if there are fewer, unless they may be given in part."""
        size = min(size, self._size - self.place) if partly else size
        if size > self._size - self.place:
            raise IndexError(size)
        if len(self._data) - self._at < size:
            more = min(max(size, _STEP), self._size - self._next)
            self._data = self._data[self._at :] + bytes(self._stream.read_at(more, self._next))
            self._next, self._at = self._next + more, 0
            if len(self._data) < size:
                raise IndexError(size)
        self._at += size
        return self._data[self._at - size : self._at]

    def back(self, size: int) -> None:
        self._at -= size
