"""Commits: what is written and in which order, what follows what, races, crashes, lost answers."""

from __future__ import annotations

import multiprocessing
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pyarrow as pa
import pytest

from boathouse.errors import CommitConflictError, CommitUnknownError, InvalidArgumentError, UnsupportedFeatureError
from boathouse.lance.adapter import FORMAT
from boathouse.lance.commit.confirmation import LanceCommitter
from boathouse.lance.manifests.file import serialise
from boathouse.lance.manifests.messages import Transaction
from boathouse.lance.manifests.versions import manifest_name
from boathouse.storage import Stores
from boathouse.table.change import Change
from boathouse.table.commit import Conflicted, FileCommitter, commit
from boathouse.table.context import TableContext
from boathouse.table.edits import AddFiles, SetProperties
from boathouse.table.features import LiveFiles
from boathouse.table.location import At
from boathouse.testing.faults import Fault, FaultyStorage, Plan

UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"


@pytest.mark.spec("L-001")
def test_a_new_dataset_holds_data_manifest_and_transaction(kit, numbers):
    kit.create(numbers)
    patterns = (
        rf"data/[01]{{24}}[0-9a-f]{{26}}-{UUID}\.lance",
        rf"_transactions/0-{UUID}\.txn",
        r"_versions/\d{20}\.manifest",
    )
    files = sorted(kit.files())
    assert len(files) == 3
    for pattern in patterns:
        assert sum(re.fullmatch(pattern, f) is not None for f in files) == 1


@pytest.mark.spec("L-015", "L-062", "L-128")
def test_the_transaction_is_recorded_twice(kit, numbers):
    table = kit.create(numbers)
    table.append(numbers, message="hello", metadata={"who": "me"}, txn=("app", 7))
    snapshot = kit.load()
    name = snapshot.manifest.transaction_file
    assert re.fullmatch(rf"1-{UUID}\.txn", name)
    raw = (kit.root / "_transactions" / name).read_bytes()
    assert Transaction.decode(raw) == snapshot.document.transaction
    transaction = snapshot.document.transaction
    assert transaction.read_version == 1 and transaction.uuid == name[2:-4]
    assert transaction.operation == "append" and transaction.append.fragments[0].id == 0
    theirs = kit.dataset().read_transaction(2)
    assert theirs.uuid == transaction.uuid
    assert theirs.transaction_properties["__lance_commit_message"] == "hello"
    assert "boathouse.write-id" in theirs.transaction_properties
    entry = table.history(1)[0]
    assert (entry.operation, entry.message, dict(entry.metadata)) == ("append", "hello", {"who": "me"})
    assert entry.parameters["txn"] == ("app", "7") and entry.parameters["uuid"] == transaction.uuid
    assert table.find_write(entry.write_id) == 2 and table.find_write("none") is None
    assert snapshot.history.app_version("app") == 7
    assert snapshot.history.app_version("other") is None
    assert table.append(numbers, txn=("app", 7)).skipped


@pytest.mark.spec("L-063")
def test_each_of_our_operations_has_its_message(kit, numbers):
    table = kit.create(numbers)
    table.append(numbers)
    table.delete("a = 1")
    table.overwrite(pa.table({"a": [2], "s": ["two"]}), where="a = 2")
    table.set_properties({"x": "1"})
    table.add_column("n", "int")
    table.overwrite(numbers.append_column("n", pa.nulls(10, pa.int32())))
    kinds = ["overwrite", "append", "delete", "update", "update_config", "merge", "overwrite"]
    found = [kit.load(At(version=v)).document.transaction.operation for v in range(1, 8)]
    assert found == kinds
    theirs = [type(t.operation).__name__ for t in reversed(kit.dataset().get_transactions(10))]
    assert theirs == ["Overwrite", "Append", "Delete", "Update", "UpdateConfig", "Merge", "Overwrite"]


@pytest.mark.spec("L-023", "L-028", "L-024", "L-014")
def test_fragments_over_appends_and_overwrites(kit, numbers):
    table = kit.create(numbers)
    first = kit.load().manifest.fragments[0]
    table.append(numbers)
    second = kit.load().manifest
    assert second.fragments[0] == first and [f.id for f in second.fragments] == [0, 1]
    assert second.max_fragment_id == 1
    table.overwrite(numbers.slice(0, 2))
    third = kit.load().manifest
    assert [f.id for f in third.fragments] == [2] and third.max_fragment_id == 2
    assert kit.open(version=2).count() == 20 and kit.dataset(version=2).count_rows() == 20
    assert table.count() == kit.dataset().count_rows() == 2
    table.delete()
    table.append(numbers)
    assert [f.id for f in kit.load().manifest.fragments] == [3]


