"""One data file in the format that the table asks for, with the statistics of its rows; runs on executors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

import pyarrow as pa

from boathouse.arrow.schema import to_arrow
from boathouse.avro.write import AvroOptions, AvroWriter
from boathouse.errors import UnsupportedFeatureError
from boathouse.iceberg.data_files.avro_schemas import avro_schema
from boathouse.orc.write import OrcOptions, OrcWriter
from boathouse.parquet.row_stats import RowStats
from boathouse.parquet.schema import conform, to_parquet_schema, without_void
from boathouse.parquet.shredding import shredding_of
from boathouse.parquet.stats import split_offsets
from boathouse.parquet.write import Layout, ParquetOptions, ParquetWriter
from boathouse.parquet.written_stats import FileLeaves, FileStats, StatsCollector
from boathouse.table.tasks import WriteContext
from boathouse.table.units import AVRO, ORC, PARQUET
from boathouse.types import Schema


@dataclass(frozen=True, slots=True)
class Stored:
    """A finished file: `size` in bytes, and where readers may begin, if that is known."""

    size: int
    rows: int
    offsets: list[int] | None
    stats: FileStats


class StoredFile(Protocol):
    """A file being written."""

    @property
    def bytes_written(self) -> int: ...

    def write(self, batch: pa.RecordBatch) -> None: ...

    def close(self) -> Stored: ...

    def abort(self) -> None: ...


class StoredFiles(Protocol):
    """The files of one write in one format; `suffix` ends their names."""

    format: int
    suffix: str

    def open(self, uri: str) -> StoredFile: ...


def stored_files(context: WriteContext, rows: Schema, leaves: FileLeaves, options: Mapping[str, Any]) -> StoredFiles:
    """The files of rows with these columns, as `file_options` say. Raises UnsupportedFeatureError if no file has any of
    them: it would not know its rows."""
    if not without_void(rows).fields:
        raise UnsupportedFeatureError(
            "no column of the table is stored in its files, as they are of unknown type",
            where=context.directory,
            advice="add a column of another type",
        )
    format = options.get("format", PARQUET)
    return (
        ParquetFiles(context, rows, leaves, options)
        if format == PARQUET
        else FieldFiles(context, rows, leaves, options)
    )


class ParquetFiles:
    """Parquet: the statistics are those of the footers."""

    format, suffix = PARQUET, ".parquet"

    def __init__(self, context: WriteContext, rows: Schema, leaves: FileLeaves, options: Mapping[str, Any]) -> None:
        self.files, self.leaves = context.files, leaves
        self.options = ParquetOptions(
            compression=options.get("compression", "zstd"),
            compression_level=options.get("compression_level"),
            row_group_bytes=options.get("row_group_bytes", 128 << 20),
        )
        self._shred = bool(options.get("shred"))
        self._plain = Layout.of(to_parquet_schema(rows))
        self._layout: Layout | None = None

    def open(self, uri: str) -> StoredFile:
        return _ParquetFile(self, uri)

    def layout(self, first: pa.RecordBatch | None) -> Layout:
        """The layout of all files, in which variants are shredded by what the first rows hold, if the table wants
        it."""
        if self._layout is None:
            shred = first is not None and self._shred
            by = shredding_of(self.leaves.leaves, first, lambda path: path) if shred else {}
            self._layout = Layout.of(self._plain.schema, by) if by else self._plain
        return self._layout


class _ParquetFile:
    def __init__(self, shared: ParquetFiles, uri: str) -> None:
        self._shared, self._uri = shared, uri
        self._stats = StatsCollector(shared.leaves)
        self._writer: ParquetWriter | None = None

    @property
    def bytes_written(self) -> int:
        return 0 if self._writer is None else self._writer.bytes_written

    def _opened(self, first: pa.RecordBatch | None) -> ParquetWriter:
        if self._writer is None:
            shared = self._shared
            self._writer = ParquetWriter(shared.files, self._uri, shared.layout(first), shared.options, widen=True)
        return self._writer

    def write(self, batch: pa.RecordBatch) -> None:
        self._opened(batch).write(batch)
        self._stats.update(batch)

    def close(self) -> Stored:
        summary = self._opened(None).close()
        stats = self._stats.taken(summary.metadata)
        return Stored(summary.size, summary.rows, split_offsets(summary.metadata), stats)

    def abort(self) -> None:
        if self._writer is not None:
            self._writer.abort()


class FieldFiles:
    """ORC and Avro: the statistics are counted here."""

    def __init__(self, context: WriteContext, rows: Schema, leaves: FileLeaves, options: Mapping[str, Any]) -> None:
        self.format: int = options["format"]
        self.suffix = _SUFFIXES[self.format]
        self.files, self.leaves = context.files, leaves
        self.rows = without_void(rows)
        self.arrow = to_arrow(self.rows)
        given = {name: value for name, value in options.items() if name in _OPTIONS[self.format]}
        self._orc = OrcOptions(**given) if self.format == ORC else None
        self._avro = None if self.format == ORC else (avro_schema(self.rows), AvroOptions(**given))

    def open(self, uri: str) -> StoredFile:
        return _FieldFile(self, uri)

    def writer(self, uri: str) -> OrcWriter | AvroWriter:
        if self._avro is not None:
            schema, options = self._avro
            return AvroWriter(self.files, uri, schema, self.arrow, options)
        assert self._orc is not None
        return OrcWriter(self.files, uri, self.rows, self.arrow, self._orc)


_SUFFIXES: Final = {ORC: ".orc", AVRO: ".avro"}
_OPTIONS: Final = {ORC: ("compression", "strategy", "stripe_bytes"), AVRO: ("compression", "level")}


class _FieldFile:
    def __init__(self, shared: FieldFiles, uri: str) -> None:
        self._shared = shared
        self._stats = RowStats(shared.leaves, shared.rows)
        self._writer = shared.writer(uri)

    @property
    def bytes_written(self) -> int:
        return self._writer.bytes_written

    def write(self, batch: pa.RecordBatch) -> None:
        stored = conform(batch, self._shared.arrow)
        self._writer.write(stored)
        self._stats.update(stored)

    def close(self) -> Stored:
        found = self._writer.close()
        return Stored(found.size, found.rows, found.offsets, self._stats.taken(found.sizes))

    def abort(self) -> None:
        self._writer.abort()
