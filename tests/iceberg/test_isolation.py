"""What concurrent commits do to an operation, by its isolation level; and to a compaction."""

import json

import pyarrow as pa
import pytest
from rivals import verdicts, with_rival

import boathouse as bh
from boathouse.table.verdict import Rebase

ROWS = pa.table({"id": pa.array(range(6), pa.int64()), "p": ["a", "a", "b", "b", "c", "c"]})
OPERATIONS = {
    "delete": lambda t: t.delete("id = 0"),
    "update": lambda t: t.update({"p": "upper(p)"}, "id = 0"),
    "merge": lambda t: (
        t.merge(pa.table({"id": [0], "p": ["m"]}), "target.id = source.id").when_matched_update_all().execute()
    ),
}
RIVALS = {
    "rows that match": lambda t: t.append(ROWS.slice(0, 1)),
    "rows that do not": lambda t: t.append(pa.table({"id": [77], "p": ["a"]})),
    "a delete of the same rows": lambda t: t.delete("id = 0"),
    "a delete in the same file": lambda t: t.delete("id = 1"),
    "a delete of other rows": lambda t: t.delete("id = 5"),
    "an update in the same file": lambda t: t.update({"p": "'x'"}, "id = 1"),
    "a compaction": lambda t: t.optimize(),
    "other rows for all": lambda t: t.overwrite(pa.table({"id": [77], "p": ["a"]})),
    "a column": lambda t: t.add_column("more", "int"),
    "a property": lambda t: t.set_properties({"x": "y"}),
}


def two_files(make, mode, **properties):
    """One of ids 0 to 3, one of 4 and 5."""
    wanted = {f"write.{o}.mode": mode for o in OPERATIONS} | properties
    table, eyes = make(ROWS.slice(0, 4), properties=wanted)
    table.append(ROWS.slice(4))
    return table, eyes


@pytest.mark.few(3)
@pytest.mark.spec("I-019")
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_levels_differ_by_rows_that_were_added_and_match(make, monkeypatch, operation, mode):
    differ, both = set(), set()
    for i, (name, rival) in enumerate(RIVALS.items()):
        table, _ = make(ROWS.slice(0, 4), name=f"t{i}", properties={f"write.{o}.mode": mode for o in OPERATIONS})
        table.append(ROWS.slice(4))
        found = verdicts(monkeypatch, table, OPERATIONS[operation], rival)
        assert found[None] == found["serializable"]
        strict, loose = (getattr(found[level], "conflicts", ()) for level in ("serializable", "snapshot"))
        assert tuple(c for c in strict if c.kind != "concurrent-append") == loose
        if isinstance(found["serializable"], Rebase) != isinstance(found["snapshot"], Rebase):
            differ.add(name)
        elif loose:
            both.add(name)
    assert differ == {"rows that match"}
    gone = {"a delete of the same rows", "a delete in the same file", "an update in the same file", "a compaction"}
    assert both == gone | {"other rows for all"}


@pytest.mark.few(4)
@pytest.mark.spec("I-019")
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("of", OPERATIONS)
def test_each_operation_has_its_own_property(make, monkeypatch, operation, of):
    table, eyes = two_files(make, "copy-on-write", **{f"write.{of}.isolation-level": "snapshot"})
    found = verdicts(monkeypatch, table, OPERATIONS[operation], RIVALS["rows that match"])
    assert found[None] == found["snapshot" if of == operation else "serializable"]
    assert found["snapshot"] != found["serializable"]
    with_rival(monkeypatch, table, OPERATIONS[operation], RIVALS["rows that match"])
    left = eyes.rows()
    untouched = left.filter(pa.compute.and_(pa.compute.equal(left["id"], 0), pa.compute.equal(left["p"], "a")))
    assert untouched.num_rows == (1 if of == operation else 0)


