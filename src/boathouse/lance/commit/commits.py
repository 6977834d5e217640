"""The commits of Lance tables, as the commit loop makes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic

from boathouse.lance.commit import confirmation, conflict, ref_edits, transaction
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
        edit = ref_edits.edit_of(change)
        if edit is not None and self.head is not None:
            return ref_edits.prepare(change, edit, self.head)
        return transaction.prepare(change, self.context, self.head)

    def publish(self, attempt: Attempt) -> Published:
        if isinstance(attempt.state, ref_edits.RefFile):
            return ref_edits.publish(attempt, self.context.stores)
        return confirmation.LanceCommitter(self.context).publish(attempt)

    def confirm(self, attempt: Attempt, change: Change) -> tuple[Published | None, S]:
        if isinstance(attempt.state, ref_edits.RefFile):
            return "won", self.newest(attempt)  # the file itself decided: no list of versions is above it
        return confirmation.confirm(attempt, change, self.newest(attempt))

    def after_commit(self, attempt: Attempt, change: Change) -> None:
        """The newest manifest is found by listing, never by the hint, so only the files of a dropped branch go."""
        if isinstance(attempt.state, ref_edits.RefFile):
            ref_edits.after_commit(attempt, self.context.stores)


@dataclass(frozen=True, slots=True)
class LanceSnapshotCommits(LanceCommits[S]):
    """See `table.commits.SnapshotCommits`."""

    head: S

    def winners(self, since: TableVersion) -> Sequence[Winner] | None:
        return conflict.winners(since, self.head)

    def check(self, change: Change, winners: Sequence[Winner]) -> Verdict:
        edit = ref_edits.edit_of(change)
        return conflict.check(change, winners, self.head) if edit is None else ref_edits.check(edit, self.head)
