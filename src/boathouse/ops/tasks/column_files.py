"""Columns computed for the rows of units, in a file for each unit: its deleted rows keep their place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa

from boathouse.arrow.conform import conform
from boathouse.arrow.schema import to_arrow
from boathouse.arrow.selection import take
from boathouse.errors import SchemaMismatchError
from boathouse.ops.tasks.sink import pickle_error
from boathouse.registry import tasks
from boathouse.table.tasks import ScanTask, WriteContext
from boathouse.table.units import plain_rows
from boathouse.types import Schema

_ROWS: Final = 1 << 16
"""The most rows of a batch that is put together of live and deleted ones."""


class Compute(Protocol):
    """Values of columns for rows, which it may be asked for on any executor."""

    def __call__(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The columns by their names, a row for each of these."""


@dataclass(frozen=True, slots=True)
class ColumnTask:
    """Each of `scans` reads of one unit what is computed from, and last the rows' positions; the context is that of the
    files."""

    scans: tuple[ScanTask, ...]
    context: WriteContext


def write_columns(compute: Compute, task: ColumnTask) -> Iterator[pa.RecordBatch]:
    """OUTCOMES: a file for each unit, and which that is. A failure is a row whose `error` is the pickled exception,
    after rows for the files that were finished."""
    schema = tasks(task.context.format).outcomes_schema(task.context)
    outcomes: list[pa.Table] = []
    try:
        for scan in task.scans:
            outcomes.append(_written(scan, compute, task.context))
    except Exception as error:
        outcomes.append(plain_rows(schema, [{"kind": "error", "error": pickle_error(error)}]))
    yield from pa.concat_tables([schema.empty_table(), *outcomes]).to_batches()


def _written(scan: ScanTask, compute: Compute, context: WriteContext) -> pa.Table:
    """OUTCOMES of the file of one unit; after an error it is not there."""
    unit, rows = (scan.units.column(name)[0].as_py() for name in ("unit", "rows"))
    files = tasks(context.format).writers(context)
    writer = files.open({})
    try:
        for batch in _physical(_computed(scan, compute, context.schema), rows, context.schema):
            writer.write(batch)
        found = files.outcomes([writer.close()])
    except BaseException:
        writer.abort()
        raise
    place = found.schema.get_field_index("unit")
    return found.set_column(place, found.schema.field(place), pa.array([unit], pa.int64()))


def _computed(scan: ScanTask, compute: Compute, schema: Schema) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
    """The new columns of live rows, and where these are."""
    where = scan.units.column("path")[0].as_py()
    for batch in tasks(scan.read.format).read(scan):
        found = compute(batch.select([*range(batch.num_columns - 1)]))
        if found.num_rows != batch.num_rows:
            raise SchemaMismatchError(
                f"{found.num_rows:,} values of new columns for {batch.num_rows:,} rows",
                where=where,
                advice="give one value for each row, in the order of the rows",
            )
        if missing := [name for name in schema.names if name not in found.schema.names]:
            raise SchemaMismatchError(
                f"no values of the new column{'s' if len(missing) > 1 else ''} {', '.join(missing)} for some rows",
                where=where,
                advice="give the same columns for all rows",
            )
        yield conform(found, schema, where), batch.columns[-1]


def _physical(parts: Iterable[tuple[pa.RecordBatch, pa.Array]], rows: int, schema: Schema) -> Iterator[pa.RecordBatch]:
    """A row for each physical row of the unit, blank where it is deleted."""
    wanted = to_arrow(schema)
    blank = pa.RecordBatch.from_arrays([pa.array([_blank(f)], f.type) for f in wanted], schema=wanted)
    at = 0
    for batch, positions in parts:
        places = positions.to_numpy()
        end = int(places[-1]) + 1 if len(places) else at
        if end - at == batch.num_rows:
            yield batch
        else:
            both = pa.concat_batches([batch, blank])
            for start in range(at, end, _ROWS):
                asked = np.arange(start, min(start + _ROWS, end))
                found = np.searchsorted(places, asked)
                yield _taken(both, np.where(places[found] == asked, found, batch.num_rows))
        at = end
    for start in range(at, rows, _ROWS):
        yield _taken(blank, np.zeros(min(_ROWS, rows - start), np.int64))


def _taken(batch: pa.RecordBatch, places: np.ndarray) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([take(column, places) for column in batch.columns], schema=batch.schema)


def _blank(field: pa.Field) -> Any:
    """The value of a deleted row: null, but of a struct, which not every file can have null, its fields; where a column
    cannot be null, the empty value or zero."""
    t, kind = pa.types, field.type
    if t.is_struct(kind):
        return {f.name: _blank(f) for f in kind}
    if t.is_fixed_size_list(kind) and (t.is_nested(kind.value_type) or not field.nullable):
        return [_blank(kind.value_field)] * kind.list_size
    if field.nullable:
        return None
    if t.is_nested(kind):
        return []
    if t.is_fixed_size_binary(kind):
        return bytes(kind.byte_width)
    if t.is_string(kind) or t.is_large_string(kind):
        return ""
    return b"" if t.is_binary(kind) or t.is_large_binary(kind) else 0
