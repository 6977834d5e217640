"""Write, audit, publish: staged snapshots and cherry-picks, by the reference's rules; restores, and the schema that
comes back with them."""

import datetime as dt
import json
from pathlib import Path

import pyarrow as pa
import pytest
from lines import PLACES, SCHEMA, Line, ids, rows
from rivals import with_rival

import boathouse as bh
from boathouse.errors import (
    InvalidArgumentError,
    MissingFileError,
    ReadOnlyError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)

WAP = {"write.wap.enabled": "true"}


@pytest.fixture(params=PLACES)
def line(request, tmp_path, monkeypatch):
    return Line(request.param, tmp_path, monkeypatch, WAP)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    return Line("folder", tmp_path, monkeypatch, WAP)


def summary(line, id):
    return dict(line.seen().metadata.snapshot_by_id(id).summary.additional_properties)


def operation(line, id):
    return line.seen().metadata.snapshot_by_id(id).summary.operation.value


@pytest.mark.spec("I-338")
def test_staged_audited_published(line):
    """A staged snapshot is read by its id, moves no branch, and is published once: as it is where it follows the head,
    else made again."""
    t = line.open()
    first = t.version
    staged = t.append(rows(4, 5), metadata={"wap.id": "load 1"})
    assert t.version == first == line.heads()["main"] and line.agree() == [1, 2, 3]
    assert ids(line.open(version=staged.version)) == [1, 2, 3, 4, 5]
    assert summary(line, staged.version)["wap.id"] == "load 1" and t.find_write(staged.write_id) == staged.version
    assert [e.snapshot_id for e in line.seen().metadata.snapshot_log] == [first]
    t.append(rows(9))
    other = t.append(rows(6), metadata={"wap.id": "load 2"})
    done = t.refs.publish("load 1")
    assert (done.operation, done.files_added) == ("cherry-pick", 2) and done.version == t.version != staged.version
    assert line.agree() == [1, 2, 3, 4, 5, 9]
    found = summary(line, t.version)
    assert found["source-snapshot-id"] == str(staged.version) and found["published-wap-id"] == "load 1"
    assert "wap.id" not in found and found["added-data-files"] == "2" and operation(line, t.version) == "append"
    assert found["total-records"] == "6"
    with pytest.raises(InvalidArgumentError, match="of the branch has its changes"):
        t.refs.publish("load 1")
    with pytest.raises(VersionNotFoundError, match="no snapshot is staged as 'load 9'"):
        t.refs.publish("load 9")
    t.refs.publish("load 2")
    assert line.agree() == [1, 2, 3, 4, 5, 6, 9] and t.version != other.version
    last = t.delete("id < 3", metadata={"wap.id": "purge"})
    assert t.refs.publish("purge").version is None and t.version == last.version == line.heads()["main"]
    assert line.agree() == [3, 4, 5, 6, 9]
    with pytest.raises(InvalidArgumentError, match="of the branch has its changes"):
        t.refs.publish("purge")
    files = [f["path"] for f in t.files().to_pylist()]
    assert len(files) == len(set(files))


@pytest.mark.spec("I-338")
def test_what_is_not_published(folder):
    t = folder.open()
    for _ in range(2):
        t.append(rows(4), metadata={"wap.id": "twice"})
    with pytest.raises(InvalidArgumentError, match="2 snapshots are staged as 'twice'"):
        t.refs.publish("twice")
    staged = {
        "delete": t.delete("id = 1", metadata={"wap.id": "delete"}).version,
        "update": t.update({"id": "id + 10"}, metadata={"wap.id": "update"}).version,
        "overwrite": t.overwrite(rows(8), metadata={"wap.id": "overwrite"}).version,
    }
    t.append(rows(5))
    before = folder.seen().metadata_location
    for name, version in staged.items():
        with pytest.raises(InvalidArgumentError, match=f"snapshot {version} cannot be cherry-picked: it is no append"):
            t.refs.publish(name)
        with pytest.raises(InvalidArgumentError, match="it is no append"):
            t.refs.cherry_pick(version)
    for version in t.refs.ancestors():
        with pytest.raises(InvalidArgumentError, match="of the branch has its changes"):
            t.refs.cherry_pick(version)
    for wrong, kind in ((77, VersionNotFoundError), (None, InvalidArgumentError), ("1", InvalidArgumentError)):
        with pytest.raises(kind):
            t.refs.cherry_pick(wrong)
    with pytest.raises(InvalidArgumentError, match="is not the name of a staged write"):
        t.refs.publish("")
    with pytest.raises(InvalidArgumentError, match="set-properties makes no snapshot"):
        t.set_properties({"a": "b"}, metadata={"wap.id": "x"})
    assert folder.seen().metadata_location == before
    t.set_properties({"write.wap.enabled": None})
    files = list(Path(folder.path, "data").rglob("*.parquet"))
    with pytest.raises(InvalidArgumentError, match="stages a snapshot, and the table does not"):
        t.append(rows(6), metadata={"wap.id": "x"})
    assert sorted(Path(folder.path, "data").rglob("*.parquet")) == sorted(files) and folder.agree() == [1, 2, 3, 5]


