"""Changes of several edits, compactions, tables that are not created yet, and what a refreshed snapshot is."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from boathouse.bits.roaring import Bitmap, serialize64
from boathouse.errors import InvalidArgumentError, SchemaMismatchError, TableNotFoundError, UnsupportedFeatureError
from boathouse.expr.parse import parse
from boathouse.expr.resolve import bind_predicate
from boathouse.lance import tasks
from boathouse.lance.adapter import FORMAT, LanceTable
from boathouse.lance.manifests.versions import manifest_name
from boathouse.storage import Stores
from boathouse.table import change as ch
from boathouse.table import edits as ed
from boathouse.table.commit import Committed, Conflicted, commit
from boathouse.table.context import TableContext
from boathouse.table.location import At
from boathouse.testing.faults import FaultyStorage
from boathouse.types import INT64, STRING, Field, PartitionField, Schema


def outcomes(target, data: pa.Table) -> pa.Table:
    """OUTCOMES of a new data file that no commit refers to yet."""
    writers = tasks.writers(target.write_context("w"))
    writer = writers.open({})
    for batch in data.combine_chunks().to_batches():
        writer.write(batch)
    return writers.outcomes([writer.close()])


def rows(start: int, count: int) -> pa.Table:
    return pa.table({"a": pa.array(range(start, start + count), pa.int64()), "s": [f"v{i}" for i in range(count)]})


def change(planned, *edits, operation="update", **more) -> ch.Change:
    return ch.Change("lance", planned.location, planned, "w", operation, edits, **more)


def units(snapshot, *ids: int) -> pa.Table:
    found = pa.Table.from_batches(snapshot.files())
    return found.filter(pc.is_in(found.column("unit"), pa.array(ids, pa.int64())))


def committed(planned, *edits, **more) -> LanceTable:
    done = commit(planned, change(planned, *edits, **more))
    assert isinstance(done, Committed), done
    assert done.after.version == done.version
    return done.after


def vector(*positions: int) -> tuple[bytes, ...]:
    return (serialize64(Bitmap.of(positions)),)


def values(kit) -> list[int]:
    ours = kit.read()
    assert ours == kit.dataset().to_table()
    kit.dataset().validate()
    return ours.column("a").to_pylist()


@pytest.fixture
def four(kit):
    """Fragments 0 to 3 of ten rows each."""
    table = kit.create(rows(0, 10))
    for i in range(1, 4):
        table.append(rows(10 * i, 10))
    return kit.load()


def test_any_number_of_file_edits(kit, four):
    after = committed(
        four,
        ed.AddFiles(outcomes(four, rows(100, 2))),
        ed.RemoveFiles(units(four, 0)),
        ed.SetDeletes(units(four, 1), vector(0, 1)),
        ed.AddFiles(outcomes(four, rows(200, 1))),
        ed.RemoveFiles(units(four, 2)),
        ed.SetDeletes(units(four, 3), vector(5)),
        ed.SetDeletes(units(four, 1), vector(1, 2)),
        ed.SetTransaction("app", 3),
    )
    expected = [*range(13, 20), *(i for i in range(30, 40) if i != 35), 100, 101, 200]
    assert values(kit) == expected
    assert [f.id for f in after.manifest.fragments] == [1, 3, 4, 5] and after.history.app_version("app") == 3
    assert after.document.transaction.operation == "update"


def test_a_fragment_that_is_removed_and_deleted_from_is_removed_once(kit, four):
    every = vector(*range(10))
    edits = (
        ed.SetDeletes(units(four, 0), every),
        ed.RemoveFiles(units(four, 0)),
        ed.RemoveFiles(units(four, 0)),
    )
    after = committed(four, *edits, ed.SetDeletes(units(four, 1), every), operation="delete")
    assert after.document.transaction.delete.deleted_fragment_ids == (0, 1)
    assert values(kit) == [*range(20, 40)]


def test_any_number_of_properties(kit, four):
    committed(four, ed.SetProperties({"x": "1", "y": "1"}), operation="set-properties")
    edits = (ed.SetProperties({"x": "2"}), ed.SetProperties({"x": None, "z": "3"}))
    assert committed(kit.load(), *edits, operation="set-properties").properties == {"y": "1", "z": "3"}
    assert kit.dataset().config() == {"y": "1", "z": "3"}
    stale = replace(change(four, *edits, operation="set-properties"), write_id="stale")
    lost = commit(four, stale)
    assert isinstance(lost, Conflicted) and lost.conflicts[0].message.endswith("x") and not lost.replan


def test_an_application_transaction_alone_is_a_commit(kit, four):
    after = committed(four, ed.SetTransaction("app", 9), operation="append")
    assert (after.version, after.history.app_version("app")) == (5, 9)
    assert values(kit) == [*range(40)]
    assert type(kit.dataset().read_transaction(5).operation).__name__ == "Append"


def test_rows_and_columns_in_one_commit(kit, four):
    """Deletes beside a new column: of Lance's operations only a merge describes them."""
    for edits in (
        (ed.AddColumn("b", INT64), ed.SetDeletes(units(four, 0), vector(3))),
        (ed.AddColumn("c", STRING), ed.AddColumn("d", INT64), ed.RemoveFiles(units(four, 1))),
    ):
        after = committed(kit.load(), *edits)
        assert after.document.transaction.operation == "merge"
    assert kit.load().schema.names == ("a", "s", "b", "c", "d")
    assert values(kit) == [i for i in range(40) if i != 3 and i not in range(10, 20)]
    wide = kit.load().evolve((ed.AddColumn("e", INT64),))
    data = rows(50, 1).append_column("b", [[1]]).append_column("c", [["x"]]).append_column("d", [[2]])
    data = data.append_column("e", [[5]])
    committed(kit.load(), ed.AddColumn("e", INT64), ed.AddFiles(outcomes(wide, data)), operation="append")
    assert values(kit)[-1] == 50 and kit.read().column("e").to_pylist()[-2:] == [None, 5]


