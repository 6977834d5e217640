"""Commits: who wins, who follows, what is written, and what a crash leaves."""

import contextlib
import json
import multiprocessing
import os
import threading

import pyarrow as pa
import pytest
from rivals import with_rival

import boathouse as bh
from boathouse.api.table import Table
from boathouse.errors import (
    BoathouseError,
    CommitConflictError,
    CommitUnknownError,
    MixedWritersError,
    ReadOnlyError,
    UnsupportedFeatureError,
)
from boathouse.iceberg.adapter import FORMAT
from boathouse.ops.handle import Handle
from boathouse.storage import Stores, absolute
from boathouse.table.context import TableContext
from boathouse.table.location import NEWEST, At, Location
from boathouse.testing.faults import Fault, FaultyStorage, Plan

DATA = pa.table({"id": pa.array(range(6), pa.int64()), "p": ["a", "a", "b", "b", "c", "c"]})


def rows(start, count=2, p="z"):
    return pa.table({"id": pa.array(range(start, start + count), pa.int64()), "p": [p] * count})


def opened(root, stores=None, at=NEWEST):
    return FORMAT.open(TableContext(Location(absolute(str(root))), stores or Stores()), at)


def through(root, stores):
    """The table at `root` as opened through these stores."""
    return Table(Handle(opened(root, stores)))


def logged(plan=None):
    """Stores that log every operation, and the storages that were made."""
    made = []

    def wrap(inner):
        made.append(FaultyStorage(inner, plan))
        return made[-1]

    return Stores(wrap=wrap), made


def ids(table):
    return sorted(table.to_arrow().column("id").to_pylist())


@pytest.mark.spec("I-185", "I-020", "I-022", "I-009", "I-026", "I-250")
def test_an_append_writes_new_names_only(make):
    table, eyes = make(DATA)
    before = {p: p.read_bytes() for p in eyes.root.rglob("*") if p.is_file()}
    stores, made = logged()
    through(eyes.root, stores).append(rows(10))
    writes = [o for s in made for o in s.log if o.name in ("put", "close", "delete")]
    kept = [o for o in writes if not o.key.endswith("version-hint.text")]
    assert len({o.key for o in kept}) == len(kept) and not any(o.name == "delete" for o in kept)
    after = {p: p.read_bytes() for p in eyes.root.rglob("*") if p.is_file()}
    assert all(after[p] == data for p, data in before.items() if p.name != "version-hint.text")
    new = sorted(p.suffix for p in after if p not in before)
    assert new == [".avro", ".avro", ".json", ".parquet"]
    last_data = max(i for i, o in enumerate(writes) if o.key.endswith(".parquet"))
    last_list = max(i for i, o in enumerate(writes) if o.key.endswith(".avro"))
    commit = next(i for i, o in enumerate(writes) if o.key.endswith(".metadata.json"))
    hint = next(i for i, o in enumerate(writes) if o.key.endswith("version-hint.text"))
    assert last_data < last_list < commit < hint
    assert len(eyes.manifests()) == 2 and eyes.rows().num_rows == 8 == table.refresh().count()


@pytest.mark.spec("I-013", "I-014", "I-021", "I-250")
def test_a_lost_race_is_prepared_again_with_the_same_manifest(make, monkeypatch):
    table, eyes = make(DATA)
    rival = bh.open(str(eyes.root))
    from boathouse.iceberg.commit import transaction

    inner, attempts = transaction.prepare, []

    def prepare(change, head):
        attempt = inner(change, head)
        attempts.append(attempt)
        if len(attempts) == 1:
            monkeypatch.setattr(transaction, "prepare", inner)
            rival.append(rows(50))
            monkeypatch.setattr(transaction, "prepare", prepare)
        return attempt

    monkeypatch.setattr(transaction, "prepare", prepare)
    result = table.append(rows(100))
    assert result.retries == 1 and len(attempts) == 2
    lists = [next(u for u in a.side if "snap-" in u) for a in attempts]
    assert lists[0] != lists[1] and not os.path.exists(lists[0][7:])
    first, second = (json.loads(a.body)["snapshots"][-1] for a in attempts)
    assert (first["sequence-number"], second["sequence-number"]) == (2, 3)
    mine = [m["manifest_path"] for m in eyes.manifests() if m["added_snapshot_id"] == second["snapshot-id"]]
    assert len(mine) == 1 and mine[0] not in attempts[1].side and len(eyes.files("*-m0.avro")) == 3
    assert ids(table) == [0, 1, 2, 3, 4, 5, 50, 51, 100, 101] == sorted(eyes.rows()["id"].to_pylist())
    assert [s["sequence-number"] for s in eyes.document()["snapshots"]] == [1, 2, 3]


