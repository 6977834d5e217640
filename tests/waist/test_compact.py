"""Compaction on every format and both engines: fewer files, the same rows, and no deleted row returns."""

from __future__ import annotations

import json
from dataclasses import replace

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from peers import by_peer, newest_metadata
from pyiceberg.table import StaticTable
from toy_format.state import TABLES, Deletes

import boathouse as bh
from boathouse import errors
from boathouse.bits import system
from boathouse.ops import write as write_op


@pytest.fixture
def table(format_name, traits, properties, tmp_path, session, make_people):
    """30 rows in five appends, partitioned by city where the format has partitions."""
    uri = str(tmp_path / "täble")
    bh.create(uri, make_people(0, 1).schema, format=format_name, partition_by=traits.by("city"), properties=properties)
    t = bh.open(uri, format=format_name, spark=session)
    for i in range(0, 30, 6):
        t.append(make_people(i, i + 6))
    return t


@pytest.fixture
def local_only(engine_name):
    if engine_name != "local":
        pytest.skip("nothing here depends on the engine")


def rows(table: pa.Table) -> list[dict]:
    return sorted(table.to_pylist(), key=lambda r: r["id"])


def check(t, wanted: pa.Table) -> None:
    """Both we and the format's own library read exactly these rows."""
    assert rows(bh.open(t.uri, format=t.format).to_arrow()) == rows(wanted)
    assert rows(by_peer(t.uri, t.format)) == rows(wanted)


def in_order(t) -> list[list[int]]:
    """The ids of each city, as they are read."""
    cities = ("Oslo", "São Paulo", "東京")
    return [t.scan(["id"], where=f"city = '{city}'").to_arrow()["id"].to_pylist() for city in cities]


def meanwhile(monkeypatch, act) -> list[int]:
    """`act` happens after the first plan's files were written; returns a list of how many tasks each plan had."""
    real, calls = write_op.TaskWork.perform, []

    def perform(work, engine):
        done = real(work, engine)
        calls.append(len(work.tasks))
        if len(calls) == 1:
            act()
        return done

    monkeypatch.setattr(write_op.TaskWork, "perform", perform)
    return calls


@pytest.mark.feature("compaction")
@pytest.mark.route("compaction")
def test_small_files_become_one_for_each_partition(table, traits, make_people):
    before, partitions = table.files().num_rows, 3 if traits.partitions else 1
    assert before == 5 * partitions
    order = in_order(table)
    result = table.optimize()
    assert (result.operation, result.files_removed, result.files_added) == ("replace", before, partitions)
    assert (result.rows_copied, result.rows_added, result.rows_deleted) == (30, 0, 0)
    assert table.files().num_rows == partitions
    check(table, make_people(0, 30))
    assert in_order(table) == order
    again = table.optimize()
    assert again.version is None and again.versions == ()


def test_deleted_rows_are_dropped_from_the_files(table, make_people):
    table.delete("id < 9")
    table.optimize()
    assert pc.sum(table.files()["rows"]).as_py() == 21
    assert pc.sum(table.files()["deleted"]).as_py() in (0, None)
    check(table, make_people(9, 30))


def test_a_file_alone_is_purged_of_many_deleted_rows(
    format_name, traits, properties, local_only, tmp_path, make_people
):
    if not (traits.marks_deletes or properties):
        pytest.skip("deleted rows are not marked in this format")
    uri = str(tmp_path / "t")
    bh.create(uri, make_people(0, 1).schema, format=format_name, properties=properties)
    t = bh.open(uri, format=format_name)
    t.append(make_people(0, 100))
    t.delete("id < 4")
    assert t.optimize().version is None
    t.delete("id < 8")
    assert t.optimize().rows_copied == 92
    assert t.files()["deleted"].to_pylist() == [0]
    check(t, make_people(8, 100))


def deleted_rows(table):
    """How many rows of each file are deleted, as a plan knows; the metadata may not."""
    units = table.refresh()._handle.snapshot.plan().units
    return dict(zip(units.column("path").to_pylist(), units.column("deleted").to_pylist(), strict=True))


@pytest.mark.feature("purge of deleted rows")
@pytest.mark.route("purge")
def test_every_file_with_deleted_rows_is_purged(table, to_data, format_name, traits, properties, make_people):
    """However few they are; files without any stay, however small they are."""
    table.append(to_data(make_people(30, 34)))
    table.delete("id = 4 OR id = 31")
    before = deleted_rows(table)
    marked = sorted(path for path, deleted in before.items() if deleted)
    assert bool(marked) == (traits.marks_deletes or bool(properties))
    assert table.purge(dry_run=True).files_removed == len(marked)
    done = table.purge(message="for good")
    assert (done.files_removed, done.rows_deleted, done.rows_added) == (len(marked), 0, 0)
    after = deleted_rows(table)
    assert set(before) - set(after) == set(marked) and not any(after.values())
    check(table, pa.concat_tables([make_people(0, 4), make_people(5, 31), make_people(32, 34)]))
    assert table.purge().version is None
    if marked:
        assert table.history()[0].message == "for good"
        old = table.history()[1].version
        assert bh.open(table.uri, version=old, format=format_name).count() == 32


