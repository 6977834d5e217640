"""The commits of Lance tables, as the commit loop makes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic

from boathouse.lance.commit import confirmation, conflict, transaction
from boathouse.lance.snapshot import S
from boathouse.table.attempt import Attempt, Published, Winner
from boathouse.table.change import Change
from boathouse.table.context import TableContext
from boathouse.table.verdict import Verdict
from boathouse.table.version import TableVersion


@dataclass(frozen=True, slots=True)
class LanceCommits(Generic[S]):
    """See `table.commits.Commits`. Without a `head` the table is created; `newest` opens the newest version, which may
    be an attempt that was put."""

    context: TableContext
    newest: Callable[[Attempt], S]
    head: S | None = None

    def prepare(self, change: Change) -> Attempt:
        return transaction.prepare(change, self.context, self.head)

    def publish(self, attempt: Attempt) -> Published:
        return confirmation.LanceCommitter(self.context).publish(attempt)

    def confirm(self, attempt: Attempt, change: Change) -> tuple[Published | None, S]:
        return confirmation.confirm(attempt, change, self.newest(attempt))

    def after_commit(self, attempt: Attempt, change: Change) -> None:
        """Nothing to do: the newest manifest is found by listing, never by the hint."""


@dataclass(frozen=True, slots=True)
class LanceSnapshotCommits(LanceCommits[S]):
    """See `table.commits.SnapshotCommits`."""

    head: S

    def winners(self, since: TableVersion) -> Sequence[Winner] | None:
        return conflict.winners(since, self.head)

    def check(self, change: Change, winners: Sequence[Winner]) -> Verdict:
        return conflict.check(change, winners, self.head)
