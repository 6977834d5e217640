"""Every operation on rows as plan and outcomes: what it has written, what it commits, what it read and reports."""

from __future__ import annotations

import pytest
from toy_format.state import Deletes

from boathouse.errors import (
    ColumnNotFoundError,
    ConstraintViolationError,
    ExpressionError,
    InvalidArgumentError,
    SchemaMismatchError,
)  # fmt: skip
from boathouse.expr.parse import parse
from boathouse.expr.tree import TRUE
from boathouse.ops.files.compact import Compact
from boathouse.ops.files.zorder import ClusterRows
from boathouse.ops.options import WriteOptions
from boathouse.ops.rows.append import Append
from boathouse.ops.rows.delete import Delete
from boathouse.ops.rows.merge import Clause, Merge
from boathouse.ops.rows.overwrite import Overwrite, OverwriteWhere
from boathouse.ops.rows.update import Update
from boathouse.ops.tasks.unit_rows import mark_rows, write_units
from boathouse.ops.write import RowWork, TaskWork
from boathouse.table.change import ReadSet
from boathouse.table.edits import AddColumn, AddDeletes, RemoveAll, ReplaceSchema, SetTransaction
from boathouse.table.engine import Spread
from boathouse.types import STRING

from .kit import Kit, edits_of, took, unit, wrote

ROWS = {"id": [1, 2], "city": ["Oslo", "Oslo"], "score": [0.5, None]}
WAYS = pytest.mark.parametrize("way", ["vectors", "rewrite"])


@pytest.fixture
def kit() -> Kit:
    return Kit()


def figures(result) -> dict[str, int]:
    names = ("rows_added", "rows_updated", "rows_deleted", "rows_copied", "files_added", "files_removed")
    return {n: v for n in names if (v := getattr(result, n))}


# Append.


def test_an_append_adds_files_and_reads_nothing(kit):
    planned, result = kit.run(Append(kit.source(ROWS)), kit.outcomes(wrote("mem://new", inserted=2)))
    assert edits_of(planned) == [("add", "mem://new")]
    assert planned.change.reads.blind and planned.change.planned is kit.snapshot
    assert (planned.change.operation, planned.change.data_change, planned.then) == ("append", True, None)
    assert figures(result) == {"rows_added": 2, "files_added": 1}


def test_an_append_may_be_done_once_for_several_plans(kit):
    (work,) = kit.plan(Append(kit.source(ROWS))).work
    assert isinstance(work, RowWork) and work.fixed and work.spread == Spread("partition")
    assert work.context.schema == kit.snapshot.schema and work.context.write_id == "write 1"


def test_an_append_brings_columns_in_the_same_commit(kit):
    source = kit.source({**ROWS, "note": ["a", None]})
    planned, _ = kit.run(Append(source, merge_schema=True), kit.outcomes(wrote("mem://new", inserted=2)))
    assert edits_of(planned) == [AddColumn("note", STRING, ()), ("add", "mem://new")]
    assert kit.plan(Append(source, merge_schema=True)).work[0].context.schema.names[-1] == "note"
    with pytest.raises(SchemaMismatchError, match="note"):
        kit.plan(Append(source))


@pytest.mark.parametrize("rows", [{"id": ["x"]}, {"id": [1], "other": [1]}, {"ID": [1], "id": [2]}])
def test_rows_that_do_not_fit_are_refused_by_the_plan(kit, rows):
    with pytest.raises((SchemaMismatchError, InvalidArgumentError)):
        kit.plan(Append(kit.source(rows)))


def test_a_dry_append_says_that_it_commits_nothing(kit):
    assert kit.plan(Append(kit.source(ROWS))).dry.change is None


