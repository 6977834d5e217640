"""What runs on executors: reading units of a Delta table, and writing its data files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pyarrow as pa

from boathouse.arrow.evaluate import mask
from boathouse.arrow.schema import to_arrow_type
from boathouse.bits import entropy
from boathouse.bits.roaring import Bitmap, deserialize64
from boathouse.delta import paths
from boathouse.delta.partition_values import physical as to_physical
from boathouse.delta.partition_values import physical_array, text_of
from boathouse.delta.schema import physical_name
from boathouse.delta.stats_json import stats_json
from boathouse.expr.tree import Expr, all_of, columns, conjuncts
from boathouse.parquet.read import Matching, SourceColumn, scan_file
from boathouse.parquet.schema import Dialect, no_id, to_parquet_schema
from boathouse.parquet.stats import LeafStats, StatsCollector, schema_leaves, to_struct
from boathouse.parquet.write import CODEC, ParquetOptions, ParquetWriter
from boathouse.table.tasks import (
    POSITION,
    UNIT,
    FileWriter,
    ReadColumn,
    ReadSpec,
    ScanTask,
    WriteContext,
    data_files_of,
)
from boathouse.table.units import DATA_FILE, PARQUET, partition_type, stats_type
from boathouse.table.units import outcomes_schema as outcomes_of
from boathouse.types import PartitionSpec, Schema

WRITTEN: Final = pa.struct(
    [
        ("path", pa.string()),
        ("partitionValues", pa.map_(pa.string(), pa.string())),
        ("modificationTime", pa.int64()),
        ("stats", pa.string()),
    ]
)
"""`native` of OUTCOMES: the parts of the add action that only the writer of the file knows."""

_MATCHING: Final = Matching(physical_name=physical_name)
_DIALECT: Final = Dialect(field_id=no_id)
_SUFFIX: Final = {"none": "", "uncompressed": "", "gzip": ".gz", "lz4": ".lz4", "brotli": ".br"}


def matching(spec: ReadSpec) -> Matching:
    """How nested fields are found in the files."""
    return _MATCHING


def read(task: ScanTask) -> Iterator[pa.RecordBatch]:
    """The rows of the task's units, in order, with the schema `task.read.schema`."""
    vectors = {d["delete"]: d["inline"] for d in task.deletes.select(["delete", "inline"]).to_pylist()}
    wanted = ["unit", "path", "size", "spec", "partition", "deletes"]
    units = task.units.select(wanted).combine_chunks()
    for i in range(units.num_rows):
        with data_files_of(task.read.version):
            yield from _read_unit(task.read, {n: units.column(n)[i] for n in wanted}, vectors)


def _read_unit(spec: ReadSpec, unit: Mapping[str, pa.Scalar], vectors: Mapping[int, bytes]) -> Iterator[pa.RecordBatch]:
    constants = {c.name: c for c in spec.columns if _constant(c, unit["spec"].as_py())}
    stored = [c for c in spec.columns if c.name not in constants]
    for batch in scan_file(
        spec.files,
        unit["path"].as_py(),
        [SourceColumn(c.name, c.type, c.physical, c.field_id, c.default, c.nullable) for c in stored],
        size=unit["size"].as_py(),
        row_filter=_file_filter(spec.where, {c.name for c in stored}),
        deleted=_deleted(unit["deletes"].as_py(), vectors),
        positions=POSITION in spec.hidden,
        matching=_MATCHING,
    ):
        whole = _with_constants(batch, spec, constants, unit)
        if spec.where is not None:
            whole = whole.filter(mask(spec.where, whole))
        if whole.num_rows:
            yield _output(whole, spec)


def _constant(column: ReadColumn, spec: int) -> bool:
    return column.partition is not None and spec in column.constant_in


def _deleted(deletes: list[int] | None, vectors: Mapping[int, bytes]) -> Bitmap | None:
    found: Bitmap | None = None
    for delete in deletes or ():
        bitmap = deserialize64(vectors[delete])
        found = bitmap if found is None else found | bitmap
    return found


def _file_filter(where: Expr | None, stored: set[str]) -> Expr | None:
    """The conjuncts that the file's own columns decide."""
    if where is None:
        return None
    parts = [c for c in conjuncts(where) if (used := columns(c)) and all(p[0] in stored for p in used)]
    return all_of(parts) if parts else None


def _with_constants(
    batch: pa.RecordBatch, spec: ReadSpec, constants: Mapping[str, ReadColumn], unit: Mapping[str, pa.Scalar]
) -> pa.RecordBatch:
    rows = batch.num_rows
    for name, column in constants.items():
        value = unit["partition"][str(column.partition)]
        array = pa.repeat(value, rows).cast(to_arrow_type(column.type))
        batch = _append(batch, name, array, rows)
    if UNIT in spec.hidden:
        batch = _append(batch, UNIT, pa.repeat(pa.scalar(unit["unit"].as_py(), pa.int64()), rows), rows)
    return batch


def _append(batch: pa.RecordBatch, name: str, array: pa.Array, rows: int) -> pa.RecordBatch:
    if batch.num_columns == 0:
        return pa.RecordBatch.from_arrays([array], names=[name])
    return batch.append_column(name, array)


