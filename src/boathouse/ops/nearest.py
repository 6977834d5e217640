"""The nearest neighbours of a vector: every vector is compared, where the rows are read, and then only the rows found
are read whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from boathouse.expr.tree import Expr
from boathouse.ops.taken import rows_at
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
) -> pa.Table:
    """The rows, nearest first, and their DISTANCE as the last column. `engine` compares, `reader` reads the rows; only
    rows that satisfy `where` count."""
    access = required(snapshot, RandomAccess, "nearest")
    plan = snapshot.plan([column], where, (UNIT, POSITION), engine.map)
    work = [NearestTask(task, query) for task in plan.tasks(_TASK_BYTES)]
    best = Nearest(query.k)
    for found in engine.map(nearest, work, [task.scan.cost for task in work]):
        best.add(*(values.to_numpy() for values in found.columns))
    rows = rows_at(access, reader, access.by_place(best.unit, best.position), columns, hidden)
    return rows.append_column(pa.field(DISTANCE, pa.float32(), False), [pa.array(best.distance)])
