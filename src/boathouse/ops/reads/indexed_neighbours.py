"""Rows near to a vector by an index of vectors: it says which may be nearest, and their own vectors are compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.compute.distances import distances
from boathouse.errors import CorruptTableError
from boathouse.expr.tree import Expr
from boathouse.ops.reads.taken import rows_at
from boathouse.ops.tasks.nearest import Nearest, Query
from boathouse.registry import tasks
from boathouse.table.engine import Engine
from boathouse.table.features import RandomAccess, VectorIndices
from boathouse.table.features.vector_indices import VectorIndex
from boathouse.table.metadata_columns import POSITION, UNIT
from boathouse.table.snapshot import Snapshot

_ELEMENTS = 1 << 22
"""So many of vectors are compared at once."""
_Numbers = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Probes:
    """How much of an index is looked at: the nearest `partitions` of each of its parts, and of the rows in them those
    that it thinks nearest, `refine` times as many as are asked for."""

    partitions: int
    refine: int


def by_index(
    snapshot: Snapshot,
    engine: Engine,
    access: RandomAccess,
    reader: Engine,
    column: str,
    query: Query,
    where: Expr | None,
    probes: Probes,
) -> tuple[Nearest, frozenset[int]] | None:
    """The nearest rows as far as an index knows them, with their distances, and the units whose rows it has. None
    without an index, or if it is damaged, since the rows are in the data files."""
    indices = snapshot.offers(VectorIndices)
    index = None if indices is None else indices.vector_index(column, query.metric)
    if index is None:
        return None
    wanted = None if where is None else _satisfying(snapshot, engine, where, index)
    found = Nearest(query.k * probes.refine)
    try:
        for distance, unit, position in index.candidates(query.vector, probes.partitions):
            kept = slice(None) if wanted is None else _kept(wanted, unit, position)
            found.add(distance[kept], unit[kept], position[kept])
    except CorruptTableError:
        return None
    return _compared(access, reader, column, query, found), index.units


def _satisfying(
    snapshot: Snapshot, engine: Engine, where: Expr, index: VectorIndex
) -> Mapping[int, npt.NDArray[np.bool_]]:
    """Which rows of the index's units satisfy the condition, a bit for each; units without such rows have none."""
    plan = snapshot.plan([], where, (UNIT, POSITION), engine.map)
    units = plan.units.filter(pc.is_in(plan.units.column("unit"), pa.array(sorted(index.units), pa.int64())))
    counts = dict(zip(units.column("unit").to_pylist(), units.column("rows").to_pylist(), strict=True))
    found: dict[int, npt.NDArray[np.bool_]] = {}
    work = list(plan.narrowed(units, plan.read).tasks())
    for batch in engine.map(tasks(plan.read.format).read, work, [task.cost for task in work]):
        unit, position = (np.asarray(batch.column(name)) for name in (UNIT, POSITION))
        for one in np.unique(unit).tolist():
            rows = found.setdefault(one, np.zeros(counts[one], np.bool_))
            rows[position[unit == one]] = True
    return found


def _kept(wanted: Mapping[int, npt.NDArray[np.bool_]], unit: _Numbers, position: _Numbers) -> npt.NDArray[np.bool_]:
    kept = np.zeros(len(unit), np.bool_)
    for one in np.unique(unit).tolist():
        if one in wanted:
            mine = unit == one
            kept[mine] = wanted[one][position[mine]]
    return kept


def _compared(access: RandomAccess, reader: Engine, column: str, query: Query, found: Nearest) -> Nearest:
    """The nearest of them by their own vectors, in the order of a scan where they are as far."""
    order = np.lexsort((found.position, found.unit))
    best = Nearest(query.k)
    count = max(1, _ELEMENTS // max(1, len(query.vector)))
    for start in range(0, len(order), count):
        unit, position = (values[order[start : start + count]] for values in (found.unit, found.position))
        vectors = rows_at(access, reader, access.by_place(unit, position), [column], ()).column(0)
        best.add(distances(pa.concat_arrays(vectors.chunks), query.vector, query.metric), unit, position)
    return best
