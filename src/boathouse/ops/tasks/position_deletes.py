"""Files of the places of deleted rows, for tables that delete rows by them: one for each data file, which readers of
others need not open."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from boathouse.arrow.schema import to_arrow
from boathouse.bits.roaring import deserialize64
from boathouse.ops.tasks.sink import pickle_error
from boathouse.registry import tasks
from boathouse.table.tasks import WriteContext, positions_of
from boathouse.table.units import plain_rows
from boathouse.types import PartitionSpec


@dataclass(frozen=True, slots=True)
class PositionsTask:
    """`units` are FILES rows; `vectors` have the deleted positions of each (portable 64-bit roaring bitmaps); `specs`
    are their partition specs."""

    units: pa.Table
    vectors: tuple[bytes, ...]
    specs: tuple[PartitionSpec, ...]
    context: WriteContext

    @property
    def cost(self) -> int:
        """Bytes of the bitmaps, for balancing tasks."""
        return sum(map(len, self.vectors))


def write_positions(task: PositionsTask) -> Iterator[pa.RecordBatch]:
    """OUTCOMES: a row of kind delete for each file, with the path of the unit that it is for."""
    schema = tasks(task.context.format).outcomes_schema(task.context)
    specs = {spec.id: spec for spec in task.specs}
    written: list[pa.Table] = []
    try:
        for unit, vector in zip(task.units.drop(["native"]).to_pylist(), task.vectors, strict=True):
            context = positions_of(task.context, specs[unit["spec"]])
            partition = {f.id: unit["partition"][str(f.id)] for f in context.spec}
            written.append(_fitted(_written(context, partition, unit["path"], vector), schema, unit["path"]))
    except Exception as error:
        written.append(plain_rows(schema, [{"kind": "error", "error": pickle_error(error)}]))
    yield from pa.concat_tables(written).to_batches()


def _written(context: WriteContext, partition: dict[int, object], path: str, vector: bytes) -> pa.Table:
    """OUTCOMES of one file, in the order of the positions."""
    positions = pa.array(deserialize64(vector).positions(), pa.int64())
    files = tasks(context.format).writers(context)
    writer = files.open(partition)
    try:
        columns = [pa.repeat(pa.scalar(path), len(positions)), positions]
        writer.write(pa.RecordBatch.from_arrays(columns, schema=to_arrow(context.schema)))
        return files.outcomes([writer.close()])
    except BaseException:
        writer.abort()
        raise


def _fitted(outcomes: pa.Table, schema: pa.Schema, path: str) -> pa.Table:
    """In the schema of the table's OUTCOMES: without statistics, which are of other columns, and without the partition
    of another spec, which is the data file's."""
    columns = []
    for f in schema:
        if f.name == "unit_path":
            columns.append(pa.array([path], f.type))
        elif f.name == "stats" or outcomes.schema.field(f.name).type != f.type:
            columns.append(pa.nulls(1, f.type))
        else:
            columns.append(outcomes.column(f.name))
    return pa.Table.from_arrays(columns, schema=schema)