@pytest.mark.spec("L-018", "L-058", "L-030")
def test_versions_and_columns_of_data_files(kit):
    data = pa.table({"a": [1], "s": [{"x": 1, "y": "q"}], "l": [[1, 2]]})
    table = kit.create(data)
    table.append(data)
    manifest = kit.load().manifest
    assert (manifest.data_format.file_format, manifest.data_format.version) == ("lance", "2.2")
    for fragment in manifest.fragments:
        (file,) = fragment.files
        assert (file.file_major_version, file.file_minor_version) == (2, 2)
        assert file.fields == (0, 2, 3, 5) and file.column_indices == (0, 1, 2, 3)
        assert file.file_size_bytes == (kit.root / "data" / file.path).stat().st_size
    kit.dataset().validate()


@pytest.mark.spec("L-057", "L-058")
def test_tables_of_file_version_0_1_take_no_new_files(kit, numbers):
    kit.pylance(numbers, data_storage_version="legacy")
    before, table = kit.files(), kit.open()
    for write in (
        lambda: table.append(numbers),
        lambda: table.overwrite(numbers),
        lambda: table.update({"a": "1"}),
        lambda: table.optimize() and table.append(numbers),
    ):
        with pytest.raises(UnsupportedFeatureError, match=r"version 0\.1"):
            write()
    assert kit.files() == before
    table.delete("a < 4")
    assert kit.dataset().count_rows() == table.count() == 6


@pytest.mark.spec("L-058")
@pytest.mark.parametrize("version", ["2.0", "2.1"])
def test_what_a_file_version_cannot_hold_is_refused_before_anything_is_written(kit, numbers, version):
    kit.pylance(numbers, data_storage_version=version)
    before, table = kit.files(), kit.open()
    maps = pa.table({"m": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64()))})
    for write in (
        lambda: table.add_column("m", "map<string, bigint>"),
        lambda: table.overwrite(maps, overwrite_schema=True),
    ):
        with pytest.raises(UnsupportedFeatureError, match=rf"`m`, a map, in a file of version {version}"):
            write()
    assert kit.files() == before


@pytest.mark.spec("L-103")
def test_null_structs_are_refused_in_files_of_2_0(kit):
    kit.pylance(pa.table({"s": [{"x": 1}]}), data_storage_version="2.0")
    before = kit.files()
    with pytest.raises(UnsupportedFeatureError, match=r"null structs in `s` in a file of version 2\.0"):
        kit.open().append(pa.table({"s": pa.array([None, {"x": 1}])}))
    assert kit.files() == before


def test_changes_that_cannot_be(kit, numbers):
    table = kit.create(numbers)
    snapshot = kit.load()
    for edits in ((), (SetProperties({"x": "1"}), AddFiles(pa.table({})))):
        with pytest.raises(InvalidArgumentError):
            snapshot.commits.prepare(Change("lance", kit.location, snapshot, "w", "append", edits))
    import boathouse as bh

    with pytest.raises(UnsupportedFeatureError, match="no partitions"):
        bh.write(numbers, kit.uri + "-2", format="lance", partition_by="a")
    assert table.version == 1


@pytest.mark.spec("L-059")
def test_the_order_of_files_of_an_append(kit, numbers, monkeypatch):
    table = kit.create(numbers)
    seen: list[str] = []

    class Watching(FaultyStorage):
        def put(self, key, data, *mode):
            seen.append(key)
            assert kit.load().version == 1  # nothing is visible before the manifest
            super().put(key, data, *mode)

    stores = Stores(wrap=Watching)
    written = _append_files(kit, numbers)
    planned = FORMAT.open(TableContext(kit.location, stores))
    assert planned.version == 1
    commit(planned, Change("lance", kit.location, planned, "w1", "append", (AddFiles(written),)))
    assert [re.search(r"(_transactions|_versions)", k)[0] for k in seen] == ["_transactions", "_versions"]
    assert table.refresh().count() == 20


def _append_files(kit, data) -> pa.Table:
    """OUTCOMES of data files that no commit names yet."""
    from boathouse.lance import tasks

    writers = tasks.writers(kit.load().write_context("w"))
    writer = writers.open({})
    for batch in data.to_batches():
        writer.write(batch)
    return writers.outcomes([writer.close()])