def _output(batch: pa.RecordBatch, spec: ReadSpec) -> pa.RecordBatch:
    schema = spec.schema
    if not schema.names:
        return batch.select([])
    return pa.RecordBatch.from_arrays([batch.column(n) for n in schema.names], schema=schema)


def outcomes_schema(context: WriteContext) -> pa.Schema:
    """OUTCOMES for this context."""
    stats = stats_type([leaf.field.type for leaf in schema_leaves(context.schema)])
    return outcomes_of(partition_type(context.spec), stats, WRITTEN)


def open_writer(context: WriteContext, partition: Mapping[int, object]) -> FileWriter:
    """A new file for rows that all have these partition values (by partition field id)."""
    return DeltaFileWriter(context, partition)


class DeltaFileWriter:
    """One data file, `p=v/part-00000-<uuid>.c000.<codec>.parquet`; partition columns are not in it."""

    def __init__(self, context: WriteContext, partition: Mapping[int, object]) -> None:
        self._context = context
        by_id = {f.id: f for f in context.spec}
        self._values = {by_id[i].name: to_physical(v, by_id[i].type) for i, v in partition.items()}
        self._texts = {f.name: text_of(self._values.get(f.name), f.type) for f in context.spec}
        self._data = data_schema(context.schema, context.spec)
        self._indices = [i for i, f in enumerate(context.schema) if f.name not in self._texts]
        codec = str(context.options.get("codec", CODEC))
        self._path = _path(context.spec, self._texts, codec)
        self._stats = StatsCollector(self._data)
        options = ParquetOptions(compression=codec)
        self._writer = ParquetWriter(
            context.files, f"{context.directory}/{self._path}", to_parquet_schema(self._data, _DIALECT), options
        )

    @property
    def bytes_written(self) -> int:
        return self._writer.bytes_written

    def write(self, batch: pa.RecordBatch) -> None:
        rows = batch.select(self._indices)
        self._stats.update(rows)
        self._writer.write(rows)

    def abort(self) -> None:
        self._writer.abort()

    def close(self) -> pa.Table:
        summary = self._writer.close()
        leaves = self._stats.finish(summary.metadata)
        options = self._context.options
        native = {
            "path": paths.encode(self._path),
            "partitionValues": list(self._texts.items()),
            "modificationTime": entropy.current().now_ms(),
            "stats": stats_json(self._data, leaves, summary.rows, options),
        }
        schema = outcomes_schema(self._context)
        row = {
            "kind": DATA_FILE,
            "path": summary.uri,
            "format": PARQUET,
            "size": summary.size,
            "rows": summary.rows,
            "spec": self._context.spec.id,
            "native": native,
        }
        table = pa.Table.from_pylist([row], schema=schema)
        table = _set(table, "partition", self._partition(schema.field("partition").type))
        return _set(table, "stats", to_struct(self._all_leaves(leaves, summary.rows)))

    def _partition(self, type: pa.StructType) -> pa.Array:
        values = [physical_array([self._values.get(f.name)], f.type) for f in self._context.spec]
        return pa.StructArray.from_arrays(values, fields=list(type)) if values else pa.array([{}], type)

    def _all_leaves(self, leaves: tuple[LeafStats, ...], rows: int) -> list[LeafStats]:
        """Statistics of every leaf of the table, those of partition columns from their one value."""
        stored = {leaf.path: leaf for leaf in leaves}
        return [
            stored[leaf.path] if leaf.path in stored else self._of_partition(leaf.path, rows)
            for leaf in schema_leaves(self._context.schema)
        ]

    def _of_partition(self, path: tuple[str, ...], rows: int) -> LeafStats:
        type = next(f.type for f in self._context.spec if f.name == path[0])
        value = physical_array([self._values.get(path[0])], type)[0]
        null = not value.is_valid
        nan = not null and value.as_py() != value.as_py()
        bound = None if null or nan else value
        exact = None if bound is None else True
        return LeafStats(path, type, bound, bound, exact, exact, rows if null else 0, rows if nan else 0, rows)


def data_schema(schema: Schema, spec: PartitionSpec) -> Schema:
    """The columns that are in the files."""
    constant = {f.name for f in spec}
    return Schema(tuple(f for f in schema if f.name not in constant))


def _path(spec: PartitionSpec, texts: Mapping[str, str | None], codec: str) -> str:
    """The file's raw path below the table's root."""
    suffix = _SUFFIX.get(codec.lower(), f".{codec.lower()}")
    name = f"part-00000-{entropy.current().uuid4()}.c000{suffix}.parquet"
    return "/".join([*(paths.partition_folder(f.name, texts[f.name]) for f in spec), name])


def _set(table: pa.Table, name: str, array: pa.Array) -> pa.Table:
    i = table.schema.get_field_index(name)
    return table.set_column(i, table.schema.field(i), array)


def settings(properties: Mapping[str, str], tight: bool) -> dict[str, Any]:
    """The options of a WriteContext that a table's properties ask for."""
    codec = properties.get("delta.parquet.compression.codec") or properties.get("parquet.compression.codec")
    indexed = properties.get("delta.dataSkippingNumIndexedCols", "32")
    named = properties.get("delta.dataSkippingStatsColumns")
    return {
        "codec": (codec or CODEC).lower(),
        "indexed": int(indexed) if indexed.lstrip("-").isdigit() else 32,
        "stats_columns": named,
        "tight": tight,
    }
