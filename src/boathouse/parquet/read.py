"""Reading one Parquet file as a table's columns: pruned by row group, cast, masked, in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from boathouse.arrow.evaluate import select
from boathouse.arrow.prune import Pruner
from boathouse.arrow.schema import to_arrow_type
from boathouse.bits.roaring import Bitmap
from boathouse.errors import BoathouseError, CorruptTableError, SchemaMismatchError
from boathouse.expr.tree import Expr
from boathouse.expr.tree import columns as expr_columns
from boathouse.parquet.resolve import Matching, Node, Resolver, SourceColumn, file_fields
from boathouse.parquet.stats import row_group_stats
from boathouse.types import Schema

if TYPE_CHECKING:
    from boathouse.arrow.filesystem import DataFiles

__all__ = ["POSITION", "Matching", "ParquetSource", "SourceColumn", "count_rows", "read_footer", "scan_file"]

POSITION = "_pos"
BATCH_ROWS = 128 * 1024
_CHUNK_ROWS = 1 << 20
_CHUNK_BYTES = 128 << 20


@dataclass(frozen=True, slots=True)
class ParquetSource:
    """One open file: its footer and its fields."""

    uri: str
    file: pq.ParquetFile
    resolver: Resolver

    @property
    def metadata(self) -> pq.FileMetaData:
        return self.file.metadata

    def close(self) -> None:
        self.file.close(force=True)


def open_source(files: DataFiles, uri: str, matching: Matching | None = None) -> ParquetSource:
    """Opens a file for reading. Raises CorruptTableError if it is no Parquet file, else what `files` raises."""
    matching = matching or Matching()
    stream = files.open_input(uri)
    try:
        with damage("not a readable Parquet file", uri):
            file = pq.ParquetFile(
                stream, pre_buffer=True, coerce_int96_timestamp_unit="us", arrow_extensions_enabled=False
            )
            fields = file_fields(file.schema_arrow, matching.file_ids)
    except BaseException:
        stream.close()
        raise
    return ParquetSource(uri, file, Resolver(fields, matching))


@contextmanager
def damage(what: str, uri: str) -> Iterator[None]:
    """Turns what pyarrow raises for broken bytes into CorruptTableError; errors of the store pass through."""
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise CorruptTableError(f"{what}: {error}", where=uri) from error
    except OSError as error:
        # The Parquet reader's own complaints are plain OSErrors, as are some of pyarrow's stores.
        if type(error) is not OSError or error.errno is not None or any(s in str(error) for s in _STORE_SAYS):
            raise
        raise CorruptTableError(f"{what}: {error}", where=uri) from error


_STORE_SAYS = ("AWS Error", "google::cloud", "Azure", "HTTP", "curl", "HDFS")


def read_footer(files: DataFiles, uri: str, size: int | None = None) -> pq.FileMetaData:
    """The file's footer. Raises CorruptTableError."""
    with files.open_input(uri) as stream:
        with damage("not a readable Parquet file", uri):
            return pq.read_metadata(stream)


def count_rows(files: DataFiles, uri: str, size: int | None = None) -> int:
    """The physical rows of the file, from its footer."""
    return int(read_footer(files, uri, size).num_rows)


def output_schema(columns: Sequence[SourceColumn], positions: bool = False) -> pa.Schema:
    """The schema of the batches that `scan_file` gives for these columns."""
    fields = [pa.field(c.name, to_arrow_type(c.type), c.nullable) for c in columns]
    return pa.schema(fields + [pa.field(POSITION, pa.int64(), False)] * positions)


def scan_file(
    files: DataFiles,
    uri: str,
    columns: Sequence[SourceColumn],
    *,
    size: int | None = None,
    row_filter: Expr | None = None,
    deleted: Bitmap | None = None,
    positions: bool = False,
    batch_rows: int = BATCH_ROWS,
    matching: Matching | None = None,
    use_threads: bool = True,
) -> Iterator[pa.RecordBatch]:
    """The file's rows as `columns` (schema: `output_schema`), in file order, batches of at most `batch_rows`.

    `deleted` holds positions in the physical file; `positions` adds them as the int64 column `_pos`. `row_filter`,
    bound to `columns`, drops the rows for which it is not true, after the deleted ones are gone. No batch is empty.
    Raises CorruptTableError, SchemaMismatchError (both naming the file), and what `files` raises.
    """
    source = open_source(files, uri, matching)
    try:
        plan = _plan(source, columns, positions)
        for first, groups in _chunks(source.metadata, plan.leaves, _kept_groups(source, columns, row_filter)):
            table = _read(source, groups, plan.leaves, use_threads)
            for start, batch in _batches(plan.convert(table, uri), first, batch_rows):
                batch = plan.finish(batch, start, deleted)
                if row_filter is not None:
                    batch = select(batch, row_filter)
                if batch.num_rows:
                    yield batch
    except BoathouseError as error:
        error.where = error.where or uri
        raise
    finally:
        source.close()


