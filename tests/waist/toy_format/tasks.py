"""The toy's executor side: two Arrow IPC files a unit, each with half of the columns."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.filesystem import DataFiles
from boathouse.arrow.schema import to_arrow, to_arrow_type
from boathouse.bits import system
from boathouse.compute.evaluate import mask
from boathouse.table.metadata_columns import FILE, POSITION
from boathouse.table.reading import UnitRead, read_units
from boathouse.table.tasks import ReadColumn, ScanTask, WriteContext
from boathouse.table.units import KIND_OF, LANCE, partition_type, stats_type
from boathouse.table.units import outcomes_schema as _outcomes

NATIVE = pa.struct([("first_row_id", pa.int64())])


def read(task: ScanTask) -> Iterator[pa.RecordBatch]:
    return read_units(task, {LANCE: _read_unit}, _load_keys)


def _read_unit(read: UnitRead) -> Iterator[pa.RecordBatch]:
    """Both parts of a unit; there is nothing to skip."""
    columns: dict[str, pa.Array] = {}
    for part in read.unit["parts"]:
        with read.spec.files.open_input(part["path"]) as f:
            table = pa.ipc.open_file(io.BytesIO(f.read())).read_all().combine_chunks()
        columns |= {n: table.column(n).combine_chunks() for n in table.column_names}
    rows = read.unit["rows"]
    arrays = [_column(columns.get(c.physical[0]), to_arrow_type(c.type), rows) for c in read.columns]
    names = [c.name for c in read.columns]
    arrays.append(pa.array(range(rows), pa.int64()))
    batch = pa.RecordBatch.from_arrays(arrays, names=[*names, POSITION])
    if read.deleted is not None:
        batch = batch.filter(pc.invert(pc.is_in(batch.columns[-1], pa.array(read.deleted.positions()))))
    if read.where is not None:
        batch = batch.filter(mask(read.where, batch.select(range(len(names)))))
    yield batch if read.positions or not names else batch.select(range(len(names)))


def _column(found: pa.Array | None, type: pa.DataType, rows: int) -> pa.Array:
    return pa.nulls(rows, type) if found is None else found.cast(type)


def _load_keys(delete: Mapping[str, Any], keys: Sequence[ReadColumn]) -> pa.Table:
    """The values of the only key are in the delete itself."""
    table = pa.ipc.open_stream(delete["inline"]).read_all()
    return table.cast(pa.schema([pa.field(k.name, to_arrow_type(k.type)) for k in keys]))


@dataclass(frozen=True)
class PositionFile(Mapping):
    """The rows that a file of deletes takes from one unit, as `Deletes.rows`."""

    files: DataFiles
    path: str
    unit: int

    @property
    def parts(self) -> tuple[str, str]:
        return self.path, self.path.replace(".0.arrow", ".1.arrow")

    def __getitem__(self, unit: int) -> tuple[int, ...]:
        if unit != self.unit:
            raise KeyError(unit)
        columns = {}
        for part in self.parts:
            with self.files.open_input(part) as f:
                found = pa.ipc.open_file(io.BytesIO(f.read())).read_all()
            columns |= {n: found.column(n).to_pylist() for n in found.column_names}
        assert columns.keys() == {FILE, POSITION} and len(set(columns[FILE])) == 1
        return tuple(columns[POSITION])

    def __iter__(self) -> Iterator[int]:
        return iter((self.unit,))

    def __len__(self) -> int:
        return 1


@dataclass(frozen=True)
class _Closed:
    row: dict[str, Any]

    @property
    def paths(self) -> list[str]:
        return [part["path"] for part in self.row["parts"]]


class _Writer:
    def __init__(self, context: WriteContext, partition: Mapping[int, object]) -> None:
        self._context, self._partition, self._batches = context, partition, []
        self.bytes_written = 0

    def write(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)
        self.bytes_written += batch.nbytes

    def close(self) -> _Closed:
        schema = to_arrow(self._context.rows)
        table = pa.Table.from_batches(self._batches, schema)
        half = (len(schema) + 1) // 2
        name = f"{self._context.directory}/{system.current().uuid4()}{self._context.ending}"
        parts = []
        for i, names in enumerate((schema.names[:half], schema.names[half:])):
            buffer = io.BytesIO()
            with pa.ipc.new_file(buffer, table.select(names).schema) as writer:
                writer.write_table(table.select(names))
            with self._context.files.open_output(f"{name}.{i}.arrow") as f:
                f.write(buffer.getvalue())
            part = {"path": f"{name}.{i}.arrow", "size": buffer.tell(), "format": LANCE, "fields": None}
            parts.append({**part, "columns": None})
        row = {
            "kind": KIND_OF[self._context.content], "path": parts[0]["path"], "format": LANCE,
            "size": sum(p["size"] for p in parts), "rows": table.num_rows, "spec": self._context.spec.id,
            "partition": {str(k): v for k, v in self._partition.items()}, "parts": parts,
            "stats": {str(i): _stats(table.column(i)) for i in range(len(self._context.schema))},
        }  # fmt: skip
        return _Closed(row)

    def abort(self) -> None:
        self._batches = []


def _stats(column: pa.ChunkedArray) -> dict[str, object]:
    lower = upper = None
    plain = not (pa.types.is_nested(column.type) or pa.types.is_floating(column.type))
    if plain and not pa.types.is_null(column.type) and column.null_count < len(column):
        lower, upper = pc.min(column).as_py(), pc.max(column).as_py()
    nans = None if pa.types.is_floating(column.type) else 0
    return {"lower": lower, "upper": upper, "lower_exact": lower is not None, "upper_exact": upper is not None,
            "nulls": column.null_count, "nans": nans, "values": len(column)}  # fmt: skip


class _Writers:
    def __init__(self, context: WriteContext) -> None:
        self._context = context

    def open(self, partition: Mapping[int, object]) -> _Writer:
        return _Writer(self._context, partition)

    def outcomes(self, closed: Sequence[_Closed]) -> pa.Table:
        return pa.Table.from_pylist([c.row for c in closed], schema=outcomes_schema(self._context))


def writers(context: WriteContext) -> _Writers:
    return _Writers(context)


def outcomes_schema(context: WriteContext) -> pa.Schema:
    return _outcomes(partition_type(context.spec), stats_type([f.type for f in context.schema]), NATIVE)