@pytest.mark.spec("I-338")
def test_a_name_is_published_once(folder):
    """Two snapshots of one name, by cherry-picks of their ids: the second is refused, as in the reference."""
    t = folder.open()
    first = t.append(rows(4), metadata={"wap.id": "x"}).version
    second = t.append(rows(5), metadata={"wap.id": "x"}).version
    t.append(rows(9))
    t.refs.cherry_pick(first)
    with pytest.raises(InvalidArgumentError, match="'x' has been published by snapshot"):
        t.refs.cherry_pick(second)
    assert folder.agree() == [1, 2, 3, 4, 9]


@pytest.mark.spec("I-338")
def test_overwrites_of_partitions(folder):
    """They are picked where their partitions have no new files, and what they removed is there."""
    t = folder.open()
    staged = t.overwrite(rows(10, 12), partitions="dynamic", metadata={"wap.id": "even"})
    assert summary(folder, staged.version)["replace-partitions"] == "true"
    t.append(rows(5))
    done = t.refs.publish("even")
    assert (done.files_added, done.files_removed, done.rows_deleted) == (1, 1, 1)
    assert folder.agree() == [1, 3, 5, 10, 12] and operation(folder, t.version) == "overwrite"
    assert summary(folder, t.version)["total-records"] == "5"
    t.overwrite(rows(20), partitions="dynamic", metadata={"wap.id": "again"})
    t.append(rows(14))
    with pytest.raises(InvalidArgumentError, match="has new files since"):
        t.refs.publish("again")
    t.overwrite(rows(21), partitions="dynamic", metadata={"wap.id": "odd"})
    t.delete("p = 'p1'")
    with pytest.raises(InvalidArgumentError, match="of the files that it removed are gone"):
        t.refs.publish("odd")
    t.refs.create_branch("old", t.refs.ancestors()[-1])
    b = folder.open("old")
    b.append(rows(30))
    overwritten = b.overwrite(rows(32), partitions="dynamic").version
    with pytest.raises(InvalidArgumentError, match="which is no ancestor"):
        t.refs.cherry_pick(overwritten)
    assert folder.agree() == [10, 12, 14]


@pytest.mark.spec("I-338", "I-219")
def test_cherry_picks_between_branches(folder):
    t = folder.open()
    t.refs.create_branch("b")
    b = folder.open("b")
    b.append(rows(4))
    first = b.version
    b.append(rows(5))
    t.append(rows(6))
    t.refs.cherry_pick(b.version)
    assert folder.agree() == [1, 2, 3, 5, 6] and folder.agree("b") == [1, 2, 3, 4, 5]
    main = t.version
    b.refs.cherry_pick(t.refs.ancestors()[1])
    assert folder.agree("b") == [1, 2, 3, 4, 5, 6] and folder.heads()["main"] == main
    t.refs.cherry_pick(first)
    assert folder.agree() == [1, 2, 3, 4, 5, 6]
    t.delete("id in (4, 5)")
    assert folder.agree() == [1, 2, 3, 6] and folder.agree("b") == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_entries_that_are_picked_inherit_everything(tmp_path, monkeypatch, version):
    """Sequence numbers and row ids are the new commit's; metrics and partitions are those of the picked entries."""
    line = Line("folder", tmp_path, monkeypatch, {**WAP, "format-version": version})
    t = line.open()
    staged = t.append(rows(4, 5), metadata={"wap.id": "x"}).version
    t.append(rows(9))
    t.refs.publish("x")
    assert ids(t) == [1, 2, 3, 4, 5, 9]
    mine = {r["data_file"]["file_path"]: r for r in _entries(t, t.version)}
    theirs = {r["data_file"]["file_path"]: r for r in _entries(bh.open(t.uri, version=staged), staged)}
    assert mine.keys() == theirs.keys() and len(mine) == 2
    for path, entry in mine.items():
        assert entry["status"] == 1 and entry["sequence_number"] == {"1": 0}.get(version, 4)
        for name in ("lower_bounds", "partition", "record_count", "value_counts"):
            assert entry["data_file"][name] == theirs[path]["data_file"][name]
    if version == "3":
        found = t.scan(["id", "_row_id", "_last_updated_sequence_number"]).to_arrow().sort_by("id").to_pylist()
        assert sorted(r["_row_id"] for r in found if r["id"] in (4, 5)) == [6, 7]
        assert {r["_last_updated_sequence_number"] for r in found if r["id"] in (4, 5)} == {4}
        assert len({r["_row_id"] for r in found}) == 6
    t.update({"p": "'p7'"}, "id = 4")
    assert ids(t) == [1, 2, 3, 4, 5, 9]


