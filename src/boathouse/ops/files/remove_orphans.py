"""Removing orphans: files in a table's folder that no version, branch, tag or document of it names; and vacuum where
versions stay readable until they expire, which is both."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from boathouse import registry
from boathouse.bits import system
from boathouse.errors import InvalidArgumentError, UnsupportedFeatureError
from boathouse.ops.files.expire import expire
from boathouse.ops.files.orphans import listed
from boathouse.ops.files.remove import remove
from boathouse.ops.files.vacuum import Vacuum
from boathouse.ops.handle import Handle
from boathouse.ops.options import WriteOptions
from boathouse.ops.result import VacuumResult
from boathouse.ops.run import newest
from boathouse.table.engine import Engine
from boathouse.table.features import Expiry, ExpiryRule, Orphans, required
from boathouse.table.snapshot import Snapshot

_HOUR_MS: Final = 3_600_000


def remove_orphans(
    handle: Handle, engine: Engine, age_ms: int | None = None, enforce: bool = True, dry_run: bool = False
) -> VacuumResult:
    """Removes files that were last modified longer than `age_ms` (None: the guard) ago and that nothing names; no
    commit is made.

    Raises InvalidArgumentError for an age below the guard unless `enforce` is false, UnsupportedFeatureError for a
    folder that is a table of another format too, and what reading the table raises; then no file was removed.
    """
    started = system.current().monotonic()
    handle = newest(handle)
    handle.check_writable()
    snapshot = handle.snapshot
    orphans = required(snapshot, Orphans, "remove_orphan_files")
    guard_ms = orphans.guard_ms
    age_ms = guard_ms if age_ms is None else age_ms
    if enforce and age_ms < guard_ms:
        raise InvalidArgumentError(
            f"files of the last {guard_ms // _HOUR_MS} hours are kept, and not only of {age_ms / _HOUR_MS:g}: writers "
            "that have not committed yet would lose theirs",
            advice="give an older time, or pass enforce_retention_duration=False if nobody writes",
        )
    _check_alone(snapshot)
    before_ms = system.current().now_ms() - age_ms
    garbage = listed(snapshot, orphans.searched, before_ms, orphans.kept(), orphans.own)
    root = handle.location.uri
    gone = {} if dry_run else remove(handle.context.stores, engine, [f"{root}/{path}" for path in garbage.sizes])
    failed = {uri[len(root) + 1 :]: error for uri, error in gone.items()}
    sizes = {path: size for path, size in garbage.sizes.items() if path not in failed}
    return VacuumResult(
        files_removed=len(sizes),
        bytes_removed=sum(sizes.values()),
        paths=tuple(sizes),
        failed=tuple(failed.items()),
        retention_hours=age_ms / _HOUR_MS,
        dry_run=dry_run,
        seconds=system.current().monotonic() - started,
    )


def _check_alone(snapshot: Snapshot) -> None:
    for name in registry.FORMATS:
        if name != snapshot.format and registry.load(name).detect(snapshot.context):
            raise UnsupportedFeatureError(
                f"the folder is a table of {name} too, whose files would look like orphans",
                where=str(snapshot.context.location),
                advice="expire versions without looking for orphans: vacuum(mode='lite')",
            )


def vacuum_versions(
    handle: Handle, engine: Engine, asked: Vacuum, options: WriteOptions = WriteOptions()
) -> tuple[Snapshot, VacuumResult]:
    """Versions older than the retention expire, as branches and tags allow, and the files that only they needed go; in
    mode `full` orphans too, that are older than the retention and the guard. Returns the snapshot after it.

    Raises what `expire` and `remove_orphans` raise.
    """
    started = system.current().monotonic()
    handle = newest(handle)
    expiry = required(handle.snapshot, Expiry, "vacuum")
    ms = asked.checked(expiry.ms, str(handle.location))
    if asked.mode == "full":
        _check_alone(handle.snapshot)
    rule = ExpiryRule(None if asked.retention_ms is None else system.current().now_ms() - ms)
    snapshot, expired = expire(handle, engine, rule, options)
    orphans = VacuumResult(0, 0)
    if asked.mode == "full":
        guard_ms = required(snapshot, Orphans, "vacuum").guard_ms
        age = max(ms, guard_ms) if asked.enforce else ms
        orphans = remove_orphans(replace(handle, snapshot=snapshot), engine, age, asked.enforce, options.dry_run)
    return snapshot, VacuumResult(
        files_removed=expired.files_removed + orphans.files_removed,
        bytes_removed=expired.bytes_removed + orphans.bytes_removed,
        paths=(*expired.paths, *orphans.paths),
        failed=(*expired.failed, *orphans.failed),
        retention_hours=ms / _HOUR_MS,
        mode=asked.mode,
        dry_run=options.dry_run,
        seconds=system.current().monotonic() - started,
    )
