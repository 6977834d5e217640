"""Projections in process: bound expressions over batches, by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from boathouse.arrow.schema import to_arrow_field
from boathouse.compute.evaluate import evaluate, mask
from boathouse.expr.tree import Expr
from boathouse.types import Field
from boathouse.types.data_types import children

Named = tuple[str, Expr]


@dataclass(frozen=True)
class Projection:
    """The columns of the rows for which `keep` is true; all may name what `let` adds to a row, one by one."""

    rows: pa.Schema
    let: Sequence[Named]
    keep: Expr | None
    columns: Sequence[Named]

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns, with the marks of types that Arrow lacks; nested ones in the layout of their arrays."""
        empty = self._extended(pa.RecordBatch.from_pylist([], self.rows))
        return pa.schema([_declared(name, e, empty) for name, e in self.columns])

    def of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The columns of one batch."""
        batch = self._extended(batch)
        if self.keep is not None:
            batch = batch.filter(mask(self.keep, batch))
        arrays = [evaluate(e, batch) for _, e in self.columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _extended(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        for name, e in self.let:
            batch = batch.append_column(name, evaluate(e, batch))
        return batch


def _declared(name: str, e: Expr, empty: pa.RecordBatch) -> pa.Field:
    assert e.type is not None
    field = to_arrow_field(Field(name, e.type))
    return field.with_type(evaluate(e, empty).type) if children(e.type) else field
