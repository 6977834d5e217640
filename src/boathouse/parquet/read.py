"""Reads one Parquet file as a table's columns: pruned by row group, cast, masked, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from boathouse.arrow.dictionary import pieces
from boathouse.arrow.schema import to_arrow_type
from boathouse.arrow.utf8 import require_utf8
from boathouse.bits.roaring import Bitmap
from boathouse.compute.evaluate import mask
from boathouse.compute.prune import Pruner
from boathouse.errors import BoathouseError, CorruptTableError, SchemaMismatchError
from boathouse.expr.tree import Expr
from boathouse.expr.tree import columns as expr_columns
from boathouse.parquet.errors import damage
from boathouse.parquet.extraction import as_columns, extraction_stats, variant_paths
from boathouse.parquet.matching import Matching
from boathouse.parquet.resolve import Node, Resolver, SourceColumn
from boathouse.parquet.source import ParquetSource, open_source
from boathouse.parquet.stats import row_group_stats
from boathouse.parquet.variants import VariantParts

if TYPE_CHECKING:
    from boathouse.arrow.filesystem import DataFiles

__all__ = ["POSITION", "Matching", "SourceColumn", "scan_file"]

Mask = npt.NDArray[np.bool_]
Rows = TypeVar("Rows", pa.Table, pa.ChunkedArray)
POSITION = "_pos"
BATCH_ROWS = 128 * 1024
_CHUNK_ROWS = 1 << 20
_CHUNK_BYTES = 64 << 20
_THREADED_BYTES = 4 << 20
"""A chunk that decodes to less is read in one thread: handing its columns to others takes longer than they gain."""
_STREAM_BYTES = 512 << 20
"""A row group that decodes to more is read in slices of `_CHUNK_BYTES`."""
Read = Callable[[tuple[int, ...]], pa.Table]
NOTHING: Mapping[int, Node] = MappingProxyType({})


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

    A `size` in bytes that is known can save a request. `deleted` holds positions in the physical file; `positions` adds
    them as the int64 column `_pos`. `row_filter`, bound to `columns`, drops the rows for which it is not true, after
    the deleted rows. No batch is empty. Raises CorruptTableError, SchemaMismatchError (both naming the file), and the
    errors of `files`.
    """
    source = open_source(files, uri, matching, size)
    try:
        yield from scan_source(
            source, columns, row_filter=row_filter, deleted=deleted, positions=positions, batch_rows=batch_rows,
            use_threads=use_threads,
        )  # fmt: skip
    finally:
        source.close()


def scan_source(
    source: ParquetSource,
    columns: Sequence[SourceColumn],
    *,
    row_filter: Expr | None = None,
    deleted: Bitmap | None = None,
    positions: bool = False,
    batch_rows: int = BATCH_ROWS,
    use_threads: bool = True,
) -> Iterator[pa.RecordBatch]:
    """`scan_file` of an open file, which stays open."""
    try:
        plan = ColumnPlan.of(source.resolver, columns, positions, row_filter)
        source = source.with_dictionaries(plan.leaves)
        scan = RowScan(source.uri, plan, row_filter, deleted)
        for chunk in _chunks(source.metadata, plan.leaves, _kept_groups(source, columns, row_filter)):
            for first, rows, read in _reads(source, plan, chunk, use_threads):
                yield from scan.rows(first, rows, read, batch_rows)
    except BoathouseError as error:
        error.where = error.where or source.uri
        raise


