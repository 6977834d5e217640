"""The Parquet data files of one write, and their rows of OUTCOMES; runs on executors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from boathouse.bits import system
from boathouse.delta import paths
from boathouse.delta.partition_values import physical as to_physical
from boathouse.delta.partition_values import physical_array, text_of
from boathouse.delta.schema import is_mapped, physical_name, physical_path
from boathouse.delta.stats.written import StatsTexts
from boathouse.parquet.schema import Dialect, to_parquet_schema
from boathouse.parquet.shredding import shredding_of
from boathouse.parquet.stats import schema_leaves
from boathouse.parquet.write import CODEC, Layout, ParquetOptions, ParquetWriter
from boathouse.parquet.written_stats import FileLeaves, FileStats, LeafColumn, StatsCollector, struct_of
from boathouse.table.tasks import WriteContext
from boathouse.table.units import KIND_OF, PARQUET, outcome_rows, outcomes_schema, partition_type, stats_type
from boathouse.types import PartitionField, PartitionSpec, Schema

WRITTEN: Final = pa.struct(
    [
        ("path", pa.string()),
        ("partitionValues", pa.map_(pa.string(), pa.string())),
        ("modificationTime", pa.int64()),
        ("stats", pa.string()),
    ]
)
"""`native` of OUTCOMES: the parts of the add action that only the writer of the file knows."""

_PLAIN: Final = Dialect(physical_name, annotate_variants=False)
"""Readers that know no annotation (Spark 4.0) cannot read even the other columns of a file that has one."""
_SHREDDED: Final = Dialect(physical_name)
"""Such readers do not read shredded variants either."""
"""Only fields of tables with column mapping have an id or a name of their own. A variant is a plain struct, as the
protocol has it: readers of Spark 4.0 fail at the annotation."""
_RANDOM: Final = 2
"""The length of the folder names that spread the files of a mapped table, as the reference does."""
_SUFFIX: Final = {"none": "", "uncompressed": "", "gzip": ".gz", "lz4": ".lz4", "brotli": ".br"}


def outcomes(context: WriteContext) -> pa.Schema:
    """The schema of OUTCOMES for this context."""
    stats = stats_type([leaf.field.type for leaf in schema_leaves(context.schema)])
    return outcomes_schema(partition_type(context.spec), stats, WRITTEN)


@dataclass(frozen=True, slots=True)
class _Closed:
    """A finished file: `values` and `strings` are those of its partition, one per field."""

    uri: str
    path: str
    values: tuple[Any, ...]
    strings: tuple[str | None, ...]
    size: int
    rows: int
    written_ms: int
    stats: FileStats

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.uri,)


class DeltaFiles:
    """The data files of one write, without the partition columns; `materialized` ones are at the end."""

    def __init__(self, context: WriteContext) -> None:
        self.context = context
        self.fields = tuple(context.spec)
        self.names = tuple(f.name for f in self.fields)
        self.keys = tuple(physical_name(context.schema.field(name)) for name in self.names)
        self.mapped = is_mapped(context.schema)
        self.data = data_schema(context.schema, context.spec)
        stored = self.data
        if context.materialized:
            stored = Schema((*stored, *(f for f in context.schema if f.name in self.names)))
        stored = Schema((*stored, *context.carried))
        self.indices = [context.rows.index(f.name) for f in stored]
        self.codec = str(context.codec or context.options.get("codec", CODEC))
        self.options = ParquetOptions(compression=self.codec)
        self._plain = Layout.of(to_parquet_schema(stored, _SHREDDED if context.options.get("shred") else _PLAIN))
        self._layout: Layout | None = None
        self.leaves = FileLeaves(stored)
        self._texts = StatsTexts(self.data, context.options)
        self._schema = outcomes(context)

    def open(self, partition: Mapping[int, object]) -> DeltaFileWriter:
        return DeltaFileWriter(self, partition)

    def layout(self, first: pa.RecordBatch | None) -> Layout:
        """The layout of all files, in which variants are shredded by what the first rows hold, if the table wants
        it."""
        if self._layout is None:
            shred = first is not None and self.context.options.get("shred")
            by = shredding_of(self.leaves.leaves, first, self._stored) if shred else {}
            self._layout = Layout.of(self._plain.schema, by) if by else self._plain
        return self._layout

    def _stored(self, path: tuple[str, ...]) -> tuple[str, ...]:
        return physical_path(self.data, path)

    def outcomes(self, closed: Sequence[_Closed]) -> pa.Table:
        return self.described(
            [c.path for c in closed],
            [c.size for c in closed],
            [c.rows for c in closed],
            [c.written_ms for c in closed],
            [physical_array([c.values[i] for c in closed], f.type) for i, f in enumerate(self.fields)],
            [list(zip(self.keys, c.strings)) for c in closed],
            self.leaves.columns([c.stats for c in closed]),
        )

    def described(
        self,
        files: Sequence[str],
        sizes: Sequence[int],
        rows: Sequence[int],
        modified_ms: Sequence[int],
        partitions: Sequence[pa.Array],
        strings: Sequence[Sequence[tuple[str, str | None]]],
        leaves: Sequence[LeafColumn],
    ) -> pa.Table:
        """OUTCOMES of files by their raw paths below the root: `partitions` are the values of each field, `strings`
        those of each file by the names of the log, `leaves` the statistics of what is stored in files."""
        native = [
            pa.array([paths.encode(p) for p in files], pa.string()),
            pa.array(strings, WRITTEN.field("partitionValues").type),
            pa.array(modified_ms, pa.int64()),
            pa.array(self._texts.of(leaves, rows), pa.string()),
        ]
        type = self._schema.field("partition").type
        known = {
            "path": [f"{self.context.directory}/{p}" for p in files],
            "size": sizes,
            "rows": rows,
            "partition": pa.StructArray.from_arrays(partitions, fields=list(type)) if partitions else [{}] * len(files),
            "stats": struct_of(self._all_leaves(leaves, partitions, rows), len(files)),
            "native": pa.StructArray.from_arrays(native, fields=list(WRITTEN)),
        }
        return outcome_rows(self._schema, KIND_OF[self.context.content], PARQUET, self.context.spec.id, known)

    def _all_leaves(
        self, leaves: Sequence[LeafColumn], values: Sequence[pa.Array], rows: Sequence[int]
    ) -> list[LeafColumn]:
        """Statistics of every leaf of the table; those of partition columns come from their single value in each
        file."""
        stored = {leaf.path: leaf for leaf in leaves}
        constant = {f.name: _constant(f, v, rows) for f, v in zip(self.fields, values)}
        paths = (leaf.path for leaf in schema_leaves(self.context.schema))
        return [stored[path] if path in stored else constant[path[0]] for path in paths]


def _constant(field: PartitionField, values: pa.Array, rows: Sequence[int]) -> LeafColumn:
    """One value in every row of a file; NaN and null are counted but are not bounds."""
    null = values.is_null().to_numpy(zero_copy_only=False)
    nan = np.zeros(len(values), np.bool_)
    if pa.types.is_floating(values.type):
        numbers = values.to_numpy(zero_copy_only=False)
        nan = np.isnan(numbers) & ~null
        values = pa.array(numbers, values.type, mask=null | nan)
    counts = np.array(rows, np.int64)
    nulls, nans = (counts * null).tolist(), (counts * nan).tolist()
    return LeafColumn((field.name,), field.type, values, values, nulls, nans, rows, [None] * len(rows))


class DeltaFileWriter:
    """One data file, `p=v/part-00000-<uuid>-<write>.c000.<codec>.parquet`; under column mapping `<random>/part-...`."""

    def __init__(self, files: DeltaFiles, partition: Mapping[int, object]) -> None:
        self._files = files
        given = [to_physical(partition.get(f.id), f.type) for f in files.fields]
        self._strings = tuple(text_of(v, f.type) for v, f in zip(given, files.fields))
        # Empty strings are null in the log.
        self._values = tuple(None if text is None else v for v, text in zip(given, self._strings))
        self._path = _path(files, self._strings)
        self._stats = StatsCollector(files.leaves)
        self._writer: ParquetWriter | None = None

    @property
    def bytes_written(self) -> int:
        return 0 if self._writer is None else self._writer.bytes_written

    def _opened(self, first: pa.RecordBatch | None) -> ParquetWriter:
        if self._writer is None:
            files = self._files
            uri = f"{files.context.directory}/{self._path}"
            self._writer = ParquetWriter(files.context.files, uri, files.layout(first), files.options, widen=True)
        return self._writer

    def write(self, batch: pa.RecordBatch) -> None:
        rows = batch.select(self._files.indices)
        self._stats.update(rows)
        self._opened(rows).write(rows)

    def abort(self) -> None:
        if self._writer is not None:
            self._writer.abort()

    def close(self) -> _Closed:
        summary = self._opened(None).close()
        stats = self._stats.taken(summary.metadata)
        now = system.current().now_ms()
        return _Closed(summary.uri, self._path, self._values, self._strings, summary.size, summary.rows, now, stats)


def data_schema(schema: Schema, spec: PartitionSpec) -> Schema:
    """The columns that are stored in the files."""
    constant = {f.name for f in spec}
    return Schema(tuple(f for f in schema if f.name not in constant))


def _path(files: DeltaFiles, strings: Sequence[str | None]) -> str:
    """The file's raw path below the table's root; change files have a folder of their own.

    Under column mapping, where columns are renamed, no folder has the name of a column, as the reference does it.
    """
    codec, changes = files.codec.lower(), files.context.content == "changes"
    suffix = _SUFFIX.get(codec, f".{codec}")
    id = str(system.current().uuid4())
    name = f"{'cdc' if changes else 'part'}-00000-{id}{files.context.ending}.c000{suffix}.parquet"
    folders = [paths.CHANGE_DATA] if changes else []
    if files.mapped:
        return "/".join([*folders, id[:_RANDOM], name])
    return "/".join([*folders, *(paths.partition_folder(n, t) for n, t in zip(files.names, strings)), name])