@pytest.mark.parametrize("write", ["append", "overwrite", "delete"])
def test_options_are_part_of_every_change(write):
    options = WriteOptions(message="nightly", metadata={"job": "7"}, txn=("etl", 4), isolation="snapshot")
    kit = Kit(options=options)
    given = {
        "append": (Append(kit.source(ROWS)), kit.outcomes(wrote("mem://new", inserted=2))),
        "overwrite": (Overwrite(kit.source(ROWS)), kit.outcomes(wrote("mem://new", inserted=2))),
        "delete": (Delete("id = 12"), kit.outcomes(took(1, 2, deleted=1))),
    }
    change = kit.run(*given[write])[0].change
    assert change.edits[-1] == SetTransaction("etl", 4) and change.txn == ("etl", 4)
    assert (change.message, change.metadata, change.isolation) == ("nightly", {"job": "7"}, "snapshot")
    assert (change.write_id, change.ref, change.location) == ("write 1", "main", kit.snapshot.location)


# Overwrite.


def test_an_overwrite_removes_what_is_there_and_read_it_all(kit):
    planned, result = kit.run(Overwrite(kit.source(ROWS)), kit.outcomes(wrote("mem://new", inserted=2)))
    assert edits_of(planned) == [RemoveAll(), ("add", "mem://new")] and planned.change.reads == ReadSet(whole=True)
    assert figures(result) == {"rows_added": 2, "files_added": 1, "files_removed": 3, "rows_deleted": 28}
    assert planned.recount(Kit().with_units(unit(1)).snapshot) == (1, 10)


def test_an_overwrite_without_rows_empties_the_table(kit):
    planned, result = kit.run(Overwrite(kit.source({n: [] for n in ("id", "city", "score")})), kit.outcomes())
    assert edits_of(planned) == [RemoveAll(), ("add",)] and result.rows_deleted == 28


def test_an_overwrite_replaces_the_schema(kit):
    write = Overwrite(kit.source({"other": ["x"]}), replace_schema=True, partition_by=())
    planned, _ = kit.run(write, kit.outcomes())
    (schema,) = planned.change.all(ReplaceSchema)
    assert schema.schema.names == ("other",) and schema.partition_by == () and planned.change.evolves
    assert kit.plan(write).work[0].context.schema.names == ("other",)


def test_an_overwrite_where_replaces_what_matches(kit):
    write = OverwriteWhere(kit.source(ROWS), parse("city = 'Oslo'"))
    rows, gone = kit.plan(write).work
    assert (rows.context.rules[-1].name, gone.tasks) == ("the overwrite condition", [])
    planned, result = kit.run(write, kit.outcomes(wrote("mem://new", inserted=2)), kit.outcomes())
    assert edits_of(planned) == [("remove", 1, 2), ("add", "mem://new")]
    assert planned.change.reads.units == {"mem://1.a", "mem://2.a"} and len(planned.change.reads.predicates) == 1
    assert figures(result) == {"rows_added": 2, "files_added": 1, "files_removed": 2, "rows_deleted": 20}
    assert planned.change.parameters == {"predicate": "city = 'Oslo'"}


def test_an_overwrite_where_nothing_is_and_of_no_rows_commits_nothing(kit):
    nothing = kit.source({n: [] for n in ("id", "city", "score")})
    planned, _ = kit.run(OverwriteWhere(nothing, parse("id > 1000")), kit.outcomes(), kit.outcomes())
    assert planned.change is None


def test_an_overwrite_where_of_no_rows_is_recorded_with_its_transaction():
    kit = Kit(options=WriteOptions(txn=("etl", 4)))
    nothing = kit.source({n: [] for n in ("id", "city", "score")})
    planned, _ = kit.run(OverwriteWhere(nothing, parse("id > 1000")), kit.outcomes(), kit.outcomes())
    assert edits_of(planned) == [("add",), SetTransaction("etl", 4)]


# Delete.


def test_units_that_match_for_certain_are_removed_unread(kit):
    (work,) = kit.plan(Delete("id between 20 and 29")).work
    assert work.tasks == []
    planned, result = kit.run(Delete("id between 20 and 29"), kit.outcomes())
    assert edits_of(planned) == [("remove", 2)] and planned.change.reads.units == {"mem://2.a"}
    assert figures(result) == {"files_removed": 1, "rows_deleted": 10}


def test_all_rows_are_deleted_by_metadata(kit):
    planned, result = kit.run(Delete(), kit.outcomes())
    assert edits_of(planned) == [("remove", 1, 2, 3)] and figures(result) == {"files_removed": 3, "rows_deleted": 28}
    assert planned.change.parameters == {"predicate": "true"}


