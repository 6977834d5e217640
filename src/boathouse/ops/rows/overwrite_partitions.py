"""Dynamic partition overwrite: the data replaces every row of the partitions that it has rows in, and no other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa

from boathouse.errors import SchemaError, UnsupportedFeatureError
from boathouse.ops.outcomes import data_files
from boathouse.ops.rows.computed import completed
from boathouse.ops.rows.identity import advanced, numbered
from boathouse.ops.rows.overwrite import Overwrite, live_rows
from boathouse.ops.rows.partitions import rows_among, units_among
from boathouse.ops.schema.evolve import evolution
from boathouse.ops.write import Planned, Source, Start, WritePlan, row_work
from boathouse.table.change import Operation, ReadSet
from boathouse.table.edits import AddFiles, Edit, RemoveFiles
from boathouse.table.metadata_columns import POSITION
from boathouse.table.plan import ScanPlan
from boathouse.table.snapshot import Snapshot
from boathouse.types import PartitionField, PartitionSpec

PARAMETERS = {"partitions": "dynamic"}


@dataclass(frozen=True, slots=True)
class OverwritePartitions:
    """Replaces the partitions, as the current spec has them, of which the data has rows; none if it has no rows.

    A table without partitions is replaced as a whole, as by Overwrite; one of a format that has none is refused if
    `asked`, which is false where a setting of the session is obeyed. Raises SchemaMismatchError, SchemaError,
    UnsupportedFeatureError, CommitConflictError.
    """

    source: Source
    merge_schema: bool = False
    replace_schema: bool = False
    partition_by: tuple[PartitionField, ...] | None = None
    asked: bool = True
    operation: ClassVar[Operation] = "overwrite"

    def plan(self, start: Start) -> WritePlan:
        snapshot = start.snapshot
        if self.asked:
            check_partitions(snapshot.format, snapshot.capabilities.partitions)
        if not snapshot.partitioning.current.fields:
            return Overwrite(self.source, self.merge_schema, self.replace_schema, self.partition_by).plan(start)
        if self.replace_schema:
            raise SchemaError(
                "a new schema replaces the whole table, and overwrites replace single partitions in this session "
                "(spark.sql.sources.partitionOverwriteMode=dynamic)",
                where=str(snapshot.context),
                advice="pass partitions='static', or the option partitionOverwriteMode=static, too",
            )
        added = evolution(snapshot.schema, self.source.schema) if self.merge_schema else ()
        context = numbered(start.context(added), self.source)
        rows = row_work(completed(start.engine, self.source, context), context)

        def finish(outcomes: Sequence[pa.Table]) -> Planned:
            files = data_files(outcomes[0])
            edits: tuple[Edit, ...] = added
            if not files.num_rows:
                if not edits and start.options.txn is None:
                    return Planned(None)
                return Planned(start.change("overwrite", (*edits, AddFiles(files)), parameters=PARAMETERS))
            gone, reads = _replaced(start, files, context.spec)
            if gone.units.num_rows:
                edits = (*edits, RemoveFiles(gone.units))
            edits = (*edits, AddFiles(files), *advanced(context, outcomes))
            change = start.change("overwrite", edits, reads, PARAMETERS)
            return Planned(change, gone.units.num_rows, live_rows(start.engine, gone))

        return WritePlan((rows,), finish, dry=Planned(None))


def check_partitions(format: str, partitions: bool) -> None:
    """Raises UnsupportedFeatureError for a format without partitions."""
    if not partitions:
        raise UnsupportedFeatureError(
            f"{format} tables have no partitions, which an overwrite with partitions='dynamic' replaces",
            advice="leave partitions= out, or say with where= which rows are replaced",
        )


def _replaced(start: Start, files: pa.Table, spec: PartitionSpec) -> tuple[ScanPlan, ReadSet]:
    """The units in the partitions of the new files, and what was read to find them."""
    snapshot: Snapshot = start.snapshot
    where = rows_among(files, spec, snapshot.schema)
    plan = snapshot.plan([], where, (POSITION,), start.engine.map)
    units = units_among(plan.units, files, spec)
    gone = plan.narrowed(units, replace(plan.read, where=None))
    return gone, ReadSet(predicates=(where,), units=frozenset(units.column("path").to_pylist()))