def test_deletes_with_a_column_follow_no_other_schema(kit, four):
    stale = change(four, ed.AddColumn("b", INT64), ed.SetDeletes(units(four, 0), vector(3)))
    kit.dataset().add_columns({"b": "a + 1"})
    lost = commit(four, stale)
    assert isinstance(lost, Conflicted) and lost.replan and lost.conflicts[0].kind == "schema-changed"


def test_a_replaced_schema_has_the_ids_that_its_files_have(kit, four):
    new = Schema((Field("z", STRING), Field("a", INT64)))
    edits = (ed.ReplaceSchema(new), ed.AddColumn("extra", INT64))
    evolved = four.evolve(edits)
    assert type(evolved) is LanceTable and evolved.version == four.version
    assert evolved.schema.names == ("z", "a", "extra") and four.schema.names == ("a", "s")
    files = outcomes(evolved, pa.table({"z": ["q"], "a": [1], "extra": [7]}))
    kit.dataset().add_columns({"other": "a + 1"})  # concurrently; it is replaced like everything else
    after = committed(four, ed.RemoveAll(), *edits, ed.AddFiles(files), operation="overwrite")
    assert after.schema == evolved.schema
    assert kit.read().to_pylist() == kit.dataset().to_table().to_pylist() == [{"z": "q", "a": 1, "extra": 7}]


def test_an_equivalent_schema_keeps_its_fields(four):
    same = Schema(tuple(replace(f, id=None) for f in four.schema))
    assert four.evolve((ed.ReplaceSchema(same),)).manifest.fields == four.manifest.fields
    with pytest.raises(UnsupportedFeatureError, match="no partitions"):
        four.evolve((ed.ReplaceSchema(same, (PartitionField(1000, "a", 0, "identity", INT64),)),))


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (ed.SetType(("a",), STRING), "`a` cannot become string"),
        (ed.SetComment((), "x"), "no comment of its own"),
        (ed.AddColumn("n", INT64, after="a"), "with a place"),
        (ed.AddColumn("n", INT64, default="1"), "with a default"),
        (ed.AddColumn("n", INT64, parent=("s",)), "inside a struct"),
    ],
)
def test_schema_edits_that_are_not_offered(kit, four, edit, words):
    before = kit.files()
    with pytest.raises(UnsupportedFeatureError, match=words):
        four.evolve((edit,))
    with pytest.raises(UnsupportedFeatureError, match=words):
        four.commits.prepare(change(four, edit))
    assert kit.files() == before