def _entries(table, version):
    return [e for e in table.inspect.entries().to_pylist() if e["snapshot_id"] == version]


def test_a_required_column_that_came_since(folder):
    t = folder.open()
    t.append(rows(4), metadata={"wap.id": "x"})
    t.append(rows(5))
    head = Path(folder.seen().metadata_location.removeprefix("file://"))
    document = json.loads(head.read_text())
    fields = [*document["schemas"][0]["fields"], {"id": 3, "name": "q", "required": True, "type": "int"}]
    document["schemas"].append({"type": "struct", "schema-id": 1, "fields": fields})
    document |= {"current-schema-id": 1, "last-column-id": 3}
    number = int(head.name[1:].split(".")[0]) + 1
    head.with_name(f"v{number}.metadata.json").write_text(json.dumps(document))
    with pytest.raises(InvalidArgumentError, match="its rows lack the required column `q`"):
        t.refs.publish("x")


def test_concurrent_commits_plan_it_again(folder, monkeypatch):
    """A pick that would have moved the branch makes the changes again, and one that was made elsewhere is refused."""
    t = folder.open()
    staged = t.append(rows(4), metadata={"wap.id": "x"}).version
    done = with_rival(monkeypatch, t, lambda t: t.refs.publish("x"), lambda r: r.append(rows(5)))
    assert done.retries == 1 and t.version != staged and folder.agree() == [1, 2, 3, 4, 5]
    t.append(rows(6), metadata={"wap.id": "y"})
    t.append(rows(7))
    with pytest.raises(InvalidArgumentError, match="of the branch has its changes"):
        with_rival(monkeypatch, t, lambda t: t.refs.publish("y"), lambda r: r.refs.publish("y"))
    assert folder.agree() == [1, 2, 3, 4, 5, 6, 7]
    done = with_rival(
        monkeypatch, t, lambda t: t.append(rows(8), metadata={"wap.id": "z"}), lambda r: r.append(rows(9)))  # fmt: skip
    parent = folder.seen().metadata.snapshot_by_id(done.version).parent_snapshot_id
    assert parent == folder.heads()["main"] and folder.agree() == [1, 2, 3, 4, 5, 6, 7, 9]


@pytest.mark.feature("restore", format="iceberg")
def test_restore(line):
    """Any retained snapshot becomes the head again, with its schema; nothing is written but metadata."""
    t = line.open()
    first, wanted = t.version, t.to_arrow().sort_by("id")
    t.append(rows(4))
    t.delete("id = 1")
    t.add_column("more", "int")
    t.append(pa.table({"id": [7], "p": ["p1"], "more": pa.array([3], pa.int32())}))
    last, files = t.version, {f["path"] for f in t.files().to_pylist()}
    data = sorted(p for p in Path(t.uri.removeprefix("file://")).rglob("*") if p.suffix in (".parquet", ".avro"))
    dry = t.restore(first, dry_run=True)
    assert dry.dry_run and t.version == last
    done = t.restore(first)
    assert (done.operation, done.version, done.files_added, done.files_removed) == ("restore", None, 1, 3)
    assert t.version == first and t.to_arrow().sort_by("id") == wanted and t.schema.names == ("id", "p")
    assert line.agree() == [1, 2, 3] and ids(line.open(version=last)) == [2, 3, 4, 7]
    assert t.restore(first).commit is None
    t.restore(last, message="back")
    assert line.agree() == [2, 3, 4, 7] and {f["path"] for f in t.files().to_pylist()} == files
    assert t.scan(["more"], "id = 7").to_arrow().to_pylist() == [{"more": 3}]
    assert data == sorted(p for p in Path(t.uri.removeprefix("file://")).rglob("*") if p in data)
    t.append(pa.table({"id": [8], "p": ["p0"], "more": pa.array([1], pa.int32())}))
    assert line.agree() == [2, 3, 4, 7, 8]
    assert [e.snapshot_id for e in line.seen().metadata.snapshot_log][-4:] == [last, first, last, t.version]


def test_restore_by_time_and_of_a_branch(folder):
    t = folder.open()
    first = t.version
    entry = t.history(1)[0]
    t.append(rows(4))
    t.refs.create_branch("b")
    b = folder.open("b")
    b.append(rows(5))
    b.restore(timestamp=dt.datetime.fromtimestamp(entry.timestamp_ms / 1000, dt.UTC))
    assert b.version == first and folder.agree("b") == [1, 2, 3] and folder.agree() == [1, 2, 3, 4]
    for wrong, kind in (({}, InvalidArgumentError), ({"version": 77}, VersionNotFoundError),
                        ({"version": 0}, VersionNotFoundError)):  # fmt: skip
        with pytest.raises(kind):
            t.restore(**wrong)
    with pytest.raises(ReadOnlyError):
        folder.open(version=first).restore(first)