@dataclass(frozen=True, slots=True)
class _Plan:
    schema: pa.Schema
    paths: tuple[tuple[str, ...] | None, ...]
    nodes: tuple[Node, ...]
    positions: bool
    leaves: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "leaves", tuple(sorted({leaf for n in self.nodes for leaf in n.leaves})))

    def convert(self, table: pa.Table, uri: str) -> pa.Table:
        """The physical columns as the table's, without the positions."""
        try:
            columns = [self._column(table, path, node) for path, node in zip(self.paths, self.nodes)]
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise SchemaMismatchError(f"the file does not hold the table's types: {error}", where=uri) from error
        schema = pa.schema(list(self.schema)[: len(columns)])
        if not columns:
            return table.select([])
        return pa.Table.from_arrays(columns, schema=schema)

    def _column(self, table: pa.Table, path: tuple[str, ...] | None, node: Node) -> pa.ChunkedArray:
        if path is None:
            return node.apply(pa.nulls(table.num_rows))
        chunks = table.column(table.schema.get_field_index(path[0])).chunks
        for name in path[1:]:
            chunks = [_member(chunk, name) for chunk in chunks]
        made = [node.apply(chunk) for chunk in chunks]
        return pa.chunked_array(made, made[0].type) if made else node.apply(pa.nulls(0))

    def finish(self, batch: pa.RecordBatch, start: int, deleted: Bitmap | None) -> pa.RecordBatch:
        """The batch with its positions, without its deleted rows."""
        rows = batch.num_rows
        gone = deleted.within(start, rows) if deleted is not None else ()
        if self.positions:
            column = pa.array(np.arange(start, start + rows, dtype=np.int64))
            batch = pa.RecordBatch.from_arrays([*batch.columns, column], schema=self.schema)
        if len(gone):
            keep = np.ones(rows, bool)
            keep[gone] = False
            batch = batch.filter(pa.array(keep)) if batch.num_columns else batch.slice(0, rows - len(gone))
        return batch


def _member(array: pa.Array, name: str) -> pa.Array:
    """A struct's child, null where the struct is."""
    return pa.StructArray.flatten(array)[array.type.get_field_index(name)]


def _plan(source: ParquetSource, columns: Sequence[SourceColumn], positions: bool) -> _Plan:
    found = [source.resolver.column(c) for c in columns]
    return _Plan(output_schema(columns, positions), tuple(p for p, _ in found), tuple(n for _, n in found), positions)


def _kept_groups(source: ParquetSource, columns: Sequence[SourceColumn], row_filter: Expr | None) -> list[int]:
    """The row groups that may hold a row that `row_filter` keeps."""
    metadata = source.metadata
    if row_filter is None:
        return list(range(metadata.num_row_groups))
    paths = expr_columns(row_filter)
    stats = row_group_stats(metadata, source.resolver, columns, paths)
    rows = pa.array([metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)], pa.int64())
    kept = Pruner(row_filter, paths).may_match(stats, rows)
    return [i for i, may in enumerate(kept.to_pylist()) if may]


def _chunks(metadata: pq.FileMetaData, leaves: tuple[int, ...], groups: list[int]) -> Iterator[tuple[int, list[int]]]:
    """Runs of neighbouring row groups that are worth one read, each with the position of its first row."""
    rows = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    starts = np.concatenate(([0], np.cumsum(rows, dtype=np.int64))).tolist()
    run: list[int] = []
    run_rows = run_bytes = 0
    for i in groups:
        size = sum(metadata.row_group(i).column(leaf).total_uncompressed_size for leaf in leaves)
        full = run_rows + rows[i] > _CHUNK_ROWS or run_bytes + size > _CHUNK_BYTES
        if run and (full or run[-1] != i - 1):
            yield starts[run[0]], run
            run, run_rows, run_bytes = [], 0, 0
        run.append(i)
        run_rows, run_bytes = run_rows + rows[i], run_bytes + size
    if run:
        yield starts[run[0]], run


def _read(source: ParquetSource, groups: list[int], leaves: tuple[int, ...], use_threads: bool) -> pa.Table:
    if not leaves:
        rows = sum(source.metadata.row_group(i).num_rows for i in groups)
        return pa.table({"rows": pa.nulls(rows)})
    with damage("broken Parquet data", source.uri):
        # Leaves by number: names with dots in them are ambiguous in the public call.
        return source.file.reader.read_row_groups(groups, column_indices=list(leaves), use_threads=use_threads)


def _batches(table: pa.Table, first: int, batch_rows: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The table in batches, each with its position in the file."""
    if not table.num_columns:
        whole = pa.table({"rows": pa.nulls(table.num_rows)})
        for start, batch in _batches(whole, first, batch_rows):
            yield start, batch.select([])
        return
    for batch in table.to_batches(max_chunksize=batch_rows):
        if batch.num_rows:
            yield first, batch
            first += batch.num_rows


def schema_of(schema: Schema) -> list[SourceColumn]:
    """The columns of a schema, each found by its id where it has one, else by its name."""
    return [
        SourceColumn(f.name, f.type, None if f.id is not None else (f.name,), f.id, None, f.nullable) for f in schema
    ]
