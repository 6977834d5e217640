"""The external manifest store: commits through it, readers that finish them, and those who do not know it."""

from __future__ import annotations

import multiprocessing
import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.bits import system
from boathouse.errors import CommitUnknownError, CorruptTableError, StorageError, UndecidedError, UnsafeStorageError
from boathouse.lance.adapter import FORMAT
from boathouse.lance.external import commit as external_commit
from boathouse.lance.external.store import Entry
from boathouse.lance.manifests.versions import manifest_name
from boathouse.storage import PutMode, Stores
from boathouse.testing.faults import Fault, FaultyStorage, Plan

from .manifest_stores import LOST, StoreKit, failing, raising

lance = pytest.importorskip("lance")
UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
STEPS = ("stage", "reserve", "copy", "update", "delete", "end")
"""What a commit does, in this order. A writer dies before one of them."""


@pytest.fixture
def kit(tmp_path) -> StoreKit:
    return StoreKit(tmp_path / "t", tmp_path / "commits.db")


def ids(table) -> list[int]:
    return sorted(table.to_arrow().column("a").to_pylist())


def row(a: int) -> pa.Table:
    return pa.table({"a": pa.array([a], pa.int64())})


class Steps(FaultyStorage):
    """Tells the steps of a commit that are requests to the folder."""

    def __init__(self, inner, step) -> None:
        super().__init__(inner)
        self._step = step

    def put(self, key, data, mode=PutMode.OVERWRITE):
        if "/_versions/" in key:
            self._step("stage" if ".manifest-" in key else "copy")
        super().put(key, data, mode)

    def delete(self, keys):
        names = [*keys]
        if any(".manifest-" in name for name in names):
            self._step("delete")
        super().delete(names)


def watched(kit, patch, step) -> None:
    """From now on `step` is called before each step of a commit."""
    names = {"put_if_absent": "reserve", "put_if_exists": "update"}
    failing(patch, kit.store, before=lambda method, entry: step(names[method]))
    made = Stores.__init__

    def init(self, options=None, **given):
        made(self, options, **{**given, "wrap": lambda inner: Steps(inner, step)})

    patch.setattr(Stores, "__init__", init)


@pytest.mark.spec("L-075")
@pytest.mark.feature("external manifest store", format="lance")
def test_a_commit_is_staged_chosen_copied_and_told(kit, monkeypatch):
    table = kit.create(row(1))
    done: list[str] = []
    with monkeypatch.context() as patch:
        watched(kit, patch, done.append)
        kit.open().append(row(2))
    assert done == list(STEPS[:-1])
    table.refresh()
    assert ids(table) == [1, 2] and ids(kit.alone()) == [1, 2]
    assert kit.dataset().to_table().column("a").to_pylist() == [1, 2]
    assert kit.names() == [manifest_name(v, "V2") for v in (2, 1)]
    assert kit.entries() == {v: manifest_name(v, "V2") for v in (1, 2)}
    sizes = {path.name: path.stat().st_size for path in (kit.root / "_versions").iterdir()}
    for base, version, path, committer, size in kit.rows():
        assert (base, committer) == (kit.location.uri, "boathouse")
        assert path == f"{base}/_versions/{manifest_name(version, 'V2')}" and size == sizes[path.rpartition("/")[2]]


def die_before(kit: StoreKit, at: str, rows: pa.Table) -> None:
    """Appends in a process that ends before the step, at its first time."""

    def run() -> None:
        def step(name):
            if name == at:
                os._exit(9)

        with pytest.MonkeyPatch.context() as patch:
            watched(kit, patch, step)
            kit.open().append(rows)
        os._exit(0)

    process = multiprocessing.get_context("fork").Process(target=run)
    process.start()
    process.join(60)
    assert process.exitcode == (0 if at == "end" else 9)