@pytest.mark.spec("I-015")
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("what", ["the file", "rows of it"])
def test_a_compaction_whose_file_is_gone_is_refused_and_planned_again(make, monkeypatch, what, mode):
    """The commit as it was planned would bring the deleted rows back."""
    table, eyes = two_files(make, mode)
    path = next(f["path"] for b in table._handle.snapshot.files() for f in b.to_pylist() if f["rows"] == 2)
    rival = (lambda t: t.delete("id >= 4")) if what == "the file" else (lambda t: t.delete("id = 4"))
    found = verdicts(monkeypatch, table, lambda t: t.optimize(), rival)
    assert found["serializable"] == found["snapshot"]
    (conflict,) = found["snapshot"].conflicts
    vectors = what == "rows of it" and mode == "merge-on-read"
    assert conflict.kind == ("concurrent-delete" if vectors else "delete-delete") and conflict.paths == (path,)
    assert "1 files" in conflict.message
    table, eyes = make(ROWS.slice(0, 4), name="again", properties={f"write.{o}.mode": mode for o in OPERATIONS})
    table.append(ROWS.slice(4))
    with_rival(monkeypatch, table, lambda t: t.optimize(), rival)
    left = [0, 1, 2, 3] if what == "the file" else [0, 1, 2, 3, 5]
    assert sorted(eyes.rows()["id"].to_pylist()) == left == sorted(bh.open(table.uri).to_arrow()["id"].to_pylist())
    live = {e["file_path"].removeprefix("file://") for e in eyes.live()}
    assert live == {str(p) for p in (eyes.root / "data").rglob("*.parquet") if str(p) in live}


@pytest.mark.spec("I-024")
def test_a_rewritten_file_has_an_older_data_number_and_the_number_of_its_commit(make, position_deletes):
    """So that deletes by keys which were committed meanwhile apply to its rows; pyiceberg reads both numbers."""
    table, eyes = make(ROWS.slice(0, 2))
    table.append(ROWS.slice(2, 2))
    table.append(ROWS.slice(4))
    table.set_properties({"x": "y"})
    table.optimize()
    (manifest,) = [m for m in eyes.manifests() if m["added_files_count"]]
    (entry,) = eyes.entries(manifest)
    assert (entry["sequence_number"], entry["file_sequence_number"], entry["status"]) == (3, None, 1)
    assert (manifest["sequence_number"], manifest["min_sequence_number"]) == (4, 3)
    numbers = [(e["sequence_number"], e["file_sequence_number"]) for e in table.inspect.entries().to_pylist()
               if e["status"] == 1]  # fmt: skip
    theirs = eyes.pyiceberg().inspect.entries().to_pylist()
    seen = [(e["sequence_number"], e["file_sequence_number"]) for e in theirs if e["status"] == 1]
    assert numbers == seen == [(3, 4)]
    # An entry that is written again keeps both.
    table.append(ROWS.slice(0, 1))
    table.rewrite_manifests()
    again = [(e["sequence_number"], e["file_sequence_number"]) for m in eyes.manifests() for e in eyes.entries(m)]
    assert sorted(n for n in again if n[0] is not None) == [(3, 4), (5, 5)]


@pytest.mark.spec("I-024")
def test_a_delete_by_keys_that_comes_while_files_are_rewritten(make, monkeypatch):
    table, _ = two_files(make, "copy-on-write")

    def rival(t):
        t.upsert(pa.table({"id": pa.array([1, 5], pa.int64()), "p": ["new", "new"]}), on="id", deletes="equality")

    with_rival(monkeypatch, table, lambda t: t.optimize(), rival)
    rows = bh.open(table.uri).to_arrow().sort_by("id").to_pydict()
    assert rows == {"id": list(range(6)), "p": ["a", "new", "b", "b", "c", "new"]}


@pytest.mark.spec("I-259")
def test_a_writer_that_renames_over_a_version_takes_the_rows_of_it(make):
    """As docs/writers.md says of Java's tables in file systems: it looks whether the version is there, and then renames
    its own document over it. Our write can be asked for afterwards; ours never puts over theirs."""
    table, eyes = make(ROWS.slice(0, 2))
    base = eyes.document()
    theirs = {**base, "last-updated-ms": base["last-updated-ms"] + 1, "properties": {"by": "java"}}
    following = eyes.root / "metadata" / "v3.metadata.json"
    assert not following.exists()  # they have looked
    done = table.append(ROWS.slice(2, 2))
    assert following.exists() and table.find_write(done.write_id) is not None
    staged = eyes.root / "metadata" / "c1.metadata.json"
    staged.write_text(json.dumps(theirs))
    staged.replace(following)
    lost = bh.open(table.uri)
    assert lost.count() == 2 == eyes.rows().num_rows and lost.properties["by"] == "java"
    assert lost.find_write(done.write_id) is None
    # The other way round nothing is lost: the name is taken, and the commit is made again after it.
    staged.write_text(json.dumps({**theirs, "properties": {"by": "java again"}}))
    stale = bh.open(table.uri)
    staged.replace(eyes.root / "metadata" / "v4.metadata.json")
    stale.append(ROWS.slice(4))
    after = bh.open(table.uri)
    assert after.count() == 4 == eyes.rows().num_rows and after.properties["by"] == "java again"
