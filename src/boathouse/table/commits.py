"""What the commit loop asks of a table: how a change becomes the next version, on what the loop found to be newest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from boathouse.table.attempt import Attempt, Published, Winner
    from boathouse.table.change import Change
    from boathouse.table.snapshot import Snapshot
    from boathouse.table.verdict import Verdict
    from boathouse.table.version import TableVersion


class Commits(Protocol):
    """Commits that follow one version of a table, or create the table."""

    def prepare(self, change: Change) -> Attempt:
        """Writes the files that the commit refers to and returns the commit itself, with new bytes at every call.

        It follows this version, which is the newest one.
        """

    def publish(self, attempt: Attempt) -> Published | Attempt:
        """Makes the attempt the next version on exactly the head it was prepared on; `lost` is definite. Where the
        answer says what was made, the attempt that has won, with that as its `state`.

        In a file system by put-if-absent (`table.commit.FileCommitter`), else by the catalog's swap. Raises
        StorageError only if nothing can have been committed.
        """

    def confirm(self, attempt: Attempt, change: Change) -> tuple[Published | None, Snapshot | None]:
        """Whether an attempt that was put is part of the table as every reader sees it, and the newest snapshot.

        Put-if-absent also succeeds below a history that was cleaned. `lost` is definite; `unknown` means undecidable;
        None: the listings do not show the attempt yet. May raise anything that reading a table raises.

        It is asked of what the attempt was prepared on. Where one listing shows that snapshot's own document unchanged
        and the attempt after it as the newest, the attempt's bytes are the new snapshot, and nothing is read.
        """

    def after_commit(self, attempt: Attempt, change: Change) -> None:
        """After a commit: checkpoints, hints, checksums."""


class SnapshotCommits(Commits, Protocol):
    """Commits that follow a snapshot."""

    def winners(self, since: TableVersion) -> Sequence[Winner] | None:
        """The commits after `since` up to the snapshot, oldest first; None if some are gone."""

    def check(self, change: Change, winners: Sequence[Winner]) -> Verdict:
        """The verdict on the change after these concurrent commits, the last of which is the snapshot."""
