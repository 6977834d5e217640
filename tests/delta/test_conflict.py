"""Which commits may follow which: the reference's matrix."""

import json
import uuid

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.delta.adapter import FORMAT
from boathouse.delta.files import NATIVE
from boathouse.delta.log.entry import parse_entry
from boathouse.delta.log.folder import Log
from boathouse.expr.parse import parse
from boathouse.expr.resolve import bind_predicate
from boathouse.storage import Stores
from boathouse.table.attempt import Winner
from boathouse.table.change import Change, ReadSet
from boathouse.table.commit import Committed, Conflicted, commit
from boathouse.table.context import TableContext
from boathouse.table.edits import AddFiles, RemoveAll, RemoveFiles, SetProperties, SetTransaction
from boathouse.table.location import Location
from boathouse.table.verdict import Rebase, Replan, Stop

STATS = '{"numRecords":1,"minValues":{"id":%d},"maxValues":{"id":%d},"nullCount":{"id":0}}'


def add(path, x, id=None, **more):
    stats = {} if id is None else {"stats": STATS % (id, id)}
    action = {"path": path, "partitionValues": {"x": str(x)}, "size": 1, "modificationTime": 1, "dataChange": True}
    return {"add": {**action, **stats, **more}}


def remove(path, **more):
    return {"remove": {"path": path, "deletionTimestamp": 1, "dataChange": True, **more}}


@pytest.fixture
def planned(tmp_path):
    """A table partitioned by x with the files a (x=1) and b (x=2)."""
    path = tmp_path / "t"
    bh.create(str(path), pa.schema([("x", pa.int64()), ("id", pa.int64())]), partition_by=["x"])
    actions = [add("a", 1, 1), add("b", 2, 2)]
    (path / "_delta_log" / f"{1:020d}.json").write_text("\n".join(json.dumps(a) for a in actions))
    return FORMAT.open(TableContext(Location(f"file://{path}"), Stores()))


def units(planned, *names):
    found = pa.Table.from_batches(list(planned.files()))
    keep = [p.rpartition("/")[2] in names for p in found.column("path").to_pylist()]
    return found.filter(pa.array(keep))


def verdict(
    planned, *actions, where=None, read=(), remove=(), whole=False, everything=False, append=True, txn=None, **more
):
    """What becomes of a change when a winner with these actions came first."""
    root = planned.location.uri
    predicates = () if where is None else (bind_predicate(parse(where), planned.schema),)
    edits = []
    if remove:
        edits.append(RemoveFiles(units(planned, *remove)))
    if everything:
        edits.append(RemoveAll())
    if append:
        edits.append(AddFiles(pa.table({"size": pa.array([], pa.int64()), "native": pa.array([], NATIVE)})))
    if txn:
        edits.append(txn)
    touched = frozenset(f"{root}/{n}" for n in (*read, *remove))
    change = Change(
        "delta", planned.location, planned, str(uuid.uuid4()), "delete", tuple(edits),
        ReadSet(whole, predicates, touched), **more,
    )  # fmt: skip
    entry = parse_entry(2, f"{root}/2.json", "\n".join(json.dumps(a) for a in actions).encode())
    return planned.commits.check(change, [Winner(Log.commit_id(2), None, entry)])


def kinds(found):
    return [] if isinstance(found, Rebase) else [c.kind for c in found.conflicts]


def test_row_1_and_12_a_blind_append_follows_any_data_change(planned):
    for winner in ([add("c", 1)], [remove("a"), add("c", 1)], [remove("b")]):
        assert verdict(planned, *winner) == Rebase()


def test_row_3_rows_that_would_have_been_read(planned):
    found = verdict(planned, add("x=1/c", 1), where="x = 1")
    assert isinstance(found, Replan) and kinds(found) == ["concurrent-append"]
    assert "x=1" in found.conflicts[0].message and found.conflicts[0].paths[0].endswith("x=1/c")
    assert verdict(planned, add("c", 2), where="x = 1") == Rebase()


def test_row_5_the_union_of_what_was_read(planned):
    assert kinds(verdict(planned, add("c", 1), where="x = 1 or x = 2", remove=["b"])) == ["concurrent-append"]


def test_row_6_a_file_that_was_read_is_removed(planned):
    found = verdict(planned, remove("a"), where="x = 1", read=["a"])
    assert isinstance(found, Replan) and kinds(found) == ["concurrent-delete"]
    assert verdict(planned, remove("b"), where="x = 1", read=["a"]) == Rebase()


def test_row_7_both_remove_one_file(planned):
    for winner in (remove("a", partitionValues={"x": "1"}), remove("a"), remove("%61")):
        found = verdict(planned, winner, where="x = 1", remove=["a"])
        assert isinstance(found, Replan) and kinds(found) == ["delete-delete"]


def test_row_8_over_new_metadata_nobody_is_rebased(planned):
    changed = {"metaData": {**planned.metadata.raw, "configuration": {"a": "b"}}}
    for change in ({}, {"where": "x = 1"}, {"whole": True}):
        found = verdict(planned, changed, **change)
        assert isinstance(found, Replan) and kinds(found)[0] == "metadata-changed"


def test_row_9_application_transactions(planned):
    theirs = {"txn": {"appId": "t1", "version": 1}}
    assert kinds(verdict(planned, theirs, txn=SetTransaction("t1", 5))) == ["transaction"]
    assert verdict(planned, theirs, txn=SetTransaction("t2", 5)) == Rebase()


