"""Commits through a manifest store: stage the manifest, let the store choose it, make it final."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from boathouse.bits.system import current
from boathouse.errors import BoathouseError, NotFoundError, StorageError, UndecidedError
from boathouse.lance.external.finish import finish
from boathouse.lance.external.store import Entry, ManifestStore
from boathouse.storage import Storage
from boathouse.table.attempt import Attempt, Published
from boathouse.table.commit import READ_BACKS
from boathouse.table.context import TableContext

log = logging.getLogger("boathouse")


@dataclass(frozen=True, slots=True)
class StoreCommitter:
    """Publishes by put-if-absent in the store, in place of the folder's. Once the store has chosen our manifest, any
    reader makes it final, so that what fails afterwards leaves a commit that was made."""

    context: TableContext
    store: ManifestStore

    def publish(self, attempt: Attempt) -> Published:
        """`Commits.publish`. Raises StorageError if nothing can have been committed."""
        assert attempt.version is not None
        uri = f"{attempt.uri}-{current().uuid4()}"
        storage, key = self.context.stores.resolve(uri)
        storage.put(key, attempt.body)
        ours = Entry(attempt.version, uri, len(attempt.body))
        try:
            chosen = self._reserve(ours, attempt)
        except StorageError:
            _remove(storage, key)
            raise
        if chosen == "lost":
            _remove(storage, key)
        return self._finish(ours, attempt) if chosen == "won" else chosen

    def _finish(self, ours: Entry, attempt: Attempt) -> Published:
        try:
            _, there = finish(self.context, self.store, ours, attempt.body)
        except BoathouseError as error:
            log.warning("%s chose %s, which is not final yet: %s", self.store.name, ours.uri, error)
            return "won"
        return "won" if there == attempt.body else "lost"

    def _reserve(self, ours: Entry, attempt: Attempt) -> Published:
        """Whether the store chose ours. An entry that is there may come from an earlier request of ours without an
        answer; one that timed out may take effect later, so the same is put again until the store says what it has."""
        clock, base = current(), self.context.location.uri
        failure: StorageError | None = None
        decided = True
        for i in range(READ_BACKS):
            try:
                if self.store.put_if_absent(base, ours):
                    return "won"
            except StorageError as error:
                failure = error
                decided = decided and not isinstance(error, UndecidedError)
            seen = self._seen(ours, attempt)
            if seen is not None and seen != "absent":
                return seen
            if seen == "absent" and failure is not None and decided:
                raise failure
            clock.sleep(clock.random() * 0.02 * 2**i)
        return "unknown"

    def _seen(self, ours: Entry, attempt: Attempt) -> Literal["won", "lost", "absent"] | None:
        """What the store says of the version; None if it cannot be learnt."""
        try:
            entry = self.store.get(self.context.location.uri, ours.version)
            if entry is None:
                return "absent"
            if entry.uri == ours.uri:
                return "won"
            if entry.uri != attempt.uri:
                return "lost"
            # Somebody has made final what the store chose.
            storage, key = self.context.stores.resolve(attempt.uri)
            return "won" if storage.get(key) == attempt.body else "lost"
        except (StorageError, NotFoundError):
            return None


def _remove(storage: Storage, key: str) -> None:
    with suppress(BoathouseError):
        storage.delete([key])