@pytest.mark.spec("L-029")
def test_any_name_of_a_data_file(kit, numbers):
    kit.create(numbers)
    (path,) = (kit.root / "data").iterdir()
    (kit.root / "data/sub dir%20").mkdir()
    path.rename(kit.root / "data/sub dir%20/é #1.lance")

    def named(name):
        def change(manifest):
            (fragment,) = manifest.fragments
            return replace(manifest, fragments=(replace(fragment, files=(replace(fragment.files[0], path=name),)),))

        return change

    kit.edit(named("sub dir%20/é #1.lance"))
    assert kit.read() == numbers
    for bad in ("../x.lance", "/etc/x.lance", ""):
        kit.edit(named(bad))
        with pytest.raises(ValueError, match="path"):
            kit.read()


@pytest.mark.spec("L-067", "L-064")
def test_a_stale_append_follows(kit, numbers):
    table = kit.create(numbers)
    for action in (
        lambda: kit.pylance(numbers, mode="append"),
        lambda: kit.dataset().delete("a < 3"),
        lambda: kit.dataset().update({"s": "'u'"}, where="a = 5"),
        lambda: kit.dataset().create_scalar_index("a", "BTREE"),
        lambda: kit.dataset().add_columns({"c": "a + 1"}),
        lambda: kit.dataset().drop_columns(["c"]),
        lambda: kit.dataset().optimize.compact_files(),
        lambda: kit.dataset().update_config({"x": "1"}),
    ):
        with kit.overtaken_by(action):
            assert table.append(numbers).retries == 0
    assert kit.dataset().count_rows() == 10 + 10 - 9 + 80
    assert kit.read().sort_by([("a", "ascending")]) == kit.dataset().to_table().sort_by([("a", "ascending")])
    assert kit.load().document.transaction.read_version == kit.load().version - 1


@pytest.mark.spec("L-068")
def test_a_stale_append_does_not_follow_an_overwrite(kit, numbers):
    table = kit.create(numbers)
    planned = kit.load()
    change = Change("lance", kit.location, planned, "w", "append", (AddFiles(_append_files(kit, numbers)),))
    table.overwrite(numbers.slice(0, 1))
    outcome = commit(planned, change)
    assert isinstance(outcome, Conflicted) and not outcome.replan
    assert outcome.conflicts[0].kind == "table-overwritten"
    with pytest.raises(CommitConflictError, match="overwrite"):
        with kit.overtaken_by(lambda: kit.pylance(numbers.slice(0, 2), mode="overwrite")):
            kit.open().append(numbers)
    assert kit.dataset().count_rows() == 2


@pytest.mark.spec("L-068")
def test_a_stale_append_does_not_follow_a_restore(kit, numbers):
    kit.create(numbers).append(numbers)
    with pytest.raises(CommitConflictError, match="restore"):
        with kit.overtaken_by(lambda: kit.dataset(version=1).restore()):
            kit.open().append(numbers)
    assert kit.dataset().count_rows() == 10


@pytest.mark.spec("L-069")
@pytest.mark.parametrize("second", ["a = 15", "a = 4", "a = 3", "a >= 0 and a < 10"])
def test_two_deletes(kit, numbers, second):
    """Other fragments; the same fragment; the same row; all the rows that are left."""
    table = kit.create(numbers)
    table.append(pa.table({"a": list(range(10, 20)), "s": ["x"] * 10}))
    with kit.overtaken_by(lambda: kit.dataset().delete("a = 3")):
        table.delete(second)
    gone = {"a = 15": {3, 15}, "a = 4": {3, 4}, "a = 3": {3}}.get(second, set(range(10)))
    assert set(kit.read().column("a").to_pylist()) == set(range(20)) - gone
    assert kit.dataset().to_table() == kit.read()
    assert kit.dataset().count_rows() == 20 - len(gone)


@pytest.mark.spec("L-065")
def test_a_winner_without_a_transaction_stops(kit, numbers):
    kit.create(numbers)
    snapshot = kit.load()
    manifest = replace(snapshot.manifest, version=2, transaction_file="")
    body = serialise(replace(snapshot.document, manifest=manifest, transaction=None))
    path = kit.root / "_versions" / manifest_name(2, "V2")
    with pytest.raises(CommitConflictError, match="recorded no transaction"):
        with kit.overtaken_by(lambda: path.write_bytes(body)):
            kit.open().append(numbers)
    assert kit.load().version == 2