def test_restore_of_a_file_that_is_gone(folder):
    t = folder.open()
    first = t.version
    gone = t.files()["path"][0].as_py()
    t.overwrite(rows(9))
    Path(gone.removeprefix("file://")).unlink()
    with pytest.raises(MissingFileError, match="cannot be restored: a file of it is gone"):
        t.restore(first)
    assert folder.agree() == [9]


@pytest.mark.parametrize("version", ["2", "3"])
def test_row_deletes_come_back(tmp_path, monkeypatch, version):
    modes = {"write.delete.mode": "merge-on-read", "format-version": version}
    t = Line("folder", tmp_path, monkeypatch, modes, partition_by=()).open()
    first = t.version
    t.delete("id = 1")
    second, (path,) = t.version, t.inspect.delete_files()["file_path"].to_pylist()
    t.delete("id = 2")
    t.restore(second)
    assert ids(t) == [2, 3]
    t.restore(first)
    t.delete("id = 3")
    assert ids(t) == [1, 2]
    t.optimize()
    Path(path.removeprefix("file://")).unlink()
    with pytest.raises(MissingFileError) as caught:
        t.restore(second)
    assert caught.value.where == path and ids(t) == [1, 2]


def test_a_concurrent_commit_plans_a_restore_again(folder, monkeypatch):
    t = folder.open()
    first = t.version
    t.append(rows(4))
    done = with_rival(monkeypatch, t, lambda t: t.restore(first), lambda r: r.append(rows(5)))
    assert done.retries == 1 and done.files_removed == 2 and folder.agree() == [1, 2, 3]


@pytest.mark.spec("I-079")
def test_the_drop_of_a_column_is_rolled_back(tmp_path):
    """An optional column comes back; a required one as long as no branch has rows that were written without it."""
    path = str(tmp_path / "t")
    fields = [pa.field("id", pa.int64()), pa.field("must", pa.int64(), False), pa.field("may", pa.string())]
    schema = pa.schema(fields)
    t = bh.create(path, schema, format="iceberg")
    t.append(pa.table({"id": [1], "must": [10], "may": ["a"]}, schema))
    whole = t.version
    t.drop_column("may")
    t.append(pa.table({"id": [2], "must": [20]}, schema.remove(2)))
    t.restore(whole)
    assert t.to_arrow().to_pylist() == [{"id": 1, "must": 10, "may": "a"}]
    t.drop_column("must")
    assert t.version == whole and t.schema.names == ("id", "may")
    t.restore(whole)
    assert t.to_arrow().to_pylist() == [{"id": 1, "must": 10, "may": "a"}]
    t.drop_column("must")
    t.refs.create_branch("b")
    b = bh.open(path, ref="b")
    b.append(pa.table({"id": [3], "may": ["c"]}))
    before = t.refresh().version
    with pytest.raises(UnsupportedFeatureError, match="`must` is required, and the branch 'b' would have rows"):
        t.restore(whole)
    assert bh.open(path).schema.names == ("id", "may") and t.version == before
    t.refs.drop_branch("b")
    t.restore(whole)
    assert t.to_arrow().to_pylist() == [{"id": 1, "must": 10, "may": "a"}]
    for move in (lambda: t.refs.set_current(b.version), lambda: t.refs.create_branch("c", b.version)):
        with pytest.raises(UnsupportedFeatureError, match="`must` is required"):
            move()
    t.refs.create_tag("c", b.version)
    assert bh.open(path, ref="c").schema.names == ("id", "may")
    from pyiceberg.table import StaticTable

    head = max(Path(path, "metadata").glob("v*.metadata.json"), key=lambda p: int(p.name[1:].split(".")[0]))
    theirs = StaticTable.from_metadata(f"file://{head}").scan().to_arrow().to_pylist()
    assert theirs == [{"id": 1, "must": 10, "may": "a"}]


def test_a_schema_without_the_partitioning_is_refused(tmp_path):
    t = bh.create(str(tmp_path / "t"), SCHEMA, format="iceberg")
    t.append(rows(1))
    first = t.version
    t.add_column("day", "date")
    t.partition_by("day")
    with pytest.raises(UnsupportedFeatureError, match="lacks the column by which the partition field `day` is made"):
        t.restore(first)
    t.append([{"id": 2, "p": "x", "day": dt.date(2026, 1, 1)}])
    t.refs.rollback(first)
    assert ids(t) == [1] and t.schema.names == ("id", "p", "day")
