"""Rows by number or by id, in the order that is asked for: the read of random access."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from boathouse.bits.roaring import Bitmap, serialize64
from boathouse.errors import InvalidArgumentError
from boathouse.registry import tasks
from boathouse.table.engine import Engine
from boathouse.table.features import Places, RandomAccess, required
from boathouse.table.features.random_access import Numbers
from boathouse.table.snapshot import Snapshot
from boathouse.table.tasks import ScanTask


def rows_numbered(
    snapshot: Snapshot, engine: Engine, numbers: Numbers, columns: Sequence[str] | None, hidden: Sequence[str]
) -> pa.Table:
    """A row for each number. Raises InvalidArgumentError for one that no row has."""
    access, places = places_numbered(snapshot, numbers, "take")
    return rows_at(access, engine, places, columns, hidden)


def places_numbered(snapshot: Snapshot, numbers: Numbers, what: str) -> tuple[RandomAccess, Places]:
    """The place of each number. Raises InvalidArgumentError for one that no row has."""
    access = required(snapshot, RandomAccess, what)
    outside = numbers[(numbers < 0) | (numbers >= access.rows)]
    if len(outside):
        raise InvalidArgumentError(
            f"there is no row {int(outside[0])}: version {snapshot.version} has {access.rows} rows",
            where=str(snapshot.context.location),
            advice="number rows from 0, in the order of a scan",
        )
    return access, access.by_number(numbers)


def rows_identified(
    snapshot: Snapshot, engine: Engine, ids: Numbers, columns: Sequence[str] | None, hidden: Sequence[str]
) -> pa.Table:
    """A row for each id that a row has."""
    access = required(snapshot, RandomAccess, "take")
    return rows_at(access, engine, access.by_id(ids), columns, hidden)


def rows_at(
    access: RandomAccess, engine: Engine, places: Places, columns: Sequence[str] | None, hidden: Sequence[str]
) -> pa.Table:
    """Each row is read once, in the order of the files, and then put where it is asked for."""
    order = np.lexsort((places.position, places.unit))
    units, positions = places.unit[order], places.position[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (units[1:] != units[:-1]) | (positions[1:] != positions[:-1])
    wanted, begins = np.unique(units[new], return_index=True)
    plan = access.plan(wanted, columns, hidden)
    work = [
        ScanTask(plan.read, plan.units.slice(i, 1), plan.deletes, (serialize64(Bitmap(part)),))
        for i, part in enumerate(np.split(positions[new], begins)[1:])
    ]
    found: Iterator[pa.RecordBatch] = engine.map(tasks(plan.read.format).read, work)
    rows = pa.Table.from_batches(found, plan.read.schema)
    back = np.empty(len(order), np.int64)
    back[order] = np.cumsum(new) - 1
    as_read = len(back) == rows.num_rows and bool((np.diff(back) > 0).all())
    return rows if as_read else rows.take(pa.array(back))