def test_a_version_below_the_cleaned_log_is_never_written(kit, numbers):
    """Put-if-absent of version 2 would succeed, and be lost."""
    table = kit.create(numbers)

    def others():
        for _ in range(3):
            kit.pylance(numbers, mode="append")
        for path in kit.manifests()[1:]:
            path.unlink()

    with kit.overtaken_by(others):
        table.append(numbers)  # planned again on the head, since nobody knows what version 2 and 3 were
    assert [kit.load().version, kit.dataset().count_rows()] == [5, 50]


def test_a_recreated_table_is_another_table(kit, numbers):
    kit.create(numbers)

    def others():
        shutil.rmtree(kit.root)
        kit.pylance(numbers.slice(0, 1))
        kit.pylance(numbers.slice(0, 1), mode="append")

    with pytest.raises(CommitConflictError, match="recreated"):
        with kit.overtaken_by(others):
            kit.open().append(numbers)
    assert kit.dataset().count_rows() == 2


@pytest.mark.spec("L-074")
def test_a_lost_answer_is_recognised(kit, numbers):
    kit.create(numbers)
    written = _append_files(kit, numbers)
    # the first put is the transaction file's, the second that of the manifest
    stores = Stores(wrap=lambda inner: FaultyStorage(inner, Plan.script(Fault.LOST, at=2, of="put")))
    planned = FORMAT.open(TableContext(kit.location, stores))
    change = Change("lance", kit.location, planned, "w", "append", (AddFiles(written),))
    assert commit(planned, change).version == 2
    assert kit.load().version == 2 and kit.dataset().count_rows() == 20
    again = commit(kit.load(At(version=1)), change)
    assert (again.version, again.already) == (2, True)


def _compact(kit, numbers):
    kit.open().optimize()


def _compact_as_pylance(kit, numbers):
    kit.dataset().optimize.compact_files()


def _delete_more(kit, numbers):
    kit.open().delete("a = 7")


def _compact_and_append(kit, numbers):
    kit.dataset().optimize.compact_files()
    kit.open().append(numbers)


@pytest.mark.parametrize("write", ["append", "delete", "update"])
@pytest.mark.parametrize("then", [_compact, _compact_as_pylance, _delete_more, _compact_and_append])
def test_a_commit_is_confirmed_after_others_have_taken_its_fragments(kit, numbers, monkeypatch, write, then):
    """Between the put of a manifest and the look at the table, another writer replaces what it brought."""
    table = kit.create(numbers)
    kit.open().append(numbers)
    table.refresh()
    publish, waiting = LanceCommitter.publish, [then]

    def overtaken(self, attempt):
        answer = publish(self, attempt)
        if waiting:
            waiting.pop()(kit, numbers)
        return answer

    monkeypatch.setattr(LanceCommitter, "publish", overtaken)
    writes = {
        "append": lambda: table.append(numbers),
        "delete": lambda: table.delete("a = 3"),
        "update": lambda: table.update({"s": "'x'"}, where="a = 3"),
    }
    assert writes[write]().version == 3 and not waiting
    assert kit.dataset().count_rows() == kit.open().count()


def test_a_delete_below_a_cleaned_log_is_not_confirmed_by_another_delete(kit, numbers, monkeypatch):
    """Another delete of the same fragment, whose version was cleaned away before ours was put, took other rows."""
    table = kit.create(numbers)
    publish, waiting = LanceCommitter.publish, [True]

    def late(self, attempt):
        if waiting:
            waiting.pop()
            kit.dataset().delete("a = 5")
            kit.dataset().delete("a = 6")
            (kit.root / "_versions" / manifest_name(2, "V2")).unlink()
            return FileCommitter(self.context.stores).publish(attempt)
        return publish(self, attempt)

    monkeypatch.setattr(LanceCommitter, "publish", late)
    with pytest.raises(CommitUnknownError):
        table.delete("a = 3")


def _crash(uri: str, at: int) -> None:
    import os

    from boathouse.lance.adapter import FORMAT as lance_format
    from boathouse.table.location import Location

    class Crashing(FaultyStorage):
        puts = 0

        def put(self, key, data, *mode):
            Crashing.puts += 1
            if Crashing.puts > at:
                os._exit(9)
            super().put(key, data, *mode)

    stores = Stores(wrap=Crashing)
    location = Location(f"file://{uri}")
    snapshot = lance_format.open(TableContext(location, stores))
    units = pa.Table.from_batches(snapshot.files())
    from boathouse.bits.roaring import Bitmap, serialize64
    from boathouse.table.edits import SetDeletes

    vectors = (serialize64(Bitmap.of([1])),) * units.num_rows
    commit(snapshot, Change("lance", location, snapshot, "w", "delete", (SetDeletes(units, vectors),)))
    os._exit(0)


