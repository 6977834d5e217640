"""Compaction: small files of a partition become larger ones, and deleted rows are dropped; no row changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

import pyarrow as pa
import pyarrow.compute as pc

from boathouse.errors import InvalidArgumentError
from boathouse.expr.resolve import bind_predicate
from boathouse.expr.tree import Expr, columns
from boathouse.ops.outcomes import data_files
from boathouse.ops.tasks.routing import partition_keys
from boathouse.ops.tasks.unit_rows import UnitTask, write_units
from boathouse.ops.write import Planned, Start, TaskWork, WritePlan
from boathouse.table.change import Operation, ReadSet
from boathouse.table.edits import AddFiles, Edit, RemoveFiles
from boathouse.table.features import Indices
from boathouse.table.plan import ScanPlan, compact, deletes_of
from boathouse.table.snapshot import Snapshot
from boathouse.table.tasks import ScanTask, WriteContext

NEAR: Final = 0.75
"""A file of at least this part of the target size stays as it is."""
WORTH_PURGING: Final = 0.05
"""A file of which this part is deleted is rewritten, whatever its size."""
COMMIT_BYTES: Final = 256 << 30
"""The bytes to rewrite in one commit: work that a conflict loses."""
_UNKNOWN_SIZE = 1 << 20


@dataclass(frozen=True, slots=True)
class Choice:
    """Which files are rewritten: those below the part `near` of the target size, those of which the part `deleted` is
    deleted, and those with `deletes` row deletes; `every`: all. Of a group that only small files are in, at least
    `least` are."""

    near: float = NEAR
    deleted: float = WORTH_PURGING
    deletes: int | None = None
    least: int = 2
    every: bool = False


@dataclass(frozen=True, slots=True)
class Compact:
    """Rewrites small files, and files with many deleted rows, in groups of up to the target size.

    A group has files of one partition, in the order of the plan; files that are large enough are passed over. `where`
    names partition columns only, and selects files all of whose rows satisfy it; `loosely` it names any, and selects
    those that may have such rows. Every commit rewrites about
    `commit_bytes`, at least one group; `own` are files that earlier commits of this compaction wrote. Deletes that are
    committed after the plan and before the compaction apply to the new files, since these have the sequence number of
    the newest file and row delete that they are made from. With `purge` every file with a deleted row is rewritten, on
    its own, and no other. Raises InvalidArgumentError for another column in `where`.
    """

    where: Expr | None = None
    commit_bytes: int = COMMIT_BYTES
    own: frozenset[str] = frozenset()
    purge: bool = False
    choice: Choice = Choice()
    loosely: bool = False
    operation: ClassVar[Operation] = "replace"

    def plan(self, start: Start) -> WritePlan:
        context = start.context(copies=True, placed=True)
        scan = chosen_units(start, self.where, context, self.own, self.loosely)
        groups = (
            [[i] for i in marked(scan.units)]
            if self.purge
            else _groups(scan, context, self.choice, alike(start.snapshot, scan.units))
        )
        chosen = _first_commit(groups, _sizes(scan.units), self.commit_bytes)
        tasks = [copy_task(scan, group, context) for group in chosen]
        work = TaskWork(write_units, tasks, [t.scan.cost for t in tasks], context)

        def finish(outcomes: Sequence[pa.Table]) -> Planned:
            if not chosen:
                return Planned(None)
            units = pa.concat_tables([t.scan.units for t in tasks])
            added = data_files(outcomes[0])
            edits: list[Edit] = [RemoveFiles(units)]
            if added.num_rows:
                edits.append(AddFiles(added, newest_sequence(units, [t.scan.deletes for t in tasks])))
            reads = ReadSet(units=frozenset(units.column("path").to_pylist()))
            parameters = {} if self.where is None else {"predicate": str(self.where)}
            parameters |= {"applyPurge": "true"} if self.purge else {}
            change = start.change("replace", edits, reads, parameters, data_change=False)
            own = self.own | frozenset(added.column("path").to_pylist())
            then = replace(self, own=own) if len(chosen) < len(groups) else None
            return Planned(change, units.num_rows, then=then, bytes_removed=bytes_of(units))

        dry = Planned(None, files_removed=sum(map(len, groups)))
        return WritePlan((work,), finish, dry)


def chosen_units(
    start: Start,
    where: Expr | None,
    context: WriteContext,
    own: frozenset[str] = frozenset(),
    loosely: bool = False,
) -> ScanPlan:
    """The live rows, with what they carry, of the units all of whose rows satisfy `where`, which names partition
    columns, without the files `own`. Raises InvalidArgumentError for another column, unless those are wanted that may
    have such rows."""
    snapshot = start.snapshot
    bound = None if where is None else bind_predicate(where, snapshot.schema, start.zone)
    if bound is not None and not loosely:
        _check_partition_columns(bound, snapshot)
    plan = snapshot.plan(None, bound, context.hidden, start.engine.map, classify=bound is not None and not loosely)
    units, certain = plan.units, plan.certain
    if bound is not None and certain is not None and not loosely:
        units = units.filter(certain)
    if own:
        units = units.filter(pc.invert(pc.is_in(units.column("path"), pa.array(sorted(own)))))
    return plan.narrowed(units, replace(plan.read, where=None))


def newest_sequence(units: pa.Table, deletes: Sequence[pa.Table]) -> int | None:
    """The newest of the units and of the deletes that were applied to them, which must not be applied again: a key
    column that was dropped is not in the new files."""
    numbers = [table.column("sequence") for table in (units, *deletes)]
    found: int | None = pc.max(pa.chunked_array([c for n in numbers for c in n.chunks], pa.int64())).as_py()
    return found


def _check_partition_columns(where: Expr, snapshot: Snapshot) -> None:
    offered = {f.source[0] for f in snapshot.partitioning.current if f.source}
    for path in columns(where):
        if path[0] not in offered:
            raise InvalidArgumentError(
                f"`{path[0]}` is not a partition column, so it does not select whole files",
                where=str(snapshot.context.location),
                advice=f"name only {', '.join(sorted(offered))}" if offered else "leave where= out",
            )


def alike(snapshot: Snapshot, units: pa.Table) -> Sequence[object]:
    """What units must have in common to be rewritten together: the indices that cover them."""
    indices = snapshot.offers(Indices)
    return [None] * units.num_rows if indices is None else indices.covering(units)


def _groups(scan: ScanPlan, context: WriteContext, choice: Choice, kinds: Sequence[object]) -> list[list[int]]:
    """The units that are rewritten together: of one partition and kind, in their order, up to the target size.

    A group has enough files, or one with many deleted rows.
    """
    open_groups: dict[object, tuple[list[int], float]] = {}
    found: list[list[int]] = []
    units = scan.units
    shares, purge = _shares(units, context), worth_purging(units, choice, scan.deletes)
    for i, key in enumerate(zip(partition_keys(units), kinds, strict=True)):
        if shares[i] >= choice.near and not purge[i]:
            continue
        group, share = open_groups.get(key, ([], 0.0))
        if group and share + shares[i] > 1:
            found.append(group)
            group, share = [], 0.0
        group.append(i)
        open_groups[key] = (group, share + shares[i])
    found += [group for group, _ in open_groups.values()]
    return sorted(g for g in found if len(g) >= choice.least or any(purge[i] for i in g))


def _sizes(units: pa.Table) -> list[int]:
    return [_UNKNOWN_SIZE if size is None else size for size in units.column("size").to_pylist()]


def _shares(units: pa.Table, context: WriteContext) -> list[float]:
    """The part of a full file that each unit's live rows fill, in bytes or in rows."""
    found = []
    counts = zip(_sizes(units), units.column("rows").to_pylist(), units.column("deleted").to_pylist(), strict=True)
    for size, rows, deleted in counts:
        live = rows - (deleted or 0) if rows is not None else 0
        part = live / rows if rows else 1.0
        by_rows = live / context.target_rows if context.target_rows else 0.0
        found.append(max(part * size / context.target_bytes, by_rows))
    return found


