"""Units without some of their rows: those for which a predicate is true, or those at given positions.

Rows are marked, or units are written again without them. Then each unit is read once, as rows for the sink: copies, and
what is deleted. A predicate's columns are read first and kept; the others follow if a row matches, so that units in
which none does are neither read whole nor written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.arrow.prefetch import read_ahead
from boathouse.bits.roaring import Bitmap, deserialize64, serialize64
from boathouse.compute.evaluate import mask
from boathouse.errors import CorruptTableError
from boathouse.expr.tree import TRUE, Expr, columns
from boathouse.ops.tasks.sink import ACTION, BEFORE, COPY, DELETE, POSITION_MARK, UNIT_MARK, sink_batches
from boathouse.registry import tasks
from boathouse.table.metadata_columns import POSITION
from boathouse.table.plan import bundles, deletes_of
from boathouse.table.tasks import ScanTask, WriteContext
from boathouse.table.units import DELETE_FILE, plain_rows

AHEAD_BYTES: Final = 48 << 20
"""Arrow memory that is read while a row group is written."""
RUN_BYTES: Final = 16 << 20
"""Files of this size together are read as one piece of the work ahead."""
KEPT_BYTES: Final = 32 << 20
"""Arrow memory of a predicate's columns that are kept; above it they are read again."""

_MATCHES = "boathouse:matches"
_Halves = Iterator[tuple[pa.RecordBatch, pa.Array | None]]
"""Rows with all columns that are written, and which of them go (None: none)."""


@dataclass(frozen=True, slots=True)
class UnitTask:
    """`scan` reads every column of some units, without a predicate.

    The rows go for which `where` is true, or those at the positions `gone`, which the operation has counted: of each
    unit a portable 64-bit roaring bitmap, None: no row.
    """

    scan: ScanTask
    context: WriteContext
    where: Expr = TRUE
    gone: tuple[bytes | None, ...] | None = None


def mark_rows(task: UnitTask) -> Iterator[pa.RecordBatch]:
    """OUTCOMES: a row of kind delete for each unit with rows for which the predicate is true (`vector` null: all)."""
    schema = tasks(task.context.format).outcomes_schema(task.context)
    rows: list[dict[str, Any]] = []
    for scan in _units(task, 0, task.scan.units.num_rows):
        found = _search(scan, task.where)
        if found.count:
            row: dict[str, Any] = {
                "kind": DELETE_FILE,
                "unit": scan.units.column("unit")[0].as_py(),
                "deleted": found.count,
            }
            if found.count < found.live:
                row |= {"vector": serialize64(found.bitmap), "rows": found.count}
            rows.append(row)
    yield from plain_rows(schema, rows).to_batches()


def write_units(task: UnitTask) -> Iterator[pa.RecordBatch]:
    """OUTCOMES of the sink: files with the rows that stay, units that go. Reads ahead of the writer, in a thread."""
    runs = bundles([size or 0 for size in task.scan.units.column("size").to_pylist()], RUN_BYTES)
    # What there is satisfied the rules, and has its identities.
    context = replace(task.context, rules=(), identities=())
    with closing(read_ahead(partial(_rows_of, task), runs, 1, AHEAD_BYTES)) as rows:
        yield from sink_batches(rows, context)


def _rows_of(task: UnitTask, run: tuple[int, int]) -> Iterator[pa.RecordBatch]:
    """Rows for the sink, of the units from the first to the one before the last."""
    for i, scan in enumerate(_units(task, *run), run[0]):
        if task.gone is None:
            yield from _without_matches(task, scan)
        else:
            gone = task.gone[i]
            for rows, lost in _whole_rows(task, scan, None if gone is None else deserialize64(gone)):
                yield _copies(rows, lost)


def _units(task: UnitTask, start: int, end: int) -> Iterator[ScanTask]:
    for i in range(start, end):
        units = task.scan.units.slice(i, 1)
        yield replace(task.scan, units=units, deletes=deletes_of(units, task.scan.deletes))


def _without_matches(task: UnitTask, scan: ScanTask) -> Iterator[pa.RecordBatch]:
    """Nothing if no row matches. If all do, no other column is read, unless change files need it."""
    unit = scan.units.column("unit")[0]
    found = _search(scan, task.where, KEPT_BYTES)
    changes = task.context.changes is not None
    if found.count == found.live and not changes:
        yield from (_deleted(unit, len(p)) for p in found.positions)
    elif found.count:
        for rows, lost in _rest(task, scan, found):
            yield _copies(rows, lost)
            if gone := pc.sum(lost).as_py():
                yield _deleted(unit, gone, rows.filter(lost).select(list(scan.read.output)) if changes else None)