@pytest.mark.spec("L-073")
@pytest.mark.parametrize("at", [0, 1, 2, 3, 4])
def test_a_crash_at_each_write_leaves_a_whole_version(kit, numbers, at):
    """A delete in two fragments writes two deletion files, a transaction, a manifest."""
    kit.create(numbers).append(numbers)
    process = multiprocessing.get_context("fork").Process(target=_crash, args=(kit.uri, at))
    process.start()
    process.join(60)
    assert process.exitcode == (9 if at < 4 else 0)
    expected = 20 if at < 4 else 18
    assert kit.read().num_rows == kit.dataset().count_rows() == expected
    referenced = set(kit.load().offers(LiveFiles).uris())
    left = {f for f in kit.files() if f"{kit.location.uri}/{f}" not in referenced}
    assert len(left) == (at if at < 4 else 0)
    kit.open().delete("a = 5")
    assert kit.dataset().count_rows() == expected - 2


def _appender(uri: str, number: int, times: int) -> None:
    import boathouse as bh

    table = bh.open(uri, format="lance")
    for i in range(times):
        table.append(pa.table({"a": pa.array([number * 1000 + i], pa.int64()), "s": [f"{number}"]}))


@pytest.mark.spec("L-060", "L-072")
@pytest.mark.parametrize(("count", "each"), [(3, 6), pytest.param(8, 25, marks=pytest.mark.slow)])
def test_processes_append(kit, count, each):
    kit.create(pa.table({"a": pa.array([], pa.int64()), "s": pa.array([], pa.string())}))
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["boathouse.api.open", "boathouse.lance.adapter", "boathouse.lance.tasks"])
    processes = [context.Process(target=_appender, args=(kit.uri, n, each)) for n in range(count)]
    for p in processes:
        p.start()
    for p in processes:
        p.join(300)
    assert [p.exitcode for p in processes] == [0] * count
    expected = sorted(n * 1000 + i for n in range(count) for i in range(each))
    assert sorted(kit.dataset().to_table().column("a").to_pylist()) == expected
    assert sorted(kit.read().column("a").to_pylist()) == expected
    assert kit.load().version == count * each + 1
    ids = [f.id for f in kit.load().manifest.fragments]
    assert ids == list(range(count * each))


def test_threads_delete_and_append(kit, numbers):
    kit.create(pa.table({"a": list(range(100)), "s": ["x"] * 100}))

    def delete(i):
        kit.open().delete(f"a = {i}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(delete, range(12)))
    assert kit.dataset().to_table().column("a").to_pylist() == list(range(12, 100))
    assert kit.read() == kit.dataset().to_table()


def test_referenced_names_every_file(kit, numbers):
    table = kit.create(numbers)
    table.append(numbers)
    table.delete("a = 3")
    table.overwrite(numbers)
    kit.dataset().tags.create("v1", 1)
    kit.dataset().create_scalar_index("a", "BTREE")
    kit.dataset().create_branch("dev", 2)
    referenced = set(kit.load().offers(LiveFiles).uris())
    assert {f"{kit.location.uri}/{f}" for f in kit.files()} == referenced
    (kit.root / "data/orphan.lance").write_bytes(b"x")
    assert f"{kit.location.uri}/data/orphan.lance" not in set(kit.load().offers(LiveFiles).uris())


@pytest.mark.spec("L-004", "L-005")
def test_a_copy_elsewhere_is_a_whole_table(kit, numbers, tmp_path):
    import boathouse as bh

    table = kit.create(numbers)
    table.append(numbers)
    table.delete("a = 3")
    for name in (
        "notes.txt",
        "_latest.manifest",
        "_weird/x",
        "data/unknown.blob",
        "_versions/latest_version_hint.json",
    ):
        path = kit.root / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"?")
    shutil.copytree(kit.root, tmp_path / "moved here %20")
    copy = bh.open(str(tmp_path / "moved here %20"), format="lance")
    assert copy.to_arrow() == kit.read()
    copy.append(numbers)
    shutil.rmtree(kit.root)
    assert copy.count() == copy.to_arrow().num_rows == 28


def test_a_table_in_memory(numbers):
    import boathouse as bh

    uri = "memory://lance-room/a table"
    bh.write(numbers, uri, format="lance")
    table = bh.open(uri)
    table.append(numbers)
    table.delete("a >= 5")
    assert table.to_arrow().column("a").to_pylist() == [0, 1, 2, 3, 4] * 2
    assert [e.operation for e in table.history()] == ["delete", "append", "create"]
