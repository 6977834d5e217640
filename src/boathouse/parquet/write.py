"""Writes one Parquet file: batches are collected into large row groups, an aborted file leaves nothing behind."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from boathouse.errors import InvalidArgumentError
from boathouse.parquet.schema import conform, variant_groups
from boathouse.parquet.shredded import Shredding, shred_batch, shredded_schema
from boathouse.parquet.thrift_footer import EditingSink, annotate
from boathouse.parquet.unbounded import Chunk, FloatLeaf, float_leaves, without_bounds

if TYPE_CHECKING:
    from boathouse.arrow.filesystem import OutputFiles

CODEC = "zstd"
"""The default codec: smaller than snappy, and strings decompress faster."""
CODECS = ("none", "uncompressed", "snappy", "gzip", "zstd", "lz4", "brotli")
_FEW = 64
_SAMPLE = 32 * 1024
_DISTINCT = 0.8
_DICTIONARY_BYTES = 1 << 20
_FIRST_RATIO = 0.4


@dataclass(frozen=True, slots=True)
class ParquetOptions:
    """How files are written.

    `row_group_rows` and `row_group_bytes` (of Arrow memory) close a row group, whichever comes first.
    `dictionary` is "auto" (all but columns whose first rows hardly repeat), True, False, or a tuple of columns.
    `integer_decimals` stores decimals of up to 18 digits as INT32 or INT64. `metadata` goes into the footer.
    """

    compression: str = CODEC
    compression_level: int | None = None
    row_group_rows: int = 1 << 20
    row_group_bytes: int = 128 << 20
    dictionary: bool | str | tuple[str, ...] = "auto"
    page_index: bool = True
    integer_decimals: bool = True
    data_page_version: str = "1.0"
    metadata: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.compression, str) or self.compression.lower() not in CODECS:
            raise InvalidArgumentError(
                f"no compression codec {self.compression!r}", advice=f"use one of {', '.join(CODECS)}"
            )
        for name in ("row_group_rows", "row_group_bytes"):
            limit = getattr(self, name)
            if not isinstance(limit, int) or limit < 1:
                raise InvalidArgumentError(f"{name}={limit!r}", advice="a row group has at least one row")


@dataclass(frozen=True, slots=True)
class Layout:
    """The parts that files of one `schema` share (see `parquet.schema.to_parquet_schema`), computed once for all of
    them.

    `stored` is the schema of the file, with the variants at the paths in `shredding` shredded; `groups` are the paths
    to annotate VARIANT, `floats` the leaves that may hold NaN.
    """

    schema: pa.Schema
    shredding: Shredding
    stored: pa.Schema
    groups: tuple[tuple[str, ...], ...]
    floats: tuple[FloatLeaf, ...]

    @classmethod
    def of(cls, schema: pa.Schema, shredding: Shredding | None = None) -> Layout:
        stored = shredded_schema(schema, shredding) if shredding else schema
        return cls(schema, shredding or {}, stored, variant_groups(stored), float_leaves(stored))


@dataclass(frozen=True, slots=True)
class FileSummary:
    """A finished file: `size` is in bytes, `metadata` is its footer without VARIANT annotations, and with the bounds of
    floats beside NaN, which the file does not have."""

    uri: str
    size: int
    rows: int
    metadata: pq.FileMetaData


class ParquetWriter:
    """One file being written; `close` or `abort` ends it. As a context manager it is closed, or aborted on an error.

    Batches have the columns of the layout's `schema` in order; names are not compared. The variants at the paths in
    `shredding` are stored shredded by its schemas; batches hold whole variants. With `widen`, shredded columns of
    integers and decimals also take narrower values, whose widths are lost.
    """

    def __init__(
        self,
        files: OutputFiles,
        uri: str,
        schema: pa.Schema | Layout,
        options: ParquetOptions | None = None,
        shredding: Shredding | None = None,
        widen: bool = False,
    ) -> None:
        self.uri = uri
        self._layout = schema if isinstance(schema, Layout) else Layout.of(schema, shredding)
        self._widen = widen
        self._files = files
        self._options = options or ParquetOptions()
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = self._pending_bytes = 0
        self._rows = self._flushed_bytes = 0
        self._sink: pa.NativeFile | EditingSink | None = None
        self._writer: pq.ParquetWriter | None = None
        self._groups = 0
        self._with_nan: set[Chunk] = set()
        self._footer: list[pq.FileMetaData] = []

    @property
    def rows(self) -> int:
        """The number of rows written so far."""
        return self._rows + self._pending_rows

    @property
    def bytes_written(self) -> int:
        """The approximate size of the file so far: the stored bytes, plus the buffered rows at the compression ratio
        seen so far."""
        stored = self._sink.tell() if self._sink is not None else 0
        ratio = stored / self._flushed_bytes if self._flushed_bytes else _FIRST_RATIO
        return int(stored + self._pending_bytes * ratio)

    def write(self, batch: pa.RecordBatch) -> None:
        """Adds rows. Raises SchemaMismatchError, ConstraintViolationError, and what the store raises."""
        layout = self._layout
        batch = conform(batch, layout.schema)
        if layout.shredding:
            batch = conform(shred_batch(batch, layout.shredding, self._widen), layout.stored)
        limit = self._options.row_group_rows
        at = 0
        while at < batch.num_rows:
            part = batch.slice(at, limit - self._pending_rows)
            at += part.num_rows
            self._pending.append(part)
            self._pending_rows += part.num_rows
            self._pending_bytes += part.nbytes
            if self._pending_rows >= limit or self._pending_bytes >= self._options.row_group_bytes:
                self._flush()

    def close(self) -> FileSummary:
        """Finishes the file; a file without rows is readable too."""
        if self._pending_rows or self._writer is None:
            self._flush()
        assert self._writer is not None and self._sink is not None
        if isinstance(self._sink, EditingSink):
            self._sink.hold()
            self._writer.close()
            self._sink.release(self._edited)
        else:
            self._writer.close()
        size = self._sink.tell()
        self._sink.close()
        return FileSummary(self.uri, size, self._rows, self._footer[0])

    def abort(self) -> None:
        """Removes what was written; never raises."""
        self._pending = []
        if self._writer is not None:
            self._writer.is_open = False  # otherwise its finaliser writes a footer into the closed sink
        if self._sink is not None:
            with contextlib.suppress(Exception):
                self._sink.close()
            with contextlib.suppress(Exception):
                self._files.delete(self.uri)

    def __enter__(self) -> ParquetWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

    def _flush(self) -> None:
        table = pa.Table.from_batches(self._pending, self._layout.stored)
        if self._writer is None:
            self._open(table)
        assert self._writer is not None
        if table.num_rows:
            self._writer.write_table(table, row_group_size=table.num_rows)
            floats = self._layout.floats
            self._with_nan |= {(self._groups, f.column) for f in floats if any(map(f.has_nan, self._pending))}
            self._groups += 1
        self._rows += self._pending_rows
        self._flushed_bytes += self._pending_bytes
        self._pending, self._pending_rows, self._pending_bytes = [], 0, 0

    def _edited(self, footer: bytes) -> bytes:
        """The footer as the file has it."""
        if self._with_nan:
            footer = without_bounds(footer, self._with_nan)
        return annotate(footer, self._layout.groups) if self._layout.groups else footer

    def _open(self, first: pa.Table) -> None:
        options = self._options
        dictionary = dictionary_columns(first) if options.dictionary == "auto" else options.dictionary
        codec = options.compression.lower()
        self._sink = self._files.open_output(self.uri)
        if self._layout.groups or self._layout.floats:
            self._sink = EditingSink(self._sink)
        self._writer = pq.ParquetWriter(
            self._sink,
            self._layout.stored,
            version="2.6",
            use_dictionary=list(dictionary) if isinstance(dictionary, tuple) else dictionary,
            compression="none" if codec == "uncompressed" else codec,
            compression_level=options.compression_level,
            data_page_version=options.data_page_version,
            write_page_index=options.page_index,
            store_decimal_as_integer=options.integer_decimals,
            store_schema=False,
            metadata_collector=self._footer,
        )
        if options.metadata:
            self._writer.add_key_value_metadata(dict(options.metadata))


def dictionary_columns(table: pa.Table) -> tuple[str, ...] | bool:
    """The leaf columns worth a dictionary: those whose values repeat, and fit into one; False for none.

    A dictionary that grows too large is abandoned halfway, which costs the writer and the reader more than none at all;
    for a few rows its own page costs more than it saves.
    """
    if table.num_rows < _FEW:
        return False
    step = max(1, table.num_rows // _SAMPLE)
    leaves: dict[str, list[pa.Array]] = {}
    for name, column in zip(table.column_names, table.columns):
        for chunk in column.chunks:
            for path, values in _leaves(name, chunk):
                leaves.setdefault(path, []).append(values)
    return tuple(path for path, values in leaves.items() if _repeats(pa.chunked_array(values), step)) or False


def _repeats(values: pa.ChunkedArray, step: int) -> bool:
    """Whether a sample of every `step`th value repeats."""
    t, type = pa.types, values.type
    if t.is_boolean(type) or t.is_null(type) or isinstance(type, pa.BaseExtensionType):
        return False
    if t.is_nested(type):  # of a type that is not sampled here
        return True
    if step > 1:
        values = values.take(pa.array(np.arange(0, len(values), step)))
    counts = pc.value_counts(values.drop_null()).field("counts")
    if len(counts) > _DISTINCT * (len(values) - values.null_count):
        return False
    # A value that occurs once in the sample represents as many other values as rows were skipped for it.
    once = pc.sum(pc.equal(counts, 1)).as_py() or 0
    fixed = t.is_primitive(type) or t.is_decimal(type) or t.is_fixed_size_binary(type)
    width = type.bit_width / 8 if fixed else 4 + (pc.mean(pc.binary_length(values)).as_py() or 0)
    return bool((len(counts) + (step - 1) * once) * width <= _DICTIONARY_BYTES)


def _leaves(path: str, array: pa.Array) -> Iterator[tuple[str, pa.Array]]:
    """The leaf columns by their names in the file."""
    type = array.type
    if pa.types.is_struct(type):
        below = [(f"{path}.{f.name}", array.field(i)) for i, f in enumerate(type)]
    elif pa.types.is_map(type):
        below = [(f"{path}.key_value.key", _below(array, array.keys))]
        below += [(f"{path}.key_value.value", _below(array, array.items))]
    elif pa.types.is_list(type):
        below = [(f"{path}.list.element", _below(array, array.values))]
    else:
        yield path, array
        return
    for name, part in below:
        yield from _leaves(name, part)


def _below(array: pa.Array, values: pa.Array) -> pa.Array:
    """The values of a list or map, without those of rows outside its slice."""
    first, last = (array.offsets[0].as_py(), array.offsets[-1].as_py()) if len(array) else (0, 0)
    return values.slice(first, last - first)
