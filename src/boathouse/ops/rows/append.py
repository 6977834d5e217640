"""Append: every row of the data becomes a row of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from boathouse.ops.outcomes import data_files
from boathouse.ops.rows.computed import completed
from boathouse.ops.rows.identity import advanced, numbered
from boathouse.ops.schema.evolve import evolution
from boathouse.ops.write import Planned, Source, Start, WritePlan, row_work
from boathouse.table.change import Operation
from boathouse.table.edits import AddFiles


@dataclass(frozen=True, slots=True)
class Append:
    """Columns are matched by name, missing nullable ones are null.

    `merge_schema` adds the columns that the table lacks, and widens types, in the same commit. Raises
    SchemaMismatchError before anything is written if the data cannot fit.
    """

    source: Source
    merge_schema: bool = False
    operation: ClassVar[Operation] = "append"

    def plan(self, start: Start) -> WritePlan:
        edits = evolution(start.snapshot.schema, self.source.schema) if self.merge_schema else ()
        context = numbered(start.context(edits), self.source)
        rows = row_work(completed(start.engine, self.source, context), context)

        def finish(outcomes: Sequence[pa.Table]) -> Planned:
            return Planned(
                start.change("append", (*edits, AddFiles(data_files(outcomes[0])), *advanced(context, outcomes)))
            )

        return WritePlan((rows,), finish, dry=Planned(None))