def test_edits_that_are_not_offered(kit, four):
    before, none = kit.files(), units(four)
    for edits, words in (
        ((ed.AddChangeFiles(none),), "add change files"),
        ((ed.SetFeature("x"),), "set feature"),
        ((ed.AddFiles(none, sequence=3),), "sequence numbers"),
        ((ed.SetTransaction("x", 1), ed.SetTransaction("y", 1)), "several application transactions"),
    ):
        with pytest.raises(UnsupportedFeatureError, match=words):
            four.commits.prepare(change(four, *edits))
    for edits in (
        (ed.CreateTable(four.schema), ed.AddColumn("n", INT64)),
        (ed.ReplaceSchema(four.schema), ed.AddFiles(none)),
        (ed.SetProperties({"x": None}), ed.RemoveAll()),
        (ed.SetProperties({"x": "1"}), ed.AddFiles(none)),
    ):
        with pytest.raises(InvalidArgumentError):
            four.commits.prepare(change(four, *edits))
    with pytest.raises(UnsupportedFeatureError, match="keeps the rows"):
        four.commits.prepare(change(four, ed.SetDeletes(units(four, 0), vector(1)), data_change=False))
    assert kit.files() == before


@pytest.mark.spec("L-063")
@pytest.mark.parametrize("operation", ["replace", "append"])
def test_a_compaction_is_a_rewrite(kit, four, operation):
    """The same rows in other fragments; an index on the old ones finds rows of the new ones."""
    kit.dataset().create_scalar_index("a", "BTREE")
    planned = kit.load()
    assert planned.version == 5
    edits = (ed.AddFiles(outcomes(planned, rows(10, 20))), ed.RemoveFiles(units(planned, 1, 2)))
    after = committed(planned, *edits, operation=operation, data_change=False)
    assert values(kit) == [*range(10), *range(30, 40), *range(10, 30)]
    assert [f.id for f in after.manifest.fragments] == [0, 3, 4]
    theirs = kit.dataset().read_transaction(6).operation
    assert type(theirs).__name__ == "Rewrite"
    dataset = kit.dataset()
    for i in (5, 10, 29, 30):
        assert dataset.to_table(filter=f"a = {i}").column("a").to_pylist() == [i]
    assert dataset.count_rows("a >= 8 and a < 32") == 24
    dataset.delete("a = 12")
    dataset.optimize.compact_files()
    assert sorted(values(kit)) == [i for i in range(40) if i != 12]


@pytest.mark.parametrize(
    ("action", "kind"),
    [
        (lambda kit: kit.dataset().delete("a = 15"), "delete-delete"),
        (lambda kit: kit.dataset().update({"s": "'u'"}, where="a = 15"), "concurrent-delete"),
        (lambda kit: kit.dataset().optimize.compact_files(), "concurrent-delete"),
        (lambda kit: kit.dataset().add_columns({"c": "a + 1"}), "schema-changed"),
        (lambda kit: kit.pylance(rows(70, 1), mode="append"), None),
        (lambda kit: kit.dataset().delete("a = 3"), None),
        (lambda kit: kit.dataset().create_scalar_index("a", "BTREE"), None),
    ],
    ids=["delete", "update", "compaction", "columns", "append", "delete-elsewhere", "index"],
)
def test_a_compaction_loses_to_changes_of_its_fragments(kit, four, action, kind):
    edits = (ed.AddFiles(outcomes(four, rows(10, 20))), ed.RemoveFiles(units(four, 1, 2)))
    action(kit)
    before = values(kit)
    done = commit(four, change(four, *edits, operation="replace", data_change=False))
    if kind is None:
        assert isinstance(done, Committed)
    else:
        assert isinstance(done, Conflicted) and done.replan and done.conflicts[0].kind == kind
    assert sorted(values(kit)) == sorted(before)


