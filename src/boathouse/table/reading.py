"""Reads units: the one loop for all formats, in process and on executors.

A format says how its columns are found (`ReadSpec`), and which function opens a file of each file format. Here are
constants, metadata columns, row deletes of every kind, and the split of the predicate into what a file's own columns
decide and what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.schema import to_arrow_type
from boathouse.bits.roaring import Bitmap, deserialize64
from boathouse.compute.evaluate import mask
from boathouse.errors import UnsupportedFeatureError
from boathouse.expr.tree import Expr, all_of, columns, conjuncts
from boathouse.parquet.convert import constant
from boathouse.table import metadata_columns as M
from boathouse.table.equality import EqualityDeletes, EqualityIndex, LoadKeys
from boathouse.table.tasks import ReadColumn, ReadSpec, ScanTask, data_files_of
from boathouse.table.units import EQUALITY

_POSITION = "\0pos"
_DELETED = "\0deleted"
"""Columns of a batch that no column of a table is confused with."""
_UNIT_COLUMNS = ("unit", "path", "format", "size", "rows", "spec", "sequence", "first_row_id", "parts", "deletes")


@dataclass(frozen=True, slots=True)
class UnitRead:
    """What is read of one unit: `columns` that its files store, of the rows that are not `deleted` and for which
    `where` is true; with the column `_pos` if `positions`. Rows that are not `selected` are left out afterwards."""

    spec: ReadSpec
    unit: Mapping[str, Any]
    columns: tuple[ReadColumn, ...]
    where: Expr | None
    deleted: Bitmap | None
    positions: bool
    selected: Bitmap | None = None


FileReader = Callable[[UnitRead], Iterator[pa.RecordBatch]]
"""Gives the columns of a UnitRead in their order, `_pos` last."""


def read_units(
    task: ScanTask, readers: Mapping[int, FileReader], load_keys: LoadKeys | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of the task's units, in order, with the schema `task.read.schema`; no batch is empty.

    `readers` are by file format (`table.units.PARQUET`, ...); `load_keys` reads equality deletes.
    """
    deletes = task.deletes.to_pylist()
    bitmaps = {d["delete"]: d["inline"] for d in deletes if d["kind"] != EQUALITY}
    equality = EqualityIndex([d for d in deletes if d["kind"] == EQUALITY], task.read.columns, load_keys or _no_keys)
    partitions = task.units.column("partition").combine_chunks()
    for i, unit in enumerate(task.units.select(_UNIT_COLUMNS).to_pylist()):
        numbers = unit["deletes"] or ()
        with data_files_of(task.read.version):
            found = _UnitReader(
                task.read,
                unit,
                {n: partitions.field(str(id))[i] for n, id in constants(task.read, unit["spec"]).items()},
                partitions[i],
                _union([bitmaps[n] for n in numbers if n in bitmaps], unit["path"]),
                equality.of(numbers),
                _selected(task, i),
            )
            yield from found.batches(_reader(readers, unit))


def constants(spec: ReadSpec, partition_spec: int) -> dict[str, int]:
    """The columns whose value in files of this partition spec is the partition's, and the partition field of each."""
    found = ((c.name, c.partition_in(partition_spec)) for c in spec.columns)
    return {name: id for name, id in found if id is not None}


def _no_keys(delete: Mapping[str, Any], keys: object) -> pa.Table:
    raise UnsupportedFeatureError("equality deletes are not offered for this format", where=delete["path"])


def _reader(readers: Mapping[int, FileReader], unit: Mapping[str, Any]) -> FileReader:
    found = readers.get(unit["format"])
    if found is None:
        raise UnsupportedFeatureError(f"data files of format {unit['format']} are not offered", where=unit["path"])
    return found


def _selected(task: ScanTask, unit: int) -> Bitmap | None:
    positions = task.selected[unit] if task.selected else None
    return None if positions is None else deserialize64(positions)


def _union(bitmaps: list[bytes], where: str) -> Bitmap | None:
    found: Bitmap | None = None
    for inline in bitmaps:
        bitmap = deserialize64(inline, where=where)
        found = bitmap if found is None else found | bitmap
    return found


