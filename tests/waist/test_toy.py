"""What only the toy has today, through the same operations: so that the waist is ready for it."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from toy_format import tasks as toy_tasks
from toy_format.adapter import FORMAT, NewToy, ToySnapshot
from toy_format.state import TABLES, Deletes, clean

import boathouse as bh
from boathouse import errors
from boathouse.bits import system
from boathouse.bits.roaring import Bitmap, serialize64
from boathouse.ops import write as write_op
from boathouse.table.format import TableFormat
from boathouse.table.snapshot import Snapshot, Target
from boathouse.table.units import EQUALITY


@pytest.fixture
def table(tmp_path, make_people):
    uri = str(tmp_path / "toy")
    bh.create(uri, make_people(0, 1).schema, format="toy", partition_by="city")
    t = bh.open(uri, format="toy")
    t.append(make_people(0, 30))
    return t


def foreign_commit(table, **changes):
    """Another writer's commit, made of the head."""
    state = TABLES[table.uri]
    head = state.versions[state.refs["main"]]
    version = state.next_version()
    new = replace(head, version=version, parent=head.version, write_id=None, timestamp_ms=system.current().now_ms())
    assert state.swap("main", str(head.version), replace(new, **changes))
    return version


def ids(t) -> list[int]:
    return sorted(t.to_arrow()["id"].to_pylist())


def test_units_have_two_parts(table):
    batch = next(iter(table._handle.snapshot.files()))
    assert all(len(parts) == 2 for parts in batch.column("parts").to_pylist())


def test_rows_keep_their_ids(table):
    def lines():
        found = table.scan(columns=["id", "_row_id"]).to_arrow().to_pylist()
        return {row["id"]: row["_row_id"] for row in found}

    first = lines()
    assert sorted(first.values()) == list(range(30))
    table.update({"score": "0"}, where="id < 4")
    table.optimize()
    table.delete("id = 7")
    source = table.scan(where="id = 9").to_arrow()
    extra = source.set_column(source.schema.get_field_index("id"), "id", pa.array([99], source.schema.field("id").type))
    table.upsert(pa.concat_tables([source, extra]), on="id")
    table.optimize(zorder_by=["id"])
    found = lines()
    assert found.pop(99) >= 30
    assert found == {id: row for id, row in first.items() if id != 7}


def test_equality_deletes_hit_older_rows_only(table, make_people):
    head = table._handle.snapshot.document
    foreign_commit(table, deletes=(*head.deletes, Deletes("equality", 10_000, key="id", values=(3, 4))))
    table.refresh()
    assert ids(table) == [i for i in range(30) if i not in (3, 4)]
    assert table.scan(columns=["name"], where="score > 1").count() == 20
    table.delete("id = 5")
    assert ids(table) == [i for i in range(30) if i not in (3, 4, 5)]
    assert table.count() == 27


def test_planning_reads_no_data_file(table, monkeypatch):
    """Equality deletes reach the reader of the rows as they are."""
    head = table._handle.snapshot.document
    foreign_commit(table, deletes=(*head.deletes, Deletes("equality", 10_000, key="id", values=(3, 4))))
    snapshot = table.refresh()._handle.snapshot
    real = toy_tasks.read
    monkeypatch.setattr(toy_tasks, "read", None)
    plan = snapshot.plan()
    assert set(plan.deletes["kind"].to_pylist()) == {EQUALITY} and plan.rows is None
    monkeypatch.setattr(toy_tasks, "read", real)
    assert sum(b.num_rows for task in plan.tasks() for b in toy_tasks.read(task)) == 28


def test_equality_deletes_match_null_and_nan(tmp_path):
    uri = str(tmp_path / "keys")
    rows = pa.table({"k": pa.array([None, float("nan"), 0.0, -0.0, 1.5]), "n": pa.array(range(5), pa.int64())})
    bh.write(rows, uri, format="toy")
    table = bh.open(uri, format="toy")
    head = table._handle.snapshot.document
    deletes = Deletes("equality", 10_000, key="k", values=(None, float("nan"), -0.0))
    foreign_commit(table, deletes=(*head.deletes, deletes))
    assert sorted(table.refresh().to_arrow()["n"].to_pylist()) == [2, 4]
    assert table.scan(columns=["n"], where="n > 1").to_arrow()["n"].to_pylist() == [2, 4]


