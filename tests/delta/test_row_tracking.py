"""Row tracking is turned on: for new tables, and for those that have files (PROTOCOL.md, "Writer Requirements for Row
Tracking")."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake

import boathouse as bh
from boathouse.delta.adapter import FORMAT
from boathouse.delta.checkpoint.writer import write_checkpoint
from boathouse.delta.features import row_tracking
from boathouse.errors import CommitUnknownError, InvalidArgumentError
from boathouse.storage import Stores
from boathouse.table.commit import FileCommitter
from boathouse.table.context import TableContext
from boathouse.table.location import Location

ON = {"delta.enableRowTracking": "true"}
OFF = {"delta.enableRowTracking": "false"}
KINDS = {
    "plain": {},
    "vectors": {"delta.enableDeletionVectors": "true"},
    "mapped": {"delta.columnMapping.mode": "name"},
    "by id": {"delta.columnMapping.mode": "id", "delta.enableDeletionVectors": "true"},
    "feed": {"delta.enableChangeDataFeed": "true"},
    "timed": {"delta.enableInCommitTimestamps": "true", "delta.checkpointPolicy": "v2"},
}


def rows(*values):
    columns = [pa.array(values, pa.int64()), pa.array([v % 2 for v in values], pa.int64())]
    return pa.table([*columns, pa.array([str(v) for v in values], pa.string())], ["x", "p", "s"])


@pytest.fixture(params=KINDS)
def table(request, tmp_path):
    """Files of versions 0 to 2, of which rows are deleted."""
    bh.write(rows(0, 1, 2, 3), str(tmp_path / "t"), format="delta", partition_by=["p"], properties=KINDS[request.param])
    found = bh.open(str(tmp_path / "t"))
    found.append(rows(4, 5, 6, 7))
    found.delete("x in (1, 6)")
    return found


@pytest.fixture
def plain(tmp_path):
    bh.write(rows(0, 1, 2, 3), str(tmp_path / "t"), format="delta")
    found = bh.open(str(tmp_path / "t"))
    found.append(rows(4, 5))
    return found


def lines(table):
    """x -> (row id, row version)"""
    found = table.scan(columns=["x", "_row_id", "_row_version"]).to_arrow().to_pylist()
    assert len({r["_row_id"] for r in found}) == len(found)
    return {r["x"]: (r["_row_id"], r["_row_version"]) for r in found}


def path_of(table):
    return table.uri.removeprefix("file://")


def actions(delta, table, kind):
    """version -> its actions of the kind"""
    return {v: [a[kind] for a in entry if kind in a] for v, entry in delta.log(path_of(table)).items()}


def check_log(delta, table):
    """No two files share ids in a version, ids rise from one commit to the next, a file keeps its own."""
    mark, known = -1, {}
    domains, adds = actions(delta, table, "domainMetadata"), actions(delta, table, "add")
    supported = False
    for version, entry in delta.log(path_of(table)).items():
        supported |= any("rowTracking" in (a.get("protocol", {}).get("writerFeatures") or ()) for a in entry)
        if not supported:
            continue
        (after,) = [json.loads(d["configuration"])["rowIdHighWaterMark"] for d in domains[version]] or [mark]
        for add in adds[version]:
            first, count = add["baseRowId"], json.loads(add["stats"])["numRecords"]
            assert known.setdefault(add["path"], (first, add["defaultRowCommitVersion"])) == (
                first, add["defaultRowCommitVersion"]
            )  # fmt: skip
            if add["defaultRowCommitVersion"] == version:
                assert mark < first and first + count - 1 <= after
        mark = after
    ranges = sorted(first for first, _ in known.values())
    assert len(set(ranges)) == len(ranges)
    return known


@pytest.mark.spec("D-303")
def test_a_table_with_files_gets_ids_that_rows_keep(table, delta):
    done = table.set_properties(ON)
    assert [*done.versions] == [3, 4, 5] == [done.version - 2, done.version - 1, done.version]
    first = lines(table)
    assert {*first} == {0, 2, 3, 4, 5, 7} and {version for _, version in first.values()} == {4}
    protocol = actions(delta, table, "protocol")[3][0]
    assert {"rowTracking", "domainMetadata"} <= {*protocol["writerFeatures"]} and protocol["minWriterVersion"] == 7
    assert not {"rowTracking", "domainMetadata"} & {*protocol.get("readerFeatures", ())}
    assert [len(v) for v in list(actions(delta, table, "metaData").values())[3:]] == [0, 0, 1]
    table.update({"s": "'new'"}, where="x = 3")
    table.append(rows(8))
    table.delete("x = 4")
    table.merge(rows(5, 9), "target.x = source.x").when_matched_update_all().when_not_matched_insert_all().execute()
    table.optimize()
    found = lines(table)
    assert {x: found[x] for x in (0, 2, 7)} == {x: first[x] for x in (0, 2, 7)}
    assert {x: found[x][0] for x in (3, 5)} == {x: first[x][0] for x in (3, 5)}
    assert [found[x][1] for x in (3, 8, 5, 9)] == [6, 7, 9, 9]
    assert min(found[x][0] for x in (8, 9)) > max(id for id, _ in first.values())
    check_log(delta, table)
    theirs = DeltaTable(path_of(table))
    seen = pa.table(QueryBuilder().register("t", theirs).execute("select x from t order by x").read_all())
    assert seen.column("x").to_pylist() == sorted(found) == [0, 2, 3, 5, 7, 8, 9]


def test_files_are_given_ids_in_several_commits(plain, delta, monkeypatch):
    monkeypatch.setattr(row_tracking, "FILES_AT_ONCE", 2)
    for x in range(6, 9):
        plain.append(rows(x))
    done = plain.set_properties(ON, txn=("app", 7))
    assert len(done.versions) == 5
    again = [
        v for v, infos in actions(delta, plain, "commitInfo").items() if infos[0]["operation"].endswith("BACKFILL")
    ]
    assert [len(actions(delta, plain, "add")[v]) for v in again] == [2, 2, 1] and [*done.versions][1:-1] == again
    assert all(a["dataChange"] is False for v in again for a in actions(delta, plain, "add")[v])
    assert [len(t) for t in actions(delta, plain, "txn").values()] == [0] * (done.version) + [1]
    assert len(lines(plain)) == 9
    check_log(delta, plain)


def test_a_table_that_has_the_feature_gets_ids_with_the_property(tmp_path, delta):
    path = str(tmp_path / "t")
    bh.write(rows(0, 1), path, format="delta", properties={"delta.feature.rowTracking": "supported"})
    t = bh.open(path)
    t.append(rows(2))
    assert [a["baseRowId"] for v in (0, 1) for a in actions(delta, t, "add")[v]] == [0, 2]
    assert t.set_properties(ON).versions == (2,)
    assert lines(t) == {0: (0, 0), 1: (1, 0), 2: (2, 1)}


@pytest.mark.parametrize("by", ["write", "create", "convert"])
def test_new_tables_are_tracked_from_the_start(tmp_path, delta, by):
    path = str(tmp_path / "t")
    if by == "write":
        bh.write(rows(0, 1), path, format="delta", properties=ON)
    elif by == "create":
        bh.create(path, rows().schema, format="delta", properties=ON).append(rows(0, 1))
    else:
        (tmp_path / "t").mkdir()
        pq.write_table(rows(0, 1), tmp_path / "t/file.parquet")
        bh.convert(path, format="delta", properties=ON)
    t = bh.open(path)
    assert lines(t) == {0: (0, t.version), 1: (1, t.version)}
    t.update({"s": "'u'"}, where="x = 1")
    assert lines(t) == {0: (0, t.version - 1), 1: (1, t.version)}
    names = actions(delta, t, "metaData")[0][0]["configuration"]
    assert names["delta.rowTracking.materializedRowIdColumnName"].startswith("_row-id-col-")
    assert names["delta.rowTracking.materializedRowCommitVersionColumnName"].startswith("_row-commit-version-col-")
    check_log(delta, t)


def test_turned_off_and_on_again_the_columns_keep_their_names(plain, delta):
    plain.set_properties(ON)
    plain.update({"s": "'u'"}, where="x = 1")
    first, names = lines(plain), dict(plain.properties)
    plain.set_properties(OFF)
    assert plain.properties == names | OFF
    plain.append(rows(9))
    assert plain.set_properties(ON).versions == (plain.version,), "every file has ids, since the feature is there"
    assert plain.properties == names
    assert {x: v for x, v in lines(plain).items() if x != 9} == first
    plain.set_properties({"delta.rowTracking.materializedRowIdColumnName": None})
    assert plain.properties == names
    with pytest.raises(InvalidArgumentError, match="materializedRowIdColumnName is kept"):
        plain.set_properties({"delta.rowTracking.materializedRowIdColumnName": "x"})
    with pytest.raises(InvalidArgumentError, match="not true or false"):
        plain.set_properties({"delta.enableRowTracking": "yes"})
    check_log(delta, plain)


def test_suspended_tables_give_no_ids_until_they_track_rows(plain, delta):
    plain.set_properties({"delta.feature.rowTracking": "supported", "delta.rowTrackingSuspended": "true"})
    plain.append(rows(9))
    assert "baseRowId" not in actions(delta, plain, "add")[plain.version][0]
    with pytest.raises(InvalidArgumentError, match="cannot both be true"):
        plain.set_properties(ON)
    plain.set_properties(ON | {"delta.rowTrackingSuspended": "false"})
    assert len(lines(plain)) == 7
    with pytest.raises(InvalidArgumentError, match="cannot both be true"):
        plain.set_properties({"delta.rowTrackingSuspended": "true"})


def test_files_without_statistics_are_counted(raw, delta):
    table = raw()
    table.commit(0, delta.PROTOCOL, delta.metadata([delta.field("x", "long")]))
    data = [pa.table({"x": [0, 1, 2]}), pa.table({"x": [3]})]
    adds = [table.add(f"{i}.parquet", size=table.file(f"{i}.parquet", d)) for i, d in enumerate(data)]
    for add in adds:
        add["add"]["size"] = (table.path / add["add"]["path"]).stat().st_size
    table.commit(1, *adds)
    opened = bh.open(str(table))
    opened.set_properties(ON)
    assert lines(opened) == {0: (0, 3), 1: (1, 3), 2: (2, 3), 3: (3, 3)}
    check_log(delta, opened)


def test_a_restored_table_keeps_what_ids_need(plain, delta):
    plain.set_properties(ON)
    plain.update({"s": "'u'"}, where="x < 3")
    before, names = lines(plain), dict(plain.properties)
    plain.restore(version=1)
    assert plain.properties == {k: v for k, v in names.items() if k != "delta.enableRowTracking"}
    plain.append(rows(9))
    plain.restore(version=5)
    assert lines(plain) == before and plain.properties == names
    check_log(delta, plain)


def test_checkpoints_and_change_feeds(table, delta):
    table.set_properties(ON)
    first = lines(table)
    changes = table.changes(start=3).to_arrow()
    assert changes.num_rows == 0
    write_checkpoint(FORMAT.open(TableContext(Location(table.uri), Stores())))
    clean(table)
    again = bh.open(table.uri)
    assert lines(again) == first
    again.append(rows(8))
    assert lines(again)[8][0] > max(id for id, _ in first.values())


def clean(table):
    """Only the newest version's files are left of the log."""
    for file in Path(path_of(table), "_delta_log").glob("0*.json"):
        if int(file.name[:20]) < table.version:
            file.unlink()


