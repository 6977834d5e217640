"""Rows in an order, in bounded memory: sorted runs in temporary files, read again part by part."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa

from boathouse import registry
from boathouse.engines.sources import Batches
from boathouse.ops.outcomes import collect_outcomes
from boathouse.ops.tasks.sink import sink_batches
from boathouse.table.engine import RowOrder
from boathouse.table.tasks import WriteContext

RUN_BYTES: Final = 256 << 20
"""Arrow memory that is sorted at once; more goes to temporary files."""
_BATCH_ROWS: Final = 1 << 16
_KEY: Final = "boathouse:key"

Map = Callable[[Callable[[Any], Iterable[pa.RecordBatch]], Sequence[Any]], Iterator[pa.RecordBatch]]


def write_ordered(rel: Batches, order: RowOrder, context: WriteContext, map: Map) -> pa.Table:
    """Writes the rows in the order, the files of `order.starts` in parallel; OUTCOMES."""
    schema = registry.tasks(context.format).outcomes_schema(context)
    firsts = np.searchsorted(order.steps, order.starts) + 1
    edges = [0, *firsts.tolist(), len(order.steps) + 1]
    parts = [range(a, b) for a, b in pairwise(edges)]
    with tempfile.TemporaryDirectory(prefix="boathouse-") as folder:
        runs = _sorted_runs(rel, order, folder)

        def write(part: range) -> Iterator[pa.RecordBatch]:
            rows = (batch for step in part for batch in _step(runs, step))
            return sink_batches(rows, context)

        return collect_outcomes(map(write, parts), schema, context)


@dataclass(frozen=True, slots=True)
class _Run:
    """Rows sorted by key: a batch for each step that has any, in memory or in the file `path`."""

    steps: dict[int, int]
    batches: Sequence[pa.RecordBatch] = ()
    path: str | None = None

    def rows(self, step: int) -> pa.RecordBatch | None:
        at = self.steps.get(step)
        if at is None:
            return None
        if self.path is None:
            return self.batches[at]
        with pa.OSFile(self.path) as file:
            return pa.ipc.open_file(file).get_batch(at)


def _sorted_runs(rel: Batches, order: RowOrder, folder: str) -> list[_Run]:
    runs: list[_Run] = []
    waiting: list[pa.RecordBatch] = []
    held = 0
    for batch in rel.open():
        keys = order.keys(batch.select(list(order.names)))
        keyed = batch.append_column(_KEY, pa.array(keys))
        waiting.append(keyed)
        held += keyed.nbytes
        if held >= RUN_BYTES:
            runs.append(_spilled(_sorted(waiting, order), os.path.join(folder, f"{len(runs)}.arrow")))
            waiting, held = [], 0
    if waiting:
        runs.append(_sorted(waiting, order))
    return runs


def _sorted(batches: Sequence[pa.RecordBatch], order: RowOrder) -> _Run:
    rows = pa.Table.from_batches(batches)
    keys = rows.column(_KEY).to_numpy()
    by_key = np.argsort(keys, kind="stable")
    steps, first = np.unique(np.searchsorted(order.steps, keys[by_key], side="right"), return_index=True)
    ends = [*first[1:].tolist(), len(keys)]
    made = [
        rows.take(pa.array(by_key[a:b])).combine_chunks().to_batches()[0]
        for a, b in zip(first.tolist(), ends, strict=True)
    ]
    return _Run({int(step): i for i, step in enumerate(steps)}, made)


def _spilled(run: _Run, path: str) -> _Run:
    with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, run.batches[0].schema) as writer:
        for batch in run.batches:
            writer.write_batch(batch)
    return _Run(run.steps, path=path)


def _step(runs: Sequence[_Run], step: int) -> Iterator[pa.RecordBatch]:
    """The rows of one step, from every run."""
    found = [rows for run in runs if (rows := run.rows(step)) is not None]
    if not found:
        return
    rows = pa.Table.from_batches(found)
    if len(found) > 1:
        rows = rows.take(pa.array(np.argsort(rows.column(_KEY).to_numpy(), kind="stable")))
    yield from rows.drop_columns([_KEY]).to_batches(_BATCH_ROWS)
