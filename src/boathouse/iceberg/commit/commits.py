"""The commits of Iceberg tables, as the commit loop makes them: in file systems, and through catalogs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic

from boathouse.errors import BoathouseError, VersionNotFoundError
from boathouse.iceberg.commit import confirmation, conflict, transaction
from boathouse.iceberg.commit.expired import forgotten_documents
from boathouse.iceberg.metadata.versions import FormatVersion
from boathouse.iceberg.paths import HINT, METADATA_FOLDER, version_of
from boathouse.iceberg.snapshot import IcebergSnapshot, S, load
from boathouse.storage import join
from boathouse.table.attempt import Attempt, Published, Winner
from boathouse.table.change import Change
from boathouse.table.commit import FileCommitter, discard
from boathouse.table.context import TableContext
from boathouse.table.edits import CreateTable
from boathouse.table.location import NEWEST
from boathouse.table.verdict import Verdict
from boathouse.table.version import TableVersion
from boathouse.types import PartitionSpec, Schema

log = logging.getLogger("boathouse")


@dataclass(frozen=True, slots=True)
class _Commits(Generic[S]):
    """What the first commit and later ones have in common. `newest` opens the newest version, which may be an attempt
    that was put."""

    context: TableContext
    newest: Callable[[Attempt], S]

    def publish(self, attempt: Attempt) -> Published | Attempt:
        return (self.context.catalog or FileCommitter(self.context.stores)).publish(attempt)

    def confirm(self, attempt: Attempt, change: Change) -> tuple[Published | None, S | None]:
        try:
            newest = self.newest(attempt)
        except VersionNotFoundError:
            return self._without_ref(attempt), None
        # A catalog's answer is final.
        return "won" if self.context.catalog is not None else confirmation.includes(attempt, newest), newest

    def _without_ref(self, attempt: Attempt) -> Published | None:
        """Whether an attempt is part of a table whose branch was dropped right after it."""
        head = load(self.context, NEWEST, IcebergSnapshot)
        return "won" if self.context.catalog is not None else confirmation.includes(attempt, head)

    def after_commit(self, attempt: Attempt, change: Change) -> None:
        """Writes version-hint.text, where other readers start their search; a failure is harmless."""
        if self.context.catalog is not None:
            return
        try:
            storage, key = self.context.stores.resolve(join(self.context.location.uri, METADATA_FOLDER, HINT))
            storage.put(key, str(version_of(attempt.uri)).encode())
        except BoathouseError as error:
            log.debug("could not write %s: %s", HINT, error)


@dataclass(frozen=True, slots=True)
class IcebergFirstCommit(_Commits[S]):
    """See `table.commits.Commits`: the commit that creates the table, with this schema and spec."""

    table: CreateTable
    schema: Schema
    spec: PartitionSpec
    version: FormatVersion

    def prepare(self, change: Change) -> Attempt:
        return transaction.create(change, self.context, self.table, self.schema, self.spec, self.version)


@dataclass(frozen=True, slots=True)
class IcebergSnapshotCommits(_Commits[S]):
    """See `table.commits.SnapshotCommits`."""

    head: S

    def prepare(self, change: Change) -> Attempt:
        return transaction.prepare(change, self.head)

    def after_commit(self, attempt: Attempt, change: Change) -> None:
        _Commits.after_commit(self, attempt, change)
        if attempt.body and attempt.state is not None:  # a document that the catalog made is the catalog's
            for recorded in forgotten_documents(self.head.metadata, attempt.state):
                discard(self.context.stores, (self.head.paths.uri(recorded),))

    def winners(self, since: TableVersion) -> Sequence[Winner] | None:
        return conflict.winners(since, self.head)

    def check(self, change: Change, winners: Sequence[Winner]) -> Verdict:
        return conflict.check(change, winners, self.head)
