"""One planning pass for writes: units that may match a predicate, and which of them match it entirely."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from boathouse.compute.prune import Pruner
from boathouse.expr.tree import Expr, columns


def classified(files: Iterable[pa.RecordBatch], schema: pa.Schema, where: Expr) -> tuple[pa.Table, pa.ChunkedArray]:
    """FILES of `schema`, which has no statistics, and for each unit whether all of its rows certainly match.

    `files` are FILES with the statistics of `expr.tree.columns(where)`.
    """
    pruner = Pruner(where, columns(where))
    at = schema.get_field_index("stats")
    empty = schema.field(at)
    batches, certain = [], []
    for batch in files:
        certain.append(pruner.must_match(batch.column("stats"), batch.column("rows")))
        batches.append(batch.set_column(at, empty, pa.array([{}] * batch.num_rows, empty.type)))
    return pa.Table.from_batches(batches, schema), pa.chunked_array(certain, pa.bool_())