@WAYS
def test_only_units_that_may_match_are_read(way):
    (work,) = Kit(way).plan(Delete("id = 12")).work
    assert isinstance(work, TaskWork) and [t.scan.units.column("unit").to_pylist() for t in work.tasks] == [[1]]
    assert work.fn is (write_units if way == "rewrite" else mark_rows) and not work.fixed


def test_some_rows_of_a_unit_are_marked(kit):
    planned, result = kit.run(Delete("id = 12 or id = 15"), kit.outcomes(took(1, 2, 5, deleted=2)))
    assert edits_of(planned) == [("delete", {1: [2, 5]})] and figures(result) == {"rows_deleted": 2}
    assert planned.change.reads.units == {"mem://1.a"} and not planned.change.reads.whole


def test_a_unit_is_written_again_without_its_deleted_rows():
    kit = Kit("rewrite")
    done = kit.outcomes(took(1, deleted=1), wrote("mem://rest", copied=9))
    planned, result = kit.run(Delete("id = 12"), done)
    assert edits_of(planned) == [("remove", 1), ("add", "mem://rest")]
    assert figures(result) == {"rows_deleted": 1, "rows_copied": 9, "files_added": 1, "files_removed": 1}


def test_a_unit_whose_rows_all_match_when_read_is_removed(kit):
    planned, _ = kit.run(Delete("score > 0"), kit.outcomes(took(2, deleted=10), took(1, 3, deleted=1)))
    assert edits_of(planned) == [("remove", 2), ("delete", {1: [3]})]


def test_nothing_found_is_nothing_committed(kit):
    planned, result = kit.run(Delete("id = 12"), kit.outcomes())
    assert planned.change is None and figures(result) == {}


def test_a_unit_with_deletes_that_are_not_counted_is_read():
    kit = Kit().with_units(unit(1), deletes=[Deletes("equality", 9, key="id", values=(3,))])
    (work,) = kit.plan(Delete("id >= 10")).work
    assert len(work.tasks) == 1


@pytest.mark.parametrize(
    ("where", "error"),
    [("nobody = 1", ColumnNotFoundError), ("id + 1", ExpressionError), ("id = = 1", ExpressionError)],
)
@pytest.mark.parametrize("write", [Delete, lambda where: Update({"score": "0"}, where)], ids=["delete", "update"])
def test_bad_conditions_are_refused_by_the_plan(kit, write, where, error):
    with pytest.raises(error):
        kit.plan(write(where))


def test_files_of_deletes_are_added_for_units_that_stay():
    """The third unit has eight rows left; those of the first are taken by a file that a task writes."""
    kit = Kit("positions")
    _, files = kit.plan(Delete("id in (12, 15) or score > 3")).work
    took_them = kit.outcomes(took(1, 2, 5, deleted=2), took(3, deleted=8))
    later = files([took_them])
    assert [(t.units.column("unit").to_pylist(), len(t.vectors)) for t in later.tasks] == [([1], 1)]
    done = kit.outcomes({"kind": "delete", "path": "mem://deletes", "rows": 2, "unit_path": "mem://1.a"})
    planned, result = kit.run(Delete("id in (12, 15) or score > 3"), took_them, done)
    removed, added = planned.change.edits
    assert removed.units.column("unit").to_pylist() == [3]
    assert isinstance(added, AddDeletes) and added.units.column("unit").to_pylist() == [1]
    assert added.outcomes.column("path").to_pylist() == ["mem://deletes"]
    assert figures(result) == {"rows_deleted": 10, "files_removed": 1}


# Update.


@WAYS
def test_an_update_writes_the_new_rows_and_takes_the_old_ones(way):
    kit = Kit(way)
    new = kit.outcomes(wrote("mem://new", updated=2), took(1, 2, 3))
    rest = kit.outcomes(*([wrote("mem://rest", copied=8)] if way == "rewrite" else []))
    planned, result = kit.run(Update({"score": "score + 1"}, "id in (12, 13)"), new, rest)
    if way == "rewrite":
        assert edits_of(planned) == [("remove", 1), ("add", "mem://new"), ("add", "mem://rest")]
        assert figures(result) == {"rows_updated": 2, "rows_copied": 8, "files_added": 2, "files_removed": 1}
    else:
        assert edits_of(planned) == [("delete", {1: [2, 3]}), ("add", "mem://new")]
        assert figures(result) == {"rows_updated": 2, "files_added": 1}
    assert planned.change.reads.units == {"mem://1.a"} and planned.change.reads.predicates != (TRUE,)
    assert planned.change.parameters == {"predicate": "id in (12, 13)"}