def conflict_of(table, action):
    with pytest.raises(CommitConflictError) as caught:
        action(table)
    return str(caught.value)


@pytest.mark.spec("I-014")
@pytest.mark.parametrize("other", ["append", "delete", "overwrite", "add_column", "properties"])
def test_an_append_follows_anything(make, monkeypatch, other):
    table, _ = make(DATA, partition_by=["p"])
    actions = {
        "append": lambda t: t.append(rows(20)),
        "delete": lambda t: t.delete("p = 'a'"),
        "overwrite": lambda t: t.overwrite(rows(30)),
        "add_column": lambda t: t.add_column("more", "int"),
        "properties": lambda t: t.set_properties({"x": "y"}),
    }
    with_rival(monkeypatch, table, lambda t: t.append(rows(100)), actions[other])
    expected = {
        "append": [0, 1, 2, 3, 4, 5, 20, 21], "delete": [2, 3, 4, 5], "overwrite": [30, 31],
        "add_column": list(range(6)), "properties": list(range(6)),
    }  # fmt: skip
    assert ids(bh.open(table.uri)) == [*expected[other], 100, 101]


@pytest.mark.spec("I-016", "I-017")
def test_a_delete_is_planned_again_over_what_concerns_it(make, monkeypatch):
    table, eyes = make(DATA, partition_by=["p"])
    with_rival(monkeypatch, table, lambda t: t.delete("p = 'a' AND id = 0"), lambda t: t.append(rows(0, 1, "a")))
    assert ids(bh.open(table.uri)) == [1, 2, 3, 4, 5]
    with_rival(monkeypatch, table, lambda t: t.delete("id = 1"), lambda t: t.delete("id = 1"))
    assert ids(bh.open(table.uri)) == [2, 3, 4, 5] == sorted(eyes.rows()["id"].to_pylist())


@pytest.mark.spec("I-016", "I-017")
def test_verdicts(make):
    from dataclasses import replace

    from boathouse.expr.parse import parse
    from boathouse.expr.resolve import bind_predicate
    from boathouse.table.change import Change, ReadSet
    from boathouse.table.edits import RemoveFiles
    from boathouse.table.verdict import Rebase, Replan

    table, eyes = make(DATA, partition_by=["p"])
    planned = opened(table.uri)
    units = pa.Table.from_batches(planned.files())
    where = bind_predicate(parse("p = 'a'"), planned.schema)
    change = Change("iceberg", planned.context.location, planned, "w", "delete", (RemoveFiles(units.slice(0, 1)),))
    change = replace(change, reads=ReadSet(predicates=(where,)))
    removed = units.slice(0, 1)["partition"].to_pylist()[0]["1000"]
    where = bind_predicate(parse(f"p = '{removed}'"), planned.schema)
    change = replace(change, reads=ReadSet(predicates=(where,)))

    def verdict(change):
        head = planned.newest()
        return head.commits.check(change, head.commits.winners(planned))

    bh.open(table.uri).append(rows(20, p="elsewhere"))
    assert isinstance(verdict(change), Rebase)
    bh.open(table.uri).append(rows(30, p=removed))
    found = verdict(change)
    assert isinstance(found, Replan) and found.conflicts[0].kind == "concurrent-append"
    assert isinstance(verdict(replace(change, isolation="snapshot")), Rebase)
    bh.open(table.uri).delete(f"p = '{removed}' AND id < 20")
    found = verdict(replace(change, isolation="snapshot"))
    assert isinstance(found, Replan) and found.conflicts[0].kind == "delete-delete"
    assert found.conflicts[0].paths == tuple(units.slice(0, 1)["path"].to_pylist())
    assert len(eyes.document()["snapshots"]) == 4


def test_property_and_column_conflicts_stop(make, monkeypatch):
    table, eyes = make(DATA)
    with pytest.raises(CommitConflictError, match="metadata-changed"):
        with_rival(monkeypatch, table, lambda t: t.set_properties({"a": "1"}), lambda t: t.set_properties({"a": "2"}))
    with pytest.raises(BoathouseError, match="new"):
        with_rival(monkeypatch, table, lambda t: t.add_column("new", "int"), lambda t: t.add_column("new", "string"))
    table.refresh()
    with_rival(monkeypatch, table, lambda t: t.add_column("two", "int"), lambda t: t.add_column("one", "int"))
    fields = eyes.document()["schemas"][-1]["fields"]
    assert [(f["name"], f["id"]) for f in fields[2:]] == [("new", 3), ("one", 4), ("two", 5)]


