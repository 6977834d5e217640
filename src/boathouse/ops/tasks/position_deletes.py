"""Files of the places of deleted rows, for tables that delete rows by them: one for each data file, which readers of
others need not open, or one for those of a partition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

import pyarrow as pa

from boathouse.arrow.schema import to_arrow
from boathouse.bits.roaring import deserialize64
from boathouse.ops.tasks.routing import partition_keys
from boathouse.ops.tasks.sink import pickle_error
from boathouse.registry import tasks
from boathouse.table.tasks import WriteContext, positions_of
from boathouse.table.units import plain_rows
from boathouse.types import PartitionSpec

_BATCH_ROWS: Final = 1 << 17
"""A few runs of a bitmap may stand for any number of rows."""


@dataclass(frozen=True, slots=True)
class PositionsTask:
    """`units` are FILES rows, those of a partition beside each other; `names` are their paths in the table's metadata,
    `vectors` the deleted positions of each (portable 64-bit roaring bitmaps); `specs` are their partition specs."""

    units: pa.Table
    names: tuple[str, ...]
    vectors: tuple[bytes, ...]
    specs: tuple[PartitionSpec, ...]
    context: WriteContext

    @property
    def cost(self) -> int:
        """Bytes of the bitmaps, for balancing tasks."""
        return sum(map(len, self.vectors))


@dataclass(frozen=True, slots=True)
class _Unit:
    """A unit that loses rows."""

    row: dict[str, Any]
    name: str
    vector: bytes


def write_positions(task: PositionsTask) -> Iterator[pa.RecordBatch]:
    """OUTCOMES: a row of kind delete for each file, with the path of the unit that it is for, if there is one only."""
    schema = tasks(task.context.format).outcomes_schema(task.context)
    specs = {spec.id: spec for spec in task.specs}
    written: list[pa.Table] = []
    try:
        for group in _groups(task):
            unit = group[0].row
            context = positions_of(task.context, specs[unit["spec"]])
            partition = {f.id: unit["partition"][str(f.id)] for f in context.spec}
            only = unit["path"] if len(group) == 1 else None
            written.append(_fitted(_written(context, partition, group), schema, only))
    except Exception as error:
        written.append(plain_rows(schema, [{"kind": "error", "error": pickle_error(error)}]))
    yield from pa.concat_tables(written).to_batches()


def _groups(task: PositionsTask) -> Iterator[list[_Unit]]:
    """The units of each file. Those of another spec than the current one are not together: OUTCOMES have no place for
    its values."""
    rows = task.units.drop(["native"]).to_pylist()
    units = list(map(_Unit, rows, task.names, task.vectors))
    if task.context.positions_per == "file":
        yield from ([unit] for unit in units)
        return
    for (spec, _), found in groupby(zip(partition_keys(task.units), units, strict=True), lambda pair: pair[0]):
        group = sorted((unit for _, unit in found), key=lambda unit: unit.name)
        yield from [group] if spec == task.context.spec.id else ([unit] for unit in group)


def _written(context: WriteContext, partition: dict[int, object], group: Sequence[_Unit]) -> pa.Table:
    """OUTCOMES of one file, in the order of the names and the positions."""
    files = tasks(context.format).writers(context)
    writer = files.open(partition)
    schema = to_arrow(context.schema)
    try:
        for unit in group:
            positions = deserialize64(unit.vector).positions()
            for start in range(0, len(positions), _BATCH_ROWS):
                some = pa.array(positions[start : start + _BATCH_ROWS], pa.int64())
                writer.write(pa.RecordBatch.from_arrays([pa.repeat(unit.name, len(some)), some], schema=schema))
        return files.outcomes([writer.close()])
    except BaseException:
        writer.abort()
        raise


def _fitted(outcomes: pa.Table, schema: pa.Schema, path: str | None) -> pa.Table:
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
