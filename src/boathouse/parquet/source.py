"""An open Parquet file: its footer, its fields, and the reader of its columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from boathouse.arrow.memory import read_pool
from boathouse.errors import CorruptTableError, UnsupportedFeatureError
from boathouse.parquet.errors import damage
from boathouse.parquet.fields import file_fields
from boathouse.parquet.matching import Matching
from boathouse.parquet.resolve import Resolver
from boathouse.parquet.stats import chunk_nulls
from boathouse.parquet.thrift_footer import ENCRYPTED
from boathouse.parquet.views import has_views, plain_schema, plain_table

if TYPE_CHECKING:
    from boathouse.arrow.filesystem import DataFiles

_TEXTS = frozenset((pa.string(), pa.binary(), pa.large_string(), pa.large_binary()))
_WORTH_ANOTHER_READER = 1 << 16
_LENGTH_BYTES = 3
_LOCAL_BUFFER = 1 << 18
"""The buffer size for local files: with whole column chunks at once, their pages would never be in the cache."""


@dataclass(frozen=True)
class ParquetSource:
    """One open file: its footer and its fields."""

    uri: str
    stream: pa.NativeFile
    reader: pq.ParquetReader
    schema: pa.Schema
    """The file's schema in Arrow, without views."""
    resolver: Resolver
    views: bool = False
    """Whether Arrow reads views, which are then made plain."""

    @property
    def metadata(self) -> pq.FileMetaData:
        return self.reader.metadata

    def close(self) -> None:
        self.stream.close()

    def with_dictionaries(self, leaves: Iterable[int]) -> ParquetSource:
        """This file, opened so that repetitive strings among these leaf columns are read as dictionaries, which is
        faster; only top-level columns are."""
        if self.metadata.num_rows < _WORTH_ANOTHER_READER:
            return self
        names = [self.resolver.leaf_at(leaf).name for leaf in leaves if self._is_text(leaf) and self._repeats(leaf)]
        if not names:
            return self
        return replace(self, reader=_reader(self.stream, metadata=self.metadata, read_dictionary=names))

    def read(self, groups: Sequence[int], leaves: Sequence[int], use_threads: bool) -> pa.Table:
        """These row groups of leaf columns, by number: names with dots are ambiguous in pyarrow's public API.

        The columns are in no particular order.
        """
        threads = use_threads and len(leaves) > 1  # Arrow reads each column in a thread, and waits for it
        table = self.reader.read_row_groups(list(groups), self._by_weight(groups, leaves), use_threads=threads)
        for column in table.columns:
            for chunk in column.chunks:
                _require_bounds(chunk)
        return plain_table(table) if self.views else table

    def batches(
        self, rows: int, groups: Sequence[int], leaves: Sequence[int], use_threads: bool
    ) -> Iterator[pa.RecordBatch]:
        """The result of `read`, at most `rows` rows at a time."""
        for batch in self.reader.iter_batches(
            rows, row_groups=list(groups), column_indices=list(leaves), use_threads=use_threads
        ):
            for column in batch.columns:
                _require_bounds(column)
            yield from plain_table(pa.Table.from_batches([batch])).to_batches() if self.views else (batch,)

    def _by_weight(self, groups: Sequence[int], leaves: Sequence[int]) -> list[int]:
        """The leaves, slowest first: a slow column that is started last leaves the other threads idle."""
        if not groups or len(leaves) == 1:
            return list(leaves)
        first = self.metadata.row_group(groups[0])
        return sorted(leaves, key=lambda leaf: -first.column(leaf).total_uncompressed_size)

    def _is_text(self, leaf: int) -> bool:
        """Whether it is a top-level column of strings whose name pyarrow takes for a name, not for a path."""
        found = self.resolver.leaf_at(leaf)
        repeated = self.metadata.schema.column(leaf).max_repetition_level > 0
        type = found.type
        if self.views and len(found.path) == 1:  # Arrow cannot decode dictionaries of views
            type = self.reader.schema_arrow.types[self.schema.get_field_index(found.name)]
        return type in _TEXTS and len(found.path) == 1 and "." not in found.name and not repeated

    def _repeats(self, leaf: int) -> bool:
        """Whether a string column is cheaper to read as a dictionary and to decode afterwards.

        A plain string takes four bytes for its length alone, so a column with fewer bytes per value consists almost
        entirely of dictionary pages.
        """
        metadata = self.metadata
        groups = [metadata.row_group(g).column(leaf) for g in range(metadata.num_row_groups)]
        return all(g.has_dictionary_page and g.total_uncompressed_size < _LENGTH_BYTES * g.num_values for g in groups)


def open_source(files: DataFiles, uri: str, matching: Matching | None = None, size: int | None = None) -> ParquetSource:
    """Opens a file for reading; its `size` in bytes, if known, can save a request. Raises CorruptTableError if it is
    not a Parquet file, and the errors of `files`."""
    matching = matching or Matching()
    stream = files.open_input(uri, size)
    try:
        with damage("not a readable Parquet file", uri):
            reader = _reader(stream)
            schema = reader.schema_arrow
            views = any(has_views(type) for type in schema.types)
            if views:
                schema = plain_schema(schema)
            fields = file_fields(schema, matching.file_ids)
    except BaseException as error:
        encrypted = isinstance(error, CorruptTableError) and _ends_with(stream, ENCRYPTED)
        stream.close()
        if encrypted:
            raise UnsupportedFeatureError("encrypted Parquet files are not offered", where=uri) from None
        raise
    resolver = Resolver(fields, matching, partial(_is_empty, reader.metadata))
    return ParquetSource(uri, stream, reader, schema, resolver, views)


def _ends_with(stream: pa.NativeFile, magic: bytes) -> bool:
    size = int(stream.size())
    return size >= len(magic) and bytes(stream.read_at(len(magic), size - len(magic))) == magic


def _reader(stream: pa.NativeFile, **options: object) -> pq.ParquetReader:
    # Not pq.ParquetFile: it accepts no memory pool, and reads every column's path when it opens.
    reader = pq.ParquetReader(memory_pool=read_pool())
    local = isinstance(stream, pa.OSFile)
    reader.open(
        stream,
        pre_buffer=not local,  # one request for adjacent columns: for object stores only
        buffer_size=_LOCAL_BUFFER if local else 0,
        coerce_int96_timestamp_unit="us",
        arrow_extensions_enabled=False,
        **options,
    )
    return reader


def _require_bounds(array: pa.Array) -> None:
    """Raises ArrowIndexError for an out-of-range dictionary index at any depth: Arrow does not check them when it
    reads."""
    if not _has_dictionary(array.type):
        return
    if pa.types.is_struct(array.type):
        for i in range(array.type.num_fields):
            _require_bounds(array.field(i))
    elif pa.types.is_dictionary(array.type):
        found = pc.min_max(array.indices)
        low, high = found["min"].as_py(), found["max"].as_py()
        if low is not None and (low < 0 or high >= len(array.dictionary)):
            wrong = high if low >= 0 else low
            raise pa.ArrowIndexError(f"index {wrong} in a dictionary of {len(array.dictionary)} values")
    else:
        _require_bounds(array.values)


def _has_dictionary(type: pa.DataType) -> bool:
    # Accessing a type's children is cheap; accessing an array's children creates each of them.
    if pa.types.is_dictionary(type):
        return True
    return any(_has_dictionary(type.field(i).type) for i in range(type.num_fields))


def _is_empty(metadata: pq.FileMetaData, leaf: int) -> bool:
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    chunks = [group.column(leaf) for group in groups]
    return all(chunk_nulls([c]) == c.num_values for c in chunks)