@pytest.mark.parametrize(
    ("action", "kind", "replan"),
    [
        (lambda kit: kit.dataset().update_field_metadata({"a": {"k": "v"}}), "metadata-changed", False),
        (lambda kit: kit.dataset().alter_columns({"path": "a", "name": "b"}), "schema-changed", True),
        (lambda kit: kit.dataset().add_columns({"c": "a + 1"}), "schema-changed", True),
        (lambda kit: kit.dataset().update_field_metadata({"s": {"k": "v"}}), None, False),
        (lambda kit: kit.pylance(rows(70, 1), mode="append"), None, False),
        (lambda kit: kit.dataset().delete("a = 3"), None, False),
    ],
    ids=["same-field", "rename", "columns", "other-field", "append", "delete"],
)
def test_a_comment_beside_concurrent_commits(kit, four, action, kind, replan):
    """Of two changes of one field's metadata one is made, as with pylance; after another schema the column is looked
    for again."""
    stale = kit.dataset()
    action(kit)
    done = commit(four, change(four, ed.SetComment(("a",), "words")))
    if kind is None:
        assert isinstance(done, Committed)
        assert kit.dataset().schema.field("a").metadata == {b"comment": b"words"}
        with pytest.raises(OSError, match=r"(?i)incompatible"):
            stale.update_field_metadata({"a": {"comment": "late"}})
        stale.delete("a = 4")
        assert kit.load().schema.field("a").doc == "words"
    else:
        assert isinstance(done, Conflicted) and done.conflicts[0].kind == kind and done.replan is replan


def test_their_delete_does_not_follow_our_compaction(kit, four):
    """Their transaction was planned on fragments that a rewrite removed."""
    dataset = kit.dataset()
    edits = (ed.AddFiles(outcomes(four, rows(10, 20))), ed.RemoveFiles(units(four, 1, 2)))
    committed(four, *edits, operation="replace", data_change=False)
    try:
        dataset.delete("a = 15")
    except OSError:
        kit.dataset().delete("a = 15")
    assert sorted(values(kit)) == [i for i in range(40) if i != 15]


def test_a_table_that_is_not_created_yet(kit):
    create = ed.CreateTable(Schema((Field("a", INT64), Field("s", STRING))), properties={"k": "v"})
    draft = FORMAT.create(kit.context, create)
    assert [f.id for f in draft.schema] == [0, 1] and draft.properties == {"k": "v"}
    assert not FORMAT.detect(kit.context) and not kit.root.exists()
    for ask in (draft.newest, lambda: FORMAT.open(kit.context)):
        with pytest.raises(TableNotFoundError):
            ask()
    edits = (create, ed.AddFiles(outcomes(draft, rows(0, 3))), ed.SetTransaction("app", 1))
    first = ch.Change("lance", kit.location, None, "w", "create", edits)
    done = commit(draft, first)
    assert isinstance(done, Committed) and done.version == 1 and done.after.schema == draft.schema
    assert values(kit) == [0, 1, 2] and kit.dataset().config() == {"k": "v"}
    assert done.after.history.app_version("app") == 1 and draft.newest().history.find_write("w") == 1
    again = commit(draft, first)
    assert isinstance(again, Committed) and again.already
    late = commit(draft, replace(first, write_id="other"))
    assert isinstance(late, Conflicted) and late.conflicts[0].kind == "table-exists"
    with pytest.raises(InvalidArgumentError, match="does not exist"):
        draft.commits.prepare(replace(first, edits=(ed.RemoveAll(),)))


def test_new_tables_that_are_not_possible(kit):
    schema = Schema((Field("a", INT64),))
    with pytest.raises(UnsupportedFeatureError, match="no partitions"):
        FORMAT.create(kit.context, ed.CreateTable(schema, (PartitionField(1000, "a", 0, "identity", INT64),)))
    with pytest.raises(UnsupportedFeatureError, match="profile"):
        FORMAT.create(kit.context, ed.CreateTable(schema, profile="v1"))