@pytest.mark.spec("L-075", "L-076", "L-079", "L-073")
@pytest.mark.parametrize("at", STEPS)
def test_a_writer_dies_before_each_step(kit, at):
    """The store's choice is the commit for whoever knows the store, the copy for the others: they are one version
    behind until somebody has made it."""
    kit.create(row(1)).append(row(2))
    die_before(kit, at, row(3))
    chosen, copied = STEPS.index(at) > 1, STEPS.index(at) > 2
    left = [name for name in kit.names() if ".manifest-" in name]
    assert bool(left) == (at not in ("stage", "end"))
    if left:
        assert re.fullmatch(rf"{manifest_name(3, 'V2')}-{UUID}", left[0])
    if at in ("copy", "update"):
        assert kit.entries()[3] == left[0]
    after, behind = [1, 2, 3] if chosen else [1, 2], [1, 2, 3] if copied else [1, 2]
    assert ids(kit.alone()) == sorted(kit.dataset().to_table().column("a").to_pylist()) == behind
    assert ids(kit.open()) == after
    # The reader has finished it, so that everybody sees it.
    assert ids(kit.alone()) == sorted(kit.dataset().to_table().column("a").to_pylist()) == after
    assert kit.entries() == {v: manifest_name(v, "V2") for v in range(1, len(after) + 1)}
    if at in ("copy", "update"):
        assert not [name for name in kit.names() if ".manifest-" in name]
    kit.open().append(row(4))
    assert ids(kit.open()) == ids(kit.alone()) == [*after, 4]
    assert kit.open().version == len(after) + 1


@pytest.mark.spec("L-076")
def test_the_first_version_is_finished_too(kit):
    kit.create(row(1))
    staged = kit.root / "_versions" / f"{manifest_name(1, 'V2')}-x"
    (kit.root / "_versions" / manifest_name(1, "V2")).rename(staged)
    kit.store.put_if_exists(kit.location.uri, Entry(1, f"{kit.location.uri}/_versions/{staged.name}"))
    assert bh.detect(kit.uri) == ()
    assert bh.detect(kit.uri, kit.options) == ("lance",)
    assert ids(kit.open()) == ids(kit.alone()) == [1]


@pytest.mark.spec("L-074")
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("method", ["put_if_absent", "put_if_exists"])
@pytest.mark.parametrize("error", [LOST, StorageError("refused")])
def test_answers_of_the_store_that_are_lost(kit, monkeypatch, when, method, error):
    table = kit.create(row(1))
    with monkeypatch.context() as patch:
        failing(patch, kit.store, **{when: raising(method, error)})
        if (method, when, error) == ("put_if_absent", "before", error) and error is not LOST:
            with pytest.raises(StorageError, match="refused"):
                table.append(row(2))
            assert kit.names() == [manifest_name(1, "V2")]  # nothing is left of it
            table.append(row(2))
        else:
            assert table.append(row(2)).version == 2
    assert ids(kit.open()) == ids(kit.alone()) == [1, 2]
    assert kit.entries() == {v: manifest_name(v, "V2") for v in (1, 2)}


@pytest.mark.parametrize("fault", [Fault.LOST, Fault.UNSENT, Fault.REFUSED])
@pytest.mark.parametrize("at", ["stage", "copy", "delete"])
def test_answers_of_the_folder_that_are_lost(kit, numbers, fault, at):
    """A manifest that could not be staged was not committed; after that, the read that confirms the commit copies it
    again."""
    kit.create(numbers)
    failed: list[str] = []

    def choose(operation):
        step = {"put": "stage" if ".manifest-" in operation.key else "copy", "delete": "delete"}.get(operation.name)
        if step != at or "/_versions/" not in operation.key or failed:
            return None
        failed.append(at)
        return fault

    context = kit.wrapped(lambda inner: FaultyStorage(inner, Plan(choose=choose)))
    table = bh.api.table.Table(bh.ops.handle.Handle(FORMAT.open(context)), None)
    if at == "stage":
        with pytest.raises(StorageError):
            table.append(numbers)
    else:
        table.append(numbers)
    assert failed == [at]
    expected = 10 if at == "stage" else 20
    assert kit.open().count() == kit.dataset().count_rows() == expected
    assert kit.open().version == len(kit.entries()) == expected // 10


def test_a_store_that_stays_silent(kit, monkeypatch, clock):
    """Whether a put without an answer has taken effect only the store can tell."""
    table = kit.create(row(1))

    def silent(*_):
        raise UndecidedError("no answer")

    with monkeypatch.context() as patch:
        store = failing(patch, kit.store)
        store.after = lambda method, entry: silent()
        store.get = silent
        with pytest.raises(CommitUnknownError, match="may or may not"):
            table.append(row(2))
    assert ids(kit.alone()) == [1]  # the staged manifest stays, as it was chosen
    assert ids(kit.open()) == ids(kit.alone()) == [1, 2]


