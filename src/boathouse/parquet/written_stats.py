"""Exact statistics of files that were just written, from the batches and their footers, for many files at once.

A table of many partitions has thousands of files of a few rows: their footers' statistics are kept raw, and decoded as
one array per leaf.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from boathouse.arrow.schema import to_arrow_type
from boathouse.arrow.vector import only_where
from boathouse.parquet.bounds import RawBounds, decoded_or_none, raw_bounds
from boathouse.parquet.fields import FileField, file_fields
from boathouse.parquet.stats import (
    LeafStats,
    SchemaLeaf,
    chunk_nulls,
    group_bounds,
    leaf_array,
    schema_leaves,
    summaries,
)
from boathouse.types import DataType, FloatType, NullType, Schema, VariantType


@dataclass(frozen=True, slots=True)
class LeafColumn:
    """Statistics of one leaf, one element per file: LeafStats as columns. Both bounds are known, or neither."""

    path: tuple[str, ...]
    type: DataType
    lower: pa.Array
    upper: pa.Array
    nulls: Sequence[int | None]
    nans: Sequence[int | None]
    values: Sequence[int | None]
    sizes: Sequence[int | None]

    def file(self, i: int) -> LeafStats:
        """The statistics of one file."""
        low, high = self.lower[i], self.upper[i]
        known = low.is_valid
        exact = True if known else None
        counts = (self.nulls[i], self.nans[i], self.values[i], self.sizes[i])
        return LeafStats(self.path, self.type, low if known else None, high if known else None, exact, exact, *counts)

    def summary(self) -> pa.StructArray:
        """S of docs/design/001-waist.md, section 1, one row per file."""
        known = self.lower.is_valid().to_numpy(zero_copy_only=False)
        exact = pa.array(np.ones(len(known), np.bool_), mask=~known)
        return summaries(self.lower, self.upper, exact, exact, self.nulls, self.nans, self.values)


def struct_of(columns: Sequence[LeafColumn], files: int) -> pa.StructArray:
    """The OUTCOMES column `stats`: `struct<"0": S, ...>` over the leaves, in order, one row per file."""
    if not columns:
        return pa.array([{}] * files, pa.struct([]))
    return pa.StructArray.from_arrays([c.summary() for c in columns], names=[str(i) for i in range(len(columns))])


@dataclass(frozen=True, slots=True)
class _Raw:
    """One leaf of a file of one row group, with bounds that are not decoded yet."""

    bounds: RawBounds | None
    physical: str | None
    nulls: int | None
    nans: int | None
    values: int
    size: int


FileStats = tuple[LeafStats | _Raw, ...]
"""The statistics kept of one file, one entry per leaf."""


class FileLeaves:
    """The leaves of files that are written with one Parquet schema, and their positions in the files."""

    def __init__(self, schema: Schema) -> None:
        self.leaves = schema_leaves(schema)
        self.watched = tuple(i for i, leaf in enumerate(self.leaves) if leaf.repeated or _is_float(leaf.field.type))
        self._places: tuple[tuple[FileField, ...], ...] = ()
        self._width = -1

    def places(self, metadata: pq.FileMetaData) -> tuple[tuple[FileField, ...], ...]:
        """The leaf columns of the file for each leaf: none for void, several for a variant."""
        if self._width != metadata.num_columns:
            self._places, self._width = tuple(self._found(metadata)), metadata.num_columns
        return self._places

    def _found(self, metadata: pq.FileMetaData) -> Iterable[tuple[FileField, ...]]:
        stored = [f for top in file_fields(metadata.schema.to_arrow_schema()) for f in top.walk() if not f.children]
        column = 0
        for leaf in self.leaves:
            width = 1
            if isinstance(leaf.field.type, NullType):
                width = 0
            elif isinstance(leaf.field.type, VariantType):
                width = _variant_width(stored[column:])
            yield tuple(stored[column : column + width])
            column += width

    def columns(self, files: Sequence[FileStats]) -> tuple[LeafColumn, ...]:
        """The statistics of the files, one column per leaf."""
        return tuple(_column(leaf, i, files, self._places) for i, leaf in enumerate(self.leaves))


class StatsCollector:
    """Collects the statistics of one file's batches that its footer will not contain.

    Cheap: only floats (NaN) and leaves inside lists and maps (counts by element) are looked at. Files share
    `FileLeaves` if they are written with one Parquet schema.
    """

    def __init__(self, of: Schema | FileLeaves) -> None:
        self._shared = FileLeaves(of) if isinstance(of, Schema) else of
        self._counts = {i: [0, 0, 0] for i in self._shared.watched}

    def update(self, batch: pa.RecordBatch) -> None:
        """Counts a batch with the schema's columns in order (before it is laid out for the file)."""
        for i, counts in self._counts.items():
            leaf = self._shared.leaves[i]
            array = leaf_array(batch, leaf.steps)
            counts[0] += array.null_count
            if _is_float(leaf.field.type):
                counts[1] += pc.is_nan(array).true_count
            counts[2] += len(array)

    def taken(self, metadata: pq.FileMetaData) -> FileStats:
        """The input of `FileLeaves.columns` for the file that our writer made from exactly these batches."""
        groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        places = self._shared.places(metadata)
        return tuple(
            _taken(metadata.num_rows, groups, leaf, places[i], self._counts.get(i))
            for i, leaf in enumerate(self._shared.leaves)
        )

    def finish(self, metadata: pq.FileMetaData) -> tuple[LeafStats, ...]:
        """The statistics of the file that our writer made from exactly these batches, from its footer."""
        return tuple(column.file(0) for column in self._shared.columns([self.taken(metadata)]))