def before_the_put(monkeypatch, number, act):
    """`act` happens just before the put of the commit of this number from now on."""
    real, count = FileCommitter.publish, [0]

    def publish(self, attempt):
        count[0] += 1
        if count[0] == number + 1:
            monkeypatch.setattr(FileCommitter, "publish", real)
            act()
        return real(self, attempt)

    monkeypatch.setattr(FileCommitter, "publish", publish)


OTHERS = {
    "append": lambda t: t.append(rows(50)),
    "delete": lambda t: t.delete("x = 5"),
    "delete a file": lambda t: t.delete("x >= 4"),
    "update": lambda t: t.update({"s": "'other'"}, where="x = 2"),
    "optimize": lambda t: t.optimize(),
    "turned on": lambda t: t.set_properties(ON),
}


@pytest.mark.few(12)
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("kind", ["plain", "vectors"])
def test_commits_of_others_meanwhile(plain, delta, monkeypatch, other, number, kind):
    plain.set_properties({"delta.enableDeletionVectors": "true"} if kind == "vectors" else {"a": "b"})
    before_the_put(monkeypatch, number, lambda: OTHERS[other](bh.open(plain.uri)))
    plain.set_properties(ON)
    t = bh.open(plain.uri)
    found = lines(t)
    assert {*found} == {"append": {0, 1, 2, 3, 4, 5, 50}, "delete": {0, 1, 2, 3, 4}, "delete a file": {0, 1, 2, 3}}.get(
        other, {0, 1, 2, 3, 4, 5}
    )
    t.update({"s": "'later'"}, where="x = 0")
    assert {x: id for x, (id, _) in lines(t).items()} == {x: id for x, (id, _) in found.items()}
    check_log(delta, t)


