"""What is left of a condition once files are chosen: without the parts that partition values decide for every row (the
strict projection of the specification)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.expr.tree import Expr, all_of, conjuncts
from boathouse.iceberg.manifests.batches import combinations
from boathouse.iceberg.manifests.pruning import PartitionPruner
from boathouse.iceberg.manifests.values import physical_list
from boathouse.types import Partitioning, PartitionSpec, Schema


def residual(where: Expr, units: pa.Table, partitioning: Partitioning, schema: Schema) -> Expr | None:
    """The parts of `where` that rows of these units may not satisfy; None if they all do.

    Bounds decide nothing here: a wrong one would give rows that are asked for by nobody, while the partition of a file
    is what its writer declares of every row.
    """
    if not units.num_rows:
        return where
    present = set(units.column("spec").unique().to_pylist())
    specs = [s for s in partitioning.specs if s.id in present]
    left = [part for part in conjuncts(where) if not all(_certain(part, s, units, schema) for s in specs)]
    return all_of(left) if left else None


def _certain(part: Expr, spec: PartitionSpec, units: pa.Table, schema: Schema) -> bool:
    """Whether all rows of the units of this spec satisfy the condition, as their partition values say."""
    pruner = PartitionPruner(part, spec, schema)
    if not pruner.layers:
        return False
    struct = units.column("partition").filter(pc.equal(units.column("spec"), spec.id)).combine_chunks()
    types = {f.id: f.type for f in spec}
    columns = {id: struct.field(str(id)) for id in pruner.field_ids}
    encoded = [c.dictionary_encode() for c in columns.values()]
    codes = [np.asarray(pc.fill_null(e.indices, -1)) + 1 for e in encoded]
    first = pa.array(combinations([c.astype(np.int64) for c in codes])[0])
    values = {id: physical_list(c.take(first), types[id]) for id, c in columns.items()}
    return all(pruner.certain([{id: v[i] for id, v in values.items()} for i in range(len(first))]))