@dataclass(frozen=True, slots=True)
class _UnitReader:
    """One unit: `values` are those of the columns that are constant in it."""

    spec: ReadSpec
    unit: Mapping[str, Any]
    values: Mapping[str, pa.Scalar]
    partition: pa.StructScalar
    deleted: Bitmap | None
    equality: tuple[EqualityDeletes, ...]
    selected: Bitmap | None = None

    def batches(self, reader: FileReader) -> Iterator[pa.RecordBatch]:
        stored = tuple(c for c in self.spec.columns if c.name not in self.values)
        inside, outside = self._split({c.name for c in stored})
        marked = M.DELETED in self.spec.hidden
        positions = marked or self.selected is not None or bool({M.POSITION, M.ROW_ID} & set(self.spec.hidden))
        deleted = None if marked else self.deleted
        for batch in reader(UnitRead(self.spec, self.unit, stored, inside, deleted, positions, self.selected)):
            rows = self._whole(batch, positions)
            if self.selected is not None:
                rows = rows.filter(_among(rows, self.selected))
            rows = self._marked(rows) if marked else self._left(rows)
            if outside is not None:
                rows = rows.filter(mask(outside, rows))
            if rows.num_rows:
                yield self._output(rows)

    def _left(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that equality deletes leave."""
        for deletes in self.equality:
            gone = deletes.mask(rows)
            rows = rows.filter(pa.array(~gone)) if gone.any() else rows
        return rows

    def _marked(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """All rows, and whether each is deleted."""
        gone = np.zeros(rows.num_rows, np.bool_)
        if self.deleted is not None:
            gone |= _among(rows, self.deleted).to_numpy(zero_copy_only=False)
        for deletes in self.equality:
            gone |= deletes.mask(rows)
        return pa.RecordBatch.from_arrays([*rows.columns, pa.array(gone)], names=[*rows.schema.names, _DELETED])

    def _split(self, stored: set[str]) -> tuple[Expr | None, Expr | None]:
        """The conjuncts that the stored columns decide, and the others."""
        inside: list[Expr] = []
        outside: list[Expr] = []
        for part in () if self.spec.where is None else conjuncts(self.spec.where):
            used = columns(part)
            (inside if used and all(p[0] in stored for p in used) else outside).append(part)
        return all_of(inside) if inside else None, all_of(outside) if outside else None

    def _whole(self, batch: pa.RecordBatch, positions: bool) -> pa.RecordBatch:
        """The batch with the constants."""
        arrays, names = list(batch.columns), list(batch.schema.names)
        if positions:
            names[-1] = _POSITION
        for c in self.spec.columns:
            if c.name in self.values:
                # Repeated as it is: Python has no dates after the year 9999.
                arrays.append(pa.repeat(self.values[c.name], batch.num_rows).cast(to_arrow_type(c.type)))
                names.append(c.name)
        return pa.RecordBatch.from_arrays(arrays, names=names) if arrays else batch

    def _output(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        schema = self.spec.schema
        if not schema.names:
            return rows.select([])
        index = {name: i for i, name in enumerate(rows.schema.names)}
        arrays = [rows.column(index[n]) for n in self.spec.output]
        arrays += [self._metadata(h, rows, index) for h in self.spec.hidden]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _metadata(self, name: str, rows: pa.RecordBatch, index: Mapping[str, int]) -> pa.Array:
        """A metadata column: of the plan, of the unit, or by position."""
        type, n = to_arrow_type(self.spec.type_of(name)), rows.num_rows
        if name in self.spec.constants:
            return constant(self.spec.constants[name], type, n)
        if name in (M.POSITION, M.DELETED):
            return rows.column(index[_POSITION if name == M.POSITION else _DELETED])
        if name == M.PARTITION:
            return self._partition(type, n)
        if name in (M.ROW_ID, M.LAST_UPDATED) or name in self.spec.stored:
            return self._lineage(name, rows, index)
        key = {M.UNIT: "unit", M.FILE: "path", M.SPEC: "spec", M.SEQUENCE: "sequence", M.ROW_VERSION: "sequence"}[name]
        return constant(self.unit[key], type, n)

    def _partition(self, type: pa.StructType, rows: int) -> pa.Array:
        if not type.num_fields:
            return pa.array([{}] * rows, type)
        values = [
            pa.repeat(self.partition[str(m.id)], rows).cast(f.type)
            if self.unit["spec"] in m.specs
            else pa.nulls(rows, f.type)
            for m, f in zip(self.spec.partition, type)
        ]
        return pa.StructArray.from_arrays(values, fields=list(type))

    def _lineage(self, name: str, rows: pa.RecordBatch, index: Mapping[str, int]) -> pa.Array:
        """What the file stores of each row, else what the row inherits from the file; null in files that have no
        ids."""
        first = self.unit["first_row_id"]
        if first is None:
            return pa.nulls(rows.num_rows, pa.int64())
        if name == M.ROW_ID:
            inherited = pa.array(rows.column(index[_POSITION]).to_numpy() + np.int64(first))
        else:
            inherited = constant(self.unit["sequence"], pa.int64(), rows.num_rows)
        stored = self.spec.stored.get(name)
        return inherited if stored is None else pc.coalesce(rows.column(index[stored]), inherited)


def _among(rows: pa.RecordBatch, positions: Bitmap) -> pa.Array:
    """Which rows are at these positions."""
    return pc.is_in(rows.column(rows.schema.get_field_index(_POSITION)), pa.array(positions.positions()))
