"""Runs a write: plans it, commits it, and plans it again if a concurrent commit requires that."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa

from boathouse.bits import entropy
from boathouse.errors import BoathouseError, CommitConflictError, CommitUnknownError
from boathouse.ops.handle import Handle, WriteOptions
from boathouse.ops.outcomes import data_files, discard, total
from boathouse.ops.result import FIGURES, WriteResult
from boathouse.table.change import Change, CommitOutcome, Committed, Conflicted
from boathouse.table.commit import commit
from boathouse.table.format import Snapshot
from boathouse.table.location import Version
from boathouse.table.tasks import WriteContext

log = logging.getLogger("boathouse")

MAX_PLANS = 10


@dataclass(frozen=True, slots=True)
class Planned:
    """A change with the files written for it: `outcomes` to remove if the commit is certainly lost, and metrics to
    report.

    `change` None means that there is nothing to commit. `recount` gives the removed files and rows if the change
    follows another snapshot than the planned one.
    """

    change: Change | None
    outcomes: pa.Table | None = None
    context: WriteContext | None = None
    files_removed: int = 0
    rows_removed: int = 0
    recount: Callable[[Snapshot], tuple[int, int]] | None = None

    def discard(self) -> None:
        """Removes the data files; one that cannot be removed is a harmless orphan."""
        if self.outcomes is not None and self.context is not None:
            discard(self.outcomes, self.context)


PlanFunction = Callable[[Snapshot, Planned | None], Planned | None]


def run(handle: Handle, operation: str, options: WriteOptions, plan: PlanFunction) -> tuple[Snapshot, WriteResult]:
    """Commits the result of `plan` for the snapshot, and plans again from the head if a concurrent commit requires
    that.

    `plan(snapshot, previous)` gets the plan of the lost attempt, whose files still exist: it reuses or discards them,
    and returns None if the user has to decide. Returns the snapshot after the write. Raises CommitConflictError,
    CommitUnknownError.
    """
    started = entropy.current().monotonic()
    handle = newest(handle)
    handle.check_writable()
    skipped = _already_applied(handle, options)
    if skipped is not None:
        return handle.snapshot, WriteResult(operation, None, skipped=skipped)
    snapshot, lost = handle.snapshot, None
    for turn in range(MAX_PLANS):
        planned = _plan(plan, snapshot, lost)
        if planned is None:
            break
        if planned.change is None or options.dry_run:
            planned.discard()
            return snapshot, replace(_result(operation, planned, None), dry_run=options.dry_run, write_id=None)
        outcome = _commit(handle, planned, replace(planned.change, metrics=_metrics(operation, planned)))
        if isinstance(outcome, Committed):
            result = _result(operation, _recounted(planned, outcome), outcome.version)
            seconds = entropy.current().monotonic() - started
            return _after(handle, outcome), replace(result, seconds=seconds, retries=turn + outcome.turns - 1)
        if not isinstance(outcome, Conflicted):
            raise unknown_error(planned.change)
        lost, error = planned, conflict_error(handle, planned.change, outcome)
        if outcome.conflicts[0].kind == "table-replaced":
            break
        snapshot = _head(handle, planned)
        skipped = _already_applied(replace(handle, snapshot=snapshot), options)
        if skipped is not None:
            planned.discard()
            return snapshot, WriteResult(operation, None, skipped=skipped)
        if not outcome.replan:
            break
    assert lost is not None  # a first plan is never None
    lost.discard()
    raise error


def _plan(plan: PlanFunction, snapshot: Snapshot, lost: Planned | None) -> Planned | None:
    """The result of `plan` for the snapshot; if it fails, the files of the lost attempt are removed."""
    try:
        return plan(snapshot, lost)
    except BaseException:
        if lost is not None:
            lost.discard()
        raise


def _head(handle: Handle, lost: Planned) -> Snapshot:
    """The newest snapshot after a lost attempt; if it cannot be read, the files of that attempt are removed."""
    try:
        return _reload(handle)
    except BoathouseError:
        lost.discard()
        raise


def _after(handle: Handle, outcome: Committed) -> Snapshot:
    """The snapshot after a write. The write is committed: a failure now must not make it look as if it were not."""
    if outcome.after is not None:
        return outcome.after
    try:
        return _reload(handle)
    except Exception as error:
        log.warning("%s was written, but could not be read again: %s", handle.location, error)
        return handle.snapshot


def _recounted(planned: Planned, outcome: Committed) -> Planned:
    """The metrics for the snapshot that the commit followed, if that is not the planned one."""
    onto, change = outcome.onto, planned.change
    if planned.recount is None or change is None or change.planned is None or onto is None:
        return planned
    if onto.token == change.planned.token:
        return planned
    try:
        files, rows = planned.recount(onto)
    except Exception:  # the write is committed, even if its metrics cannot be computed
        return planned
    return replace(planned, files_removed=files, rows_removed=rows)


def _reload(handle: Handle) -> Snapshot:
    return handle.format.newest(handle.snapshot, handle.stores)


def _commit(handle: Handle, planned: Planned, change: Change) -> CommitOutcome:
    """Commits; if the loop raises, nothing was committed, and the files are removed. After an interrupt they stay: the
    commit may have succeeded."""
    try:
        return commit(handle.format, change, handle.stores)
    except BoathouseError:
        planned.discard()
        raise


def newest(handle: Handle) -> Handle:
    """The handle at the newest version, which every write starts from. Raises CommitConflictError if the table
    was dropped and recreated since the handle was opened."""
    if handle.pinned:
        return handle
    snapshot = _reload(handle)
    if snapshot.identity != handle.snapshot.identity:
        raise CommitConflictError(
            "the table was dropped and recreated since it was opened",
            where=str(handle.location),
            advice="open it again to write to the new one",
        )
    return replace(handle, snapshot=snapshot)


def conflict_error(handle: Handle, change: Change, outcome: Conflicted) -> CommitConflictError:
    first = outcome.conflicts[0]
    paths = f" ({', '.join(first.paths[:3])}{', ...' if len(first.paths) > 3 else ''})" if first.paths else ""
    return CommitConflictError(
        f"{change.operation} lost to version {first.version}: {first.kind}: {first.message}{paths}",
        where=str(handle.location),
        advice="refresh() the table and run the write again if it still makes sense",
    )


def unknown_error(change: Change) -> CommitUnknownError:
    return CommitUnknownError(
        f"{change.operation} may or may not have been committed: the store did not respond; nothing was cleaned up",
        where=str(change.location),
        advice=f"call find_write({change.write_id!r}) once the store responds again, before writing the rows again",
    )


def _already_applied(handle: Handle, options: WriteOptions) -> str | None:
    if options.txn is None:
        return None
    app, version = options.txn
    found = handle.format.app_version(handle.snapshot, handle.stores, app)
    if found is None or found < version:
        return None
    return f"application {app!r} already wrote version {found}"


def _result(operation: str, planned: Planned, version: Version | None) -> WriteResult:
    change, outcomes = planned.change, planned.outcomes
    added = None if outcomes is None else data_files(outcomes)
    return WriteResult(
        operation=operation,
        version=version,
        files_added=0 if added is None else added.num_rows,
        files_removed=planned.files_removed,
        rows_added=total(outcomes, "inserted"),
        rows_deleted=total(outcomes, "deleted") + planned.rows_removed,
        rows_copied=total(outcomes, "copied"),
        bytes_added=0 if added is None else total(added, "size"),
        write_id=None if change is None else change.write_id,
    )


def _metrics(operation: str, planned: Planned) -> dict[str, int]:
    """The metrics in the history, by the same names in every format; none for a change of metadata only."""
    result = _result(operation, planned, None)
    found = {name: getattr(result, name) for name in FIGURES}
    return found if planned.outcomes is not None else {}


def new_write_id() -> str:
    """Names one logical write in the table's history, across all its attempts."""
    return str(entropy.current().uuid4())