@pytest.fixture
def clock():
    """No test waits for the pauses between looks."""
    with system.use(system.SeededSystem(26)):
        yield


def test_somebody_finishes_ours_while_we_do_not_know_of_it(kit, monkeypatch):
    """The answer of the put is lost, and a reader made the version final meanwhile: it is ours by its bytes."""
    table = kit.create(row(1))
    reader = kit.context

    def finished(method, entry):
        if method == "put_if_absent":
            monkeypatch.undo()
            assert FORMAT.open(reader).version == 2
            raise LOST

    failing(monkeypatch, kit.store, after=finished)
    assert table.append(row(2)).version == 2
    assert ids(kit.open()) == [1, 2] and len(kit.names()) == 2


@pytest.mark.spec("L-080")
@pytest.mark.parametrize("final", [False, True])
def test_the_store_decides_between_two_writers(kit, monkeypatch, final):
    """Both have staged version 2. The one whose entry is there already wins, final or not, and the other follows it."""
    table = kit.create(row(1))
    publish = external_commit.StoreCommitter._reserve
    others = []

    def overtaken(self, ours, attempt):
        if not others:
            others.append(1)
            if final:
                kit.open().append(row(2))
            else:
                die_before(kit, "copy", row(2))
        return publish(self, ours, attempt)

    monkeypatch.setattr(external_commit.StoreCommitter, "_reserve", overtaken)
    assert table.append(row(3)).version == 3
    assert ids(kit.open()) == ids(kit.alone()) == [1, 2, 3]
    assert not [name for name in kit.names() if ".manifest-" in name]


def _appender(uri: str, options: dict[str, str], number: int, times: int) -> None:
    for i in range(times):
        bh.write(row(number * 1000 + i), uri, format="lance", mode="append", storage_options=options)


@pytest.mark.spec("L-080", "L-060", "L-072")
@pytest.mark.parametrize(("count", "each"), [(2, 4), pytest.param(8, 25, marks=pytest.mark.slow)])
def test_processes_append(kit, count, each):
    kit.create(row(-1))
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_appender, args=(kit.uri, kit.options, n, each)) for n in range(count)]
    for p in processes:
        p.start()
    for p in processes:
        p.join(300)
    assert [p.exitcode for p in processes] == [0] * count
    expected = sorted([-1, *(n * 1000 + i for n in range(count) for i in range(each))])
    assert ids(kit.open()) == ids(kit.alone()) == expected
    assert sorted(kit.dataset().to_table().column("a").to_pylist()) == expected
    assert kit.entries() == {v: manifest_name(v, "V2") for v in range(1, count * each + 2)}
    assert kit.names() == sorted(kit.entries().values())


def test_threads_append_and_delete(kit):
    kit.create(pa.table({"a": list(range(12))}))

    def change(i):
        kit.open().delete(f"a = {i}") if i % 2 else kit.open().append(row(100 + i))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(change, range(8)))
    assert ids(kit.open()) == ids(kit.alone()) == [0, 2, 4, 6, 8, 9, 10, 11, 100, 102, 104, 106]
    assert kit.open().version == len(kit.entries()) == len(kit.names()) == 9


@pytest.mark.spec("L-078")
def test_a_final_path_is_returned_at_once(kit, monkeypatch):
    kit.create(row(1)).append(row(2))
    before = {name: (kit.root / "_versions" / name).stat() for name in kit.names()}
    storages: list[FaultyStorage] = []

    def watch(inner):
        storages.append(FaultyStorage(inner))
        return storages[-1]

    store = failing(monkeypatch, kit.store)
    assert FORMAT.open(kit.wrapped(watch)).version == 2
    assert not store.calls and sum(s.writes for s in storages) == 0
    assert sum(s.count("get") for s in storages) == 1
    assert {name: (kit.root / "_versions" / name).stat() for name in kit.names()} == before


