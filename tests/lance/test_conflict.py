"""Who may follow whom: every pair of our changes and the operations of others."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from boathouse.bits.protobuf import Message
from boathouse.errors import InvalidArgumentError
from boathouse.lance.commit.conflict import Landed, check
from boathouse.lance.manifests.messages import (
    OPERATIONS,
    Append,
    Clone,
    CreateIndex,
    DataFragment,
    DataOverlay,
    DataOverlayGroup,
    DataReplacement,
    DataReplacementGroup,
    Delete,
    Merge,
    Overwrite,
    Project,
    ReserveFragments,
    Restore,
    Rewrite,
    RewriteGroup,
    Transaction,
    Update,
    UpdateConfig,
    UpdateMap,
    UpdateMapEntry,
)
from boathouse.lance.operations.known import ours
from boathouse.table.attempt import Winner
from boathouse.table.change import Change
from boathouse.table.commit import Committed, commit
from boathouse.table.edits import (
    AddColumn,
    AddFiles,
    RemoveAll,
    RemoveFiles,
    ReplaceSchema,
    SetDeletes,
    SetProperties,
    SetTransaction,
)
from boathouse.table.location import CommitId
from boathouse.table.verdict import Rebase, Replan, Stop
from boathouse.types import INT64, Schema


def touching(id: int) -> dict[str, Message]:
    """One transaction of each operation; those that change fragments change fragment `id`."""
    fragment = DataFragment(id=id)
    return {
        "append": Append(fragments=(DataFragment(),)),
        "delete": Delete(updated_fragments=(fragment,)),
        "overwrite": Overwrite(),
        "create_index": CreateIndex(),
        "rewrite": Rewrite(groups=(RewriteGroup(old_fragments=(fragment,)),)),
        "merge": Merge(fragments=(fragment,)),
        "restore": Restore(version=1),
        "reserve_fragments": ReserveFragments(num_fragments=1),
        "update": Update(updated_fragments=(fragment,), new_fragments=(DataFragment(),)),
        "project": Project(),
        "update_config": UpdateConfig(config=UpdateMap(entries=(UpdateMapEntry(key="theirs", value="1"),))),
        "data_replacement": DataReplacement(replacements=(DataReplacementGroup(fragment_id=id),)),
        "clone": Clone(),
        "update_bases": Message(),
        "data_overlay": DataOverlay(groups=(DataOverlayGroup(fragment_id=id),)),
    }


HERE, ELSEWHERE = 0, 7
VERDICTS = {
    # our change: (stops, replans) where fragment 0 is ours and theirs, the schema as it was
    "append": ({"overwrite", "restore", "clone"}, set()),
    "overwrite": ({"clone"}, {"overwrite"}),
    "delete": ({"overwrite", "restore", "clone"}, {"rewrite", "update", "data_replacement", "data_overlay", "merge"}),
    "update": (
        {"overwrite", "restore", "clone"},
        {"delete", "rewrite", "update", "data_replacement", "data_overlay", "merge", "project"},
    ),
    "config": (set(), set()),
    "add-column": ({"overwrite", "restore", "clone"}, set()),
}


@pytest.fixture
def changes(kit, numbers):
    kit.pylance(numbers)
    planned = kit.load()
    units = pa.Table.from_batches(planned.files())
    nothing = AddFiles(units.slice(0, 0))
    edits = {
        "append": (nothing,),
        "overwrite": (RemoveAll(), nothing),
        "delete": (SetDeletes(units, (b"",)),),
        "update": (SetDeletes(units, (b"",)), nothing),
        "config": (SetProperties({"ours": "1"}),),
        "add-column": (AddColumn("n", INT64),),
    }
    return {kind: Change("lance", kit.location, planned, "w", kind, found) for kind, found in edits.items()}


def verdict(change, transaction, head=None, version=2):
    winner = Winner(CommitId(version, str(version)), None, Landed(version, transaction))
    return check(change, [winner], head or change.planned)


@pytest.mark.parametrize("kind", VERDICTS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_matrix(changes, kind, operation):
    change = changes[kind]
    assert ours(change).name == {"config": "update_config", "add-column": "merge"}.get(kind, kind)
    stops, replans = VERDICTS[kind]
    expected = Stop if operation in stops else Replan if operation in replans else Rebase
    found = verdict(change, Transaction(**{operation: touching(HERE)[operation]}))
    assert type(found) is expected, found
    if expected is not Rebase:
        assert found.conflicts[0].version == 2 and found.conflicts[0].kind and found.conflicts[0].message


@pytest.mark.parametrize("kind", ["delete", "update"])
@pytest.mark.parametrize("operation", ["delete", "update", "rewrite", "data_replacement", "data_overlay"])
def test_other_fragments_do_not_conflict(changes, kind, operation):
    assert verdict(changes[kind], Transaction(**{operation: touching(ELSEWHERE)[operation]})) == Rebase()


def test_removed_fragments_are_touched_too(changes, kit):
    planned = changes["delete"].planned
    units = pa.Table.from_batches(planned.files())
    update = replace(changes["update"], edits=(RemoveFiles(units), AddFiles(units.slice(0, 0))))
    assert isinstance(verdict(update, Transaction(delete=Delete(deleted_fragment_ids=(HERE,)))), Replan)
    assert isinstance(verdict(update, Transaction(update=Update(removed_fragment_ids=(HERE,)))), Replan)
    paths = verdict(update, Transaction(delete=Delete(deleted_fragment_ids=(HERE,)))).conflicts[0].paths
    assert paths == (planned.manifest.fragments[0].files[0].path,)


@pytest.mark.spec("L-065", "L-066")
@pytest.mark.parametrize("kind", VERDICTS)
def test_a_winner_that_is_not_understood_stops(changes, kind):
    for transaction in (None, Transaction(), Transaction(unknown=b"\x92\x3a\x00")):
        found = verdict(changes[kind], transaction)
        assert isinstance(found, Stop) and found.conflicts[0].kind == "unknown-operation"


def test_the_same_property_conflicts(changes):
    same = UpdateConfig(config=UpdateMap(entries=(UpdateMapEntry(key="ours", value="2"),)))
    found = verdict(changes["config"], Transaction(update_config=same))
    assert isinstance(found, Stop) and found.conflicts[0].kind == "metadata-changed"
    old = UpdateConfig(delete_keys=("ours",))
    assert isinstance(verdict(changes["config"], Transaction(update_config=old)), Stop)
    assert verdict(changes["append"], Transaction(update_config=same)) == Rebase()


def test_the_same_application_transaction_conflicts(changes):
    change = replace(changes["append"], edits=(*changes["append"].edits, SetTransaction("app", 5)))
    for version, expected in ((5, Stop), (6, Stop), (4, Rebase)):
        properties = {"boathouse.txn-app": "app", "boathouse.txn-version": str(version)}
        found = verdict(change, Transaction(append=Append(), transaction_properties=properties))
        assert isinstance(found, expected)


def test_one_winner_that_stops_outweighs_those_that_replan(changes):
    winners = [
        Winner(CommitId(v, str(v)), None, Landed(v, Transaction(**{op: touching(HERE)[op]})))
        for v, op in ((2, "rewrite"), (3, "overwrite"), (4, "rewrite"))
    ]
    assert isinstance(check(changes["delete"], winners, changes["delete"].planned), Stop)
    assert len(check(changes["delete"], winners[::2], changes["delete"].planned).conflicts) == 2


def _head(change, edit):
    planned = change.planned
    manifest = replace(planned.manifest, fields=edit(planned.manifest.fields))
    return replace(planned, document=replace(planned.document, manifest=manifest))


def test_schema_changes_below_an_append(changes):
    change, merge = changes["append"], Transaction(merge=Merge())
    field = change.planned.manifest.fields[0]
    cases = [
        (lambda f: f[1:], Rebase),  # a column was dropped
        (lambda f: (*f, replace(field, id=9, name="n", nullable=True)), Rebase),
        (lambda f: (*f, replace(field, id=9, name="n", nullable=False)), Replan),
        (lambda f: (replace(field, id=9), *f[1:]), Replan),  # cast: the same name under a new id
        (lambda f: (replace(field, logical_type="int32"), *f[1:]), Replan),
        (lambda f: (replace(field, nullable=False), *f[1:]), Replan),
        (lambda f: (replace(field, name="renamed"), *f[1:]), Rebase),
    ]
    for edit, expected in cases:
        assert isinstance(verdict(change, merge, _head(change, edit)), expected)
    overwrite = replace(changes["overwrite"], edits=(RemoveAll(), ReplaceSchema(change.planned.schema)))
    assert verdict(overwrite, merge, _head(change, cases[3][0])) == Rebase()


def test_columns_of_the_same_name_conflict(changes):
    change, merge = changes["add-column"], Transaction(merge=Merge())
    field = change.planned.manifest.fields[0]
    other = _head(change, lambda f: (*f, replace(field, id=9, name="N")))
    found = verdict(change, merge, other)
    assert isinstance(found, Stop) and found.conflicts[0].kind == "schema-changed"


def test_the_same_name_twice_is_found_in_prepare(kit, numbers):
    kit.pylance(numbers)
    change = Change("lance", kit.location, kit.load(), "w", "add-columns", (AddColumn("A", INT64),))
    with pytest.raises(ValueError, match="`A` already exists"):
        kit.load().commits.prepare(change)


def commit_of(kit, *edits):
    """The outcome of committing these edits on the newest version."""
    return commit(kit.load(), Change("lance", kit.location, kit.load(), "w", "overwrite", edits))


def test_an_overwrite_sets_properties(kit, numbers):
    """One transaction does both; pylance has no call that shows what it makes of one, but it reads the table."""
    kit.pylance(numbers)
    kit.dataset().update_config({"kept": "1", "changed": "1"})
    rows = kit.load().files
    nothing = AddFiles(pa.Table.from_batches(rows()).slice(0, 0))
    edits = (RemoveAll(), SetProperties({"changed": "2", "new": "3"}))
    assert isinstance(commit_of(kit, *edits), Committed)
    assert kit.dataset().config() == {"kept": "1", "changed": "2", "new": "3"} and kit.dataset().count_rows() == 0
    theirs = kit.load().document.transaction.overwrite
    assert theirs.config_upsert_values == {"changed": "2", "new": "3"}

    config = Change("lance", kit.location, kit.load(), "w", "set-properties", (SetProperties({"new": "4"}),))
    assert isinstance(verdict(config, Transaction(overwrite=theirs)), Stop)
    other = replace(config, edits=(SetProperties({"kept": "4"}),))
    assert verdict(other, Transaction(overwrite=theirs)) == Rebase()
    ours = replace(config, operation="overwrite", edits=(*edits, nothing))
    same = UpdateConfig(config=UpdateMap(entries=(UpdateMapEntry(key="new", value="2"),)))
    assert isinstance(verdict(ours, Transaction(update_config=same)), Stop)


@pytest.mark.parametrize(
    "edits",
    [
        (),
        (RemoveAll(), SetProperties({"gone": None})),
        (AddColumn("n", INT64), SetProperties({"x": "1"})),
        (ReplaceSchema(Schema(())),),
    ],
)
def test_what_no_operation_says_at_once_is_refused(kit, numbers, edits):
    kit.pylance(numbers)
    with pytest.raises(InvalidArgumentError, match="no operation of Lance's transactions does that at once"):
        commit_of(kit, *edits)
    assert kit.load().version == 1
