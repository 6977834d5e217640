"""Whether a manifest that was put is part of the main line of versions.

A manifest describes the whole table, so the next retained one contains our changes, unless ours was put below versions
that had been cleaned up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from boathouse.lance.external import opened
from boathouse.lance.external.commit import StoreCommitter
from boathouse.lance.manifests.file import parse
from boathouse.lance.manifests.messages import DataFragment, Manifest, Transaction
from boathouse.lance.manifests.names import store_name
from boathouse.lance.manifests.versions import VersionFile, list_versions, recent
from boathouse.lance.named_versions import named
from boathouse.lance.operations.known import operation_of
from boathouse.lance.refs import of_main
from boathouse.lance.snapshot import LanceSnapshot, S, read_manifest, read_transaction
from boathouse.table.attempt import Attempt, Published
from boathouse.table.change import Change
from boathouse.table.commit import FileCommitter
from boathouse.table.context import TableContext


@dataclass(frozen=True, slots=True)
class LanceCommitter:
    """Put-if-absent, if the version before is still the newest one.

    Whether a manifest below cleaned versions was ever part of the table cannot always be decided once it is there.
    """

    context: TableContext

    def publish(self, attempt: Attempt) -> Published:
        listed = recent(self.context)
        if listed if attempt.replaces is None else not listed or listed[0].version != _number(attempt) - 1:
            return "lost"
        return committer(self.context).publish(attempt)


def committer(context: TableContext) -> FileCommitter | StoreCommitter:
    """What decides between writers of the same version: the folder, or the manifest store that the user named."""
    if store_name(context) is None:
        return FileCommitter(context.stores)
    return StoreCommitter(context, opened.store_of(context))


def _number(attempt: Attempt) -> int:
    assert attempt.version is not None, "every commit of a Lance table makes a version"
    return attempt.version


def confirm(attempt: Attempt, change: Change, newest: S) -> tuple[Published | None, S]:
    """`Commits.confirm`, given the newest snapshot."""
    return _includes(attempt, change, newest), newest


def _includes(attempt: Attempt, change: Change, newest: LanceSnapshot) -> Published | None:
    if newest.version == _number(attempt):
        return "won" if _is_ours(attempt, newest) else "lost"
    if newest.version < _number(attempt):
        return None
    above = [v for v in list_versions(newest.context) if v.version > _number(attempt)]
    if not above:
        return None
    file = min(above, key=lambda v: v.version)
    after = newest.document if file.version == newest.version else read_manifest(newest.context, file)
    ours = parse(attempt.body, where=attempt.uri).manifest
    planned = change.planned
    before = planned.manifest if isinstance(planned, LanceSnapshot) else Manifest()
    brought = _identities(ours) - _identities(before)
    if brought & _identities(after.manifest):
        return "won"
    if file.version > _number(attempt) + 1:
        return "unknown"
    transaction = read_transaction(newest.context, after)
    if transaction is None or transaction.operation != "append":
        return "unknown"
    # An append leaves everything else unchanged.
    found = after.manifest
    taken = _identities(before) - _identities(ours)
    same = found.fields == ours.fields and found.config == ours.config and not taken & _identities(found)
    return "won" if same and _identities(ours) <= _identities(found) else "lost"


def _is_ours(attempt: Attempt, newest: LanceSnapshot) -> bool:
    """What a put-if-absent in the folder put there is ours. A manifest store's choice becomes final later, unless
    somebody who does not know the store was faster."""
    if store_name(newest.context) is None:
        return True
    return read_transaction(newest.context, newest.document) == parse(attempt.body, where=attempt.uri).transaction


def is_followed(
    context: TableContext, listed: Sequence[VersionFile], file: VersionFile, transaction: Transaction
) -> bool:
    """Whether a retained version, with its transaction, is certainly part of the main line.

    It is while the version before it, which no tag or branch holds, is retained: older ones are cleaned first. A clone
    begins with whatever number its source had.
    """
    versions = {v.version for v in listed}
    before = file.version - 1
    if file.version == max(versions) or before == 0 or transaction.clone is not None:
        return True
    after = min((v for v in listed if v.version > file.version), key=lambda v: v.version)
    manifest = read_manifest(context, after).manifest
    if before in versions and before not in named(of_main(context, manifest.branch), manifest.branch):
        return True
    kept = {found[1:] for found in _identities(manifest)}
    known = operation_of(transaction)
    return known is not None and not kept.isdisjoint(_of(f)[1:] for f in known[0].brought(known[1]))


def _identities(manifest: Manifest) -> set[tuple[int, tuple[str, ...], bytes]]:
    """Fragments with their files and deletions, all of which have unique random names."""
    return {_of(f) for f in manifest.fragments}


def _of(f: DataFragment) -> tuple[int, tuple[str, ...], bytes]:
    return f.id, tuple(d.path for d in f.files), b"" if f.deletion_file is None else f.deletion_file.encode()
