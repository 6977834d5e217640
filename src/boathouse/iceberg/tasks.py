"""The code that runs on executors: reading units of a scan, writing data files. It imports no object store, Avro or
parser."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from boathouse.arrow.schema import to_arrow_type
from boathouse.bits.roaring import Bitmap, deserialize64
from boathouse.compute.evaluate import select
from boathouse.iceberg.data_writer import DataFiles, outcomes
from boathouse.iceberg.values import initial_default
from boathouse.parquet.convert import constant
from boathouse.parquet.read import SourceColumn, scan_file
from boathouse.parquet.resolve import Matching
from boathouse.table.tasks import (
    HIDDEN,
    POSITION,
    UNIT,
    FileWriters,
    ReadColumn,
    ReadSpec,
    ScanTask,
    WriteContext,
    data_files_of,
)

__all__ = ["matching", "outcomes_schema", "read", "writers"]


@dataclass(frozen=True, slots=True)
class MappedIds:
    """Field ids by name, for files without any: `paths` is a name mapping."""

    paths: Mapping[tuple[str, ...], int]

    def __call__(self, path: tuple[str, ...]) -> int | None:
        return self.paths.get(path)


def matching(spec: ReadSpec) -> Matching:
    """How nested fields are found, and ids in files without any."""
    ids = spec.options.get("ids")
    return Matching(default=initial_default, file_ids=None if ids is None else MappedIds(ids))


def read(task: ScanTask) -> Iterator[pa.RecordBatch]:
    """The rows of the task's units in order, as `task.read.schema`; deleted rows are dropped, `where` is applied."""
    vectors = dict(zip(task.deletes.column("delete").to_pylist(), task.deletes.column("inline").to_pylist()))
    units = task.units.select(["unit", "path", "size", "spec", "deletes"]).to_pylist()
    partitions = task.units.column("partition").combine_chunks()
    for i, unit in enumerate(units):
        deleted = [deserialize64(vectors[d], where=unit["path"]) for d in unit["deletes"] or ()]
        with data_files_of(task.read.version):
            yield from _read_unit(task.read, unit, partitions, i, _union(deleted))


def _union(bitmaps: list[Bitmap]) -> Bitmap | None:
    found: Bitmap | None = None
    for bitmap in bitmaps:
        found = bitmap if found is None else found | bitmap
    return found


def _read_unit(
    spec: ReadSpec, unit: Mapping[str, Any], partitions: pa.StructArray, row: int, deleted: Bitmap | None
) -> Iterator[pa.RecordBatch]:
    reader = _Reader.of(spec, unit["spec"])
    constants = {c.name: partitions.field(str(c.partition))[row] for c in reader.constant}
    batches = scan_file(
        spec.files,
        unit["path"],
        reader.columns,
        size=unit["size"],
        row_filter=None if reader.constant else spec.where,
        deleted=deleted,
        positions=POSITION in spec.hidden,
        matching=reader.matching,
    )
    for batch in batches:
        rows = reader.assemble(batch, constants)
        if spec.where is not None:
            rows = select(rows, spec.where)
        if rows.num_rows:
            yield _output(spec, rows, unit["unit"])


@dataclass(frozen=True, slots=True)
class _Reader:
    """A ReadSpec for the files of one partition spec: which columns come from the file, which are constant."""

    spec: ReadSpec
    columns: tuple[SourceColumn, ...]
    constant: tuple[ReadColumn, ...]
    matching: Matching = field(default_factory=Matching)

    @classmethod
    def of(cls, spec: ReadSpec, spec_id: int) -> _Reader:
        constant = tuple(c for c in spec.columns if spec_id in c.constant_in)
        inside = [c for c in spec.columns if spec_id not in c.constant_in]
        columns = tuple(SourceColumn(c.name, c.type, None, c.field_id, c.default, c.nullable) for c in inside)
        return cls(spec, columns, constant, matching(spec))

    def assemble(self, batch: pa.RecordBatch, constants: Mapping[str, pa.Scalar]) -> pa.RecordBatch:
        """All needed columns in order, and the position if it is requested."""
        if not self.constant:
            return batch
        arrays = []
        names = []
        for c in self.spec.columns:
            value = constants.get(c.name)
            if value is None:
                arrays.append(batch.column(batch.schema.get_field_index(c.name)))
            else:
                arrays.append(_repeat(value, c, batch.num_rows))
            names.append(pa.field(c.name, arrays[-1].type, c.nullable))
        if POSITION in self.spec.hidden:
            arrays.append(batch.column(batch.schema.get_field_index(POSITION)))
            names.append(pa.field(POSITION, pa.int64(), False))
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(names))


def _repeat(value: pa.Scalar, column: ReadColumn, rows: int) -> pa.Array:
    target = to_arrow_type(column.type)
    return constant(value if value.type == target else value.cast(target), target, rows)


def _output(spec: ReadSpec, rows: pa.RecordBatch, unit: int) -> pa.RecordBatch:
    arrays = [rows.column(rows.schema.get_field_index(n)) for n in spec.output]
    for hidden in spec.hidden:
        if hidden == UNIT:
            arrays.append(constant(unit, HIDDEN[UNIT], rows.num_rows))
        else:
            arrays.append(rows.column(rows.schema.get_field_index(hidden)))
    if not arrays:
        return rows.select([])
    return pa.RecordBatch.from_arrays(arrays, schema=spec.schema)


def writers(context: WriteContext) -> FileWriters:
    """New data files for this context."""
    return DataFiles(context)


def outcomes_schema(context: WriteContext) -> pa.Schema:
    """The schema of OUTCOMES for this context."""
    return outcomes(context)