def test_positions_of_a_unit_can_be_selected(table):
    plan = table._handle.snapshot.plan(["id"], None, ("_pos",))
    for task in plan.tasks(target_bytes=1):
        batch = pa.Table.from_batches(toy_tasks.read(task))
        some = replace(task, selected=(serialize64(Bitmap.of([1, 3])),))
        found = pa.Table.from_batches(toy_tasks.read(some))
        assert found["_pos"].to_pylist() == [1, 3] and found["id"].to_pylist() == batch["id"].take([1, 3]).to_pylist()


def test_an_overwrite_counts_rows_that_live(table, make_people):
    head = table._handle.snapshot.document
    foreign_commit(table, deletes=(*head.deletes, Deletes("equality", 10_000, key="id", values=(3, 4))))
    result = table.overwrite(make_people(50, 51))
    assert (result.rows_deleted, result.files_removed, result.rows_added) == (28, 3, 1)


def test_shared_position_deletes_add_up(table):
    table.delete("id % 2 = 0")
    table.delete("id % 3 = 0")
    assert ids(table) == [i for i in range(30) if i % 2 and i % 3]
    assert table.count() == len(ids(table))


def test_units_of_two_specs_are_planned_together(table, make_people):
    head = table._handle.snapshot.document
    by_nothing = replace(head.partitioning.specs[0], id=1, fields=())
    specs = replace(head.partitioning, specs=(*head.partitioning.specs, by_nothing), current_id=1)
    foreign_commit(table, partitioning=specs)
    table.refresh().append(make_people(30, 40))
    assert ids(table) == list(range(40))
    assert set(pa.Table.from_batches(list(table._handle.snapshot.files()))["spec"].to_pylist()) == {0, 1}
    table.delete("city = 'Oslo'")
    assert ids(table) == [i for i in range(40) if i % 3]


def test_tags_are_read_and_not_moved(table, make_people):
    TABLES[table.uri].refs["v1"] = table.version
    table.append(make_people(30, 31))
    assert bh.open(table.uri, format="toy", ref="v1").count() == 30
    assert table.count() == 31


def meanwhile(table, data: pa.Table, act) -> pa.RecordBatchReader:
    """Data that lets `act` happen after the write was planned and before it is committed."""

    def batches():
        act()
        yield from data.to_batches()

    return pa.RecordBatchReader.from_batches(data.schema, batches())


def test_stale_append_over_cleaned_history_loses_nothing(table, make_people):
    def act():
        for i in range(20):
            bh.open(table.uri, format="toy").append(make_people(100 + i, 101 + i))
        clean(table.uri, keep=2)

    table.append(meanwhile(table, make_people(200, 201), act))
    assert ids(table) == [*range(30), *range(100, 120), 200]


def test_a_handle_behind_deletes_from_the_newest(table, make_people):
    stale = bh.open(table.uri, format="toy")
    for i in range(20):
        table.append(make_people(100 + i, 101 + i))
    clean(table.uri, keep=2)
    stale.delete("id >= 100")
    assert ids(bh.open(table.uri, format="toy")) == list(range(30))


def test_a_table_dropped_and_recreated_is_never_written(table, make_people):
    stale = bh.open(table.uri, format="toy")
    del TABLES[table.uri]
    bh.create(table.uri, make_people(0, 1).schema, format="toy")
    with pytest.raises(errors.CommitConflictError, match="recreated"):
        stale.append(make_people(0, 1))


def test_delete_against_delete_of_the_same_rows(table):
    stale = bh.open(table.uri, format="toy")
    table.delete("id < 10")
    stale.delete("id < 12")
    assert ids(stale) == list(range(12, 30))


def test_schema_change_by_a_winner_stops_an_append(table, make_people):
    other = bh.open(table.uri, format="toy")
    data = meanwhile(table, make_people(30, 31), lambda: other.add_column("extra", "int"))
    with pytest.raises(errors.CommitConflictError, match="metadata-changed"):
        table.append(data)
    assert table.refresh().count() == 30


