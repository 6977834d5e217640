"""Values of identity columns, given where the rows are written.

Each writer of an operation has a lane of its own, the ordinals `first`, `first + stride`, ...; so values are unique
without any coordination, and a task that runs again, or twice, gives the same ones to files of which only one attempt's
are committed. The operation learns from OUTCOMES how many ordinals were used, and moves the column's mark behind them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.errors import EvaluationError
from boathouse.table.tasks import IdentityColumn


@dataclass(frozen=True, slots=True)
class Lane:
    """The ordinals of one writer."""

    first: int = 0
    stride: int = 1


class Numbering:
    """Fills identity columns: in every row where the batch lacks them, else in those of the `inserted` rows in which
    they are null.

    `used` is above every ordinal that was given, 0 if none was.
    """

    def __init__(self, columns: Sequence[IdentityColumn], lane: Lane) -> None:
        self._columns = columns
        self._lane = lane
        self._rows = 0
        self.used = 0

    def fill(self, batch: pa.RecordBatch, inserted: pa.Array | None = None) -> pa.RecordBatch:
        """Raises EvaluationError if a value would be beyond a bigint."""
        new = np.ones(batch.num_rows, bool) if inserted is None else inserted.to_numpy(zero_copy_only=False)
        ordinals = self._lane.first + self._lane.stride * (self._rows + np.cumsum(new, dtype=np.int64) - 1)
        self._rows += int(new.sum())
        for column in self._columns:
            batch = self._filled(batch, column, new, ordinals)
        return batch

    def _filled(
        self, batch: pa.RecordBatch, column: IdentityColumn, new: np.ndarray, ordinals: np.ndarray
    ) -> pa.RecordBatch:
        field, at = pa.field(column.name, pa.int64()), batch.schema.get_field_index(column.name)
        if at < 0:
            return batch.append_column(field, pa.array(self._values(column, ordinals), pa.int64()))
        given = batch.column(at)
        lacking = new & given.is_null().to_numpy(zero_copy_only=False)
        values = np.zeros(batch.num_rows, np.int64)
        values[lacking] = self._values(column, ordinals[lacking])
        filled = pc.if_else(pa.array(lacking), pa.array(values, pa.int64()), given.cast(pa.int64()))
        return batch.set_column(at, field, filled)

    def _values(self, column: IdentityColumn, ordinals: np.ndarray) -> np.ndarray:
        if not len(ordinals):
            return ordinals
        last = int(ordinals[-1])
        if column.value(last) is None:
            raise exhausted(column)
        self.used = max(self.used, last + 1)
        return column.next + column.step * ordinals


def exhausted(column: IdentityColumn) -> EvaluationError:
    """What a write says that would need a value beyond bigint."""
    return EvaluationError(
        f"the identity column `{column.name}` has no values left: the next one is beyond bigint",
        advice="write into a new table, with an identity column that starts elsewhere",
    )
