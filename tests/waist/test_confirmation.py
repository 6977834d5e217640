"""What has landed is acknowledged, and nothing else is: whatever others, the store and the clock do around a commit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from peers import PEERS, by_peer

import boathouse as bh
from boathouse.bits import system
from boathouse.delta import new_table
from boathouse.delta.adapter import DeltaFormat
from boathouse.delta.commit.commits import DeltaCommits
from boathouse.delta.log.folder import Log
from boathouse.errors import (
    CommitConflictError,
    CommitUnknownError,
    CorruptTableError,
    NotFoundError,
    StorageError,
    UndecidedError,
)
from boathouse.iceberg import snapshot as iceberg_snapshot
from boathouse.lance import snapshot as lance_snapshot
from boathouse.lance.commit.confirmation import LanceCommitter
from boathouse.storage import Stores
from boathouse.storage.local import LocalStorage
from boathouse.table.attempt import Attempt
from boathouse.table.change import Change
from boathouse.table.commit import FileCommitter, commit
from boathouse.table.context import TableContext
from boathouse.table.features import Restorable
from boathouse.table.location import CommitId, Location
from boathouse.table.verdict import Rebase
from makers.traits import REAL, TRAITS


@pytest.fixture(params=REAL)
def format_name(request) -> str:
    return request.param


def one(i: int) -> pa.Table:
    return pa.table({"id": pa.array([i], pa.int64())})


def made(path: Path, format: str) -> bh.Table:
    """A table of one row whose log is cleaned as soon as that is asked for."""
    t = bh.create(str(path), one(0).schema, format=format, properties=TRAITS[format].cleaned_at_once)
    t.append(one(1))
    return t


def go_past(path: Path, format: str) -> None:
    """Two more versions by another writer, and every older one cleaned away."""
    for i in (100, 101):
        PEERS[format].append(str(path), one(i))
    PEERS[format].clean(str(path))


def before_the_put(monkeypatch, step: Callable[[], None]) -> None:
    """`step` happens once, between the look at the head and the put."""
    real, done = FileCommitter.publish, []

    def publish(self: FileCommitter, attempt: Attempt) -> Any:
        if not done:
            done.append(attempt.uri)
            with monkeypatch.context() as m:
                m.setattr(FileCommitter, "publish", real)
                step()
        return real(self, attempt)

    monkeypatch.setattr(FileCommitter, "publish", publish)


def ids(path: Path) -> list[int]:
    return sorted(bh.open(str(path)).to_arrow()["id"].to_pylist())


def ids_by_others(path: Path, format: str) -> list[int]:
    return sorted(by_peer(str(path), format)["id"].to_pylist())


def test_an_append_that_was_put_below_a_cleaned_log_is_put_again(tmp_path, format_name, monkeypatch):
    path = tmp_path / "t"
    t = made(path, format_name)
    before_the_put(monkeypatch, lambda: go_past(path, format_name))
    done = t.append(one(2))
    assert ids(path) == ids_by_others(path, format_name) == [1, 2, 100, 101]
    assert done.retries >= 1 and t.find_write(done.write_id) == done.version == bh.open(str(path)).version


def test_a_delete_that_was_put_below_a_cleaned_log_is_put_again(tmp_path, format_name, monkeypatch):
    path = tmp_path / "t"
    t = made(path, format_name)
    before_the_put(monkeypatch, lambda: go_past(path, format_name))
    t.delete("id = 1")
    assert ids(path) == ids_by_others(path, format_name) == [100, 101]


def test_properties_that_were_put_below_a_cleaned_log_are_not_said_to_be_set(tmp_path, format_name, monkeypatch):
    """Nothing tells such a commit from another's, so that it may be unknown, but never a false success."""
    path = tmp_path / "t"
    t = made(path, format_name)
    before_the_put(monkeypatch, lambda: go_past(path, format_name))
    try:
        t.set_properties({"owner": "us"})
        said = True
    except (CommitUnknownError, CommitConflictError):
        said = False
    assert (bh.open(str(path)).properties.get("owner") == "us") is said