@dataclass(frozen=True, slots=True)
class RowScan:
    """One pass over a file: the rows to drop are known before the columns that are not needed to decide are read."""

    uri: str
    plan: ColumnPlan
    row_filter: Expr | None
    deleted: Bitmap | None

    def rows(self, first: int, rows: int, read: Read, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The remaining ones of `rows` rows, the first of which is at position `first`; `read` reads leaves of them."""
        keep = None
        if self.deleted is not None and len(gone := self.deleted.within(first, rows)):
            keep = np.ones(rows, bool)
            keep[gone] = False
        early: dict[int, pa.ChunkedArray] = {}
        if self.row_filter is not None and (keep is None or keep.any()):
            early = self._columns(read, self.plan.read_by(self.row_filter), None, self.plan.probes)
            keep = self._passing(self.row_filter, early, rows, keep)
        if keep is not None and keep.all():
            keep = None
        left = rows if keep is None else int(keep.sum())
        if not left:
            return
        columns = {i: _kept(column, keep) for i, column in early.items() if i not in self.plan.probes}
        columns |= self._columns(read, [i for i in range(len(self.plan.nodes)) if i not in columns], keep)
        table = self.plan.table(columns, first, rows, keep)
        yield from (batch for batch in _batches(table, batch_rows) if batch.num_rows)

    def _columns(
        self, read: Read, wanted: Sequence[int], keep: Mask | None, instead: Mapping[int, Node] = NOTHING
    ) -> dict[int, pa.ChunkedArray]:
        """Columns by their number, read at once, of the rows to `keep`; through the nodes in `instead` where given.

        Rows go before values are made of what the file stores: strings that it stores as codes are then copied once.
        """
        nodes = {i: instead.get(i, self.plan.nodes[i]) for i in wanted}
        table = read(tuple(sorted({leaf for n in nodes.values() for leaf in n.leaves})))
        table = _kept(table, keep) if table.num_columns or keep is None else without_columns(int(keep.sum()))
        return {i: self.plan.column(table, i, node, self.uri) for i, node in nodes.items()}

    def _passing(self, where: Expr, columns: dict[int, pa.ChunkedArray], rows: int, keep: Mask | None) -> Mask:
        """The rows of `keep` (None: all) that satisfy `where`, which is not evaluated for other rows: it might
        raise."""
        schema = pa.schema([self.plan.schema.field(i).with_type(c.type) for i, c in columns.items()])
        table = pa.Table.from_arrays(list(columns.values()), schema=schema) if columns else without_columns(rows)
        passing = mask(where, table if keep is None else table.filter(pa.array(keep)))
        found: Mask = passing.to_numpy(zero_copy_only=False)
        if keep is None:
            return found
        out = keep.copy()
        out[keep] = found
        return out


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    """How the columns are made from what is read of a file: `paths` are the fields in it (None: missing)."""

    schema: pa.Schema
    paths: tuple[tuple[str, ...] | None, ...]
    nodes: tuple[Node, ...]
    positions: bool
    probes: Mapping[int, Node]
    """How the filter reads shredded variants of which it needs only some values; columns by their number."""
    leaves: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "leaves", tuple(sorted({leaf for n in self.nodes for leaf in n.leaves})))

    @classmethod
    def of(cls, resolver: Resolver, columns: Sequence[SourceColumn], positions: bool, where: Expr | None) -> ColumnPlan:
        """Raises SchemaMismatchError, CorruptTableError."""
        found = [resolver.column(c) for c in columns]
        paths, nodes = tuple(p for p, _ in found), tuple(n for _, n in found)
        return cls(output_schema(columns, positions), paths, nodes, positions, _probes(resolver, columns, nodes, where))

    def read_by(self, where: Expr) -> list[int]:
        """The numbers of the columns that `where` reads."""
        names = {path[0] for path in expr_columns(where)}
        return [i for i in range(len(self.nodes)) if self.schema.field(i).name in names]

    def column(self, table: pa.Table, i: int, node: Node, uri: str) -> pa.ChunkedArray:
        """Column `i` from the physical ones in `table`."""
        path = self.paths[i]
        try:
            if path is None:
                return pa.chunked_array([node.apply(pa.nulls(table.num_rows))])
            chunks = table.column(table.schema.get_field_index(path[0])).chunks
            for name in path[1:]:
                chunks = [_member(chunk, name) for chunk in chunks]
            made = [node.apply(piece) for chunk in chunks for piece in _spread(chunk)]
            for piece in made:
                require_utf8(piece, uri, f"column `{self.schema.field(i).name}`")
            # The parts of a variant have the file's type, which the schema does not contain.
            type = None if made and isinstance(node, VariantParts) else self.schema.field(i).type
            return pa.chunked_array(made, type)
        except pa.ArrowIndexError as error:
            raise CorruptTableError(f"corrupt Parquet data: {error}", where=uri) from error
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise SchemaMismatchError(f"the file does not match the table's types: {error}", where=uri) from error

    def table(self, columns: dict[int, pa.ChunkedArray], first: int, rows: int, keep: Mask | None) -> pa.Table:
        """The columns in order, and the positions of their rows: those to `keep` of `rows` from position `first`."""
        made = [columns[i] for i in range(len(self.nodes))]
        if self.positions:
            positions = np.arange(first, first + rows, dtype=np.int64)
            made.append(pa.array(positions if keep is None else positions[keep]))
        schema = self.schema
        for i, node in enumerate(self.nodes):
            if isinstance(node, VariantParts):
                schema = schema.set(i, schema.field(i).with_type(made[i].type))
        if made:
            return pa.Table.from_arrays(made, schema=schema)
        return without_columns(rows if keep is None else int(keep.sum()))


def _spread(chunk: pa.Array) -> Iterable[pa.Array]:
    return pieces(chunk, BATCH_ROWS) if pa.types.is_dictionary(chunk.type) else (chunk,)


def without_columns(rows: int) -> pa.Table:
    """A table with rows, and no columns."""
    return pa.table({"rows": pa.nulls(rows)}).select([])


def _kept(values: Rows, keep: Mask | None) -> Rows:
    return values if keep is None else values.filter(pa.array(keep))


def _member(array: pa.Array, name: str) -> pa.Array:
    """A struct's child, null where the struct is."""
    return pa.StructArray.flatten(array)[array.type.get_field_index(name)]


def _probes(
    resolver: Resolver, columns: Sequence[SourceColumn], nodes: Sequence[Node], where: Expr | None
) -> dict[int, Node]:
    wanted = {} if where is None else variant_paths([where])
    found = {}
    for i, (column, node) in enumerate(zip(columns, nodes)):
        only = wanted.get(column.name)
        if only is not None and node.leaves:
            probe = resolver.column(replace(column, only=only))[1]
            if len(probe.leaves) < len(node.leaves) or (column.only is not None and set(only) - set(column.only)):
                found[i] = probe
    return found


def _kept_groups(source: ParquetSource, columns: Sequence[SourceColumn], row_filter: Expr | None) -> list[int]:
    """The row groups that may hold a row that `row_filter` accepts."""
    metadata = source.metadata
    if row_filter is None:
        return list(range(metadata.num_row_groups))
    where, extracted = as_columns(row_filter)
    paths = expr_columns(where)
    plain = [p for p in paths if p[0] not in extracted]
    made = dict(zip(plain, row_group_stats(metadata, source.resolver, columns, plain).flatten() if plain else ()))
    for name, wanted in extracted.items():
        made[name,] = extraction_stats(metadata, source.resolver, columns, wanted)
    stats = pa.StructArray.from_arrays([made[p] for p in paths], names=[str(i) for i in range(len(paths))])
    rows = pa.array([metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)], pa.int64())
    kept = Pruner(where, paths).may_match(stats, rows)
    return [i for i, may in enumerate(kept.to_pylist()) if may]


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Adjacent row groups that are read together: the first row's position, the rows, their decoded bytes."""

    groups: tuple[int, ...]
    first: int
    rows: int
    bytes: int


