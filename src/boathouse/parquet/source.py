"""An open Parquet file: its footer, its fields, and an optimised reader for its columns."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from boathouse.arrow.dictionary import require_bounds
from boathouse.arrow.memory import read_pool
from boathouse.arrow.string_offsets import narrowed
from boathouse.errors import CorruptTableError, UnsupportedFeatureError
from boathouse.parquet.errors import damage
from boathouse.parquet.footer import ENCRYPTED, MAGIC, read_footer_bytes
from boathouse.parquet.resolve import FileField, Matching, Resolver, file_fields
from boathouse.parquet.stats import chunk_nulls
from boathouse.parquet.variants import METADATA, VALUE
from boathouse.types import Schema

if TYPE_CHECKING:
    from boathouse.arrow.filesystem import DataFiles

# Not views: Arrow cannot decode dictionaries of them.
_TEXTS = frozenset((pa.string(), pa.binary(), pa.large_string(), pa.large_binary()))
_WIDE = pa.large_binary()
_WORTH_ANOTHER_READER = 1 << 16
_LENGTH_BYTES = 3
_FOOTER_BYTES, _TAIL_BYTES = 1 << 18, 1 << 15
_LOCAL_BUFFER = 1 << 18
"""The buffer size for local files: with whole column chunks at once, their pages would never be in the cache."""


@dataclass(frozen=True, slots=True)
class Footer:
    """A file's footer, parsed."""

    metadata: pq.FileMetaData
    schema: pa.Schema
    """The file's schema in Arrow."""
    says_types: bool
    """Whether the file stores an Arrow schema, which may ask for large types or dictionaries."""
    fields: list[FileField]
    """The fields with the ids that are stored."""
    schemas: dict[tuple[tuple[str, ...], bool], Schema]
    """The results of `file_schema`."""
    empty: dict[int, bool]
    """Leaf columns, and whether they certainly hold only nulls, as far as that was asked."""