@dataclass(frozen=True, slots=True)
class _Found:
    """Of the `live` rows of a unit those that match. `kept` has the predicate's columns of all, and which match; None:
    they were too large, or are not needed."""

    positions: Sequence[pa.Array]
    live: int
    kept: pa.Table | None

    @property
    def count(self) -> int:
        return sum(map(len, self.positions))

    @property
    def bitmap(self) -> Bitmap:
        return Bitmap.of(pa.chunked_array(self.positions).to_numpy())


def _search(scan: ScanTask, where: Expr, kept_bytes: int = 0) -> _Found:
    """The rows for which the predicate is true; of the columns only its own are read."""
    wanted = {path[0] for path in columns(where)}
    found: list[pa.Array] = []
    kept: list[pa.RecordBatch] = []
    live = size = 0
    for batch in _read(scan, [n for n in scan.read.output if n in wanted], (POSITION,)):
        rows, positions = _split_last(batch)
        hit = mask(where, rows)
        live += batch.num_rows
        size += batch.nbytes
        if hit.true_count:
            found.append(positions.filter(hit))
        if size <= kept_bytes:
            kept.append(rows.append_column(_MATCHES, hit))
        else:
            kept.clear()
    return _Found(found, live, pa.Table.from_batches(kept) if kept else None)


def _rest(task: UnitTask, scan: ScanTask, found: _Found) -> _Halves:
    """The rows of a unit some of which match; columns that were kept are not read again."""
    if found.kept is None:
        yield from _whole_rows(task, scan, found.bitmap)
        return
    kept, hidden = found.kept, task.context.hidden
    known = frozenset(kept.schema.names)
    others = [n for n in scan.read.output if n not in known]
    names = [*scan.read.output, *hidden]
    at = 0
    for batch in _read(scan, others, hidden) if others or hidden else kept.to_batches():
        done = 0
        for part in kept.slice(at, batch.num_rows).to_batches():
            beside = batch.slice(done, part.num_rows)
            arrays = [(part if n in known else beside).column(n) for n in names]
            yield pa.RecordBatch.from_arrays(arrays, names=names), part.column(_MATCHES)
            done += part.num_rows
        at += batch.num_rows
    if at != kept.num_rows:
        path = scan.units.column("path")[0].as_py()
        raise CorruptTableError("the columns of a data file have different numbers of rows", where=path)


def _whole_rows(task: UnitTask, scan: ScanTask, gone: Bitmap | None) -> _Halves:
    """All rows of a unit; those at the positions go."""
    if gone is None:
        yield from ((rows, None) for rows in _read(scan, scan.read.output, task.context.hidden))
        return
    lost = pa.array(gone.positions())
    for batch in _read(scan, scan.read.output, (*task.context.hidden, POSITION)):
        rows, positions = _split_last(batch)
        yield rows, pc.is_in(positions, lost)


def _split_last(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Array]:
    """The rows without their positions, which a column of the table may have the name of."""
    last = batch.num_columns - 1
    return batch.select(range(last)), batch.column(last)


def _read(scan: ScanTask, output: Sequence[str], hidden: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    """These columns; what equality deletes and metadata columns need is read too, and not given."""
    keys = {id for found in scan.deletes.column("keys").to_pylist() for id in found or ()}
    names = {*output, *(stored for name, stored in scan.read.stored.items() if name in hidden)}
    needed = tuple(c for c in scan.read.columns if c.name in names or c.field_id in keys)
    read = replace(scan.read, columns=needed, output=tuple(output), hidden=hidden)
    return tasks(read.format).read(replace(scan, read=read))


def _copies(rows: pa.RecordBatch, lost: pa.Array | None) -> pa.RecordBatch:
    """The rows that stay, as they are written."""
    left = rows if lost is None else rows.filter(pc.invert(lost))
    return left.append_column(ACTION, pa.repeat(pa.scalar(COPY), left.num_rows))


def _deleted(unit: pa.Scalar, count: int, rows: pa.RecordBatch | None = None) -> pa.RecordBatch:
    """Rows of a unit that is written again, or goes; with the rows themselves for change files."""
    arrays = [pa.repeat(pa.scalar(DELETE), count), pa.repeat(unit, count), pa.nulls(count, pa.int64())]
    before = {} if rows is None else dict(zip(rows.schema.names, rows.columns, strict=True))
    names = [ACTION, UNIT_MARK, POSITION_MARK, *(f"{BEFORE}{n}" for n in before)]
    return pa.RecordBatch.from_arrays([*arrays, *before.values()], names=names)