@WAYS
def test_units_that_lost_rows_are_copied_only_where_rows_are_not_marked(way):
    kit = Kit(way)
    copies = kit.plan(Update({"score": "0"}, "id = 12")).work[1]([kit.outcomes(took(1, 2))])
    assert len(copies.tasks) == (way == "rewrite")


def test_a_unit_that_lost_its_last_rows_is_removed(kit):
    """Two of the third unit's rows were deleted before."""
    planned, _ = kit.run(Update({"score": "0"}, "id >= 30"), kit.outcomes(took(3, *range(2, 10))), kit.outcomes())
    assert edits_of(planned) == [("remove", 3)]


def test_an_update_of_all_rows_says_so(kit):
    planned, _ = kit.run(Update({"score": "0"}), kit.outcomes(took(1, *range(10))), kit.outcomes())
    assert planned.change.reads.predicates == (TRUE,) and planned.change.parameters == {}


def test_parts_of_a_unit_that_several_workers_took_are_one_delete(kit):
    planned, _ = kit.run(Update({"score": "0"}), kit.outcomes(took(1, 2), took(2, 0), took(1, 7)), kit.outcomes())
    assert edits_of(planned) == [("delete", {1: [2, 7], 2: [0]})]


def test_a_row_that_is_changed_twice_is_an_error(kit):
    with pytest.raises(ConstraintViolationError):
        kit.run(Update({"score": "0"}), kit.outcomes(took(1, 2), took(1, 2)), kit.outcomes())


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"nobody": "1"}, ColumnNotFoundError),
        ({"id": "1", "ID": "2"}, InvalidArgumentError),
        ({"id": "id +"}, ExpressionError),
    ],
)
def test_bad_values_are_refused_by_the_plan(kit, values, error):
    with pytest.raises(error):
        kit.plan(Update(values))


# Merge.

UPDATE, INSERT = Clause("matched", "update"), Clause("not matched", "insert")
LEFT_OVER = Clause("not matched by source", "delete")


def merge(kit: Kit, *clauses: Clause, ids: tuple[int, ...] = (12, 50), **more) -> Merge:
    source = kit.source({"id": list(ids), "city": ["Oslo"] * len(ids), "score": [1.0] * len(ids)})
    return Merge(source, "target.id = source.id", clauses, **more)


def test_a_merge_updates_and_inserts_in_one_commit(kit):
    new = kit.outcomes(wrote("mem://new", updated=1, inserted=1), took(1, 2))
    planned, result = kit.run(merge(kit, UPDATE, INSERT), new, kit.outcomes())
    assert edits_of(planned) == [("delete", {1: [2]}), ("add", "mem://new")]
    assert figures(result) == {"rows_updated": 1, "rows_added": 1, "files_added": 1}
    assert planned.change.parameters == {"predicate": "target.id = source.id"}


def test_the_keys_of_the_source_bound_what_a_merge_read(kit):
    (bound,) = kit.run(merge(kit, UPDATE), kit.outcomes(took(1, 2)), kit.outcomes())[0].change.reads.predicates
    assert bound != TRUE and "12" in str(bound) and "50" in str(bound)


def test_a_merge_of_what_the_source_lacks_read_every_row(kit):
    planned, _ = kit.run(merge(kit, UPDATE, LEFT_OVER), kit.outcomes(took(1, 2)), kit.outcomes())
    assert planned.change.reads.predicates == (TRUE,)


def test_a_merge_that_only_inserts_takes_nothing(kit):
    planned, _ = kit.run(merge(kit, INSERT), kit.outcomes(wrote("mem://new", inserted=1)), kit.outcomes())
    assert edits_of(planned) == [("add", "mem://new")] and planned.change.reads.units == frozenset()


