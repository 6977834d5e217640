"""Changes given to the snapshot itself: any number of edits, classified plans, commits that keep the rows."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import boathouse as bh
from boathouse.engines.local import Batches, LocalEngine
from boathouse.errors import InvalidArgumentError, TableNotFoundError, UnsupportedFeatureError
from boathouse.expr.parse import parse
from boathouse.expr.resolve import bind_predicate
from boathouse.iceberg.adapter import FORMAT
from boathouse.iceberg.files import Listing
from boathouse.ops.outcomes import data_files
from boathouse.storage import Stores, absolute
from boathouse.table.change import Change
from boathouse.table.commit import Committed, Conflicted, commit
from boathouse.table.context import TableContext
from boathouse.table.edits import (
    AddChangeFiles,
    AddColumn,
    AddFiles,
    ClearFeature,
    CreateTable,
    RemoveAll,
    RemoveFiles,
    ReplaceSchema,
    SetProperties,
    SetTransaction,
    SetType,
)
from boathouse.table.engine import Spread
from boathouse.table.location import Location
from boathouse.types import INT32, INT64, STRING, Field, Schema

DATA = pa.table({"id": pa.array(range(8), pa.int64()), "p": ["a", "b"] * 4, "x": [float(i) for i in range(8)]})


def context_at(root):
    return TableContext(Location(absolute(str(root))), Stores())


def opened(root):
    return FORMAT.open(context_at(root))


def written(target, data):
    """AddFiles of these rows."""
    outcomes = LocalEngine().sink(Batches.of(data), target.write_context("w"), Spread("partition"))
    return AddFiles(data_files(outcomes))


def change_of(snap, *edits, operation="overwrite", **more):
    return Change("iceberg", snap.context.location, snap, "w", operation, edits, ref=snap.ref, **more)


def units(snap):
    return snap.plan().units


def ids_of(path):
    return tuple(sorted(pq.read_table(path.removeprefix("file://"))["id"].to_pylist()))


@pytest.mark.parametrize(
    ("where", "certain", "uncertain"),
    [
        ("p = 'a'", {(1, 2)}, set()),
        ("x < 4", {(1, 2)}, set()),
        ("x < 2", set(), {(1, 2)}),
        ("x >= 3", {(3,), (4,)}, {(1, 2)}),
        ("p = 'b' AND x > 50", {(4,)}, set()),
        ("x IS NULL", set(), set()),
        (None, {(1, 2), (3,), (4,)}, set()),
    ],
)
def test_a_classified_plan_says_which_files_match_whole(make, monkeypatch, where, certain, uncertain):
    data = pa.table({"id": [1, 2, 3], "p": ["a", "a", "b"], "x": [1.0, 3.0, 5.0]})
    table, eyes = make(data, partition_by=["p"])
    table.append(pa.table({"id": [4], "p": ["b"], "x": [100.0]}))
    snap, read, inner = opened(eyes.root), [], Listing.entries

    def entries(listing, source, *args, **options):
        read.append(source.path)
        return inner(listing, source, *args, **options)

    monkeypatch.setattr(Listing, "entries", entries)
    predicate = None if where is None else bind_predicate(parse(where), snap.schema)
    found = snap.plan(None, predicate, classify=True)
    assert len(read) == len(set(read))
    assert found.units.schema == snap.listing.schema_of_files()
    sure = dict(zip(map(ids_of, found.units["path"].to_pylist()), found.certain.to_pylist()))
    assert {k for k, v in sure.items() if v} == certain
    assert {k for k, v in sure.items() if not v} == uncertain
    plain = snap.plan(None, predicate)
    assert plain.certain is None and plain.units == found.units


@pytest.mark.spec("I-179")
def test_a_compaction_keeps_rows_and_sequence_numbers(make):
    table, eyes = make(DATA, append=False)
    for i in range(4):
        table.append(DATA.slice(2 * i, 2))
    before = opened(eyes.root)
    old = units(before)
    kept = [replace(written(before, DATA.slice(0, 6)), sequence=2), replace(written(before, DATA.slice(6)), sequence=4)]
    gone = [RemoveFiles(old.slice(i, 1)) for i in range(4)]
    done = commit(before, change_of(before, *gone, *kept, operation="replace", data_change=False))
    assert isinstance(done, Committed)
    snapshot = eyes.snapshot()
    assert snapshot["summary"]["operation"] == "replace" and snapshot["sequence-number"] == 5
    counts = {"added-data-files": "2", "deleted-data-files": "4", "added-records": "8", "deleted-records": "8"}
    assert {k: snapshot["summary"][k] for k in counts} == counts
    after = units(opened(eyes.root))
    assert {ids_of(p): s for p, s in zip(after["path"].to_pylist(), after["sequence"].to_pylist())} == {
        (0, 1, 2, 3, 4, 5): 2,
        (6, 7): 4,
    }
    live = [m for m in eyes.manifests() if m["added_snapshot_id"] == done.version and m["added_files_count"]]
    assert sorted(m["min_sequence_number"] for m in live) == [2, 4]
    assert (
        eyes.rows().sort_by("id").to_pydict()
        == DATA.to_pydict()
        == table.refresh().to_arrow().sort_by("id").to_pydict()
    )
    assert table.history()[0].operation == "replace"


def test_a_sequence_number_that_no_commit_has_is_refused(make):
    _, eyes = make(DATA)
    snap = opened(eyes.root)
    with pytest.raises(InvalidArgumentError, match="sequence number 2"):
        commit(snap, change_of(snap, replace(written(snap, DATA), sequence=2)))
    assert len(eyes.document()["snapshots"]) == 1


def test_rows_schema_and_properties_are_one_commit(make):
    table, eyes = make(DATA, partition_by=["p"])
    snap = opened(eyes.root)
    edits = (AddColumn("n", INT32), SetType(("n",), INT64), AddColumn("s", STRING))
    future = snap.evolve(edits)
    assert type(future) is type(snap) and [(f.name, f.id) for f in future.schema][3:] == [("n", 4), ("s", 5)]
    more = pa.table({"id": pa.array([8], pa.int64()), "p": ["c"], "x": [8.0], "n": pa.array([2**40]), "s": ["t"]})
    files = [written(future, more), written(future, more.set_column(0, "id", pa.array([9], pa.int64())))]
    properties = (SetProperties({"a": "1", "b": "2"}), SetProperties({"a": None}))
    done = commit(snap, change_of(snap, *edits, *files, *properties, SetTransaction("etl", 7)))
    assert isinstance(done, Committed) and len(eyes.document()["snapshots"]) == 2
    assert eyes.document()["properties"].get("b") == "2" and "a" not in eyes.document()["properties"]
    assert done.after.history.app_version("etl") == 7 and done.after.history.app_version("other") is None
    seen = eyes.rows().sort_by("id").to_pylist()
    assert seen == table.refresh().to_arrow().sort_by("id").to_pylist()
    assert seen[0] == {"id": 0, "p": "a", "x": 0.0, "n": None, "s": None}
    assert [r["id"] for r in seen[8:]] == [8, 9] and seen[9]["n"] == 2**40 and seen[9]["s"] == "t"


def test_a_replaced_schema_has_the_same_ids_before_and_after_the_commit(make):
    _, eyes = make(DATA, partition_by=["p"])
    snap = opened(eyes.root)
    wanted = Schema((Field("x", STRING), Field("id", INT64), Field("p", STRING)))
    edit = ReplaceSchema(wanted)
    future = snap.evolve((edit,))
    assert [(f.name, f.id) for f in future.schema] == [("x", 4), ("id", 1), ("p", 2)]
    assert future.partitioning.current == snap.partitioning.current
    rows = pa.table({"x": ["t"], "id": pa.array([1], pa.int64()), "p": ["q"]})
    done = commit(snap, change_of(snap, RemoveAll(), edit, written(future, rows)))
    assert isinstance(done, Committed)
    assert done.after.schema.fields == future.schema.fields and done.after.partitioning == future.partitioning
    assert eyes.rows().to_pylist() == rows.to_pylist()
    stale = commit(snap, replace(change_of(snap, edit, written(future, rows)), write_id="another"))
    assert isinstance(stale, Conflicted) and stale.replan and stale.conflicts[0].kind == "schema-changed"


def test_kinds_of_edits_that_are_not_offered_are_refused_by_name(make):
    _, eyes = make(DATA)
    snap, before = opened(eyes.root), eyes.head()
    rows = written(snap, DATA).outcomes
    edits = {
        "add change files": AddChangeFiles(rows),
        "clear feature": ClearFeature("x"),
        "create table": CreateTable(snap.schema),
    }
    for name, edit in edits.items():
        with pytest.raises(UnsupportedFeatureError, match=f"{name} is not offered"):
            snap.commits.prepare(change_of(snap, edit))
    with pytest.raises(UnsupportedFeatureError, match="clear feature is not offered"):
        snap.evolve((ClearFeature("x"),))
    with pytest.raises(UnsupportedFeatureError, match="`n` cannot have a default in a table of format version 2"):
        snap.commits.prepare(change_of(snap, AddColumn("n", INT32, default="1")))
    with pytest.raises(UnsupportedFeatureError, match="more than one application transaction"):
        snap.commits.prepare(change_of(snap, RemoveAll(), SetTransaction("a", 1), SetTransaction("b", 1)))
    with pytest.raises(UnsupportedFeatureError, match="creates none"):
        snap.commits.prepare(change_of(snap, SetProperties({"a": "1"}), SetTransaction("a", 1)))
    assert eyes.head() == before and len(eyes.files("*.avro")) == 2


def test_a_draft_becomes_the_table_that_it_describes(tmp_path, seen):
    context, root = context_at(tmp_path / "t"), tmp_path / "t"
    create = CreateTable(
        bh.Schema((Field("id", INT64), Field("p", STRING))), (), {"write.data.path": f"file://{root}/d"}
    )
    draft = FORMAT.create(context, create)
    assert [f.id for f in draft.schema] == [1, 2] and not root.exists() and not FORMAT.detect(context)
    with pytest.raises(TableNotFoundError):
        draft.newest()
    rows = pa.table({"id": pa.array([1, 2], pa.int64()), "p": ["a", None]})
    change = Change("iceberg", context.location, None, "w", "create", (create, written(draft, rows)))
    done = commit(draft, change)
    eyes = seen(root)
    assert isinstance(done, Committed) and FORMAT.detect(context)
    assert done.after.schema.fields == draft.schema.fields and done.after.partitioning == draft.partitioning
    assert eyes.rows().to_pylist() == rows.to_pylist() and eyes.live()[0]["file_path"].startswith(f"file://{root}/d/")
    assert draft.newest().history.find_write("w") == done.version == draft.newest().version
    again = commit(FORMAT.create(context, create), replace(change, write_id="v"))
    assert isinstance(again, Conflicted) and again.conflicts[0].kind == "table-exists"


def test_the_newest_snapshot_is_the_same_one_until_something_is_committed(make):
    table, eyes = make(DATA)
    snap = opened(eyes.root)
    assert snap.newest() is snap
    assert snap.evolve((AddColumn("n", INT32),)).newest().schema == snap.schema
    table.append(DATA)
    newer = snap.newest()
    assert newer.version == eyes.snapshot()["snapshot-id"] != snap.version and newer.context is snap.context
    pinned = bh.open(str(eyes.root), version=snap.version)
    assert pinned.count() == 8 and newer.newest() is newer