def test_row_10_protocol(planned):
    found = verdict(planned, {"protocol": {"minReaderVersion": 1, "minWriterVersion": 3}})
    assert isinstance(found, Stop) and kinds(found) == ["protocol-changed"]
    assert verdict(planned, {"protocol": dict(planned.protocol.raw)}) == Rebase()


def test_row_11_the_whole_table_was_read(planned):
    assert kinds(verdict(planned, add("c", 9), whole=True)) == ["concurrent-append"]
    assert kinds(verdict(planned, remove("b"), whole=True)) == ["concurrent-delete"]
    assert kinds(verdict(planned, add("c", 9), everything=True)) == ["concurrent-append"]


def test_row_13_and_14_rearranging(planned):
    assert verdict(planned, add("c", 1), whole=True, remove=["a"], isolation="snapshot") == Rebase()
    assert kinds(verdict(planned, remove("a"), remove=["a"], isolation="snapshot")) == ["delete-delete"]


def test_row_15_a_file_that_was_read_is_rearranged(planned):
    winner = [remove("a", dataChange=False), add("c", 1, dataChange=False)]
    assert kinds(verdict(planned, *winner, where="x = 1", read=["a"])) == ["concurrent-delete"]
    assert verdict(planned, *winner, where="x = 2", read=["b"]) == Rebase()


def test_row_16_replacing_partitions(planned):
    winner = [remove("a"), add("c", 1)]
    assert "concurrent-append" in kinds(verdict(planned, *winner, where="x = 1", remove=["a"]))
    assert verdict(planned, *winner, where="x = 2", remove=["b"]) == Rebase()


def test_row_17_ranges(planned):
    assert kinds(verdict(planned, add("c", 7), where="x > 5")) == ["concurrent-append"]
    assert verdict(planned, add("c", 5), where="x > 5") == Rebase()


def test_row_18_mixed_predicates(planned):
    assert kinds(verdict(planned, add("c", 1), where="x = 1 and id = 4")) == ["concurrent-append"]
    assert kinds(verdict(planned, add("c", 1, 4), where="x = 1 and id = 4")) == ["concurrent-append"]
    assert verdict(planned, add("c", 2, 4), where="x = 1 and id = 4") == Rebase()
    assert verdict(planned, add("c", 1, 5), where="x = 1 and id = 4") == Rebase()


def change_of(path, operation="set-properties", **properties):
    snapshot = FORMAT.open(TableContext(Location(f"file://{path}"), Stores()))
    edits = (SetProperties(properties),)
    return Change("delta", snapshot.location, snapshot, str(uuid.uuid4()), operation, edits)


def test_two_property_changes(tmp_path):
    path = str(tmp_path / "t")
    bh.create(path, pa.schema([("x", pa.int64())]))
    first, second = change_of(path, a="1"), change_of(path, b="2")
    assert isinstance(commit(first.planned, first), Committed)
    found = commit(second.planned, second)
    assert isinstance(found, Conflicted) and found.replan and found.conflicts[0].kind == "metadata-changed"
    assert dict(bh.open(path).properties) == {"a": "1"}


def test_a_property_change_follows_appends(tmp_path):
    path = str(tmp_path / "t")
    bh.create(path, pa.schema([("x", pa.int64())]))
    change = change_of(path, a="1")
    bh.open(path).append(pa.table({"x": [1]}))
    assert commit(change.planned, change) == Committed(Log.commit_id(2), 1)
    assert bh.open(path).count() == 1 and dict(bh.open(path).properties) == {"a": "1"}


@pytest.mark.parametrize("versions", [1, 3, 5])
def test_a_recreated_table_is_another_table(tmp_path, versions):
    import shutil

    path = str(tmp_path / "t")
    bh.create(path, pa.schema([("x", pa.int64())]))
    for _ in range(2):
        bh.open(path).append(pa.table({"x": [1]}))
    change = change_of(path, a="1")
    shutil.rmtree(path)
    bh.create(path, pa.schema([("x", pa.int64())]))
    for _ in range(versions - 1):
        bh.open(path).append(pa.table({"x": [2]}))
    found = commit(change.planned, change)
    assert isinstance(found, Conflicted) and found.conflicts[0].kind == "table-replaced"
    assert bh.open(path).version == versions - 1


def test_below_a_cleaned_log_nothing_is_committed(tmp_path):
    path = tmp_path / "t"
    bh.create(str(path), pa.schema([("x", pa.int64())]))
    bh.open(str(path)).append(pa.table({"x": [1]}))
    change = change_of(path, a="1")
    table = bh.open(str(path))
    for i in range(10):
        table.append(pa.table({"x": [i]}))
    for version in range(10):
        (path / "_delta_log" / f"{version:020d}.json").unlink()
    found = commit(change.planned, change)
    assert isinstance(found, Conflicted) and found.conflicts[0].kind == "history-gone"
    assert bh.open(str(path)).version == 11


def test_a_winner_with_our_transaction_stops(tmp_path):
    path = str(tmp_path / "t")
    bh.create(path, pa.schema([("x", pa.int64())]))
    snapshot = FORMAT.open(TableContext(Location(f"file://{path}"), Stores()))
    edits = (
        AddFiles(
            pa.table(
                {"size": pa.array([], pa.int64()), "rows": pa.array([], pa.int64()), "native": pa.array([], NATIVE)}
            )
        ),
    )
    change = Change("delta", snapshot.location, snapshot, "mine", "append", (*edits, SetTransaction("etl", 3)))
    bh.open(path).append(pa.table({"x": [1]}), txn=("etl", 3))
    found = commit(change.planned, change)
    assert isinstance(found, Conflicted) and found.conflicts[0].kind == "transaction"