def test_one_partition_is_purged(tmp_path, make_people):
    """Delta calls it REORG, as the reference does."""
    properties = {"delta.enableDeletionVectors": "true", "delta.appendOnly": "false"}
    uri = str(tmp_path / "t")
    bh.write(make_people(0, 30), uri, format="delta", partition_by=["city"], properties=properties)
    t = bh.open(uri)
    t.delete("id < 6")
    done = t.purge("city = 'Oslo'", commit_bytes=1)
    assert done.files_removed == 1
    assert sorted(d or 0 for d in t.files()["deleted"].to_pylist()) == [0, 2, 2]
    check(t, make_people(6, 30))
    entry = deltalake.DeltaTable(t.uri).history(1)[0]
    assert (entry["operation"], entry["operationParameters"]["applyPurge"]) == ("REORG", "true")
    with pytest.raises(errors.InvalidArgumentError, match="`id` is not a partition column"):
        t.purge("id = 1")
    with pytest.raises(errors.InvalidArgumentError, match="commit_bytes='many' is not a number"):
        t.purge(commit_bytes="many")


def test_one_partition_is_chosen(table, traits, make_people):
    if not traits.partitions:
        with pytest.raises(errors.InvalidArgumentError, match=r"city.*is not a partition column"):
            table.optimize("city = 'Oslo'")
        return
    with pytest.raises(errors.InvalidArgumentError, match=r"`id` is not a partition column.*[Nn]ame only city"):
        table.optimize("city = 'Oslo' and id > 3")
    assert table.optimize("city = 'Oslo'").files_removed == 5
    assert table.files().num_rows == 11
    check(table, make_people(0, 30))


@pytest.mark.few(3)
def test_a_large_table_is_compacted_in_several_commits(table, traits, local_only, make_people):
    size = table.files()["size"][0].as_py()
    before = [e.version for e in table.history()]
    result = table.optimize(target_file_bytes=int(2.5 * size), commit_bytes=1)
    assert len(result.versions) == (6 if traits.partitions else 2)
    assert result.version == result.versions[-1] == table.version
    new = [e for e in table.history() if e.version not in before]
    assert tuple(e.version for e in reversed(new)) == result.versions
    assert not any(e.data_change for e in new)
    assert result.rows_copied == 4 * len(result.versions) * (1 if traits.partitions else 3)
    assert str(result.versions[0]) in repr(result)
    check(table, make_people(0, 30))


def test_a_failure_after_the_first_commit_names_it(table, local_only, monkeypatch, make_people):
    real, seen = write_op.Start.change, []

    def change(start, *args, **more):
        if seen:
            raise errors.StorageError("the disk is full")
        seen.append(1)
        return real(start, *args, **more)

    monkeypatch.setattr(write_op.Start, "change", change)
    size = table.files()["size"][0].as_py()
    with pytest.raises(errors.StorageError, match=r"the disk is full \(after version \d+\)"):
        table.optimize(target_file_bytes=int(2.5 * size), commit_bytes=1)
    check(table, make_people(0, 30))
    assert table.refresh().history(1)[0].data_change is False


def test_files_near_the_target_stay(table, local_only):
    assert table.optimize(target_file_bytes=1).version is None


def test_a_dry_run_says_how_many_files_and_writes_nothing(table, local_only):
    version = table.version
    assert table.optimize(dry_run=True).files_removed == table.files().num_rows
    assert table.refresh().version == version


def test_a_concurrent_append_does_not_disturb(table, traits, local_only, monkeypatch, make_people):
    other = bh.open(table.uri, format=table.format)
    calls = meanwhile(monkeypatch, lambda: other.append(make_people(30, 33)))
    partitions = 3 if traits.partitions else 1
    table.optimize()
    assert calls == [partitions]
    assert table.files().num_rows == 2 * partitions
    check(table, make_people(0, 33))


