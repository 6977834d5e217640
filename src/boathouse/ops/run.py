"""Runs a write: plans it, does its work, commits it, and plans it again if a concurrent commit requires that."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from itertools import count

import pyarrow as pa

from boathouse.bits import system
from boathouse.errors import BoathouseError, CommitConflictError, CommitUnknownError
from boathouse.ops.handle import Handle
from boathouse.ops.options import WriteOptions
from boathouse.ops.result import WriteResult, joined, metrics_of, result_of
from boathouse.ops.write import Done, LaterWork, Planned, RowWork, Start, TaskWork, Work, Write
from boathouse.table.change import Change
from boathouse.table.commit import CommitOutcome, Committed, Conflicted, commit, exhausted
from boathouse.table.engine import Engine
from boathouse.table.features import CommitRetries
from boathouse.table.snapshot import Snapshot

log = logging.getLogger("boathouse")

FRESH_SECONDS = 5.0
"""A snapshot that was loaded no longer ago counts as the newest one in the first attempt to commit."""
MIN_PLANS = 10
PLANNING_SECONDS = 5 * 60
"""A write that loses is planned again for so long, and this number of times even if that takes longer: one that is
small succeeds between many others, and one that is large is not done again and again."""


def run(
    handle: Handle, engine: Engine, write: Write, options: WriteOptions = WriteOptions(), written: Done | None = None
) -> tuple[Snapshot, WriteResult]:
    """Commits the write on the newest snapshot; plans it again from the head if a concurrent commit requires that.

    `written` are the files of its rows, if the host has written them. Returns the snapshot after the write. Raises
    CommitConflictError, CommitUnknownError, and what planning and writing raise; then no file is left behind, unless
    the commit may have succeeded. An operation of several commits raises after those that succeeded, and names them.
    """
    snapshot, result, then = _one_commit(handle, engine, write, options, written)
    while then is not None:
        try:
            snapshot, more, then = _one_commit(replace(handle, snapshot=snapshot), engine, then, options)
        except BoathouseError as error:
            done = ", ".join(map(str, result.versions))
            error.message = f"{error.message} (after version{'s' if len(result.versions) > 1 else ''} {done})"
            raise
        result = joined(result, more)
    return snapshot, result


def _one_commit(
    handle: Handle, engine: Engine, write: Write, options: WriteOptions, written: Done | None = None
) -> tuple[Snapshot, WriteResult, Write | None]:
    """The snapshot after one commit, its result, and what is left to do in another one."""
    started = system.current().monotonic()
    done = _Work(engine, [] if written is None else [written])
    try:
        handle = newest(handle)
        handle.check_writable()
    except BaseException:
        done.discard()
        raise
    write_id = new_write_id()
    snapshot, loaded = handle.snapshot, handle.loaded or started
    error: CommitConflictError | None = None
    began: float | None = None
    for replans in count():
        if replans and not _planned_again(snapshot, replans, started, began):
            break
        skipped = already_applied(snapshot, options)
        if skipped is not None:
            done.discard()
            return snapshot, WriteResult(write.operation, None, skipped=skipped), None
        planned = _plan(write, Start.of(snapshot, engine, options, write_id, handle.zone), done)
        if planned is None:
            error = error or _layout_changed(handle)
            break
        if planned.change is None or options.dry_run:
            done.discard()
            result = result_of(write.operation, planned, done.outcomes, None)
            return snapshot, replace(result, dry_run=options.dry_run, write_id=None), None
        metrics = {**planned.change.metrics, **metrics_of(write.operation, planned, done.outcomes)}
        began = system.current().monotonic() if began is None else began
        change = replace(planned.change, metrics=metrics, map=engine.map, replans=replans, began=began)
        outcome = _commit(snapshot, change, done, system.current().monotonic() - loaded < FRESH_SECONDS)
        if isinstance(outcome, Committed):
            result = result_of(write.operation, _recounted(planned, outcome), done.outcomes, outcome.commit)
            seconds = system.current().monotonic() - started
            result = replace(result, seconds=seconds, retries=replans + outcome.attempts - 1)
            return _after(handle, outcome), result, planned.then
        if not isinstance(outcome, Conflicted):
            raise unknown_error(change)
        error = conflict_error(change, outcome)
        if outcome.conflicts[0].kind == "table-replaced":
            break
        snapshot, loaded = _head(snapshot, done), system.current().monotonic()
        if not outcome.replan:
            skipped = already_applied(snapshot, options)
            if skipped is None:
                break
            done.discard()
            return snapshot, WriteResult(write.operation, None, skipped=skipped), None
    done.discard()
    assert error is not None  # a plan either ends the loop or loses
    raise error


def _planned_again(snapshot: Snapshot, replans: int, started: float, began: float | None) -> bool:
    """Whether a write that lost is planned again, and so often."""
    asked, now = snapshot.offers(CommitRetries), system.current().monotonic()
    if asked is not None and exhausted(asked, replans, now if began is None else began):
        return False
    return (asked is not None and asked.retries is not None) or replans < MIN_PLANS or now - started <= PLANNING_SECONDS


class _Work:
    """The files written so far; those that a lost attempt leaves are used again, or removed."""

    def __init__(self, engine: Engine, done: Sequence[Done]) -> None:
        self._engine = engine
        self._done = list(done)

    @property
    def outcomes(self) -> list[pa.Table]:
        return [d.outcomes for d in self._done]

    def perform(self, work: Sequence[Work | LaterWork]) -> bool:
        """Does the work; false if rows would have to be written again that can be read only once."""
        before, self._done = self._done, []
        for planned in work:
            item = planned if isinstance(planned, RowWork | TaskWork) else planned(self.outcomes)
            again = next((d for d in before if d.serves(item)), None)
            if again is not None:
                before.remove(again)
                self._done.append(again)
                continue
            if item.fixed and any(d.fixed for d in before) and (item.source.once or item.source.rel is None):
                self._done += before
                return False
            _discard(before)
            before = []
            self._done.append(Done(item.context, item.perform(self._engine), item.fixed))
        _discard(before)
        return True

    def discard(self) -> None:
        _discard(self._done)


def _discard(done: Sequence[Done]) -> None:
    for d in done:
        d.discard()


def _plan(write: Write, start: Start, done: _Work) -> Planned | None:
    """The change; None if the user has to decide. If planning or writing fails, no file is left behind."""
    try:
        plan = write.plan(start)
        if start.options.dry_run and plan.dry is not None:
            return plan.dry
        if not done.perform(plan.work):
            return None
        return plan.finish(done.outcomes)
    except BaseException:
        done.discard()
        raise


def _head(snapshot: Snapshot, done: _Work) -> Snapshot:
    """The newest snapshot after a lost attempt; if it cannot be read, the files of that attempt are removed."""
    try:
        return snapshot.newest()
    except BoathouseError:
        done.discard()
        raise


def _after(handle: Handle, outcome: Committed) -> Snapshot:
    """The snapshot after a write. The write is committed: a failure now must not make it look as if it were not."""
    if outcome.after is not None:
        return outcome.after
    try:
        return handle.snapshot.newest()
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


def _commit(snapshot: Snapshot, change: Change, done: _Work, fresh: bool) -> CommitOutcome:
    """Commits; if the loop raises, nothing was committed, and the files are removed. After an interrupt they stay: the
    commit may have succeeded."""
    try:
        return commit(snapshot, change, fresh)
    except BoathouseError:
        done.discard()
        raise


def newest(handle: Handle) -> Handle:
    """The handle at the newest version, which every write starts from: its own, if the same call has just loaded it.
    Raises CommitConflictError if the table was dropped and recreated since the handle was opened."""
    now = system.current().monotonic()
    if handle.pinned or (handle.loaded is not None and now - handle.loaded < FRESH_SECONDS):
        return handle
    snapshot = handle.snapshot.newest()
    if snapshot.identity != handle.snapshot.identity:
        raise CommitConflictError(
            "the table was dropped and recreated since it was opened",
            where=str(handle.location),
            advice="open it again to write to the new one",
        )
    return replace(handle, snapshot=snapshot, loaded=now)


def _layout_changed(handle: Handle) -> CommitConflictError:
    return CommitConflictError(
        "the table changed while the rows were written, and they would have to be written again",
        where=str(handle.location),
        advice="run the write again",
    )


def conflict_error(change: Change, outcome: Conflicted) -> CommitConflictError:
    """What a lost change says."""
    first = outcome.conflicts[0]
    paths = f" ({', '.join(first.paths[:3])}{', ...' if len(first.paths) > 3 else ''})" if first.paths else ""
    return CommitConflictError(
        f"{change.operation} lost to version {first.version}: {first.kind}: {first.message}{paths}",
        where=str(change.location),
        advice="refresh() the table and run the write again if it still makes sense",
    )


def unknown_error(change: Change) -> CommitUnknownError:
    """What an undecided change says."""
    return CommitUnknownError(
        f"{change.operation} may or may not have been committed: the store did not respond, or the table could not be "
        "read after it; nothing was cleaned up",
        where=str(change.location),
        advice=f"call find_write({change.write_id!r}) once the store responds again, before writing the rows again",
    )


def already_applied(snapshot: Snapshot, options: WriteOptions) -> str | None:
    """Why the write is skipped: its application transaction has been committed before; else None."""
    if options.txn is None:
        return None
    app, version = options.txn
    found = snapshot.history.app_version(app)
    if found is None or found < version:
        return None
    return f"application {app!r} already wrote version {found}"


def new_write_id() -> str:
    """Names one logical write in the table's history, across all its attempts."""
    return str(system.current().uuid4())