def test_an_overwrite_that_was_put_below_a_cleaned_log_is_not_said_to_be_done(tmp_path, format_name, monkeypatch):
    path = tmp_path / "t"
    t = made(path, format_name)
    before_the_put(monkeypatch, lambda: go_past(path, format_name))
    try:
        t.overwrite(one(7))
        assert ids(path) == [7]
    except CommitUnknownError:
        assert ids(path) == [1, 100, 101]


def test_a_commit_that_others_followed_and_checkpointed_is_found_in_the_checkpoint(tmp_path, monkeypatch):
    """Above our version there may be a checkpoint that was made of it, before we confirm ours."""
    path = tmp_path / "t"
    t = made(path, "delta")
    real = FileCommitter.publish

    def publish(self: FileCommitter, attempt: Attempt) -> Any:
        outcome = real(self, attempt)
        monkeypatch.setattr(FileCommitter, "publish", real)
        go_past(path, "delta")
        return outcome

    for step in (lambda: t.append(one(2)), lambda: t.delete("id = 1"), lambda: t.append(one(3), txn=("etl", 1))):
        monkeypatch.setattr(FileCommitter, "publish", publish)
        done = step()
        assert done.retries == 0
    monkeypatch.setattr(FileCommitter, "publish", publish)
    assert t.set_properties({"owner": "us"}).retries == 0
    assert ids(path) == ids_by_others(path, "delta") == [2, 3, *[100] * 4, *[101] * 4]


def test_a_commit_that_cannot_be_confirmed_at_is_unknown_and_keeps_its_files(tmp_path, format_name, monkeypatch):
    """Whatever fails then, and however fast the put was: it may have gone below a log that was cleaned meanwhile."""
    path = tmp_path / "t"
    t = made(path, format_name)
    kind, commits = type(t._handle.snapshot), type(t._handle.snapshot.commits)
    real, confirm = FileCommitter.publish, commits.confirm
    for i, error in enumerate(
        [UndecidedError("503"), NotFoundError("gone"), KeyError("x"), RuntimeError("y"), OSError()]
    ):

        def publish(self: FileCommitter, attempt: Attempt, error: Exception = error) -> Any:
            outcome = real(self, attempt)

            def failing(*_: Any, **__: Any) -> Any:
                raise error

            monkeypatch.setattr(commits, "confirm", failing)
            monkeypatch.setattr(kind, "newest", failing)
            return outcome

        with monkeypatch.context() as m, system.use(system.SeededSystem(i)):
            newest = kind.newest
            m.setattr(FileCommitter, "publish", publish)
            with pytest.raises(CommitUnknownError, match="find_write") as caught:
                t.append(one(10 + i))
        monkeypatch.setattr(commits, "confirm", confirm)
        monkeypatch.setattr(kind, "newest", newest)
        assert ids(path) == [1, *range(10, 11 + i)]
        now = bh.open(str(path))
        assert t.find_write(caught.value.advice.split("'")[1]) == now.version and t.refresh().version == now.version


STEPS = {
    "append": lambda t: t.append(one(2)),
    "delete": lambda t: t.delete("id = 1"),
    "properties": lambda t: t.set_properties({"owner": "us"}),
}


@pytest.mark.parametrize("step", STEPS)
def test_a_write_that_no_reader_sees_is_not_found(tmp_path, format_name, monkeypatch, step):
    """It was put below a log that was cleaned, and its writer could not confirm it."""
    path = tmp_path / "t"
    t = made(path, format_name)
    commits = type(t._handle.snapshot.commits)
    monkeypatch.setattr(LanceCommitter, "publish", lambda self, a: FileCommitter(self.context.stores).publish(a))

    def failing(*_: Any) -> Any:
        raise UndecidedError("503")

    real = system.current()

    def step_in() -> None:
        with system.use(real):
            go_past(path, format_name)
        m.setattr(commits, "confirm", failing)

    with monkeypatch.context() as m:
        before_the_put(m, step_in)
        with system.use(system.SeededSystem(1)), pytest.raises(CommitUnknownError) as caught:
            STEPS[step](t)
    write_id = caught.value.advice.split("'")[1]
    now = bh.open(str(path))
    assert now.to_arrow()["id"].to_pylist().count(2) == 0 and "owner" not in now.properties
    try:
        assert now.find_write(write_id) is None
    except CommitUnknownError as undecided:
        assert write_id in undecided.message
        assert step != "append" or not TRAITS[format_name].settles_lost_appends