@pytest.mark.few(6)
@pytest.mark.parametrize("act", ["delete", "update"])
def test_a_concurrent_change_of_a_compacted_file_is_kept(table, traits, local_only, monkeypatch, make_people, act):
    other = bh.open(table.uri, format=table.format)
    wanted = make_people(0, 30)
    if act == "delete":
        calls = meanwhile(monkeypatch, lambda: other.delete("id in (3, 4)"))
        wanted = wanted.filter(pc.invert(pc.is_in(wanted["id"], pa.array([3, 4]))))
    else:
        calls = meanwhile(monkeypatch, lambda: other.update({"score": "-1.0"}, where="id = 3"))
        score = pc.if_else(pc.equal(wanted["id"], 3), -1.0, wanted["score"])
        wanted = wanted.set_column(2, "score", score)
    table.optimize()
    assert len(calls) > 1
    assert table.files().num_rows == (3 if traits.partitions else 1)
    check(table, wanted)


def test_a_compaction_in_between_is_followed(table, local_only, monkeypatch, make_people):
    other = bh.open(table.uri, format=table.format)
    meanwhile(monkeypatch, lambda: None if table.version != other.version else other.optimize())
    table.delete("id in (3, 4)")
    wanted = make_people(0, 30)
    check(table, wanted.filter(pc.invert(pc.is_in(wanted["id"], pa.array([3, 4])))))


def foreign_deletes(uri: str, *values: int) -> int:
    """Another writer's equality delete on the toy."""
    state = TABLES[uri]
    head = state.versions[state.refs["main"]]
    version = state.next_version()
    deletes = (*head.deletes, Deletes("equality", version, key="id", values=values))
    new = replace(head, version=version, parent=head.version, write_id=None, timestamp_ms=system.current().now_ms())
    assert state.swap("main", str(head.version), replace(new, deletes=deletes, touched=frozenset(), added=False))
    return version


@pytest.fixture
def toy(tmp_path, make_people):
    uri = str(tmp_path / "toy")
    bh.create(uri, make_people(0, 1).schema, format="toy")
    t = bh.open(uri, format="toy")
    for i in range(0, 20, 5):
        t.append(make_people(i, i + 5))
    return t


def test_equality_deletes_after_the_plan_apply_to_the_new_files(toy, monkeypatch):
    planned, later = toy.version, []
    assert planned == 5
    calls = meanwhile(monkeypatch, lambda: later.append(foreign_deletes(toy.uri, 3, 12)))
    toy.optimize()
    assert (later, calls) == ([6], [1]) and toy.version > 6
    (unit,) = toy._handle.snapshot.document.units
    assert unit.sequence == planned
    assert toy.to_arrow()["id"].to_pylist() == [i for i in range(20) if i not in (3, 12)]


def test_equality_deletes_before_the_plan_do_not_reach_rows_that_came_back(toy, make_people):
    foreign_deletes(toy.uri, 3, 12)
    toy.refresh().append(make_people(3, 4))
    toy.optimize()
    assert sorted(toy.to_arrow()["id"].to_pylist()) == [i for i in range(20) if i != 12]
    assert toy.files().num_rows == 1


def test_delta_calls_it_optimize(tmp_path, make_people):
    uri = str(tmp_path / "t")
    bh.create(uri, make_people(0, 1).schema, properties={"delta.appendOnly": "true"})
    t = bh.open(uri)
    t.append(make_people(0, 5))
    t.append(make_people(5, 9))
    t.optimize(message="nightly")
    entry = deltalake.DeltaTable(uri).history(1)[0]
    assert entry["operation"] == "OPTIMIZE" and entry["userMetadata"] == "nightly"
    metrics = entry["operationMetrics"]
    assert (int(metrics["numRemovedFiles"]), int(metrics["numAddedFiles"])) == (2, 1)
    assert int(metrics["numRemovedBytes"]) > int(metrics["numAddedBytes"]) == int(metrics["p50FileSize"])
    log = (tmp_path / "t" / "_delta_log" / f"{t.version:020}.json").read_text().splitlines()
    actions = [json.loads(line) for line in log]
    changed = [a["dataChange"] for action in actions for a in (action.get("add"), action.get("remove")) if a]
    assert changed == [False] * 3
    with pytest.raises(errors.ConstraintViolationError, match="append-only"):
        t.delete("id = 1")


def test_iceberg_calls_it_replace(tmp_path, make_people):
    uri = str(tmp_path / "t")
    bh.create(uri, make_people(0, 1).schema, format="iceberg")
    t = bh.open(uri)
    t.append(make_people(0, 5))
    t.append(make_people(5, 9))
    t.optimize()
    theirs = StaticTable.from_metadata(newest_metadata(uri))
    snapshot = theirs.current_snapshot()
    assert (snapshot.summary.operation.value, snapshot.sequence_number) == ("replace", 3)
    assert snapshot.summary["total-records"] == "9" and snapshot.summary["total-data-files"] == "1"
    entries = theirs.inspect.entries().filter(pc.field("status") == 1)
    assert entries["sequence_number"].to_pylist() == [2]
