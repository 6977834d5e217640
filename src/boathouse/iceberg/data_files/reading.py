"""Opens and reads data files and delete files of every file format, on executors too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from boathouse.avro.rows import open_avro
from boathouse.orc.rows import open_orc
from boathouse.parquet.field_source import FieldSource, OpenSource, scan_fields
from boathouse.parquet.matching import Matching
from boathouse.parquet.read import SourceColumn, scan_source
from boathouse.parquet.source import ParquetSource, open_source
from boathouse.table.parquet_units import read_parquet_unit
from boathouse.table.reading import FileReader, UnitRead
from boathouse.table.units import AVRO, ORC, PARQUET

if TYPE_CHECKING:
    from boathouse.arrow.filesystem import DataFiles


def _read_unit(open: OpenSource, read: UnitRead) -> Iterator[pa.RecordBatch]:
    """The columns of one file; `open` bound, this is a `FileReader`."""
    source = open(read.spec.files, read.unit["path"], read.spec.matching, read.unit["size"])
    try:
        columns = [SourceColumn(c.name, c.type, c.physical, c.field_id, c.default, c.nullable) for c in read.columns]
        yield from scan_fields(source, columns, row_filter=read.where, deleted=read.deleted, positions=read.positions)
    finally:
        source.close()


_OPEN: Final[Mapping[int, OpenSource]] = {ORC: open_orc, AVRO: open_avro}
READERS: Final[Mapping[int, FileReader]] = {
    PARQUET: read_parquet_unit,
    **{format: partial(_read_unit, open) for format, open in _OPEN.items()},
}


def open_file(
    format: int, files: DataFiles, uri: str, matching: Matching, size: int | None = None
) -> ParquetSource | FieldSource:
    """Opens a file. Raises CorruptTableError, UnsupportedFeatureError, and the errors of `files`."""
    if format == PARQUET:
        return open_source(files, uri, matching, size)
    return _OPEN[format](files, uri, matching, size)


def scan_open(source: ParquetSource | FieldSource, columns: Sequence[SourceColumn]) -> Iterator[pa.RecordBatch]:
    """All rows of an open file, as `parquet.read.scan_file` gives them, in this thread."""
    if isinstance(source, ParquetSource):
        return scan_source(source, columns, use_threads=False)
    return scan_fields(source, columns)
