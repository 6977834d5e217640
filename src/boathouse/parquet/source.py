"""One Parquet file that is open for reading: its footer, its fields, and how its columns are best read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from boathouse.arrow.memory import read_pool
from boathouse.parquet.damage import damage
from boathouse.parquet.resolve import Matching, Resolver, file_fields
from boathouse.parquet.stats import chunk_nulls

if TYPE_CHECKING:
    from boathouse.arrow.filesystem import DataFiles

_WORTH_DICTIONARIES = 1 << 16
_LENGTH_BYTES = 3


@dataclass(frozen=True, slots=True)
class ParquetSource:
    """One open file: its footer and its fields."""

    uri: str
    reader: pq.ParquetReader
    resolver: Resolver

    @property
    def metadata(self) -> pq.FileMetaData:
        return self.reader.metadata

    def close(self) -> None:
        self.reader.close()


def open_source(files: DataFiles, uri: str, matching: Matching | None = None) -> ParquetSource:
    """Opens a file for reading. Raises CorruptTableError if it is no Parquet file, else what `files` raises."""
    matching = matching or Matching()
    stream = files.open_input(uri)
    try:
        with damage("not a readable Parquet file", uri):
            reader = _reader(stream)
            fields = file_fields(reader.schema_arrow, matching.file_ids)
            if repeating := _repeating(reader.metadata):
                reader = _reader(stream, metadata=reader.metadata, read_dictionary=repeating)
    except BaseException:
        stream.close()
        raise
    return ParquetSource(uri, reader, Resolver(fields, matching, partial(_is_empty, reader.metadata)))


def _reader(stream: pa.NativeFile, **options: object) -> pq.ParquetReader:
    # Not pq.ParquetFile: that one takes no memory pool, and looks at every column's path as it opens.
    reader = pq.ParquetReader(memory_pool=read_pool())
    reader.open(
        stream,
        pre_buffer=not isinstance(stream, pa.OSFile),  # one request for neighbouring columns: for stores only
        coerce_int96_timestamp_unit="us",
        arrow_extensions_enabled=False,
        **options,
    )
    return reader


def _is_empty(metadata: pq.FileMetaData, leaf: int) -> bool:
    chunks = [metadata.row_group(i).column(leaf) for i in range(metadata.num_row_groups)]
    return all(chunk_nulls([c]) == c.num_values for c in chunks)


def _repeating(metadata: pq.FileMetaData) -> list[str]:
    """Text columns that are cheaper to read as dictionaries and spread afterwards: half the time of plain reading.

    A value stored as text takes four bytes for its length alone, so a column with less than that a value has
    nothing but dictionary pages.
    """
    if metadata.num_rows < _WORTH_DICTIONARIES:
        return []
    found = []
    for i in range(metadata.num_columns):
        column = metadata.schema.column(i)
        if column.physical_type != "BYTE_ARRAY" or column.path != column.name or column.max_repetition_level:
            continue
        if str(column.logical_type) not in ("String", "None") or "." in column.name:
            continue
        groups = [metadata.row_group(g).column(i) for g in range(metadata.num_row_groups)]
        if all(g.has_dictionary_page and g.total_uncompressed_size < _LENGTH_BYTES * g.num_values for g in groups):
            found.append(column.name)
    return found
