"""The code that runs on executors: reading units of a Delta table, and writing its data files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pyarrow as pa

from boathouse.arrow.schema import to_arrow_type
from boathouse.bits.roaring import Bitmap, deserialize64
from boathouse.compute.evaluate import mask
from boathouse.delta.data_writer import DeltaFiles, outcomes
from boathouse.delta.schema import physical_name
from boathouse.expr.tree import Expr, all_of, columns, conjuncts
from boathouse.parquet.read import Matching, SourceColumn, scan_file
from boathouse.parquet.write import CODEC
from boathouse.table.tasks import (
    POSITION,
    UNIT,
    FileWriters,
    ReadColumn,
    ReadSpec,
    ScanTask,
    WriteContext,
    data_files_of,
)

_MATCHING: Final = Matching(physical_name=physical_name)


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
    """The conjuncts that the file's own columns can decide."""
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
    return outcomes(context)


def writers(context: WriteContext) -> FileWriters:
    """New files for this context, `p=v/part-00000-<uuid>.c000.<codec>.parquet`."""
    return DeltaFiles(context)


def settings(properties: Mapping[str, str], tight: bool) -> dict[str, Any]:
    """The options of a WriteContext from a table's properties."""
    codec = properties.get("delta.parquet.compression.codec") or properties.get("parquet.compression.codec")
    indexed = properties.get("delta.dataSkippingNumIndexedCols", "32")
    named = properties.get("delta.dataSkippingStatsColumns")
    return {
        "codec": (codec or CODEC).lower(),
        "indexed": int(indexed) if indexed.lstrip("-").isdigit() else 32,
        "stats_columns": named,
        "tight": tight,
    }
