"""Whether a manifest that was put is part of the main line of versions.

A manifest describes the whole table, so the next retained one contains our changes, unless ours was put below versions
that had been cleaned up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from boathouse.bits.roaring import EMPTY, Bitmap
from boathouse.lance.deletions.files import read_deletions
from boathouse.lance.external import opened
from boathouse.lance.external.commit import StoreCommitter
from boathouse.lance.manifests.file import parse
from boathouse.lance.manifests.messages import DataFragment, Manifest, Transaction
from boathouse.lance.manifests.names import store_name
from boathouse.lance.manifests.versions import VersionFile, list_versions, recent
from boathouse.lance.operations.known import operation_of
from boathouse.lance.paths import deletion_root
from boathouse.lance.refs.files import of_main
from boathouse.lance.refs.versions import named
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
    transaction = read_transaction(newest.context, after)
    if _Traces.of(ours, before).found(newest.context, after.manifest, transaction):
        return "won"
    if file.version > _number(attempt) + 1 or transaction is None or transaction.operation != "append":
        return "unknown"
    # An append leaves everything else unchanged.
    found = after.manifest
    taken = _identities(before) - _identities(ours)
    same = found.fields == ours.fields and found.config == ours.config and not taken & _identities(found)
    return "won" if same and _identities(ours) <= _identities(found) else "lost"


@dataclass(frozen=True, slots=True)
class _Traces:
    """What a commit of ours leaves in the table, by which a later version shows that it follows ours: the data files
    and the fragments of `ours` that `before` did not have."""

    ours: Manifest
    fragments: frozenset[_Identity]
    paths: frozenset[str]

    @classmethod
    def of(cls, ours: Manifest, before: Manifest) -> _Traces:
        fragments = _identities(ours) - _identities(before)
        return cls(ours, frozenset(fragments), frozenset(_paths(ours.fragments) - _paths(before.fragments)))

    def found(self, context: TableContext, after: Manifest, transaction: Transaction | None) -> bool:
        """Whether they are in a version, or its transaction says that it replaced them, as a compaction does."""
        known = None if transaction is None else operation_of(transaction)
        replaced = () if known is None else tuple(known[0].replaced(known[1]))
        there = (*after.fragments, *replaced)
        if self.fragments & {_of(f) for f in there} or self.paths & _paths(there):
            return True
        return self._deleted(context, after)

    def _deleted(self, context: TableContext, after: Manifest) -> bool:
        """Whether all rows that ours deleted are deleted: another delete wrote the deletion files anew. The first of
        those fragments that the version still has decides, since a commit is in a version as a whole."""
        later = {_data(f): f for f in after.fragments}
        for fragment in self.ours.fragments:
            now = later.get(_data(fragment))
            if _of(fragment) in self.fragments and now is not None:
                return not self._deletions(context, fragment) - self._deletions(context, now, after)
        return False

    def _deletions(self, context: TableContext, fragment: DataFragment, manifest: Manifest | None = None) -> Bitmap:
        if fragment.deletion_file is None:
            return EMPTY
        root = deletion_root(manifest or self.ours, fragment, context.location.uri)
        return read_deletions(context.stores, root, fragment)


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


_Identity = tuple[int, tuple[str, ...], bytes]
"""A fragment with its files and deletions, all of which have unique random names."""


def _identities(manifest: Manifest) -> set[_Identity]:
    return {_of(f) for f in manifest.fragments}


def _of(f: DataFragment) -> _Identity:
    return *_data(f), b"" if f.deletion_file is None else f.deletion_file.encode()


def _data(f: DataFragment) -> tuple[int, tuple[str, ...]]:
    return f.id, tuple(d.path for d in f.files)


def _paths(fragments: Iterable[DataFragment]) -> set[str]:
    return {d.path for f in fragments for d in f.files}