@pytest.mark.spec("L-077")
@pytest.mark.parametrize("what", ["gone", "cut off", "no manifest", "refused", "elsewhere", "another version"])
def test_a_version_that_cannot_be_made_final_is_not_read(kit, what):
    kit.create(row(1))
    die_before(kit, "copy", row(2))
    staged = next((kit.root / "_versions").glob("*.manifest-*"))
    base, stores = kit.location.uri, kit.stores
    entry = kit.store.get(base, 2)
    error, message = CorruptTableError, "version 2"
    if what == "gone":
        staged.rename(kit.root / "kept")
        message = "neither the staged manifest nor the final one is there"
    elif what == "cut off":
        staged.write_bytes(staged.read_bytes()[:-20])
        message = "bytes instead of"
    elif what == "no manifest":
        staged.write_bytes(b"x" * entry.size)
        message = "ends with"
    elif what == "refused":
        error, message = StorageError, "refused"
        plan = Plan(choose=lambda o: Fault.REFUSED if o.name == "put" else None)
        stores = kit.wrapped(lambda inner: FaultyStorage(inner, plan)).stores
    elif what == "elsewhere":
        kit.store.put_if_exists(base, replace(entry, uri=f"{base}/data/{staged.name}"))
    else:
        kit.store.put_if_exists(base, replace(entry, uri=entry.uri.replace(manifest_name(2, "V2"), "3.manifest")))
    with pytest.raises(error, match=message):
        FORMAT.open(replace(kit.context, stores=stores))
    if what != "no manifest":
        assert ids(kit.alone()) == [1]
    if what == "gone":
        (kit.root / "kept").rename(staged)
        assert ids(kit.open()) == [1, 2]


def test_a_reader_that_others_have_overtaken(kit, monkeypatch):
    """It was told of version 2 before that was final; now it has expired."""
    kit.create(row(1))
    die_before(kit, "copy", row(2))
    early = kit.store.latest(kit.location.uri)
    kit.open().append(row(3))
    kit.open().expire_snapshots(older_than="2100-01-01", retain_last=1)
    store, answers = failing(monkeypatch, kit.store), [early]
    store.latest = lambda base: answers.pop() if answers else kit.store.latest(base)
    assert ids(kit.open()) == [1, 2, 3] and not answers
    assert kit.names() == [manifest_name(3, "V2")]


@pytest.mark.spec("L-077")
def test_a_final_manifest_that_is_not_what_the_store_says(kit):
    kit.create(row(1)).append(row(2))
    path = kit.root / "_versions" / manifest_name(2, "V2")
    data = path.read_bytes()
    path.write_bytes(data[:-3])
    with pytest.raises(CorruptTableError, match=f"a manifest of {len(data) - 3} bytes, which by .* has {len(data)}"):
        kit.open()
    path.unlink()
    with pytest.raises(CorruptTableError, match="has version 2, which is not in the folder"):
        kit.open()
    with pytest.raises(CorruptTableError, match="has version 2, which is not in the folder"):
        kit.open(version=1)


@pytest.mark.spec("L-077")
def test_a_table_that_was_removed_is_still_in_the_store(kit):
    """Another one at its place would have versions that the store has already."""
    kit.create(row(1))
    shutil.rmtree(kit.root)
    with pytest.raises(CorruptTableError, match="remove its entries from the store") as caught:
        kit.create(row(2))
    assert caught.value.where.startswith(kit.location.uri) and not kit.root.exists()
    kit.store.forget(kit.location.uri)
    assert ids(kit.create(row(2))) == [2]


@pytest.mark.spec("L-081")
def test_the_folder_alone_is_a_whole_table(kit, tmp_path):
    table = kit.create(pa.table({"a": list(range(10)), "s": list("abcdefghij")}))
    table.append(pa.table({"a": [10], "s": ["k"]}))
    table.delete("a < 3")
    table.refs.create_tag("kept", version=2)
    copy = tmp_path / "copy"
    shutil.copytree(kit.root, copy)
    shutil.rmtree(kit.root)
    kit.path.unlink()
    ours = bh.open(str(copy))
    assert ids(ours) == list(range(3, 11)) and ids(bh.open(str(copy), ref="kept")) == list(range(11))
    assert [e.operation for e in ours.history()] == ["delete", "append", "create"]
    theirs = lance.dataset(str(copy))
    assert theirs.to_table().num_rows == 8 and [v["version"] for v in theirs.versions()] == [1, 2, 3]
    theirs.validate()
    ours.append(pa.table({"a": [11], "s": ["l"]}))
    assert lance.dataset(str(copy)).count_rows() == 9