def test_files_of_another_schema_are_refused(kit, four):
    wide = four.evolve((ed.AddColumn("n", INT64),))
    files = outcomes(wide, rows(0, 1).append_column("n", [[1]]))
    with pytest.raises(SchemaMismatchError, match="fields that the table does not have"):
        four.commits.prepare(change(four, ed.AddFiles(files), operation="append"))


def test_what_is_certain(four):
    def certain(where):
        bound = bind_predicate(parse(where), four.schema) if where else None
        plan = four.plan(where=bound, classify=True)
        assert plan.certain.type == pa.bool_() and len(plan.certain) == plan.units.num_rows
        return plan.certain.to_pylist()

    assert certain(None) == certain("1 = 1") == certain("a = 1 or 2 > 1") == [True] * 4
    assert certain("a >= 0") == certain("a is null") == [False] * 4  # there are no statistics
    assert certain("1 = 2") == []
    assert four.plan().certain is None


def test_a_recreated_table_has_another_identity_each_time(kit):
    seen = [kit.create(rows(0, 3)) and kit.load()]
    for i in range(3):
        shutil.rmtree(kit.root)
        for _ in range(i + 1):
            kit.pylance(rows(i, 1), mode="append" if kit.root.exists() else "create")
        seen.append(seen[-1].newest())
        assert seen[-1].newest().identity == seen[-1].identity
    assert len({s.identity for s in seen}) == 4
    kit.pylance(rows(9, 1), mode="append")
    grown = seen[-1].newest()
    assert grown.identity == seen[-1].identity and grown.version == seen[-1].version + 1
    assert type(grown) is LanceTable
    shutil.rmtree(kit.root)
    with pytest.raises(TableNotFoundError):
        grown.newest()


def test_a_refreshed_tag_is_where_the_tag_is(kit, four):
    kit.dataset().tags.create("t", 4)
    tagged = kit.load(At(ref="t"))
    assert tagged.newest().version == 4
    kit.dataset().tags.update("t", 2)
    assert (tagged.newest().version, tagged.newest().ref) == (2, "t")


def test_the_newest_is_read_once_and_listed_once(kit, four):
    made: list[FaultyStorage] = []

    def wrap(inner):
        made.append(FaultyStorage(inner))
        return made[-1]

    planned = FORMAT.open(TableContext(kit.location, Stores(wrap=wrap)), At(version=2))

    def requests(action):
        kinds = (("list", "list_dir"), ("get",), ("put",))
        before = {names: sum(s.count(*names) for s in made) for names in kinds}
        action()
        return tuple(sum(s.count(*names) for s in made) - n for names, n in before.items())

    assert requests(planned.newest) == (1, 1, 0)
    head = planned.newest()
    assert requests(head.newest) == (1, 0, 0)
    files = ed.AddFiles(outcomes(head, rows(40, 1)))
    # The transaction and the manifest are put; a listing precedes the latter, and another one shows it as the head.
    assert requests(lambda: commit(head, change(head, files, operation="append"), fresh=True)) == (2, 0, 2)
    assert values(kit) == [*range(41)]


@pytest.mark.parametrize("fresh", [True, False])
def test_nothing_is_put_below_a_cleaned_history(kit, four, fresh):
    """Version 5 is absent again, so that the put would succeed."""
    files = ed.AddFiles(outcomes(four, rows(40, 1)))
    for i in range(3):
        kit.pylance(rows(50 + i, 1), mode="append")
    for path in kit.manifests()[1:]:
        path.unlink()
    lost = commit(four, change(four, files, operation="append"), fresh)
    assert isinstance(lost, Conflicted) and lost.replan and lost.conflicts[0].kind == "history-gone"
    assert [p.name for p in kit.manifests()] == [manifest_name(7, "V2")]
    assert values(kit) == [*range(40), 50, 51, 52]
