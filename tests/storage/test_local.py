"""The local disk: conformance, races between processes, and what the disk may refuse."""

import errno
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest

from boathouse.bits import system
from boathouse.errors import AlreadyExistsError, StorageError, UndecidedError, UnsafeStorageError
from boathouse.storage import LocalStorage, PutMode, Stores
from boathouse.testing.clocks import Ahead
from boathouse.testing.storage import StorageConformance


class TestLocal(StorageConformance):
    @pytest.fixture
    def storage(self):
        return LocalStorage()

    @pytest.fixture
    def prefix(self, tmp_path):
        return str(tmp_path).lstrip("/") + "/conformance"


class TestLocalAwkwardRoot(TestLocal):
    @pytest.fixture
    def prefix(self, tmp_path):
        return str(tmp_path).lstrip("/") + "/a%20b #12/ü+:?"


def _race(barrier, folder: str, worker: int, seed: int, won) -> None:
    storage = LocalStorage()
    with system.use(system.SeededSystem(seed)):
        for turn in range(10):
            barrier.wait()
            try:
                storage.put(f"{folder}/{turn:020d}.json", b"%d" % worker * 5000, PutMode.CREATE)
                won.put((turn, worker))
            except AlreadyExistsError:
                pass


@pytest.mark.parametrize("seeded_alike", [False, True])
def test_eight_processes_create_one_key(tmp_path: Path, seeded_alike: bool) -> None:
    spawn = multiprocessing.get_context("fork")
    barrier, won = spawn.Barrier(8), spawn.Queue()
    folder = str(tmp_path).lstrip("/") + "/log"
    workers = [spawn.Process(target=_race, args=(barrier, folder, n, 0 if seeded_alike else n, won)) for n in range(8)]
    for worker in workers:
        worker.start()
    winners = dict(won.get(timeout=60) for _ in range(10))
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    assert won.empty() and sorted(winners) == list(range(10))
    for turn, worker in winners.items():
        assert (tmp_path / "log" / f"{turn:020d}.json").read_bytes() == b"%d" % worker * 5000
    assert len(os.listdir(tmp_path / "log")) == 10  # no temporary file is left


def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    """A writer in another process replaces a file again and again; every read is one of the two whole contents."""
    target = tmp_path / "f"
    script = (
        "import sys; from boathouse.storage import LocalStorage; s = LocalStorage()\n"
        "for n in range(200): s.put(sys.argv[1], (b'a', b'b')[n % 2] * 300_000)"
    )
    storage = LocalStorage()
    storage.put(str(target), b"a" * 300_000)
    child = subprocess.Popen([sys.executable, "-c", script, str(target)])
    seen = set()
    while child.poll() is None:
        seen.add(storage.get(str(target)))
    assert child.returncode == 0
    assert seen <= {b"a" * 300_000, b"b" * 300_000}


def test_a_killed_writer_leaves_only_a_hidden_file(tmp_path: Path) -> None:
    script = (
        "import os, sys; from boathouse.storage import LocalStorage\n"
        "w = LocalStorage().open_write(sys.argv[1]); w.write(b'x' * 1000); os._exit(137)"
    )
    assert subprocess.run([sys.executable, "-c", script, str(tmp_path / "f")]).returncode == 137
    storage, key = Stores().resolve(tmp_path)
    assert list(storage.list(key)) == [] and storage.list_dir(key) == ([], [])
    assert [name for name in os.listdir(tmp_path) if not name.startswith(".boathouse-")] == []
    assert len(os.listdir(tmp_path)) == 1