def test_every_write_that_is_retained_is_found_below_checkpoints(tmp_path, format_name):
    path = tmp_path / "t"
    t = bh.create(
        str(path),
        one(0).schema,
        format=format_name,
        properties=TRAITS[format_name].checkpoints,
    )
    done = [t.append(one(i)) for i in range(7)]
    done += [t.delete("id = 3"), t.set_properties({"owner": "us"}), t.optimize()]
    if t._handle.snapshot.offers(Restorable) is not None:
        done.append(t.restore(version=done[2].version))
    assert [t.find_write(d.write_id) for d in done if d.version is not None] == [
        d.version for d in done if d.version is not None
    ]


def test_an_entry_that_readers_do_not_replay_is_no_earlier_success(tmp_path, monkeypatch):
    """It lies right below the checkpoint, and could not be removed."""
    path = tmp_path / "t"
    t = made(path, "delta")
    before_the_put(monkeypatch, lambda: go_past(path, "delta"))
    monkeypatch.setattr(LocalStorage, "delete", lambda *_: None)
    done = t.append(one(2))
    assert (path / "_delta_log" / f"{2:020}.json").exists()
    assert done.retries >= 1 and ids(path) == [1, 2, 100, 101]
    assert t.find_write(done.write_id) == done.version == bh.open(str(path)).version


def test_a_put_in_a_table_that_was_recreated_meanwhile_is_taken_back(tmp_path):
    """Its number would leave a gap in the new table's log."""
    path = tmp_path / "t"
    t = made(path, "delta")
    t.append(one(2))

    def recreate() -> None:
        for file in sorted(path.rglob("*"), reverse=True):
            file.unlink() if file.is_file() else file.rmdir()
        made(path, "delta")

    with pytest.MonkeyPatch.context() as monkeypatch:
        before_the_put(monkeypatch, recreate)
        with pytest.raises((CommitConflictError, CommitUnknownError)):
            t.append(one(3))
    assert ids(path) == [1]


def cleaned_after_the_listing(monkeypatch, format: str, step: Callable[[], None]) -> None:
    """`step` happens once, after the next listing and before what it lists is read."""
    module, name = {
        "delta": (Log, "newest"),
        "lance": (lance_snapshot, "recent"),
        "iceberg": (iceberg_snapshot, "list_metadata"),
    }[format]
    real = getattr(module, name)

    def listed(*args: Any) -> Any:
        found = real(*args)
        monkeypatch.setattr(module, name, real)
        step()
        return found

    monkeypatch.setattr(module, name, listed)


def test_a_log_that_is_cleaned_between_listing_and_reading_is_listed_again(tmp_path, format_name, monkeypatch):
    path = tmp_path / "t"
    made(path, format_name)
    cleaned_after_the_listing(monkeypatch, format_name, lambda: go_past(path, format_name))
    assert ids(path) == [1, 100, 101]


def test_an_append_is_done_though_the_log_is_cleaned_while_it_looks_back(tmp_path, format_name, monkeypatch):
    path = tmp_path / "t"
    t = made(path, format_name)
    real = FileCommitter.publish

    def publish(self: FileCommitter, attempt: Attempt) -> Any:
        outcome = real(self, attempt)
        monkeypatch.setattr(FileCommitter, "publish", real)
        cleaned_after_the_listing(monkeypatch, format_name, lambda: go_past(path, format_name))
        return outcome

    monkeypatch.setattr(FileCommitter, "publish", publish)
    done = t.append(one(2))
    assert done.rows_added == 1 and ids(path) == [1, 2, 100, 101]