def test_delete_while_rows_are_deleted_is_planned_again(table, monkeypatch):
    real = write_op.TaskWork.perform
    other = bh.open(table.uri, format="toy")
    calls = []

    def slow(work, engine):
        done = real(work, engine)
        calls.append(1)
        if len(calls) == 1:
            other.delete("id < 10")
        return done

    monkeypatch.setattr(write_op.TaskWork, "perform", slow)
    result = table.delete("id < 12")
    assert (result.retries, result.rows_deleted) == (1, 2)
    assert ids(table) == list(range(12, 30))


def test_plans_say_which_test_skipped(table):
    explanation = table.scan(where="city = 'Oslo'").explain()
    assert explanation.units == 1 and sum(explanation.skipped.values()) == 2


def test_the_toy_is_a_table_format():
    for protocol, kind in ((TableFormat, type(FORMAT)), (Snapshot, ToySnapshot), (Target, NewToy)):
        methods = [n for n, m in vars(protocol).items() if callable(m) and not n.startswith("_")]
        assert methods and all(callable(getattr(kind, n)) for n in methods)


@pytest.fixture
def by_positions(tmp_path, make_people):
    """A table whose rows are deleted by files of positions, with three units."""
    uri = str(tmp_path / "positions")
    bh.create(uri, make_people(0, 1).schema, format="toy", properties={"toy.deletes": "positions"})
    t = bh.open(uri, format="toy")
    for i in (0, 10, 20):
        t.append(make_people(i, i + 10))
    return t


def position_files(t) -> list[toy_tasks.PositionFile]:
    return [d.rows for d in t._handle.snapshot.document.deletes if isinstance(d.rows, toy_tasks.PositionFile)]


def test_a_task_writes_the_positions_of_deleted_rows(by_positions, tmp_path):
    t = by_positions
    before = {u.id: u for u in t._handle.snapshot.document.units}
    result = t.delete("id in (3, 5, 27)")
    assert (result.rows_deleted, result.files_removed, result.files_added, result.rows_copied) == (3, 0, 0, 0)
    assert {u.id: u for u in t._handle.snapshot.document.units} == before, "no data file is written again"
    found = position_files(t)
    assert sorted(tuple(f[f.unit]) for f in found) == [(3, 5), (7,)]
    assert all(f.path.startswith(f"{t._handle.snapshot.write_context('x').directory}/") for f in found)
    assert ids(t) == [i for i in range(30) if i not in (3, 5, 27)]
    assert [e.operation for e in t.history(1)] == ["delete"]


def test_a_unit_that_loses_its_last_rows_goes_without_a_file(by_positions):
    t = by_positions
    t.delete("id % 2 = 0 and id < 10")
    result = t.delete("id * 1 < 12")
    assert len(position_files(t)) == 2 and len(t._handle.snapshot.document.units) == 2
    assert ids(t) == list(range(12, 30)) and result.files_removed == 1


def test_changed_rows_are_taken_by_files_of_positions(by_positions, make_people):
    t = by_positions
    t.update({"score": "-1"}, where="id in (1, 21)")
    source = make_people(8, 12).append_column("gone", pa.array([False, True, False, True]))
    merge = t.merge(source, "target.id = source.id").when_matched_delete("source.gone")
    merge.when_matched_update(set={"score": "-2"}).execute()
    t.overwrite(make_people(5, 6), where="id = 5 or id = 6")
    rows = {r["id"]: r["score"] for r in t.to_arrow().to_pylist()}
    assert sorted(rows) == [i for i in range(30) if i not in (6, 9, 11)]
    assert {i for i, score in rows.items() if score in (-1, -2)} == {1, 21, 8, 10}
    assert len(position_files(t)) == 2 + 2 + 1


def test_files_of_positions_of_a_failed_write_are_removed(by_positions, monkeypatch):
    t = by_positions
    state = TABLES[t.uri]
    before, store = state.refs["main"], set(stored(t))
    real, written = toy_tasks._Writer.close, []

    def close(self):
        if self._context.content == "positions":
            written.append(self)
            if len(written) == 2:
                raise OSError("the disk is full")
        return real(self)

    monkeypatch.setattr(toy_tasks._Writer, "close", close)
    with pytest.raises(OSError, match="full"):
        t.delete("id in (3, 13, 23)")
    assert len(written) == 2 and state.refs["main"] == before and set(stored(t)) == store


def stored(t) -> list[str]:
    context = t._handle.snapshot.context
    storage, key = context.stores.resolve(f"{context.location.uri}/data")
    return [info.key for info in storage.list(key)]