def test_no_hard_links_refuses_create(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_args: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    storage, key = Stores().resolve(tmp_path / "f")
    with pytest.raises(UnsafeStorageError, match="hard links"):
        storage.put(key, b"1", PutMode.CREATE)
    assert os.listdir(tmp_path) == []
    storage.put(key, b"1")
    assert storage.get(key) == b"1"


def test_own_link_whose_answer_was_lost_is_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.link

    def link_twice(source: str, target: str) -> None:
        real(source, target)
        real(source, target)

    monkeypatch.setattr(os, "link", link_twice)
    LocalStorage().put(str(tmp_path / "f"), b"1", PutMode.CREATE)
    assert (tmp_path / "f").read_bytes() == b"1" and os.listdir(tmp_path) == ["f"]


@pytest.mark.parametrize(
    ("code", "kind", "text"),
    [
        (errno.EACCES, StorageError, "Permission denied"),
        (errno.EROFS, StorageError, "Permission denied"),
        (errno.ENOSPC, StorageError, "No space"),
        (errno.EIO, UndecidedError, "outcome of the disk operation is unknown"),
        (errno.ESTALE, UndecidedError, "outcome of the disk operation is unknown"),
    ],
)
def test_disk_errors_are_typed(tmp_path, monkeypatch, code, kind, text) -> None:
    def fail(*_args: object, **_named: object) -> None:
        raise OSError(code, os.strerror(code))

    storage, key = Stores().resolve(tmp_path / "f")
    storage.put(key, b"old")
    monkeypatch.setattr(os, "write", fail)
    with pytest.raises(kind, match=text) as caught:
        storage.put(key, b"new")
    assert type(caught.value) is kind and caught.value.where == storage.uri(key)
    monkeypatch.undo()
    assert storage.get(key) == b"old" and os.listdir(tmp_path) == ["f"]
    monkeypatch.setattr(os, "open", fail)
    with pytest.raises(kind, match=text):
        storage.get(key)
    monkeypatch.undo()
    monkeypatch.setattr(os, "scandir", fail)
    with pytest.raises(kind, match=text):
        list(storage.list(str(tmp_path)))
    monkeypatch.undo()
    monkeypatch.setattr(os, "unlink", fail)
    with pytest.raises(kind, match=text):
        storage.delete([key])


def test_a_file_where_a_folder_should_be(tmp_path: Path) -> None:
    storage, key = Stores().resolve(tmp_path / "f")
    storage.put(key, b"")
    with pytest.raises(StorageError):
        storage.put(key + "/below", b"", PutMode.CREATE)
    storage.put(str(tmp_path / "folder/x"), b"")
    with pytest.raises(StorageError):
        storage.put(str(tmp_path / "folder"), b"")
    with pytest.raises(StorageError):
        storage.delete([str(tmp_path / "folder")])
    assert sorted(os.listdir(tmp_path)) == ["f", "folder"]


def test_links_are_followed_and_broken_ones_skipped(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/x").write_bytes(b"1")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "broken").symlink_to(tmp_path / "nowhere")
    storage, key = Stores().resolve(tmp_path)
    assert [info.key for info in storage.list(key)] == [f"{key}/link/x", f"{key}/real/x"]


def test_a_link_to_nothing_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "broken").symlink_to(tmp_path / "nowhere")
    storage, key = Stores().resolve(tmp_path / "broken/f")
    with pytest.raises(StorageError):
        storage.put(key, b"", PutMode.CREATE)


def test_a_deep_tree(tmp_path: Path) -> None:
    deep = str(tmp_path)
    for _ in range(1200):  # more than Python's own stack holds; os.makedirs would recurse
        deep += "/d"
        os.mkdir(deep)
    Path(deep, "f").write_bytes(b"")
    storage, key = Stores().resolve(tmp_path)
    assert len(list(storage.list(key))) == 1
    for length in range(len(deep), len(str(tmp_path)), -2):  # pytest's own clean-up recurses
        for name in os.listdir(deep[:length]):
            os.unlink(f"{deep[:length]}/{name}")
        os.rmdir(deep[:length])


def test_a_put_is_forced_to_the_disk_before_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    for name in ("fsync", "link", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *a, real=real, name=name: (calls.append(name), real(*a))[1])
    storage, key = Stores().resolve(tmp_path / "f")
    storage.put(key, b"1", PutMode.CREATE)
    storage.put(key, b"2")
    assert calls == ["fsync", "link", "fsync", "fsync", "replace", "fsync"]


def test_the_next_writer_removes_temporary_files_that_are_older_than_a_day(tmp_path: Path) -> None:
    storage, folder = LocalStorage(), str(tmp_path)
    left = tmp_path / ".boathouse-1f-00112233445566778899aabbccddeeff.tmp"
    for other in (left, tmp_path / ".boathouse-mine", tmp_path / "x.tmp"):
        other.write_bytes(b"half")
    storage.put(f"{folder}/a", b"a")
    with system.use(Ahead(23)):
        storage.put(f"{folder}/b", b"b")
        assert left.exists() and not storage.abandoned(folder)
    with system.use(Ahead(25)):
        assert [i.key for i in storage.abandoned(folder)] == [str(left)[1:]]
        storage.put(f"{folder}/c", b"c", PutMode.CREATE)
    assert sorted(os.listdir(tmp_path)) == [".boathouse-mine", "a", "b", "c", "x.tmp"]
