"""Branches and tags that are created, moved and dropped, and commits to branches, as PyIceberg sees them."""

import datetime as dt
import json
import threading
from pathlib import Path

import pyarrow as pa
import pytest
from lines import PLACES, SCHEMA, Line, ids, rows
from rivals import with_rival

import boathouse as bh
from boathouse.errors import (
    AlreadyExistsError,
    CorruptTableError,
    InvalidArgumentError,
    ReadOnlyError,
    TableNotFoundError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from boathouse.table.refs import Ref

DAY = 86_400_000


@pytest.fixture(params=PLACES)
def line(request, tmp_path, monkeypatch):
    return Line(request.param, tmp_path, monkeypatch)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    return Line("folder", tmp_path, monkeypatch)


@pytest.mark.spec("I-218", "I-240")
@pytest.mark.feature("branches and tags", format="iceberg")
def test_created_replaced_dropped(line):
    t = line.open()
    first = t.version
    t.append(rows(4))
    second = t.version
    made = t.refs.create_branch("audit", first, min_snapshots_to_keep=2, max_snapshot_age_ms=DAY, max_ref_age_ms=9)
    assert (made.operation, made.version) == ("set-ref", None) and t.version == second
    t.refs.create_tag("eöd 1", max_ref_age_ms=7 * DAY)
    assert line.refs() == {
        "main": {"snapshot_id": second, "type": "branch"},
        "audit": {"snapshot_id": first, "type": "branch", "min_snapshots_to_keep": 2, "max_snapshot_age_ms": DAY,
                  "max_ref_age_ms": 9},
        "eöd 1": {"snapshot_id": second, "type": "tag", "max_ref_age_ms": 7 * DAY}}  # fmt: skip
    assert dict(t.refs) == {
        "main": Ref("main", "branch", second), "audit": Ref("audit", "branch", first, 2, DAY, 9),
        "eöd 1": Ref("eöd 1", "tag", second, max_ref_age_ms=7 * DAY)}  # fmt: skip
    t.refs.replace_branch("audit", max_ref_age_ms=10)
    t.refs.replace_tag("eöd 1", first)
    t.refs.create_tag("new", or_replace=True)
    t.refs.create_branch("audit", first, or_replace=True, min_snapshots_to_keep=3)
    t.refs.create_branch("audit", second, if_not_exists=True)
    t.refs.retain("main", min_snapshots_to_keep=5)
    assert line.refs() == {
        "main": {"snapshot_id": second, "type": "branch", "min_snapshots_to_keep": 5},
        "audit": {"snapshot_id": first, "type": "branch", "min_snapshots_to_keep": 3, "max_snapshot_age_ms": DAY,
                  "max_ref_age_ms": 10},
        "eöd 1": {"snapshot_id": first, "type": "tag", "max_ref_age_ms": 7 * DAY},
        "new": {"snapshot_id": second, "type": "tag"}}  # fmt: skip
    assert line.agree("audit") == line.agree("eöd 1") == [1, 2, 3] and line.agree("new") == [1, 2, 3, 4]
    t.refs.drop_branch("audit")
    t.refs.drop_tag("new")
    t.refs.drop_tag("new", if_exists=True)
    assert set(line.refs()) == {"main", "eöd 1"} == set(t.refs) and "audit" not in t.refs and len(t.refs) == 2
    assert repr(t.refs) == f"branch main at version {second}\ntag eöd 1 at version {first}"
    assert t.inspect.snapshots().num_rows == 2 and line.agree() == [1, 2, 3, 4]


@pytest.mark.spec("I-218", "I-221", "I-222")
def test_what_is_refused(folder):
    t = folder.open()
    t.refs.create_branch("b")
    t.refs.create_tag("g")
    before = folder.seen().metadata_location
    refused = {
        AlreadyExistsError: [
            lambda r: r.create_branch("b"), lambda r: r.create_tag("g"), lambda r: r.create_tag("b"),
            lambda r: r.create_branch("main"), lambda r: r.create_branch("g", if_not_exists=True)],
        VersionNotFoundError: [
            lambda r: r.create_branch("c", 77), lambda r: r.replace_branch("c"), lambda r: r.replace_tag("c"),
            lambda r: r.drop_branch("c"), lambda r: r.drop_tag("c"), lambda r: r.retain("c", max_ref_age_ms=1),
            lambda r: r.fast_forward("b", "c"), lambda r: r.fast_forward("c", "b"), lambda r: r.ancestors(77),
            lambda r: r.rollback(77), lambda r: r.set_current(77), lambda r: r.set_current(ref="c"),
            lambda r: r.rollback(timestamp="1999-01-01")],
        InvalidArgumentError: [
            lambda r: r.drop_branch("main"), lambda r: r.drop_branch("g"), lambda r: r.drop_tag("b"),
            lambda r: r.drop_tag("g", if_exists=1), lambda r: r.replace_tag("b"), lambda r: r.replace_branch("g"),
            lambda r: r.create_tag("b", or_replace=True), lambda r: r.fast_forward("g", "b"),
            lambda r: r.retain("g", min_snapshots_to_keep=1), lambda r: r.retain("g", max_snapshot_age_ms=1),
            lambda r: r.retain("b", min_snapshots_to_keep=0), lambda r: r.retain("b", max_snapshot_age_ms=-1),
            lambda r: r.retain("b", max_ref_age_ms=True), lambda r: r.retain("b", min_snapshots_to_keep=1 << 31),
            lambda r: r.create_branch("c", max_ref_age_ms=0), lambda r: r.create_tag("c", max_ref_age_ms=0.5),
            lambda r: r.retain("main", max_ref_age_ms=1), lambda r: r.replace_branch("main", max_ref_age_ms=1),
            lambda r: r.create_branch(""), lambda r: r.create_branch(3), lambda r: r.create_tag("c", "1"),
            lambda r: r.create_tag("c", True), lambda r: r.create_tag("c", or_replace=True, if_not_exists=True),
            lambda r: r.rollback(), lambda r: r.rollback(1, "2020-01-01"), lambda r: r.set_current(),
            lambda r: r.set_current(1, "b"), lambda r: r.rollback(timestamp="soon")]}  # fmt: skip
    for kind, calls in refused.items():
        for call in calls:
            with pytest.raises(kind) as caught:
                call(t.refs)
            assert caught.value.where
    assert folder.seen().metadata_location == before
    with pytest.raises(UnsupportedFeatureError, match="a branch is not offered for delta tables"):
        bh.create(str(Path(folder.path).parent / "d"), SCHEMA).refs.create_branch("b")
    empty = bh.create(str(Path(folder.path).parent / "e"), SCHEMA, format="iceberg")
    assert list(empty.refs) == [] and repr(empty.refs) == "no branches and tags yet"
    with pytest.raises(VersionNotFoundError, match="has no snapshot yet"):
        empty.refs.create_branch("b")


def test_what_changes_nothing_commits_nothing(folder):
    t = folder.open()
    t.refs.create_branch("b")
    before = folder.seen().metadata_location
    for same in (
        t.refs.fast_forward("main", "b"), t.refs.replace_branch("b"), t.refs.retain("b"), t.refs.set_current(ref="b"),
        t.refs.rollback(t.version), t.refs.create_branch("b", if_not_exists=True),
    ):  # fmt: skip
        assert same.commit is None
    assert t.refs.create_tag("x", dry_run=True).dry_run and folder.seen().metadata_location == before


def test_a_tag_is_read_only(folder):
    t = folder.open()
    t.refs.create_tag("g")
    tag = folder.open("g")
    for write in (lambda: tag.append(rows(9)), lambda: tag.delete(), lambda: tag.set_properties({"a": "b"}),
                  lambda: tag.refs.create_branch("b")):  # fmt: skip
        with pytest.raises(ReadOnlyError, match="`g` is a tag"):
            write()
    with pytest.raises(ReadOnlyError, match="opened at version"):
        folder.open(version=t.version).refs.create_branch("b")
    t.append(rows(4))
    assert folder.agree("g") == [1, 2, 3]
    with pytest.raises(InvalidArgumentError, match="the table is open at 'b'"):
        t.refs.create_branch("b")
        folder.open("b").refs.drop_branch("b")


@pytest.mark.spec("I-218")
def test_fast_forward(line):
    t = line.open()
    t.refs.create_branch("audit")
    audit = line.open("audit")
    audit.append(rows(4))
    audit.append(rows(5))
    t.refs.create_tag("seen", audit.version)
    with pytest.raises(InvalidArgumentError, match="'main' does not come from"):
        audit.refs.fast_forward("audit", "main")
    done = t.refs.fast_forward("main", "audit", message="published")
    assert done.operation == "fast-forward" and t.version == audit.version and ids(t) == [1, 2, 3, 4, 5]
    assert line.agree() == line.agree("audit") == [1, 2, 3, 4, 5]
    if line.place != "client":  # whose catalog makes the documents, and records nothing of a commit of metadata
        assert [e.operation for e in t.history()][:3] == ["fast-forward", "set-ref", "append"]
    t.append(rows(6))
    audit.append(rows(7))
    with pytest.raises(InvalidArgumentError, match="does not come from"):
        t.refs.fast_forward("main", "audit")
    assert line.agree() == [1, 2, 3, 4, 5, 6] and line.agree("audit") == [1, 2, 3, 4, 5, 7]
    assert line.agree("seen") == [1, 2, 3, 4, 5]


@pytest.mark.few(2)
@pytest.mark.spec("I-219", "I-220")
@pytest.mark.parametrize(
    ("place", "version"), [("folder", "1"), ("folder", "2"), ("folder", "3"), ("sql", "1"), ("sql", "2")]
)
def test_every_operation_on_a_branch(tmp_path, monkeypatch, place, version):
    """Main has its rows, snapshot and files whatever happens on the branch; sequence numbers are the table's."""
    modes = {f"write.{what}.mode": "merge-on-read" for what in ("delete", "update", "merge")} if version != "1" else {}
    line = Line(place, tmp_path, monkeypatch, {"format-version": version, **modes})
    main, wanted = line.open(), {1, 2, 3}
    main.refs.create_branch("audit")
    head, files = main.version, set(main.files()["path"].to_pylist())
    audit = line.open("audit")

    def check(expected):
        wanted.clear()
        wanted.update(expected)
        found = audit.to_arrow().sort_by("id")
        assert set(found["id"].to_pylist()) == wanted == set(ids(line.open("audit")))
        heads = line.heads()
        assert heads == {"main": head, "audit": audit.version}
        if version != "3":
            assert line.theirs_at("audit") == sorted(wanted) and line.theirs_at("main") == [1, 2, 3]
        again = line.open()
        assert again.version == head and ids(again) == [1, 2, 3] and set(again.files()["path"].to_pylist()) == files

    audit.append(rows(4, 5, 6))
    check({1, 2, 3, 4, 5, 6})
    audit.delete("id = 2")
    check({1, 3, 4, 5, 6})
    audit.update({"p": "'x'"}, "id = 1")
    check({1, 3, 4, 5, 6})
    merge = audit.merge(rows(3, 7), "target.id = source.id").when_matched_delete()
    merge.when_not_matched_insert_all().execute()
    check({1, 4, 5, 6, 7})
    audit.upsert(rows(4, 8), on="id")
    check({1, 4, 5, 6, 7, 8})
    audit.overwrite(rows(11, p="p1"), where="p = 'p1'")
    check({1, 4, 6, 8, 11})
    audit.append(rows(12))
    audit.optimize()
    audit.purge()
    check({1, 4, 6, 8, 11, 12})
    if version != "1":
        audit.rewrite_deletes()
    audit.append(rows(13).append_column("more", pa.array([1.5])), merge_schema=True)
    check({1, 4, 6, 8, 11, 12, 13})
    audit.add_column("note", "string")
    audit.set_properties({"owner": "me"})
    audit.overwrite(rows(20, p="p0"), partitions="dynamic")
    check({1, 11, 13, 20})
    assert line.open().schema.names == audit.schema.names == ("id", "p", "more", "note")
    audit.overwrite(rows(30))
    check({30})
    snapshots = line.seen().metadata.snapshots
    if version != "1":
        numbers = [s.sequence_number for s in snapshots]
        assert numbers == sorted(set(numbers)) and numbers[-1] == line.seen().metadata.last_sequence_number
    assert [e.snapshot_id for e in line.seen().metadata.snapshot_log] == [head]
    main.append(rows(9))
    assert ids(line.open("audit")) == [30] and ids(line.open()) == [1, 2, 3, 9]


def test_the_schema_belongs_to_the_table(folder):
    """A branch is read and written with the table's newest schema, and cannot replace it."""
    t = folder.open()
    t.refs.create_branch("b")
    t.refs.create_tag("g")
    t.add_column("more", "int")
    b = folder.open("b")
    assert b.schema.names == ("id", "p", "more") and folder.open("g").schema.names == ("id", "p")
    b.append(pa.table({"id": [9], "p": ["p1"], "more": pa.array([4], pa.int32())}))
    assert b.scan(["more"], where="id = 9").to_arrow().to_pylist() == [{"more": 4}]
    assert t.to_arrow()["more"].null_count == 3
    with pytest.raises(UnsupportedFeatureError, match="the schema is the table's"):
        b.overwrite(pa.table({"id": [1]}), overwrite_schema=True)
    assert folder.agree("b") == [1, 2, 3, 9] and folder.agree() == [1, 2, 3]


@pytest.mark.spec("I-219")
def test_conflicts_are_those_of_the_branch(folder, monkeypatch):
    """What happens to main concerns no commit to another branch; what happens there does."""
    folder.open().refs.create_branch("b")

    def on(ref, action):
        return lambda rival: action(folder.open(ref))

    def delete(rival):
        return rival.delete("id = 1")

    done = with_rival(monkeypatch, folder.open("b"), lambda t: t.delete("id = 1"), on("main", delete))
    assert done.rows_deleted == 1 and folder.agree("b") == folder.agree() == [2, 3]
    done = with_rival(monkeypatch, folder.open("b"), lambda t: t.delete("id = 2"), on("b", lambda t: t.delete("id=2")))
    assert done.rows_deleted == 0 and folder.agree("b") == [3] and folder.agree() == [2, 3]
    done = with_rival(monkeypatch, folder.open("b"), lambda t: t.append(rows(5)), on("b", lambda t: t.append(rows(6))))
    assert folder.agree("b") == [3, 5, 6] and done.version == folder.open("b").version
    done = with_rival(monkeypatch, folder.open("b"), lambda t: t.append(rows(7)),
                      on("main", lambda t: t.add_column("n", "int")))  # fmt: skip
    assert folder.agree("b") == [3, 5, 6, 7]


def test_refs_that_move_meanwhile(folder, monkeypatch):
    t = folder.open()
    t.refs.create_branch("b")
    folder.open("b").append(rows(4))
    done = with_rival(monkeypatch, t, lambda t: t.refs.fast_forward("main", "b"), lambda r: r.refs.create_tag("g"))
    assert folder.heads() == {"main": t.version, "b": t.version, "g": t.refs.ancestors()[1]} and done.retries == 1
    b = folder.open("b")
    with_rival(
        monkeypatch, b, lambda b: b.refs.rollback(b.refs.ancestors()[1]), lambda r: folder.open("b").append(rows(5))
    )
    assert ids(folder.open("b")) == [1, 2, 3]
    with pytest.raises(InvalidArgumentError, match="does not come from"):
        with_rival(
            monkeypatch, t, lambda t: t.refs.fast_forward("b", "main"), lambda r: folder.open("b").append(rows(6))
        )
    with pytest.raises(AlreadyExistsError, match="there is a tag 'x'"):
        with_rival(monkeypatch, t, lambda t: t.refs.create_branch("x"), lambda r: r.refs.create_tag("x"))
    with pytest.raises(VersionNotFoundError, match="no branch or tag 'b'"):
        with_rival(monkeypatch, folder.open("b"), lambda b: b.append(rows(7)), lambda r: r.refs.drop_branch("b"))
    assert folder.agree() == [1, 2, 3, 4] and "b" not in folder.refs()
    assert not [p for p in Path(folder.path, "data").rglob("*.parquet") if _has(p, 7)]


def _has(path, id):
    import pyarrow.parquet as pq

    return id in pq.read_table(path)["id"].to_pylist()


def test_a_branch_that_is_dropped_right_after_a_commit(folder, monkeypatch):
    from boathouse.iceberg.commit import commits

    folder.open().refs.create_branch("b")
    b, real = folder.open("b"), commits.IcebergSnapshotCommits.publish

    def publish(self, attempt):
        published = real(self, attempt)
        monkeypatch.setattr(commits.IcebergSnapshotCommits, "publish", real)
        folder.open().refs.drop_branch("b")
        return published

    monkeypatch.setattr(commits.IcebergSnapshotCommits, "publish", publish)
    done = b.append(rows(4))
    assert done.rows_added == 1 and ids(folder.open(version=done.version)) == [1, 2, 3, 4]
    with pytest.raises(VersionNotFoundError, match="no branch or tag 'b'"):
        b.append(rows(5))


@pytest.mark.few(1)
@pytest.mark.spec("I-219")
def test_writers_of_two_branches_at_the_same_time(line):
    """Each branch has its own rows in the end, and every sequence number is used once."""
    main = line.open()
    for name in ("a", "b"):
        main.refs.create_branch(name)
    failed = []

    def write(ref, first):
        try:
            table = line.open(ref)
            for n in range(first, first + 5):
                table.append(rows(n))
        except BaseException as error:
            failed.append(error)

    work = [("a", 100), ("b", 200), ("main", 300)]
    threads = [threading.Thread(target=write, args=args) for args in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    for ref, first in work:
        assert line.agree(ref) == [1, 2, 3, *range(first, first + 5)]
    metadata = line.seen().metadata
    assert [s.sequence_number for s in metadata.snapshots] == list(range(1, 17))
    assert len(metadata.snapshot_log) == 6


@pytest.mark.spec("I-219", "I-256")
@pytest.mark.parametrize("rival", ["main", "b"])
def test_a_commit_without_an_answer_after_one_to_another_branch(tmp_path, monkeypatch, rival):
    """Its sequence number is taken: the commit can be made by nobody any more, and is made anew."""
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.exceptions import CommitStateUnknownException

    line = Line("client", tmp_path, monkeypatch)
    line.open().refs.create_branch("b")
    b, real, calls = line.open("b"), SqlCatalog.commit_table, []

    def commit_table(*args):
        calls.append(1)
        if len(calls) == 1:
            line.open(rival).append(rows(9))
            raise CommitStateUnknownException("500")
        return real(*args)

    monkeypatch.setattr(SqlCatalog, "commit_table", commit_table)
    assert b.append(rows(4)).retries == 1
    assert line.agree("b") == ([1, 2, 3, 4, 9] if rival == "b" else [1, 2, 3, 4])
    assert line.agree() == ([1, 2, 3, 9] if rival == "main" else [1, 2, 3])


@pytest.mark.spec("I-218", "I-220")
def test_refs_that_pyiceberg_writes(tmp_path, monkeypatch):
    line = Line("sql", tmp_path, monkeypatch)
    table = line.seen()
    first = table.current_snapshot().snapshot_id
    table.manage_snapshots().create_tag(first, "g", max_ref_age_ms=DAY).create_branch(
        first, "b", max_ref_age_ms=2, max_snapshot_age_ms=3, min_snapshots_to_keep=4).commit()  # fmt: skip
    t = line.open()
    assert t.refs["g"] == Ref("g", "tag", first, max_ref_age_ms=DAY)
    assert t.refs["b"] == Ref("b", "branch", first, 4, 3, 2)
    line.open("b").append(rows(4))
    assert line.refs()["b"] == {**line.refs()["b"], "min_snapshots_to_keep": 4, "max_ref_age_ms": 2}
    assert line.agree("b") == [1, 2, 3, 4] and line.agree("g") == line.agree() == [1, 2, 3]
    line.open("b").append(rows(5))
    line.seen().append(rows(6), branch="b")
    line.open("b").delete("id = 4")
    assert line.agree("b") == [1, 2, 3, 5, 6] and line.agree() == [1, 2, 3]
    line.seen().manage_snapshots().remove_branch("b").commit()
    assert "b" not in line.open().refs


def test_the_requirement_names_the_branch(folder, monkeypatch):
    from boathouse.iceberg.commit import transaction

    t, inner, made = folder.open(), transaction.prepare, []
    t.refs.create_branch("b")
    monkeypatch.setattr(transaction, "prepare", lambda *args: made.append(inner(*args)) or made[-1])
    b = folder.open("b")
    before = b.version
    b.append(rows(4))
    t.refs.create_tag("g")
    t.refs.drop_tag("g")
    required = [[r for r in a.requirements if r["type"] == "assert-ref-snapshot-id"] for a in made]
    named = {"type": "assert-ref-snapshot-id"}
    assert required == [
        [{**named, "ref": "b", "snapshot-id": before}], [{**named, "ref": "g", "snapshot-id": None}],
        [{**named, "ref": "g", "snapshot-id": before}]]  # fmt: skip
    assert [u["action"] for a in made for u in a.updates] == [
        "add-snapshot", "set-snapshot-ref", "set-snapshot-ref", "remove-snapshot-ref"]  # fmt: skip


def test_what_others_put_into_a_ref_stays(folder):
    t = folder.open()
    t.refs.create_branch("b", min_snapshots_to_keep=4)
    head = Path(folder.seen().metadata_location.removeprefix("file://"))
    document = json.loads(head.read_text())
    document["refs"]["b"]["x-note"] = "theirs"
    head.with_name("v4.metadata.json").write_text(json.dumps(document))
    t.refresh().refs.retain("b", max_ref_age_ms=5)
    folder.open("b").append(rows(4))
    found = json.loads(Path(folder.seen().metadata_location.removeprefix("file://")).read_text())["refs"]["b"]
    assert found == {
        "snapshot-id": folder.heads()["b"], "type": "branch", "min-snapshots-to-keep": 4, "max-ref-age-ms": 5,
        "x-note": "theirs"}  # fmt: skip
    document["refs"]["b"]["max-ref-age-ms"] = "long"
    head.with_name("v9.metadata.json").write_text(json.dumps(document))
    with pytest.raises(CorruptTableError, match="max-ref-age-ms 'long'"):
        _ = bh.open(folder.path).refs["b"]


@pytest.mark.spec("I-237")
def test_roll_back_and_set_current(line):
    """Snapshots stay, and the snapshot log has one entry for each change of the current one."""
    t = line.open()
    first, times = t.version, {}
    for n in (4, 5, 6):
        t.append(rows(n))
        times[n] = t.history(1)[0].timestamp_ms
    versions = t.refs.ancestors()
    assert versions[-1] == first and versions == [e.version for e in t.history() if e.operation == "append"]
    done = t.refs.rollback(versions[1])
    assert done.operation == "rollback" and t.version == versions[1] and line.agree() == [1, 2, 3, 4, 5]
    with pytest.raises(InvalidArgumentError, match="is no ancestor of version"):
        t.refs.rollback(versions[0])
    t.refs.set_current(versions[0])
    assert line.agree() == [1, 2, 3, 4, 5, 6]
    t.refs.rollback(timestamp=dt.datetime.fromtimestamp(times[5] / 1000, dt.UTC))
    assert t.version == versions[2] and line.agree() == [1, 2, 3, 4]
    t.refs.create_branch("b", versions[0])
    b = line.open("b")
    b.refs.rollback(first)
    assert line.agree("b") == [1, 2, 3] and line.agree() == [1, 2, 3, 4]
    t.refs.set_current(ref="b")
    assert line.agree() == [1, 2, 3] and t.refs.ancestors() == [first]
    t.append(rows(9))
    log = [e.snapshot_id for e in line.seen().metadata.snapshot_log]
    assert log == [*reversed(versions), versions[1], versions[0], versions[2], first, t.version]
    assert len(line.seen().metadata.snapshots) == 5
    with pytest.raises(VersionNotFoundError):
        t.refs.rollback(timestamp=dt.datetime(2001, 1, 1, tzinfo=dt.UTC))


def test_rows_are_written_to_a_branch_by_its_name(line, tmp_path):
    where = {"uri": "prod.db.t", "catalog_options": line.options} if line.place != "folder" else {"uri": line.path}
    line.open().refs.create_branch("b")
    line.open().refs.create_tag("g")
    bh.write(rows(4), mode="append", ref="b", **where)
    assert line.agree("b") == [1, 2, 3, 4] and line.agree() == [1, 2, 3]
    bh.write(rows(6), mode="overwrite", ref="b", partitions="dynamic", **where)
    bh.write(rows(8), mode="overwrite", ref="b", where="p = 'p0'", **where)
    assert line.agree("b") == [1, 3, 8] and line.agree() == [1, 2, 3]
    with pytest.raises(AlreadyExistsError):
        bh.write(rows(4), ref="b", **where)
    with pytest.raises(VersionNotFoundError, match="no branch or tag 'c'"):
        bh.write(rows(4), mode="append", ref="c", **where)
    with pytest.raises(ReadOnlyError, match="`g` is a tag"):
        bh.write(rows(4), mode="append", ref="g", **where)
    with pytest.raises(InvalidArgumentError, match="is not a name"):
        bh.write(rows(4), mode="append", ref="", **where)
    with pytest.raises(TableNotFoundError):
        bh.write(rows(4), str(tmp_path / "none"), "iceberg", mode="append", ref="b")
    assert not (tmp_path / "none").exists() and line.agree("b") == [1, 3, 8]
