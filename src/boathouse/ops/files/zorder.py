"""Z-order and clustering: the rows of a partition are rewritten so that files have narrow ranges of some columns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from boathouse.bits.names import steps
from boathouse.errors import ColumnNotFoundError, InvalidArgumentError
from boathouse.expr.tree import Column, Expr, Literal
from boathouse.ops.files.compact import bytes_of, chosen_units, newest_sequence, worth_purging
from boathouse.ops.outcomes import data_files
from boathouse.ops.tasks.order import KEY_BITS, SORTABLE, Path, ZOrder, part_of, z_order
from boathouse.ops.tasks.sample import BYTES, SampleTask, sample_rows
from boathouse.ops.tasks.sink import ACTION, COPY
from boathouse.ops.write import Planned, RowWork, Source, Start, WritePlan
from boathouse.table.change import Operation, ReadSet
from boathouse.table.edits import AddFiles, Edit, RemoveFiles
from boathouse.table.engine import Spread
from boathouse.table.features import PROVIDER, Clustering
from boathouse.table.plan import ScanPlan
from boathouse.table.snapshot import Snapshot
from boathouse.table.tasks import WriteContext
from boathouse.types import STRING, Schema, StructType

SAMPLES: Final = 256
"""Rows of the sample for each new file."""
_MAX_COLUMNS: Final = KEY_BITS // 4
_ROOM: Final = 3
"""The order decides where files begin, by estimates; only a file of this many target sizes is cut again."""


@dataclass(frozen=True, slots=True)
class ClusterRows:
    """Rewrites all files of the chosen partitions in Z-order of `columns`; without any, in that of the columns by which
    the table is clustered, and then only if some file is not. Names may be paths through structs.

    `where` names partition columns only, unless it is `loosely` meant, as in Compact. One commit; no row changes, and
    deleted rows are dropped. Raises InvalidArgumentError for columns that cannot be sorted or partition the table,
    ColumnNotFoundError.
    """

    columns: tuple[str, ...] = ()
    where: Expr | None = None
    loosely: bool = False
    operation: ClassVar[Operation] = "replace"

    def plan(self, start: Start) -> WritePlan:
        context = start.context(copies=True)
        columns = self._paths(start.snapshot)
        scan = self._scan(start, context)
        units = scan.units
        dry = Planned(None, files_removed=units.num_rows)
        if not units.num_rows or start.options.dry_run:
            return WritePlan((), lambda _: Planned(None), dry)
        order = _order(start, scan, columns, context)
        names = [(f.name, Column((f.name,))) for f in context.rows]
        action = (ACTION, Literal(COPY, type=STRING))
        rel = start.engine.project(start.engine.scan(scan), [*names, action])
        # Rows that are copied keep the values of identity columns.
        roomy = replace(context, target_bytes=context.target_bytes * _ROOM, identities=(), order=())
        work = RowWork(Source(context.rows, rel), roomy, Spread("order", order), fixed=False)

        def finish(outcomes: Sequence[pa.Table]) -> Planned:
            added = data_files(outcomes[0])
            edits: list[Edit] = [RemoveFiles(units)]
            if added.num_rows:
                sequence = newest_sequence(units, [scan.deletes])
                edits.append(AddFiles(added, sequence, clustered=not self.columns))
            reads = ReadSet(units=frozenset(units.column("path").to_pylist()))
            spelled = json.dumps([".".join(path) for path in columns])
            parameters = {"zorder_by" if self.columns else "cluster_by": spelled}
            if self.where is not None:
                parameters["predicate"] = str(self.where)
            change = start.change("replace", edits, reads, parameters, data_change=False)
            return Planned(change, units.num_rows, bytes_removed=bytes_of(units))

        return WritePlan((work,), finish, dry)

    def _paths(self, snapshot: Snapshot) -> tuple[Path, ...]:
        clustering = snapshot.offers(Clustering)
        where = str(snapshot.context.location)
        if not self.columns:
            if clustering is None or not clustering.columns:
                raise InvalidArgumentError("the table has no clustering columns", where=where, advice="pass zorder_by=")
            return clustering.columns
        if clustering is not None:
            raise InvalidArgumentError(
                "the table is clustered by columns of its own", where=where, advice="leave zorder_by out"
            )
        found = tuple(_resolved(name, snapshot) for name in self.columns)
        if len(found) > _MAX_COLUMNS:
            raise InvalidArgumentError(f"zorder_by has more than {_MAX_COLUMNS} columns", advice="pass fewer")
        if twice := [p for i, p in enumerate(found) if p in found[:i]]:
            raise InvalidArgumentError(f"zorder_by names `{'.'.join(twice[0])}` twice", advice="name it once")
        return found

    def _scan(self, start: Start, context: WriteContext) -> ScanPlan:
        """The live rows of the units to rewrite. Files that another implementation clustered are left to it."""
        scan = chosen_units(start, self.where, context, loosely=self.loosely)
        clustering = start.snapshot.offers(Clustering)
        if self.columns or clustering is None:
            return scan
        by = clustering.provider(scan.units)
        ours = pc.fill_null(pc.equal(by, PROVIDER), False)
        units = scan.units.filter(pc.or_(ours, pc.is_null(by)))
        if not by.null_count and not any(worth_purging(units)):
            units = units.slice(0, 0)
        return scan.narrowed(units, scan.read)


def _resolved(name: str, snapshot: Snapshot) -> Path:
    """The path of a column that can be sorted by."""
    schema, where = snapshot.schema, str(snapshot.context.location)
    head, *rest = (name,) if name in schema.names else steps(name)
    field = schema.field(head)
    path = [field.name]
    for step in rest:
        members = field.type.fields if isinstance(field.type, StructType) else ()
        try:
            field = Schema(members).field(step)
        except ColumnNotFoundError:
            raise ColumnNotFoundError(f"there is no column `{name}`", where=where) from None
        path.append(field.name)
    if not isinstance(field.type, SORTABLE):
        raise InvalidArgumentError(f"`{name}` is {field.type}, which has no order", where=where)
    if any(f.source == tuple(path) and f.transform.name == "identity" for f in snapshot.partitioning.current):
        raise InvalidArgumentError(
            f"`{name}` is a partition column: it is the same in all rows of a file", where=where, advice="leave it out"
        )
    return tuple(path)


def _order(start: Start, scan: ScanPlan, columns: tuple[Path, ...], context: WriteContext) -> ZOrder:
    """From a sample of the rows, which alone comes to this process."""
    schema = part_of(context.schema, columns, context.spec)
    read = start.snapshot.plan(schema.names, None, (), start.engine.map).read
    tasks = [
        SampleTask(task, max(1, context.target_bytes // SAMPLES)) for task in scan.narrowed(scan.units, read).tasks()
    ]
    batches = list(start.engine.map(sample_rows, tasks, [t.scan.cost for t in tasks]))
    sample = pa.Table.from_batches(batches, read.schema.append(pa.field(BYTES, pa.float64()))).combine_chunks()
    rows = sample.select(list(schema.names)).to_batches()
    batch = rows[0] if rows else pa.RecordBatch.from_pylist([], read.schema)
    sizes = sample.column(BYTES).to_numpy().astype(np.float64)
    return z_order(batch, sizes, schema, context.spec, columns, context.target_bytes)