def marked(units: pa.Table) -> list[int]:
    """The rows of FILES whose files have rows that are marked as deleted, or may have."""
    any_deletes = pc.greater(pc.fill_null(pc.list_value_length(units.column("deletes")), 0), 0)
    found: list[int] = pc.indices_nonzero(any_deletes).to_pylist()
    return found


def worth_purging(units: pa.Table, choice: Choice = Choice(), deletes: pa.Table | None = None) -> list[bool]:
    """Which of the units have so many deleted rows, or so many row deletes, that they are rewritten, whatever their
    size."""
    counts = zip(units.column("rows").to_pylist(), units.column("deleted").to_pylist(), strict=True)
    found = [choice.every or bool(rows and deleted and deleted / rows >= choice.deleted) for rows, deleted in counts]
    if choice.deletes is None or deletes is None:
        return found
    numbers = zip(deletes.column("delete").to_pylist(), deletes.column("files").to_pylist(), strict=True)
    files = {number: count or 1 for number, count in numbers}
    applied = units.column("deletes").to_pylist()
    return [
        yes or sum(files[n] for n in some or ()) >= choice.deletes for yes, some in zip(found, applied, strict=True)
    ]


def bytes_of(units: pa.Table) -> int:
    """Of the files whose size is known."""
    found: int | None = pc.sum(units.column("size")).as_py()
    return found or 0


def _first_commit(groups: Sequence[list[int]], sizes: Sequence[int], commit_bytes: int) -> list[list[int]]:
    """The first groups of about this size together, at least one."""
    chosen: list[list[int]] = []
    total = 0
    for group in groups:
        total += sum(sizes[i] for i in group)
        if chosen and total > commit_bytes:
            break
        chosen.append(group)
    return chosen


def copy_task(scan: ScanPlan, group: Sequence[int], context: WriteContext) -> UnitTask:
    """Writes the live rows of these units of the plan again, together."""
    units = compact(scan.units.take(pa.array(group, pa.int64())))
    return UnitTask(ScanTask(scan.read, units, deletes_of(units, scan.deletes)), context, gone=(None,) * len(group))