def test_a_writer_that_does_not_know_the_feature_meanwhile(plain, delta, monkeypatch):
    """It wrote its file before the protocol had the feature, and commits after."""
    before_the_put(monkeypatch, 0, lambda: _write_by_deltalake(plain))
    plain.set_properties(ON)
    assert {*lines(bh.open(plain.uri))} == {0, 1, 2, 3, 4, 5, 60}
    check_log(delta, plain)


def _write_by_deltalake(table):
    write_deltalake(path_of(table), rows(60), mode="append")


@pytest.mark.few(10)
@pytest.mark.parametrize("act", [k for k in OTHERS if k != "turned on"])
@pytest.mark.parametrize("kind", ["plain", "vectors"])
@pytest.mark.parametrize("steps", [1, 2, 3])
def test_what_was_planned_before_is_done_after(plain, delta, monkeypatch, act, kind, steps):
    """Whole and half way: what removes files states the ids that they have got."""
    plain.set_properties({"delta.enableDeletionVectors": "true"} if kind == "vectors" else {"a": "b"})
    expected = {"append": {0, 1, 2, 3, 4, 5, 50}, "delete": {0, 1, 2, 3, 4}, "delete a file": {0, 1, 2, 3}}

    def others():
        t = bh.open(plain.uri)
        t.set_properties({"delta.feature.rowTracking": "supported"})
        if steps == 2:
            before_the_put(monkeypatch, 1, lambda: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                t.set_properties(ON)
        if steps == 3:
            t.set_properties(ON)

    before_the_put(monkeypatch, 0, others)
    OTHERS[act](plain)
    t = bh.open(plain.uri)
    t.set_properties(ON)
    assert {*lines(t)} == expected.get(act, {0, 1, 2, 3, 4, 5})
    check_log(delta, t)
    known = {}
    for entry in delta.log(path_of(t)).values():
        assert all(known[a["remove"]["path"]] == a["remove"].get("baseRowId") for a in entry if "remove" in a)
        known |= {a["add"]["path"]: a["add"].get("baseRowId") for a in entry if "add" in a}


def go_past(table):
    """An append of another writer, a checkpoint, and every older file of the log gone."""
    other = bh.open(table.uri)
    other.append(rows(70))
    other.append(rows(71))
    DeltaTable(path_of(table)).create_checkpoint()
    clean(other.refresh())


@pytest.mark.parametrize("number", [0, 1, 2])
def test_what_is_put_below_a_cleaned_log_is_not_said_to_be_done(plain, monkeypatch, number):
    before_the_put(monkeypatch, number, lambda: go_past(plain))
    try:
        plain.set_properties(ON)
    except CommitUnknownError:
        assert number != 1, "row ids in the checkpoint decide"
        bh.open(plain.uri).set_properties(ON)
    assert {*lines(bh.open(plain.uri))} == {0, 1, 2, 3, 4, 5, 70, 71}


@pytest.mark.parametrize("number", [0, 1, 2])
def test_what_others_followed_and_checkpointed_is_found_there(plain, monkeypatch, number):
    real, count = FileCommitter.publish, [0]

    def publish(self, attempt):
        count[0] += 1
        outcome = real(self, attempt)
        if count[0] == number + 1:
            monkeypatch.setattr(FileCommitter, "publish", real)
            go_past(plain)
        return outcome

    monkeypatch.setattr(FileCommitter, "publish", publish)
    done = plain.set_properties(ON)
    assert done.retries == 0
    t = bh.open(plain.uri)
    assert {*lines(t)} == {0, 1, 2, 3, 4, 5, 70, 71} and t.properties["delta.enableRowTracking"] == "true"
