"""Vacuum: removes the files that no retained version needs."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import pyarrow as pa

from boathouse.bits import system
from boathouse.errors import BoathouseError, InvalidArgumentError
from boathouse.ops.files.orphans import Garbage, listed, recorded
from boathouse.ops.files.remove import remove
from boathouse.ops.handle import Handle
from boathouse.ops.options import WriteOptions
from boathouse.ops.result import VacuumResult
from boathouse.ops.run import newest, run
from boathouse.ops.write import Planned, Start, WritePlan
from boathouse.table.change import Operation
from boathouse.table.engine import Engine
from boathouse.table.features import Retention, required
from boathouse.table.location import Version
from boathouse.table.snapshot import Snapshot

log = logging.getLogger("boathouse")

Mode = Literal["full", "lite"]
_HOUR_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True)
class Vacuum:
    """Removes files that were removed from the table longer ago than `retention_ms` (None: the table's own), and, in
    mode `full`, files in its folder that are older and that nothing refers to.

    `full` lists the folder; `lite` takes what the metadata records as removed. Files that were modified later stay: a
    writer may be about to commit them. A retention below the table's is an error unless `enforce` is false.
    """

    retention_ms: int | None = None
    mode: Mode = "full"
    enforce: bool = True

    def checked(self, own_ms: int, where: str) -> int:
        """The retention. Raises InvalidArgumentError if it is too short."""
        asked = own_ms if self.retention_ms is None else self.retention_ms
        if self.enforce and asked < own_ms:
            raise InvalidArgumentError(
                f"a retention of {asked / _HOUR_MS:g} hours is less than the table's {own_ms / _HOUR_MS:g}: readers of "
                "older versions, and writers that have not committed yet, would lose files",
                where=where,
                advice="leave retention= out, or pass enforce_retention_duration=False if there are none",
            )
        return asked


def vacuum(
    handle: Handle, engine: Engine, asked: Vacuum, options: WriteOptions = WriteOptions()
) -> tuple[Snapshot, VacuumResult]:
    """Removes the files, and records in the history that it starts and what it did. A file that cannot be removed does
    not stop it. Returns the snapshot after it.

    Raises InvalidArgumentError, UnsupportedFeatureError, VersionNotFoundError (`lite` on a cleaned history), and what
    opening and writing the table raise.
    """
    started = system.current().monotonic()
    handle = newest(handle)
    handle.check_writable()
    snapshot = handle.snapshot
    retention = required(snapshot, Retention, "vacuum")
    ms = asked.checked(retention.ms, str(handle.location))
    before = system.current().now_ms() - ms
    if asked.mode == "full":
        garbage = listed(snapshot, retention.searched, before, retention.kept(before))
    else:
        garbage = recorded(snapshot, retention, before)
    shown = VacuumResult(0, 0, (), (), ms / _HOUR_MS, asked.mode, options.dry_run)
    if options.dry_run:
        return snapshot, _counted(shown, garbage, {}, started)
    snapshot, first = _note(handle, engine, options, *_about_to(asked, retention, garbage))
    retention = required(snapshot, Retention, "vacuum")
    since = snapshot.commits.winners(handle.snapshot)
    if since is None or len(since) > 1:  # another commit came before ours: it may have restored files
        garbage = garbage.without(retention.kept(before))
    failed = _remove(handle, engine, garbage)
    result = _counted(shown, garbage, failed, started)
    try:
        if not failed:
            retention.vacuumed(before)
        done = {"files": result.files_removed, "folders": garbage.folders}
        status = {"status": "failed" if failed else "completed"}
        snapshot, last = _note(replace(handle, snapshot=snapshot), engine, options, "vacuum-end", status, done)
    except BoathouseError as error:
        log.warning("the files of %s were removed, but that could not be recorded: %s", handle.location, error)
        last = ()
    return snapshot, replace(result, versions=(*first, *last))


def _about_to(
    asked: Vacuum, retention: Retention, garbage: Garbage
) -> tuple[Operation, Mapping[str, str], Mapping[str, int]]:
    given = {} if asked.retention_ms is None else {"retention_ms": str(asked.retention_ms)}
    enforced = "true" if asked.enforce else "false"
    parameters = {"table_retention_ms": str(retention.ms), "retention_enforced": enforced, **given}
    return "vacuum-start", parameters, {"files": len(garbage.sizes), "bytes": sum(garbage.sizes.values())}


def _remove(handle: Handle, engine: Engine, garbage: Garbage) -> Mapping[str, str]:
    """The files that could not be removed, with the reason."""
    root = handle.location.uri
    failed = remove(handle.context.stores, engine, [f"{root}/{path}" for path in garbage.sizes])
    return {uri[len(root) + 1 :]: error for uri, error in failed.items()}


def _counted(shown: VacuumResult, garbage: Garbage, failed: Mapping[str, str], started: float) -> VacuumResult:
    sizes = {path: size for path, size in garbage.sizes.items() if path not in failed}
    return replace(
        shown,
        files_removed=len(sizes),
        bytes_removed=sum(sizes.values()),
        paths=tuple(sizes),
        failed=tuple(failed.items()),
        seconds=system.current().monotonic() - started,
    )


@dataclass(frozen=True, slots=True)
class _Note:
    """A commit that only records what happens."""

    operation: Operation
    parameters: Mapping[str, str]
    metrics: Mapping[str, int]

    def plan(self, start: Start) -> WritePlan:
        def finish(outcomes: Sequence[pa.Table]) -> Planned:
            change = start.change(self.operation, (), parameters=self.parameters, data_change=False)
            return Planned(replace(change, metrics=self.metrics))

        return WritePlan((), finish)


def _note(
    handle: Handle,
    engine: Engine,
    options: WriteOptions,
    operation: Operation,
    parameters: Mapping[str, str],
    metrics: Mapping[str, int],
) -> tuple[Snapshot, tuple[Version, ...]]:
    snapshot, result = run(handle, engine, _Note(operation, parameters, metrics), options)
    return snapshot, result.versions