@dataclass(frozen=True)
class ParquetSource:
    """One open file: its footer and its fields."""

    uri: str
    stream: pa.NativeFile
    footer: Footer
    resolver: Resolver
    opened: pq.ParquetReader | None
    """The reader that parsed the footer; None if it was cached."""
    spreading: pq.ParquetReader | None = None
    """Reads repetitive strings as dictionaries."""
    repeating: frozenset[str] = frozenset()
    """The top-level columns that `spreading` is for."""
    apart: bool = False
    """Whether `spreading` reads repetitive strings below structs."""

    @property
    def metadata(self) -> pq.FileMetaData:
        return self.footer.metadata

    @cached_property
    def reader(self) -> pq.ParquetReader:
        """Reads strings with 64-bit offsets: faster, as Arrow need not check for 2 GiB at every value."""
        return _reader(self.stream, metadata=self.metadata) if self.opened is None else self.opened

    def close(self) -> None:
        self.stream.close()

    def quickest(self, leaves: Iterable[int], parts: Collection[int] = ()) -> ParquetSource:
        """This file, opened with the fastest reader for these leaf columns: repetitive strings are read as
        dictionaries.

        That applies to top-level columns, and to those of variants in `parts`, which are read below structs.
        """
        leaves = tuple(leaves)
        if self.metadata.num_rows < _WORTH_ANOTHER_READER:
            return self
        named = ((leaf, self._name(leaf, leaf in parts)) for leaf in leaves)
        names = [name for leaf, name in named if name is not None and self._repeats(leaf)]
        if not names:
            return self
        repeating = frozenset(name.partition(".")[0] for name in names)
        if not _is_local(self.stream):  # one reader for all, as adjacent columns take one request
            repeating = frozenset(self.resolver.leaf_at(leaf).path[0] for leaf in leaves)
        spreading = self._narrow(read_dictionary=names)
        return replace(self, spreading=spreading, repeating=repeating, apart=any("." in name for name in names))

    def read(
        self, groups: Sequence[int], leaves: Sequence[int], use_threads: bool, wide: Container[str] = ()
    ) -> pa.Table:
        """These row groups of leaf columns, by number: names with dots are ambiguous in pyarrow's public API.

        The columns are in no particular order; strings of those in `wide` may have 64-bit offsets.
        """
        repeating: list[int] = []
        others: list[int] = []
        for leaf in self._by_weight(groups, leaves):
            (repeating if self.resolver.leaf_at(leaf).path[0] in self.repeating else others).append(leaf)
        tables = []
        if others:
            tables.append(
                self._read(self.reader, groups, others, use_threads, None if self.footer.says_types else wide)
            )
        if repeating:
            tables.append(self._read(self.spreading, groups, repeating, use_threads, None))
        columns = {name: table.column(i) for table in tables for i, name in enumerate(table.column_names)}
        return tables[0] if len(tables) == 1 else pa.table(columns)

    def _read(
        self,
        reader: pq.ParquetReader,
        groups: Sequence[int],
        leaves: list[int],
        use_threads: bool,
        wide: Container[str] | None,
    ) -> pa.Table:
        """Strings have 32-bit offsets, except in the columns `wide`; if that is None, all are returned as they were
        read."""
        # A dictionary ends with its row group, and Arrow cannot concatenate such chunks below structs.
        together = [[i] for i in groups] if reader is self.spreading and self.apart else [list(groups)]
        threads = use_threads and len(leaves) > 1  # Arrow reads each column in a thread, and waits for it
        tables = [reader.read_row_groups(some, leaves, use_threads=threads) for some in together]
        table = tables[0] if len(tables) == 1 else pa.concat_tables(tables)
        if reader is self.spreading or self.footer.says_types:
            # Columns read as dictionaries are decoded, and their indexes checked then; metadata of variants stays a
            # dictionary.
            only = None if self.footer.says_types else METADATA
            for column in table.columns:
                for chunk in column.chunks:
                    _require_bounds(chunk, only)
        if wide is None:
            return table
        try:
            return narrowed(table, wide)
        except pa.ArrowInvalid:
            # 2 GiB and more in one array: Arrow itself splits them.
            return self._read(self._narrow(), groups, leaves, use_threads, None)

    def batches(
        self, rows: int, groups: Sequence[int], leaves: Sequence[int], use_threads: bool
    ) -> Iterator[pa.RecordBatch]:
        """The result of `read`, at most `rows` rows at a time."""
        # Below structs a dictionary must not cross the end of its row group.
        reader = self.spreading if self.spreading is not None and not self.apart else self._narrow()
        for batch in reader.iter_batches(
            rows, row_groups=list(groups), column_indices=list(leaves), use_threads=use_threads
        ):
            for column in batch.columns:
                _require_bounds(column)
            yield batch

    def _narrow(self, **options: object) -> pq.ParquetReader:
        """Another reader of the file, with 32-bit offsets."""
        return _reader(self.stream, metadata=self.metadata, binary_type=None, **options)

    def _by_weight(self, groups: Sequence[int], leaves: Sequence[int]) -> list[int]:
        """The leaves, slowest first: a slow column that is started last leaves the other threads idle."""
        if not groups or len(leaves) == 1:
            return list(leaves)
        first = self.metadata.row_group(groups[0])
        return sorted(leaves, key=lambda leaf: -first.column(leaf).total_uncompressed_size)

    def _name(self, leaf: int, part: bool) -> str | None:
        """pyarrow's name for a string column; None if it is not to be read as a dictionary."""
        found = self.resolver.leaf_at(leaf)
        if found.type not in _TEXTS or any("." in step for step in found.path):
            return None
        if len(found.path) > 1 and (not part or found.name == VALUE):
            return None
        return ".".join(found.path) if not self.metadata.schema.column(leaf).max_repetition_level else None

    def _repeats(self, leaf: int) -> bool:
        """Whether a string column is cheaper to read as a dictionary and to decode afterwards.

        A plain string takes four bytes for its length alone, so a column with fewer bytes per value consists almost
        entirely of dictionary pages.
        """
        metadata = self.metadata
        groups = [metadata.row_group(g).column(leaf) for g in range(metadata.num_row_groups)]
        return all(g.has_dictionary_page and g.total_uncompressed_size < _LENGTH_BYTES * g.num_values for g in groups)


