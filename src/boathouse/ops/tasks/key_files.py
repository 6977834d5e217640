"""Files of the keys of deleted rows: each key once, by one task that sees all of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from boathouse.arrow.keys import KeyIndex
from boathouse.errors import ConstraintViolationError
from boathouse.ops.tasks.partitioned import GATHERED_BYTES, PartitionedWriter
from boathouse.table.tasks import WriteContext


class KeyFiles(PartitionedWriter):
    """Keys are held until all are there: of two rows with equal ones neither replaces the other."""

    def __init__(self, context: WriteContext, gathered_bytes: int = GATHERED_BYTES, threads: int = 1) -> None:
        super().__init__(context, gathered_bytes, threads)
        self._keys: list[pa.RecordBatch] = []
        self._where = context.directory

    def write(self, batch: pa.RecordBatch) -> None:
        self._keys.append(batch)

    def finish(self) -> list[pa.Table]:
        """Raises ConstraintViolationError for a key that is there twice."""
        keys = pa.Table.from_batches(self._keys, self.schema).combine_chunks()
        self._check(keys)
        for batch in keys.to_batches():
            super().write(batch)
        return super().finish()

    def _check(self, keys: pa.Table) -> None:
        index = KeyIndex.of(keys.columns)
        if index.size == keys.num_rows:
            return
        often = np.bincount(index.groups, minlength=index.size)
        first = keys.slice(int(np.flatnonzero(often[index.groups] > 1)[0]), 1).to_pylist()[0]
        raise ConstraintViolationError(
            f"{keys.num_rows - index.size:,} rows of the source have the key of another one, such as {first}",
            where=self._where,
            advice="make the source unique on the key columns",
        )