def test_a_file_that_is_listed_and_never_there_is_corrupt(tmp_path, monkeypatch):
    path = tmp_path / "t"
    made(path, "delta")
    real = LocalStorage.get

    def get(self: LocalStorage, key: str) -> bytes:
        if key.endswith("1.json"):
            raise NotFoundError("The file does not exist.", where=key)
        return real(self, key)

    monkeypatch.setattr(LocalStorage, "get", get)
    with pytest.raises(CorruptTableError, match="is listed but cannot be read"):
        bh.open(str(path))


class _Contended:
    """A snapshot of a table, and its commits, in which other writers win the first `losses` races, each attempt taking
    `seconds`."""

    def __init__(self, losses: int, seconds: float) -> None:
        self.losses, self.seconds, self.attempts = losses, seconds, 0
        self.identity, self.context = "a", TableContext(Location("memory://contended"), Stores())

    @property
    def version(self) -> int:
        return self.attempts

    @property
    def commits(self) -> Any:
        return self

    def offers(self, feature: type) -> None:
        return None

    def newest(self) -> Any:
        system.current().sleep(self.seconds)
        return self

    def winners(self, *_: Any) -> list[Any]:
        return []

    def check(self, *_: Any) -> Any:
        return Rebase()

    def prepare(self, change: Any) -> Attempt:
        return Attempt("memory://contended/x", b"", CommitId(self.attempts + 1, "x"))

    def publish(self, attempt: Attempt) -> str:
        self.attempts += 1
        return "lost" if self.attempts <= self.losses else "won"

    def confirm(self, *_: Any) -> tuple[str, None]:
        return "won", None

    def after_commit(self, *_: Any) -> None: ...


@pytest.mark.parametrize(("losses", "seconds"), [(0, 0.05), (3, 0.05), (20, 0.05), (60, 0.01), (20, 0.5)])
def test_a_writer_that_loses_waits_as_long_as_a_commit_takes_and_then_not_at_all(losses, seconds):
    table = _Contended(losses, seconds)
    change = Change("x", None, table, "w", "append", ())
    with system.use(system.SeededSystem(3)) as clock:
        started = clock.monotonic()
        outcome = commit(table, change)
        waited = clock.monotonic() - started - seconds * (losses + 2)
    assert outcome.attempts == losses + 1 and table.attempts == losses + 1
    assert waited < 3 * seconds + 0.1


@pytest.mark.parametrize("seen", [True, False])
def test_a_new_table_that_cannot_be_opened_is_said_to_exist_if_it_was_seen(tmp_path, monkeypatch, seen):
    def failing(*_: Any, **__: Any) -> Any:
        raise StorageError("the store is gone")

    real, confirm = FileCommitter.publish, DeltaCommits.confirm

    def looked(self: DeltaCommits[Any], attempt: Attempt, change: Change) -> Any:
        with monkeypatch.context() as m:
            if seen:
                m.setattr(new_table, "load", opens)
            return confirm(self, attempt, change)[0], None

    def publish(self: FileCommitter, attempt: Attempt) -> Any:
        outcome = real(self, attempt)
        monkeypatch.setattr(DeltaCommits, "confirm", looked)
        monkeypatch.setattr(new_table, "load", failing)
        monkeypatch.setattr(DeltaFormat, "open", failing)
        return outcome

    opens, opened = new_table.load, DeltaFormat.open
    monkeypatch.setattr(FileCommitter, "publish", publish)
    with system.use(system.SeededSystem(5)):
        with pytest.raises(StorageError if seen else CommitUnknownError, match="was created" if seen else "may not"):
            bh.create(str(tmp_path / "a"), one(0).schema)
        monkeypatch.setattr(DeltaFormat, "open", opened)
        monkeypatch.setattr(new_table, "load", opens)
        if seen:
            assert bh.write(one(1), str(tmp_path / "b")).rows_added == 1
        else:
            with pytest.raises(CommitUnknownError):
                bh.write(one(1), str(tmp_path / "b"))
    monkeypatch.undo()
    assert bh.open(str(tmp_path / "a")).count() == 0 and ids(tmp_path / "b") == [1]