def _chunks(metadata: pq.FileMetaData, leaves: tuple[int, ...], groups: list[int]) -> Iterator[_Chunk]:
    rows = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    starts = list(accumulate(rows, initial=0))
    run: list[int] = []
    run_rows = run_bytes = 0
    for i in groups:
        size = sum(metadata.row_group(i).column(leaf).total_uncompressed_size for leaf in leaves)
        full = run_rows + rows[i] > _CHUNK_ROWS or run_bytes + size > _CHUNK_BYTES
        if run and (full or run[-1] != i - 1):
            yield _Chunk(tuple(run), starts[run[0]], run_rows, run_bytes)
            run, run_rows, run_bytes = [], 0, 0
        run.append(i)
        run_rows, run_bytes = run_rows + rows[i], run_bytes + size
    if run:
        yield _Chunk(tuple(run), starts[run[0]], run_rows, run_bytes)


def _reads(
    source: ParquetSource, plan: ColumnPlan, chunk: _Chunk, use_threads: bool
) -> Iterator[tuple[int, int, Read]]:
    """A chunk as one read, or as several where it is too large for memory: (first position, rows, read)."""
    if chunk.bytes <= _STREAM_BYTES:
        yield chunk.first, chunk.rows, partial(_read, source, chunk, use_threads=use_threads)
        return
    at = chunk.first
    size = max(1, chunk.rows * _CHUNK_BYTES // chunk.bytes)
    with damage("corrupt Parquet data", source.uri):
        for batch in source.batches(size, chunk.groups, plan.leaves, use_threads):
            yield at, batch.num_rows, partial(already_read, pa.Table.from_batches([batch]))
            at += batch.num_rows
    if at != chunk.first + chunk.rows:
        raise CorruptTableError(f"{at - chunk.first} rows where the footer says {chunk.rows}", where=source.uri)


def already_read(table: pa.Table, leaves: tuple[int, ...]) -> pa.Table:
    """A `Read`, with the table bound, of what needs no reading."""
    return table


def _read(source: ParquetSource, chunk: _Chunk, leaves: tuple[int, ...], use_threads: bool) -> pa.Table:
    if not leaves:
        return without_columns(chunk.rows)
    with damage("corrupt Parquet data", source.uri):
        table = source.read(chunk.groups, leaves, use_threads and chunk.bytes > _THREADED_BYTES)
    if table.num_rows != chunk.rows:
        raise CorruptTableError(f"{table.num_rows} rows where the footer says {chunk.rows}", where=source.uri)
    return table


def _batches(table: pa.Table, batch_rows: int) -> Iterator[pa.RecordBatch]:
    if table.num_columns:
        yield from table.to_batches(max_chunksize=batch_rows)
        return
    # Arrow makes no batches from a table without columns.
    for batch in pa.table({"rows": pa.nulls(table.num_rows)}).to_batches(max_chunksize=batch_rows):
        yield batch.select([])