def open_source(files: DataFiles, uri: str, matching: Matching | None = None) -> ParquetSource:
    """Opens a file for reading. Raises CorruptTableError if it is not a Parquet file, and the errors of `files`."""
    matching = matching or Matching()
    stream = files.open_input(uri)
    try:
        with damage("not a readable Parquet file", uri):
            footer, reader = _footer(stream)
            fields = footer.fields
            if matching.file_ids is not None:
                fields = file_fields(footer.schema, matching.file_ids, narrow=not footer.says_types)
    except BaseException as error:
        encrypted = isinstance(error, CorruptTableError) and _ends_with(stream, ENCRYPTED)
        stream.close()
        if encrypted:
            raise UnsupportedFeatureError("encrypted Parquet files are not offered", where=uri) from None
        raise
    resolver = Resolver(fields, matching, partial(_is_empty, footer))
    return ParquetSource(uri, stream, footer, resolver, reader)


def _ends_with(stream: pa.NativeFile, magic: bytes) -> bool:
    size = int(stream.size())
    return size >= len(magic) and bytes(stream.read_at(len(magic), size - len(magic))) == magic


def _footer(stream: pa.NativeFile) -> tuple[Footer, pq.ParquetReader | None]:
    """The footer of a file, and the reader that was opened for it.

    A local file that is read again is recognised by the bytes of its footer. For a file in an object store, reading
    them separately would be one more request.
    """
    known = _known(_thrift(stream)) if _is_local(stream) else []
    if known:
        return known[0], None
    reader = _reader(stream)
    says_types = b"ARROW:schema" in (reader.metadata.metadata or {})
    schema = reader.schema_arrow
    known.append(Footer(reader.metadata, schema, says_types, file_fields(schema, narrow=not says_types), {}, {}))
    return known[0], reader


def _thrift(stream: pa.NativeFile) -> bytes | None:
    """The bytes of the footer; None if there are too many to cache, or if there is no footer."""
    size = stream.size()
    tail = stream.read_at(min(size, _TAIL_BYTES), max(size - _TAIL_BYTES, 0))
    length = int.from_bytes(tail[-8:-4], "little")
    if tail[-4:] != MAGIC or length + 8 > size or length > _FOOTER_BYTES:
        return None  # the reader reports the fault better
    return bytes(tail[-8 - length : -8]) if length + 8 <= len(tail) else read_footer_bytes(stream, size)


def _known(thrift: bytes | None) -> list[Footer]:
    """The parsed footer; or an empty list, for the caller to fill."""
    return [] if thrift is None else _place(thrift)


@lru_cache(maxsize=16)
def _place(thrift: bytes) -> list[Footer]:
    return []


def _reader(stream: pa.NativeFile, binary_type: pa.DataType | None = _WIDE, **options: object) -> pq.ParquetReader:
    # Not pq.ParquetFile: it accepts no memory pool, and reads every column's path when it opens.
    reader = pq.ParquetReader(memory_pool=read_pool())
    local = _is_local(stream)
    reader.open(
        stream,
        pre_buffer=not local,  # one request for adjacent columns: for object stores only
        buffer_size=_LOCAL_BUFFER if local else 0,
        coerce_int96_timestamp_unit="us",
        arrow_extensions_enabled=False,
        binary_type=binary_type,
        **options,
    )
    return reader


def _is_local(stream: pa.NativeFile) -> bool:
    return isinstance(stream, pa.OSFile)


def _require_bounds(array: pa.Array, only: str | None = None) -> None:
    """Raises ArrowIndexError for an out-of-range dictionary index at any depth; `only` checks fields of that name."""
    if not _has_dictionary(array.type, only):
        return
    if pa.types.is_struct(array.type):
        for i in range(array.type.num_fields):
            _require_bounds(array.field(i), None if array.type.field(i).name == only else only)
    elif pa.types.is_dictionary(array.type):
        require_bounds(array.indices, len(array.dictionary))
    else:
        _require_bounds(array.values, only)


def _has_dictionary(type: pa.DataType, only: str | None) -> bool:
    # Accessing a type's children is cheap; accessing an array's children creates each of them.
    if pa.types.is_dictionary(type):
        return only is None
    below = (type.field(i) for i in range(type.num_fields))
    return any(_has_dictionary(f.type, None if f.name == only else only) for f in below)


def _is_empty(footer: Footer, leaf: int) -> bool:
    if leaf not in footer.empty:
        groups = [footer.metadata.row_group(i) for i in range(footer.metadata.num_row_groups)]
        chunks = [group.column(leaf) for group in groups]
        footer.empty[leaf] = all(chunk_nulls([c]) == c.num_values for c in chunks)
    return footer.empty[leaf]