def _variant_width(stored: Sequence[FileField]) -> int:
    """The number of leaves of the variant whose metadata is the first of `stored`: more than two if it is shredded."""
    group = stored[0].path[:-1]
    return sum(1 for _ in takewhile(lambda f: f.path[: len(group)] == group, stored))


def _is_float(type: DataType) -> bool:
    return isinstance(type, FloatType)


def _taken(
    rows: int,
    groups: Sequence[pq.RowGroupMetaData],
    leaf: SchemaLeaf,
    stored: Sequence[FileField],
    watched: list[int] | None,
) -> LeafStats | _Raw:
    type = leaf.field.type
    if isinstance(type, NullType):
        counted = None if leaf.repeated else rows
        return LeafStats(leaf.path, type, nulls=counted, values=counted)
    chunks = [g.column(stored[0].first) for g in groups]
    size = sum(c.total_compressed_size for c in chunks)
    size += sum(g.column(f.first).total_compressed_size for g in groups for f in stored[1:])
    nans = watched[1] if watched is not None and _is_float(type) else None
    if leaf.repeated:
        assert watched is not None
        return LeafStats(leaf.path, type, nulls=watched[0], nans=nans, values=watched[2], column_size=size)
    if len(chunks) == 1 and not isinstance(type, VariantType):
        return _raw(chunks[0], stored[0].type, nans, rows, size)
    nulls = chunk_nulls(chunks)
    bounds = None
    if not isinstance(type, VariantType):
        bounds = group_bounds(chunks, stored[0].type, None, nothing_else=not _is_float(type))
    if bounds is None:
        return LeafStats(leaf.path, type, nulls=nulls, nans=nans, values=rows, column_size=size)
    lower, upper = (_as_held(b, to_arrow_type(type)) for b in bounds)
    return LeafStats(leaf.path, type, lower, upper, True, True, nulls, nans, rows, size)


def _raw(chunk: pq.ColumnChunkMetaData, stored: pa.DataType, nans: int | None, rows: int, size: int) -> _Raw:
    statistics = chunk.statistics
    if statistics is None:
        return _Raw(None, None, None, nans, rows, size)
    bounds = raw_bounds(statistics, stored) if statistics.has_min_max else None
    nulls = statistics.null_count if statistics.has_null_count else None
    return _Raw(bounds, statistics.physical_type, nulls, nans, rows, size)


def _column(leaf: SchemaLeaf, at: int, files: Sequence[FileStats], places: Sequence[Sequence[FileField]]) -> LeafColumn:
    found = [file[at] for file in files]
    held = to_arrow_type(leaf.field.type)
    lower, upper = _bounds(found, held, places[at][0].type if places and places[at] else None)
    nulls, nans = [s.nulls for s in found], [s.nans for s in found]
    sizes = [s.size if isinstance(s, _Raw) else s.column_size for s in found]
    return LeafColumn(leaf.path, leaf.field.type, lower, upper, nulls, nans, [s.values for s in found], sizes)


def _bounds(
    found: Sequence[LeafStats | _Raw], held: pa.DataType, stored: pa.DataType | None
) -> tuple[pa.Array, pa.Array]:
    raw = [s for s in found if isinstance(s, _Raw)]
    nothing = pa.nulls(len(found), held)
    physical = next((s.physical for s in raw if s.bounds is not None), None)
    if len(raw) == len(found):
        if physical is None:
            return nothing, nothing
        both = decoded_or_none([s.bounds for s in raw], physical, stored)
        if both is not None:
            return _both_known(*(v if v.type == held else v.cast(held) for v in both))
        if len(found) == 1:
            return nothing, nothing
    elif not raw and all(s.lower is None for s in found if isinstance(s, LeafStats)):
        return nothing, nothing
    parts = [_bounds([s], held, stored) if isinstance(s, _Raw) else _of_scalars(s, held) for s in found]
    return pa.concat_arrays([p[0] for p in parts]), pa.concat_arrays([p[1] for p in parts])


def _both_known(lower: pa.Array, upper: pa.Array) -> tuple[pa.Array, pa.Array]:
    if lower.null_count == upper.null_count == 0:
        return lower, upper
    known = pc.and_(lower.is_valid(), upper.is_valid())
    return only_where(known, lower), only_where(known, upper)


def _of_scalars(stats: LeafStats, held: pa.DataType) -> tuple[pa.Array, pa.Array]:
    if stats.lower is None or stats.upper is None:
        return pa.nulls(1, held), pa.nulls(1, held)
    return pa.array([stats.lower], held), pa.array([stats.upper], held)


def _as_held(value: pa.Scalar, held: pa.DataType) -> pa.Scalar:
    value = value.value if isinstance(value, pa.ExtensionScalar) else value
    return value if value.type == held else value.cast(held)
