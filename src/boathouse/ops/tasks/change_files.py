"""Change files: the rows that an operation inserted, updated and deleted, for readers of the table's changes."""

from __future__ import annotations

import pyarrow as pa

from boathouse.ops.tasks.partitioned import PartitionedWriter
from boathouse.table.metadata_columns import CHANGE_TYPE
from boathouse.table.tasks import WriteContext

INSERTED, BEFORE_UPDATE, AFTER_UPDATE, DELETED = "insert", "update_preimage", "update_postimage", "delete"
"""The values of `_change_type`."""


class ChangeFiles:
    """The change files of one task; nothing is written if the context asks for none."""

    def __init__(self, context: WriteContext) -> None:
        self.wanted = context.changes is not None
        self._writer = None if context.changes is None else PartitionedWriter(context.changes)

    def write(self, rows: pa.RecordBatch, kind: str) -> None:
        """Rows with exactly the columns of the table."""
        if self._writer is not None and rows.num_rows:
            kinds = pa.repeat(pa.scalar(kind, pa.string()), rows.num_rows)
            self._writer.write(rows.append_column(CHANGE_TYPE, kinds))

    def finish(self, schema: pa.Schema) -> list[pa.Table]:
        """Closes the files; their OUTCOMES rows, with the given schema."""
        return [] if self._writer is None else [_fitted(t, schema) for t in self._writer.finish()]

    def closed(self, schema: pa.Schema) -> list[pa.Table]:
        """The OUTCOMES rows of the files that were finished before a failure."""
        return [] if self._writer is None else [_fitted(t, schema) for t in self._writer.closed()]

    def abort(self, finished: bool = False) -> None:
        """As PartitionedWriter.abort."""
        if self._writer is not None:
            self._writer.abort(finished)


def _fitted(outcomes: pa.Table, schema: pa.Schema) -> pa.Table:
    """Without statistics, which nobody reads: those of the file have one column more than the table."""
    none = pa.nulls(outcomes.num_rows, schema.field("stats").type)
    columns = [none if f.name == "stats" else outcomes.column(f.name) for f in schema]
    return pa.Table.from_arrays(columns, schema=schema)
