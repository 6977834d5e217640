"""The commit loop and the file-system committer, against a store that misbehaves."""

from __future__ import annotations

import dataclasses

import pytest

from boathouse.bits import system
from boathouse.errors import StorageError
from boathouse.storage import MemoryStorage, PutMode, Stores
from boathouse.table.attempt import Attempt
from boathouse.table.commit import FileCommitter
from boathouse.table.location import CommitId
from boathouse.testing.faults import Fault, FaultyStorage, Plan

ATTEMPT = Attempt("memory://commits/t/5", b"ours", CommitId(5, "5"))


@pytest.fixture(autouse=True)
def _seeded(monkeypatch):
    monkeypatch.setattr(MemoryStorage, "_named", {})
    with system.use(system.SeededSystem(7)):
        yield


def faulty(plan: Plan) -> tuple[Stores, list[FaultyStorage]]:
    made: list[FaultyStorage] = []

    def wrap(inner):
        made.append(FaultyStorage(inner, plan))
        return made[-1]

    return Stores(wrap=wrap), made


def content() -> bytes | None:
    storage, key = Stores().resolve(ATTEMPT.uri)
    return storage.get(key) if storage.exists(key) else None


def test_an_absent_key_is_won():
    assert FileCommitter(Stores()).publish(ATTEMPT) == "won"
    assert content() == b"ours"


@pytest.mark.parametrize("fault", [Fault.LOST, Fault.UNSENT, Fault.DELAYED])
def test_a_lost_answer_is_settled_by_reading_back(fault):
    stores, _ = faulty(Plan.script(fault, at=1))
    assert FileCommitter(stores).publish(ATTEMPT) == "won"
    assert content() == b"ours"


def test_other_bytes_mean_lost_even_when_the_answer_was_lost():
    storage, key = Stores().resolve(ATTEMPT.uri)
    storage.put(key, b"theirs", PutMode.CREATE)
    stores, _ = faulty(Plan.script(Fault.LOST, at=1))
    assert FileCommitter(stores).publish(ATTEMPT) == "lost"
    assert content() == b"theirs"


def test_our_own_bytes_at_the_key_are_ours():
    storage, key = Stores().resolve(ATTEMPT.uri)
    storage.put(key, b"ours", PutMode.CREATE)
    assert FileCommitter(Stores()).publish(ATTEMPT) == "won"


def test_a_plain_refusal_is_raised_and_nothing_lands():
    stores, _ = faulty(Plan(writes=dict.fromkeys(range(1, 50), Fault.REFUSED)))
    with pytest.raises(StorageError):
        FileCommitter(stores).publish(ATTEMPT)
    assert content() is None


@pytest.mark.parametrize("first", [Fault.UNSENT, Fault.DELAYED])
def test_refusals_after_a_request_without_an_answer_are_unknown(first):
    """The first request may still land: files that its commit names must not be removed."""
    stores, _ = faulty(Plan(writes={1: first, **dict.fromkeys(range(2, 50), Fault.REFUSED)}))
    assert FileCommitter(stores).publish(ATTEMPT) in ("unknown", "won")


def test_a_store_that_never_answers_is_unknown():
    stores, _ = faulty(Plan(writes=dict.fromkeys(range(1, 50), Fault.UNSENT)))
    assert FileCommitter(stores).publish(ATTEMPT) == "unknown"


def test_an_unreadable_key_is_unknown_and_never_the_next_one():
    others = {(name, n): Fault.UNSENT for name in ("get", "head", "exists") for n in range(1, 80)}
    stores, made = faulty(Plan(writes=dict.fromkeys(range(1, 50), Fault.LOST), others=others))
    assert FileCommitter(stores).publish(ATTEMPT) == "unknown"
    assert content() == b"ours"
    assert {entry.key for storage in made for entry in storage.log} == {"t/5"}


def test_attempts_are_values():
    assert dataclasses.replace(ATTEMPT, commit=CommitId(6, "6")) != ATTEMPT