def test_a_table_that_had_no_store(kit):
    """Its versions are in the folder; the next one is in the store too."""
    bh.write(row(1), kit.uri, format="lance")
    kit.pylance(row(2), mode="append")
    assert ids(kit.open()) == [1, 2] and kit.entries() == {}
    kit.open().append(row(3))
    assert kit.entries() == {3: manifest_name(3, "V2")}
    assert ids(kit.open()) == ids(kit.alone()) == [1, 2, 3] and ids(kit.open(version=1)) == [1]


@pytest.mark.parametrize("pylance", [False, True])
def test_a_commit_of_somebody_who_does_not_know_the_store(kit, pylance):
    """It is in the folder, so it is in the table: it is read, and followed."""
    kit.create(row(1))
    kit.pylance(row(2), mode="append") if pylance else kit.alone().append(row(2))
    assert ids(kit.open()) == [1, 2]
    kit.open().append(row(3))
    assert ids(kit.open()) == ids(kit.alone()) == [1, 2, 3]
    assert sorted(kit.entries()) == [1, 3]


@pytest.mark.parametrize("ours_dies", [False, True])
def test_two_manifests_of_a_version_one_of_them_past_the_store(kit, monkeypatch, ours_dies):
    """The store has chosen ours as version 2, and then somebody who does not know it puts another one in the folder.
    Nobody was told of ours yet, and they were of theirs."""
    table = kit.create(row(1))
    if ours_dies:
        die_before(kit, "copy", row(9))
        kit.alone().append(row(2))
        assert ids(kit.open()) == [1, 2]
        table.append(row(3))
    else:
        put = kit.store.put_if_absent

        def chosen(method, entry):
            if method == "put_if_absent":
                monkeypatch.undo()
                kit.alone().append(row(2))

        failing(monkeypatch, kit.store, after=chosen)
        assert table.append(row(3)).version == 3
        assert put(kit.location.uri, Entry(3, "x")) is False
    assert ids(kit.open()) == ids(kit.alone()) == [1, 2, 3]
    assert kit.entries() == {v: manifest_name(v, "V2") for v in (1, 2, 3)}
    assert kit.names() == sorted(kit.entries().values())


def test_another_s_manifest_is_not_confirmed_as_ours(kit, monkeypatch):
    """Ours is chosen and cannot be copied; before it is read back, another one is in its place."""
    table = kit.create(row(1))
    finish = external_commit.finish

    def refused(*arguments):
        monkeypatch.setattr(external_commit, "finish", finish)
        kit.alone().append(row(2))
        raise StorageError("refused")

    monkeypatch.setattr(external_commit, "finish", refused)
    assert table.append(row(3)).version == 3
    assert ids(kit.open()) == ids(kit.alone()) == [1, 2, 3]


class NoConditions(FaultyStorage):
    """An object store without conditional puts."""

    atomic_create = False

    def put(self, key, data, mode=PutMode.OVERWRITE):
        if mode is PutMode.CREATE:
            raise UnsafeStorageError("this store cannot create a file atomically")
        super().put(key, data, mode)


def test_a_store_without_conditional_puts(kit, monkeypatch):
    """What manifest stores were made for."""
    made = Stores.__init__
    monkeypatch.setattr(
        Stores, "__init__", lambda self, options=None, **given: made(self, options, **{**given, "wrap": NoConditions})
    )
    with pytest.raises(UnsafeStorageError):
        bh.write(row(1), f"{kit.uri}-alone", format="lance")
    table = kit.create(pa.table({"a": list(range(10))}))
    table.append(row(10))
    table.delete("a < 3")
    table.update({"a": "a + 100"}, where="a = 5")
    table.optimize()
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda i: kit.open().append(row(20 + i)), range(6)))
    assert ids(kit.open()) == [3, 4, 6, 7, 8, 9, 10, *range(20, 26), 105]
    with pytest.raises(UnsafeStorageError, match="manifest_store"):
        kit.alone().append(row(1))
    with pytest.raises(UnsafeStorageError):
        table.refs.create_tag("x")