def test_history_that_is_gone_is_never_committed_over(make, monkeypatch):
    """Metadata files below the head are cleaned away: a stale writer must not land below it."""
    table, eyes = make(DATA)
    stale = bh.open(str(eyes.root))
    for i in range(4):
        table.append(rows(10 * (i + 1)))
    for path in eyes.files("v*.metadata.json")[:-1]:
        path.unlink()
    (eyes.root / "metadata" / "version-hint.text").write_text("2")
    stale.append(rows(900))
    assert ids(bh.open(str(eyes.root)))[-2:] == [900, 901]
    assert eyes.head().name == "v7.metadata.json" and eyes.rows().num_rows == 16


@pytest.mark.spec("I-251")
@pytest.mark.parametrize("hint", ["1", "99", "garbage", "", None, b"\xff\xfe"])
def test_a_wrong_hint_misleads_nobody(make, hint):
    table, eyes = make(DATA)
    path = eyes.root / "metadata" / "version-hint.text"
    assert path.read_text() == "2"
    path.unlink() if hint is None else path.write_bytes(hint if isinstance(hint, bytes) else hint.encode())
    assert bh.open(str(eyes.root)).count() == 6
    table.append(rows(10))
    assert path.read_text() == "3" and eyes.rows().num_rows == 8


@pytest.mark.spec("I-006")
def test_a_snapshot_stays_as_it_was_opened(make):
    table, eyes = make(DATA)
    reader = bh.open(str(eyes.root))
    table.append(rows(10))
    table.overwrite(rows(20))
    stores, made = logged()
    pinned = through(eyes.root, stores)
    before = sorted(eyes.root.rglob("*"))
    assert ids(reader) == list(range(6)) and ids(pinned) == [20, 21]
    assert sorted(eyes.root.rglob("*")) == before
    assert not [o for s in made for o in s.log if o.name in ("put", "close", "delete")]


@pytest.mark.spec("I-256")
@pytest.mark.parametrize("fault", [Fault.LOST, Fault.UNSENT])
def test_a_lost_answer_to_the_swap_is_settled(make, fault):
    _, eyes = make(DATA)

    def choose(operation, nth):
        return None

    plan = Plan.script(fault, at=1, of="put")
    stores, made = logged(plan)
    table = through(eyes.root, stores)
    try:
        table.append(rows(10))
    except BoathouseError as error:
        assert not isinstance(error, CommitConflictError)
    landed = ids(bh.open(str(eyes.root)))
    assert landed in ([*range(6)], [*range(6), 10, 11])
    assert eyes.rows().num_rows == len(landed)
    assert made


@pytest.mark.spec("I-256")
def test_an_unknown_outcome_deletes_nothing_and_is_found_later(make, monkeypatch):
    table, eyes = make(DATA)
    from boathouse.table import commit as loop

    inner = loop.FileCommitter.publish

    def publish(self, attempt):
        inner(self, attempt)
        return "unknown"

    monkeypatch.setattr(loop.FileCommitter, "publish", publish)
    with pytest.raises(CommitUnknownError) as caught:
        table.append(rows(10))
    monkeypatch.undo()
    assert ids(bh.open(str(eyes.root))) == [*range(6), 10, 11]
    write_id = eyes.snapshot()["summary"]["boathouse.write-id"]
    assert write_id in str(caught.value)
    assert bh.open(str(eyes.root)).find_write(write_id) == eyes.snapshot()["snapshot-id"]
    assert bh.open(str(eyes.root)).find_write("another") is None


@pytest.mark.few(1)
@pytest.mark.spec("I-007")
@pytest.mark.parametrize("fault", [Fault.REFUSED, Fault.UNSENT, Fault.LOST])
def test_a_writer_that_fails_at_any_write_leaves_the_old_or_the_new_table(make, fault):
    table, eyes = make(DATA, partition_by=["p"])
    table.append(rows(50))
    expected = ids(table)
    for at in range(1, 12):
        stores, _made = logged(Plan.script(fault, at=at, of="put"))
        with contextlib.suppress(BoathouseError):
            through(eyes.root, stores).delete("id = 1 OR id >= 50") if at % 2 else through(eyes.root, stores).append(
                rows(100 + at, 1)
            )
        found = ids(bh.open(str(eyes.root)))
        after = [i for i in expected if i != 1 and i < 50] if at % 2 else sorted([*expected, 100 + at])
        assert found in (expected, after), at
        assert sorted(eyes.rows()["id"].to_pylist()) == found
        expected = found


def _appender(root, start, count):
    table = bh.open(root)
    for i in range(count):
        table.append(pa.table({"id": pa.array([start + i], pa.int64()), "p": ["t"]}))