def test_a_merge_brings_columns_in_the_same_commit(kit):
    source = kit.source({"id": [1], "note": ["a"]})
    write = Merge(source, "target.id = source.id", (UPDATE, INSERT), merge_schema=True)
    planned, _ = kit.run(write, kit.outcomes(wrote("mem://new", inserted=1)), kit.outcomes())
    assert edits_of(planned) == [AddColumn("note", STRING, ()), ("add", "mem://new")]


def test_a_merge_that_finds_nothing_commits_nothing(kit):
    planned, _ = kit.run(merge(kit, UPDATE), kit.outcomes(), kit.outcomes())
    assert planned.change is None


def test_a_merge_needs_a_clause_and_names_that_are_there(kit):
    with pytest.raises(InvalidArgumentError, match="no clause"):
        merge(kit)
    with pytest.raises(ColumnNotFoundError):
        kit.plan(merge(kit, Clause("matched", "update", {"nobody": "1"})))


# Compaction and Z-order.


def test_a_compaction_joins_the_files_of_a_partition(kit):
    kit.with_units(unit(1), unit(2), unit(3, "Bergen"))
    planned, result = kit.run(Compact(), kit.outcomes(wrote("mem://one", copied=20)))
    assert edits_of(planned) == [("remove", 1, 2), ("add", "mem://one")] and not planned.change.data_change
    assert planned.change.reads == ReadSet(units=frozenset({"mem://1.a", "mem://2.a"}))
    assert figures(result) == {"rows_copied": 20, "files_added": 1, "files_removed": 2}


def test_a_file_with_many_deleted_rows_is_written_again_alone(kit):
    (work,) = kit.plan(Compact()).work
    assert [t.scan.units.column("unit").to_pylist() for t in work.tasks] == [[1, 2], [3]]


def test_a_purge_takes_the_files_with_deleted_rows_alone(kit):
    planned, _ = kit.run(Compact(purge=True), kit.outcomes(wrote("mem://one", copied=8)))
    assert edits_of(planned) == [("remove", 3), ("add", "mem://one")]
    assert planned.change.parameters == {"applyPurge": "true"}


def test_large_files_stay(kit):
    kit.with_units(unit(1, size=1 << 30), unit(2, size=1 << 30))
    assert kit.plan(Compact()).work[0].tasks == [] and kit.run(Compact(), kit.outcomes())[0].change is None


def test_a_large_compaction_goes_on_in_another_commit(kit):
    kit.with_units(*(unit(n, city) for n, city in enumerate(("Oslo", "Oslo", "Bergen", "Bergen"))))
    planned, _ = kit.run(Compact(commit_bytes=2000), kit.outcomes(wrote("mem://one", copied=20)))
    assert edits_of(planned) == [("remove", 0, 1), ("add", "mem://one")]
    assert planned.then.own == {"mem://one"} and planned.then.commit_bytes == 2000


def test_compacted_files_are_as_old_as_the_newest_of_theirs(kit):
    kit.with_units(unit(1, sequence=4), unit(2, sequence=6))
    change = kit.run(Compact(), kit.outcomes(wrote("mem://one", copied=20)))[0].change
    assert [e.sequence for e in change.edits if hasattr(e, "sequence")] == [6]


@pytest.mark.parametrize("write", [Compact, lambda where: ClusterRows(("id",), where)], ids=["compact", "zorder"])
def test_whole_partitions_are_chosen(write):
    kit = Kit(options=WriteOptions(dry_run=True))
    with pytest.raises(InvalidArgumentError, match="partition column"):
        kit.plan(write(parse("id = 3")))
    planned = kit.plan(write(parse("city = 'Oslo'")))
    assert planned.dry.files_removed == 2


@pytest.mark.parametrize(
    ("columns", "error"),
    [
        (("nobody",), ColumnNotFoundError), (("city",), InvalidArgumentError), (("id", "id"), InvalidArgumentError),
        ((), InvalidArgumentError),
    ],
)  # fmt: skip
def test_columns_that_nothing_is_ordered_by(kit, columns, error):
    with pytest.raises(error):
        kit.plan(ClusterRows(columns))
