"""The nearest neighbours of a vector: every vector is compared where the rows are read, or those that an index does not
have, and then only the rows found are read whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.expr.tree import Expr
from boathouse.ops.reads.indexed_neighbours import Probes, by_index
from boathouse.ops.reads.taken import rows_at
from boathouse.ops.tasks.nearest import Nearest, NearestTask, Query, nearest
from boathouse.table.engine import Engine
from boathouse.table.features import RandomAccess, required
from boathouse.table.metadata_columns import POSITION, UNIT
from boathouse.table.snapshot import Snapshot

DISTANCE: Final = "_distance"
_TASK_BYTES: Final = 32 << 20


def nearest_rows(
    snapshot: Snapshot,
    engine: Engine,
    column: str,
    query: Query,
    where: Expr | None,
    columns: Sequence[str] | None,
    hidden: Sequence[str],
    reader: Engine,
    probes: Probes | None = None,
) -> pa.Table:
    """The rows, nearest first, and their DISTANCE as the last column. `engine` compares, `reader` reads the rows; only
    rows that satisfy `where` count. With `probes` an index is asked where there is one."""
    access = required(snapshot, RandomAccess, "nearest")
    plan = snapshot.plan([column], where, (UNIT, POSITION), engine.map)
    known = None if probes is None else by_index(snapshot, engine, access, reader, column, query, where, probes)
    best = Nearest(query.k)
    if known is not None:
        near, units = known
        best.add(near.distance, near.unit, near.position)
        had = pc.is_in(plan.units.column("unit"), pa.array(sorted(units), pa.int64()))
        plan = plan.narrowed(plan.units.filter(pc.invert(had)), plan.read)
    work = [NearestTask(task, query) for task in plan.tasks(_TASK_BYTES)]
    for found in engine.map(nearest, work, [task.scan.cost for task in work]):
        best.add(*(values.to_numpy() for values in found.columns))
    rows = rows_at(access, reader, access.by_place(best.unit, best.position), columns, hidden)
    return rows.append_column(pa.field(DISTANCE, pa.float32(), False), [pa.array(best.distance)])