def _crasher(root, at, fault):
    stores, _ = logged(Plan.script(fault, at=at))
    through(root, stores).delete("id = 1 OR p = 'c'")


@pytest.mark.spec("I-007")
@pytest.mark.parametrize("fault", [Fault.CRASH, Fault.CRASH_AFTER])
def test_a_writer_that_dies_at_any_write_leaves_the_old_or_the_new_table(make, fault):
    _, eyes = make(DATA, partition_by=["p"])
    context = multiprocessing.get_context("fork")
    seen = set()
    for at in range(1, 9):
        worker = context.Process(target=_crasher, args=(str(eyes.root), at, fault))
        worker.start()
        worker.join()
        found = tuple(ids(bh.open(str(eyes.root))))
        assert found in (tuple(range(6)), (0, 2, 3))
        assert tuple(sorted(eyes.rows()["id"].to_pylist())) == found
        seen.add((worker.exitcode, found))
        if found == (0, 2, 3):
            break
    assert (137, tuple(range(6))) in seen and found == (0, 2, 3)
    bh.open(str(eyes.root)).append(rows(70))
    assert eyes.rows().num_rows == 5


@pytest.mark.spec("I-257", "I-013", "I-020")
@pytest.mark.parametrize(
    ("threads_count", "processes"), [(10, 4), pytest.param(100, 8, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_many_threads_and_processes_append(make, threads_count, processes):
    _table, eyes = make(DATA, append=False)
    root = str(eyes.root)
    threads = [threading.Thread(target=_appender, args=(root, 1000 * t, 2)) for t in range(threads_count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_appender, args=(root, 100_000 + 1000 * w, 2)) for w in range(processes)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
        assert w.exitcode == 0
    expected = [1000 * t + i for t in range(threads_count) for i in range(2)]
    expected = sorted(expected + [100_000 + 1000 * w + i for w in range(processes) for i in range(2)])
    assert ids(bh.open(root)) == expected == sorted(eyes.rows()["id"].to_pylist())
    numbers = [s["sequence-number"] for s in eyes.document()["snapshots"]]
    assert numbers == list(range(1, len(expected) + 1))


@pytest.mark.spec("I-230")
def test_the_paths_of_the_properties_are_respected(make, tmp_path):
    places = {"write.data.path": f"file://{tmp_path}/elsewhere/d", "write.metadata.path": f"file://{tmp_path}/m"}
    table, eyes = make(DATA, partition_by=["p"], properties=places)
    assert all(f["file_path"].startswith(f"file://{tmp_path}/elsewhere/d/p=") for f in eyes.live())
    assert eyes.snapshot()["manifest-list"].startswith(f"file://{tmp_path}/m/snap-")
    assert eyes.head().parent == eyes.root / "metadata"
    assert ids(table) == list(range(6)) and eyes.rows().num_rows == 6
    plain, other = make(DATA, name="plain")
    assert all(f["file_path"].startswith(f"file://{other.root}/data/") for f in other.live()) and plain.count() == 6


@pytest.mark.spec("I-029", "I-027")
@pytest.mark.parametrize("name", ["with space", "per%20cent", "ha#sh", "żółć 💥", "plus+and&", "a=b"])
def test_awkward_locations(make, name):
    table, eyes = make(DATA, name=name, partition_by=["p"])
    table.append(pa.table({"id": pa.array([9], pa.int64()), "p": ["ü/x y%"]}))
    assert eyes.document()["location"] == f"file://{eyes.root}"
    for file in eyes.live():
        assert file["file_path"].startswith(f"file://{eyes.root}/data/p=")
        assert os.path.exists(file["file_path"].removeprefix("file://"))
    again = bh.open(str(eyes.root))
    assert ids(again) == [*range(6), 9]
    assert again.scan(where="p = 'ü/x y%'").to_arrow()["id"].to_pylist() == [9]
    if "#" not in name:
        assert eyes.rows().num_rows == 7


def test_gzip_names_are_kept(make):
    table, eyes = make(DATA, properties={"write.metadata.compression-codec": "gzip"})
    table.append(rows(10))
    names = [p.name for p in eyes.files()]
    assert names == [f"v{i}.gz.metadata.json" for i in (1, 2, 3)]
    newest = eyes.files()[-1]
    newest.rename(newest.with_name("v3.metadata.json.gz"))
    for older in eyes.files():
        older.unlink()
    bh.open(str(eyes.root)).append(rows(20))
    assert (eyes.root / "metadata" / "v4.metadata.json.gz").exists() and bh.open(str(eyes.root)).count() == 10


def test_two_spellings_of_one_version_are_refused(make):
    _, eyes = make(DATA)
    import gzip

    (eyes.root / "metadata" / "v2.gz.metadata.json").write_bytes(gzip.compress(eyes.head().read_bytes()))
    with pytest.raises(bh.errors.CorruptTableError, match="twice"):
        bh.open(str(eyes.root))


def test_a_catalogs_table_is_read_and_not_written(catalog, caplog):
    theirs = catalog.create_table("db.t", DATA.schema)
    theirs.append(DATA)
    root = theirs.location().removeprefix("file://")
    with caplog.at_level("WARNING", "boathouse"):
        table = bh.open(root)
    assert "catalog" in caplog.text and ids(table) == list(range(6))
    with pytest.raises(MixedWritersError, match="catalog"):
        table.append(rows(10))
    with pytest.raises((UnsupportedFeatureError, ReadOnlyError)):
        bh.open(theirs.metadata_location.removeprefix("file://")).append(rows(10))


@pytest.mark.spec("I-028")
@pytest.mark.parametrize("spelling", ["{}", "file:{}", "file://{}", "file://localhost{}"])
def test_spellings_of_one_place(make, spelling):
    _, eyes = make(DATA)
    document = eyes.document()
    document["location"] = spelling.format(eyes.root)
    for snap in document["snapshots"]:
        snap["manifest-list"] = spelling.format(snap["manifest-list"].removeprefix("file://"))
    eyes.head().write_text(json.dumps(document))
    for uri in (str(eyes.root), f"file:{eyes.root}", f"file://{eyes.root}"):
        assert ids(bh.open(uri)) == list(range(6))
    bh.open(str(eyes.root)).append(rows(10))
    assert bh.open(str(eyes.root)).count() == 8


def test_a_moved_table_is_read_and_not_written(make, tmp_path):
    import shutil

    _, eyes = make(DATA, partition_by=["p"])
    shutil.move(eyes.root, tmp_path / "moved")
    table = bh.open(str(tmp_path / "moved"), relocated={str(eyes.root): str(tmp_path / "moved")})
    assert ids(table) == list(range(6))
    with pytest.raises(UnsupportedFeatureError, match="relocated from"):
        table.append(rows(10))


def test_a_commit_to_a_branch_moves_that_branch_only(make):
    _, eyes = make(DATA)
    document = eyes.document()
    main = document["current-snapshot-id"]
    document["refs"]["dev"] = {"snapshot-id": main, "type": "branch"}
    document["refs"]["tag"] = {"snapshot-id": main, "type": "tag"}
    eyes.head().write_text(json.dumps(document))
    Table(Handle(opened(eyes.root, at=At(ref="dev")))).append(rows(10))
    bh.open(str(eyes.root)).append(rows(20))
    after = eyes.document()
    assert len(after["snapshot-log"]) == 2 and after["last-sequence-number"] == 3
    assert sorted(eyes.rows()["id"].to_pylist()) == [*range(6), 20, 21]
    dev = eyes.pyiceberg().scan().use_ref("dev").to_arrow()
    assert sorted(dev["id"].to_pylist()) == [*range(6), 10, 11]
    assert after["refs"]["tag"]["snapshot-id"] == main
    with pytest.raises(BoathouseError, match="tag"):
        Table(Handle(opened(eyes.root, at=At(ref="tag")))).append(rows(30))


@pytest.mark.parametrize("action", ["append", "properties"])
def test_a_put_below_a_head_that_ran_away_is_lost_not_won(make, monkeypatch, action):
    """While the commit is prepared, others go past its version and clean that version's file away."""
    table, eyes = make(DATA)
    from boathouse.iceberg.commit import transaction

    inner, left = transaction.prepare, [1]

    def prepare(change, head):
        attempt = inner(change, head)
        if left[0]:
            left[0] = 0
            for i in range(3):
                bh.open(str(eyes.root)).append(rows(50 + 10 * i))
            for path in eyes.files("v*.metadata.json")[:-1]:
                path.unlink()
        return attempt

    monkeypatch.setattr(transaction, "prepare", prepare)
    everything = [*range(6), 50, 51, 60, 61, 70, 71]
    if action == "append":
        assert table.append(rows(100)).retries == 1
        everything += [100, 101]
    else:
        try:
            table.set_properties({"new": "1"})
            assert eyes.document()["properties"]["new"] == "1"
        except CommitUnknownError:
            assert "new" not in eyes.document()["properties"]
    assert ids(bh.open(str(eyes.root))) == everything == sorted(eyes.rows()["id"].to_pylist())
