"""Expiring versions: the table forgets them, then the files go that only they needed."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import pyarrow as pa

from boathouse.bits import system
from boathouse.errors import BoathouseError, InvalidArgumentError
from boathouse.ops.files.remove import remove
from boathouse.ops.handle import Handle
from boathouse.ops.options import WriteOptions
from boathouse.ops.result import ExpiryResult
from boathouse.ops.run import newest, run
from boathouse.ops.write import Planned, Start, WritePlan
from boathouse.storage import Stores, relative
from boathouse.table.change import Operation
from boathouse.table.edits import ExpireVersions
from boathouse.table.engine import Engine
from boathouse.table.features import Expiry, ExpiryRule, HeldFile, VersionFiles, required
from boathouse.table.snapshot import Snapshot

log = logging.getLogger("boathouse")


@dataclass(frozen=True, slots=True)
class _Expire:
    """One commit of metadata; nothing is committed if nothing expires. `plans` are what was to expire of which version
    of the table, the last one what was committed."""

    rule: ExpiryRule
    plans: list[tuple[Snapshot, ExpireVersions]] = field(default_factory=list, compare=False, repr=False)
    operation: ClassVar[Operation] = "expire"

    def plan(self, start: Start) -> WritePlan:
        edit = _due(start.snapshot, self.rule)
        self.plans.append((start.snapshot, edit))

        def finish(outcomes: Sequence[pa.Table]) -> Planned:
            if not edit.versions and not edit.refs:
                return Planned(None)
            change = start.change("expire", (edit,), data_change=False)
            return Planned(replace(change, metrics={"versions": len(edit.versions), "refs": len(edit.refs)}))

        return WritePlan((), finish)


def _due(snapshot: Snapshot, rule: ExpiryRule) -> ExpireVersions:
    return required(snapshot, Expiry, "expire_snapshots").due(rule, system.current().now_ms())


def expire(
    handle: Handle, engine: Engine, rule: ExpiryRule, options: WriteOptions = WriteOptions()
) -> tuple[Snapshot, ExpiryResult]:
    """Expires versions, in one commit or, where each is a file, by removing it, and then removes the files that no
    other version, branch or tag needs: after a crash between the two they are orphans. A file that cannot be removed
    does not stop it. Returns the snapshot after it.

    Raises what `Expiry.due` raises, and what reading and writing the table raise; then no file was removed.
    """
    if rule.keep is not None and rule.keep < 1:
        raise InvalidArgumentError(f"{rule.keep} versions cannot be retained", advice="retain at least 1")
    started = system.current().monotonic()
    handle = newest(handle)
    handle.check_writable()
    snapshot = handle.snapshot
    edit = _due(snapshot, rule)
    # What is retained is read before anything is committed: if it is damaged, nothing expires.
    held = required(snapshot, Expiry, "expire_snapshots").held_by(edit, snapshot)
    if options.dry_run:
        return snapshot, _result(edit, _sized(held, handle), {}, handle, started, dry_run=True)
    files = snapshot.offers(VersionFiles)
    if files is not None:
        result = _forgotten(handle, engine, files, edit, held, started)
        return snapshot.newest(), result
    write = _Expire(rule)
    snapshot, done = run(handle, engine, write, options)
    planned, edit = write.plans[-1]
    if done.commit is None:
        return snapshot, _result(edit, {}, {}, handle, started)
    held, failed = _removed(handle, engine, planned, edit, snapshot)
    result = _result(edit, held, failed, handle, started)
    return snapshot, replace(result, commit=done.commit, write_id=done.write_id)


def _forgotten(
    handle: Handle,
    engine: Engine,
    files: VersionFiles,
    edit: ExpireVersions,
    held: Mapping[str, HeldFile],
    started: float,
) -> ExpiryResult:
    """The files of the versions go first, so that none is listed that lacks another file."""
    documents = files.documents(edit)
    failed = dict(remove(handle.context.stores, engine, [*documents.values()]))
    gone = replace(edit, versions=tuple(v for v, uri in documents.items() if uri not in failed))
    kept = {uri: file for uri, file in held.items() if uri in documents.values()}
    others = _sized({uri: file for uri, file in held.items() if file.kind != "manifest"}, handle)
    try:
        others = dict(files.unneeded(others, edit))
    except BoathouseError as error:
        log.warning("versions of %s expired, but which files nothing needs is not known: %s", handle.location, error)
        return _result(gone, kept, failed | {str(handle.location): error.message}, handle, started)
    failed |= remove(handle.context.stores, engine, [*others])
    return _result(gone, kept | others, failed, handle, started)


def _removed(
    handle: Handle, engine: Engine, planned: Snapshot, edit: ExpireVersions, after: Snapshot
) -> tuple[Mapping[str, HeldFile], Mapping[str, str]]:
    """The files that went with the versions, and those of them that could not be removed, with the reason."""
    try:
        # Others may have committed meanwhile.
        held = required(planned, Expiry, "expire_snapshots").held_by(edit, after.newest())
    except BoathouseError as error:
        log.warning("versions of %s expired, but which files nothing needs is not known: %s", handle.location, error)
        return {}, {str(handle.location): error.message}
    held = _sized(held, handle)
    return held, remove(handle.context.stores, engine, list(held))


def _sized(held: Mapping[str, HeldFile], handle: Handle) -> dict[str, HeldFile]:
    """The files with their sizes; the store is asked where no metadata has them."""
    return {
        uri: file if file.size is not None else replace(file, size=_size(uri, handle.context.stores))
        for uri, file in held.items()
    }


def _size(uri: str, stores: Stores) -> int:
    try:
        storage, key = stores.resolve(uri)
        return storage.head(key).size
    except BoathouseError:
        return 0


def _result(
    edit: ExpireVersions,
    held: Mapping[str, HeldFile],
    failed: Mapping[str, str],
    handle: Handle,
    started: float,
    dry_run: bool = False,
) -> ExpiryResult:
    gone = {uri: file for uri, file in held.items() if uri not in failed}
    counts: dict[str, int] = {}
    for file in gone.values():
        counts[file.kind] = counts.get(file.kind, 0) + 1
    root = handle.location.uri
    return ExpiryResult(
        versions=edit.versions,
        refs=edit.refs,
        files_removed=len(gone),
        bytes_removed=sum(file.size or 0 for file in gone.values()),
        kinds=counts,
        paths=tuple(relative(uri, root) or uri for uri in gone),
        failed=tuple(failed.items()),
        dry_run=dry_run,
        seconds=system.current().monotonic() - started,
    )
