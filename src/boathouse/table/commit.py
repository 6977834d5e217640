"""The one commit loop, for all formats (docs/design/001-waist.md, 5).

Put-if-absent alone proves nothing: below a cleaned log it succeeds, and the commit is lost. So each attempt finds the
head first, and publishes on exactly that head.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from itertools import count
from typing import cast

from boathouse.bits import system
from boathouse.errors import (
    AlreadyExistsError,
    BoathouseError,
    CommitUnknownError,
    MissingFileError,
    NotFoundError,
    StorageError,
    TableNotFoundError,
    UndecidedError,
)
from boathouse.storage import PutMode, Stores
from boathouse.table.attempt import Attempt, Published
from boathouse.table.change import Change
from boathouse.table.features import CommitRetries
from boathouse.table.location import CommitId, Version
from boathouse.table.snapshot import Snapshot, Target
from boathouse.table.verdict import Conflict, Rebase, Replan
from boathouse.table.version import TableVersion

log = logging.getLogger("boathouse")

MAX_ATTEMPTS = 1000
MAX_SECONDS = 30 * 60
READ_BACKS = 6
PAUSED_ATTEMPTS = 3
"""A writer pauses after each of its first lost attempts, this number of them; then it publishes at once, so that it is
not starved."""


@dataclass(frozen=True, slots=True)
class Committed:
    """The change is the table's commit `commit`; `already` if an earlier attempt of ours had been committed.

    `onto` is the snapshot that it followed, `after` the newest one after the commit, where they are known.
    """

    commit: CommitId
    attempts: int
    already: bool = False
    onto: Snapshot | None = field(default=None, compare=False, repr=False)
    after: Snapshot | None = field(default=None, compare=False, repr=False)

    @property
    def version(self) -> Version | None:
        return self.commit.version


@dataclass(frozen=True, slots=True)
class Conflicted:
    """Nothing was written. `replan` if computing the change again from the head may succeed."""

    conflicts: tuple[Conflict, ...]
    replan: bool


@dataclass(frozen=True, slots=True)
class Unknown:
    """The change may or may not have been committed; `find_write(write_id)` tells. Nothing was cleaned up."""

    write_id: str
    key: str


CommitOutcome = Committed | Conflicted | Unknown


def commit(target: Target, change: Change, fresh: bool = False) -> CommitOutcome:
    """Makes `change` the next version of its table, or returns why not.

    `target` is the snapshot that the change was planned from, or the table that it creates. With `fresh`, the snapshot
    was the newest one a moment ago, and the first attempt follows it without looking for a newer one. Raises only what
    the format raises for a table it cannot read or write, and StorageError if the store fails before anything can have
    been committed: once a put has succeeded or is undecided, nothing is raised.
    """
    clock = system.current()
    rules = _Rules.of(target, change)
    since, latest = change.planned, target
    for attempts in count(1):
        started = clock.monotonic()
        # The put itself decides whether anybody was faster; reading back, whether it went below a cleaned history.
        known = fresh and attempts == 1 and change.planned is not None
        head = cast(Snapshot, target) if known else _newest(latest)
        settled = None if known else _follow(change, since, head, attempts)
        if settled is not None:
            return settled
        if head is not None:
            since = latest = head
        outcome = _attempt(target, head, change, attempts)
        if outcome is not None:
            return outcome
        if rules.over(attempts):
            break
        rules.pause(attempts, clock.monotonic() - started)
    version = head.version if head is not None else 0
    return Conflicted((Conflict("busy", version, rules.message(attempts)),), replan=False)


@dataclass(frozen=True, slots=True)
class _Rules:
    """How long one commit is tried: as the table asks, else for very long. `began` is when its write was first tried,
    and `replans` how often it was planned again before."""

    asked: CommitRetries
    began: float
    replans: int

    @classmethod
    def of(cls, target: Target, change: Change) -> _Rules:
        asked, now = target.offers(CommitRetries), system.current().monotonic()
        if asked is None:
            return cls(CommitRetries(), now, 0)
        return cls(asked, now if change.began is None else change.began, change.replans)

    def over(self, attempts: int) -> bool:
        """Whether this attempt was the last one."""
        return exhausted(self.asked, self.replans + attempts, self.began) or (
            self.asked.retries is None and attempts >= MAX_ATTEMPTS
        )

    def pause(self, attempts: int, seconds: float) -> None:
        """Waits after a lost attempt that took so many seconds: as the table asks, and up to a tenth longer."""
        clock, wait = system.current(), self.asked.wait(self.replans + attempts)
        if wait is not None:
            clock.sleep(wait * (1 + clock.random() / 10))
        elif attempts <= PAUSED_ATTEMPTS:
            clock.sleep(clock.random() * seconds)

    def message(self, attempts: int) -> str:
        asked = f" (the table has {self.asked.named})" if self.asked.named else ""
        return f"other writers won {self.replans + attempts} times in a row{asked}"


def exhausted(asked: CommitRetries, lost: int, began: float) -> bool:
    """Whether a write that lost so many times is not tried again, by the reference's rules: whatever the time, it is
    tried a second time, unless the table allows no retry."""
    if asked.retries is not None and lost > asked.retries:
        return True
    total = MAX_SECONDS if asked.total_seconds is None else asked.total_seconds
    return (lost > 1 or asked.total_seconds is None) and system.current().monotonic() - began > total


def _attempt(target: Target, head: Snapshot | None, change: Change, attempts: int) -> CommitOutcome | None:
    """One attempt on exactly this head; None if it is certainly lost."""
    stores = target.context.stores
    follows = target if head is None else head
    try:
        attempt = follows.commits.prepare(change)
    except MissingFileError:
        if not _overtaken(head):
            raise
        return None
    try:
        answer = follows.commits.publish(attempt)
    except StorageError:
        discard(stores, attempt.side)
        raise
    attempt, published = (answer, "won") if isinstance(answer, Attempt) else (attempt, answer)
    after = None
    if published == "won":
        published, after = _confirm(follows, change, attempt)
    if published == "won":
        _after_commit(target, change, attempt, attempts)
        return Committed(attempt.commit, attempts, onto=head, after=after)
    if published == "unknown":
        return Unknown(change.write_id, attempt.uri)
    discard(stores, attempt.side)
    return None


def _overtaken(head: Snapshot | None) -> bool:
    """Whether there is a newer version, after which this one may have expired, and its files with it."""
    newest = None if head is None else _newest(head)
    return newest is not None and head is not None and newest.token != head.token


def _newest(target: Target) -> Snapshot | None:
    try:
        return target.newest()
    except TableNotFoundError:
        return None


def _follow(change: Change, since: TableVersion | None, head: Snapshot | None, attempts: int) -> CommitOutcome | None:
    """The consequence of the commits after `since`; None if the change may be prepared on the head.

    Earlier ones were checked before a lost attempt: each commit is read and checked once.
    """
    if change.planned is None or since is None:
        return None if head is None else _exists(change, head, attempts)
    if head is None or head.identity != change.planned.identity:
        what = "is gone" if head is None else "was dropped and recreated"
        version = change.planned.version if head is None else head.version
        return Conflicted((Conflict("table-replaced", version, f"the table {what}"),), replan=False)
    winners = head.commits.winners(since)
    if winners is None:
        # Our own earlier attempts are not among the missing versions: each of them was certainly lost.
        gone = Conflict("history-gone", head.version, "versions since the one planned from were cleaned away")
        return Conflicted((gone,), replan=True)
    for winner in winners:
        if winner.write_id == change.write_id:
            return Committed(winner.commit, attempts, already=True, after=head)
    verdict = head.commits.check(change, winners)
    if isinstance(verdict, Rebase):
        return None
    return Conflicted(verdict.conflicts, replan=isinstance(verdict, Replan))


def _confirm(target: Target, change: Change, attempt: Attempt) -> tuple[Published, Snapshot | None]:
    """Whether a version that was put is part of the table as readers see it, and the newest snapshot.

    Never raises, whatever the store or the table's files do now. While the table cannot be read, that is unknown: the
    put may have succeeded below a log that was cleaned meanwhile.
    """
    clock = system.current()
    for i in range(READ_BACKS):
        try:
            confirmed, head = target.commits.confirm(attempt, change)
        except Exception as error:
            log.log(
                logging.WARNING if i == READ_BACKS - 1 else logging.DEBUG, "cannot confirm %s: %r", attempt.uri, error
            )
            confirmed = None
        if confirmed == "won" and not _recreated(head, change):
            return confirmed, head
        if confirmed == "won" and head is not None:
            # The table was recreated between the look at its head and the put.
            confirmed = "lost" if head.version == attempt.version else "unknown"
        if confirmed is not None:
            log.warning(
                "%s was put, and is %s", attempt.uri, "not part of the table" if confirmed == "lost" else "undecided"
            )
            if confirmed == "lost" and _read_back(target.context.stores, attempt.uri) == attempt.body:
                # Readers ignore it, but a search for our write would find it. Another's, of a recreated table, stays.
                discard(target.context.stores, (attempt.uri,))
            return confirmed, None
        clock.sleep(clock.random() * 0.02 * 2**i)
    return "unknown", None


def _recreated(head: Snapshot | None, change: Change) -> bool:
    return head is not None and change.planned is not None and head.identity != change.planned.identity


def _after_commit(target: Target, change: Change, attempt: Attempt, attempts: int) -> None:
    """The steps after a successful commit. If they fail, others lose time, but the commit is not affected."""
    try:
        target.commits.after_commit(attempt, change)
    except Exception as error:
        log.warning("%s was committed, but not all that follows a commit: %s", attempt.uri, error)
    _log(change, attempt, attempts)


def _exists(change: Change, head: Snapshot, attempts: int) -> CommitOutcome:
    try:
        version = head.history.find_write(change.write_id)
    except CommitUnknownError:
        return Unknown(change.write_id, str(change.location))
    if version is not None:
        ours = next((e for e in head.history.entries() if e.write_id == change.write_id), None)
        commit = CommitId(None, "") if ours is None else CommitId(ours.version, ours.commit or "")
        return Committed(commit, attempts, already=True, after=head)
    return Conflicted((Conflict("table-exists", head.version, "a table was created here concurrently"),), replan=False)


@dataclass(frozen=True, slots=True)
class FileCommitter:
    """Commits by put-if-absent on a store."""

    stores: Stores

    def publish(self, attempt: Attempt) -> Published:
        """Puts the attempt's bytes at its key if absent, and resolves the outcome by reading them back.

        "Already exists" may be caused by our own earlier request; one that timed out may take effect later. The key
        stays undecided until its bytes are read: the same bytes are ours, other bytes mean lost, and if it is absent
        the same bytes are put to the same key again.
        """
        storage, key = self.stores.resolve(attempt.uri)
        clock = system.current()
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
            # Only plain refusals (no permission, disk full), and the key was seen to be absent: nothing was committed.
            # After a single request without a response that would not be certain: it may take effect later.
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
    """Removes files of an attempt that is certainly lost; a failure leaves orphans, which are harmless."""
    for uri in uris:
        storage, key = stores.resolve(uri)
        try:
            storage.delete([key])
        except BoathouseError as error:
            log.debug("could not remove %s: %s", uri, error)


def _log(change: Change, attempt: Attempt, attempts: int) -> None:
    log.info(
        "%s %s: commit %s of %s (write %s, attempt %d)",
        change.format,
        change.operation,
        attempt.commit.token,
        change.location,
        change.write_id,
        attempts,
    )
