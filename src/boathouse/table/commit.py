"""The one commit loop, for all formats (docs/design/001-waist.md, 5).

Put-if-absent alone proves nothing: below a cleaned log it succeeds, and the commit is lost. So each turn
finds the head first, and publishes on exactly that head.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from boathouse.bits import entropy
from boathouse.errors import AlreadyExistsError, BoathouseError, NotFoundError, StorageError, UndecidedError
from boathouse.storage import PutMode, Stores
from boathouse.table.change import (
    Change,
    CommitOutcome,
    Committed,
    Conflict,
    Conflicted,
    Rebase,
    Replan,
    Unknown,
)
from boathouse.table.format import Attempt, Published, Snapshot, TableFormat

log = logging.getLogger("boathouse")

MAX_TURNS = 100
MAX_SECONDS = 30 * 60
READ_BACKS = 6
SLOW_SECONDS = 5.0
"""A put that took longer since its head was found may have landed below a head that moved on and was cleaned."""


def commit(format: TableFormat, change: Change, stores: Stores) -> CommitOutcome:
    """Makes `change` the next version of its table, or says why not.

    Raises only what the format raises for a table it cannot read or write, and StorageError when the store
    fails before anything could have landed.
    """
    clock = entropy.current()
    deadline = clock.monotonic() + MAX_SECONDS
    for turn in range(1, MAX_TURNS + 1):
        started = clock.monotonic()
        head = format.head(change, stores)
        settled = _follow(format, change, head, stores, turn)
        if settled is not None:
            return settled
        attempt = format.prepare(change, head, stores)
        try:
            published = format.committer(change.location, stores).publish(attempt)
        except StorageError:
            discard(stores, attempt.side)
            raise
        if published == "won" and clock.monotonic() - started > SLOW_SECONDS:
            published = _look_back(format, change, attempt, stores)
        if published == "won":
            format.published(attempt, change, stores)
            _log(change, attempt, turn)
            return Committed(attempt.version, turn, onto=head)
        if published == "unknown":
            return Unknown(change.write_id, attempt.uri)
        discard(stores, attempt.side)
        if clock.monotonic() > deadline:
            break
        clock.sleep(clock.random() * min(2.0, 0.005 * 2 ** min(turn, 9)))
    version = head.version if head is not None else 0
    return Conflicted((Conflict("busy", version, f"other writers won {turn} times in a row"),), replan=False)


def _follow(
    format: TableFormat, change: Change, head: Snapshot | None, stores: Stores, turn: int
) -> CommitOutcome | None:
    """What the commits since the planned snapshot mean for the change; None if it may be prepared on the head."""
    if change.planned is None:
        return None if head is None else _exists(format, change, head, stores, turn)
    if head is None or head.identity != change.planned.identity:
        what = "is gone" if head is None else "was dropped and made anew"
        version = change.planned.version if head is None else head.version
        return Conflicted((Conflict("table-replaced", version, f"the table {what}"),), replan=False)
    winners = format.winners(change, head, stores)
    if winners is None:
        gone = Conflict("history-gone", head.version, "versions since the one planned from were cleaned away")
        # An earlier turn of ours may be among the versions that are gone: then nobody can tell any more.
        return Conflicted((gone,), replan=True) if turn == 1 else Unknown(change.write_id, head.token)
    for winner in winners:
        if winner.write_id == change.write_id:
            return Committed(winner.version, turn, already=True)
    verdict = format.check(change, winners, head, stores)
    if isinstance(verdict, Rebase):
        return None
    return Conflicted(verdict.conflicts, replan=isinstance(verdict, Replan))


def _look_back(format: TableFormat, change: Change, attempt: Attempt, stores: Stores) -> Published:
    """Whether a version that was put late is part of the table: the versions above it must come after it."""
    head = format.head(change, stores)
    if head is None or head.version == attempt.version or change.planned is None:
        return "won"
    winners = format.winners(change, head, stores)
    if winners is None:
        return "unknown"
    return "won" if any(w.write_id == change.write_id for w in winners) else "lost"


def _exists(format: TableFormat, change: Change, head: Snapshot, stores: Stores, turn: int) -> CommitOutcome:
    ours = format.find_write(change.location, stores, change.write_id)
    if ours is not None:
        return Committed(ours, turn, already=True)
    return Conflicted((Conflict("table-exists", head.version, "a table was created here meanwhile"),), replan=False)


@dataclass(frozen=True, slots=True)
class FileCommitter:
    """Commits by put-if-absent on a store."""

    stores: Stores

    def publish(self, attempt: Attempt) -> Published:
        """Puts the attempt's bytes at its key if absent, and settles what happened by reading them back.

        "Already exists" may be our own earlier request; one that timed out may land later. The key stays
        undecided until its bytes are read: the same bytes are ours, other bytes mean lost, absent means the
        same bytes to the same key again.
        """
        storage, key = self.stores.resolve(attempt.uri)
        clock = entropy.current()
        seen: bytes | StorageError | None = None
        failure: StorageError | None = None
        refused = True
        for i in range(READ_BACKS):
            try:
                storage.put(key, attempt.body, PutMode.CREATE)
                return "won"
            except AlreadyExistsError:
                refused = False
            except StorageError as error:
                failure = error
                refused = refused and not isinstance(error, UndecidedError)
            seen = _read_back(self.stores, attempt.uri)
            if isinstance(seen, bytes):
                return "won" if seen == attempt.body else "lost"
            clock.sleep(clock.random() * 0.02 * 2**i)
        if seen is None and failure is not None and refused:
            # Plain refusals only (no permission, disk full), and the key is seen to be absent: nothing has landed.
            # After a single request without an answer that would not be sure: it may land later.
            raise failure
        return "unknown"


def _read_back(stores: Stores, uri: str) -> bytes | StorageError | None:
    storage, key = stores.resolve(uri)
    try:
        return storage.get(key)
    except NotFoundError:
        return None
    except StorageError as error:
        return error


def discard(stores: Stores, uris: tuple[str, ...]) -> None:
    """Removes files of an attempt that is surely lost; a failure leaves orphans, which are harmless."""
    for uri in uris:
        storage, key = stores.resolve(uri)
        try:
            storage.delete([key])
        except BoathouseError as error:
            log.debug("could not remove %s: %s", uri, error)


def _log(change: Change, attempt: Attempt, turn: int) -> None:
    log.info(
        "%s %s: version %s of %s (write %s, turn %d)",
        change.format,
        change.operation,
        attempt.version,
        change.location,
        change.write_id,
        turn,
    )
