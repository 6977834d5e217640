"""Which concurrent commits an operation cannot follow, by the rules of the reference (its validations of row deltas,
overwrites and rewrites), and what is said of it. Each pair of an operation and a concurrent commit is tried; what is
expected comes from the rules, not from a list."""

import re
from dataclasses import dataclass

import pyarrow as pa
import pytest
from rivals import verdicts, with_rival

import boathouse as bh
from boathouse.errors import CommitConflictError
from boathouse.table.verdict import Rebase, Replan

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string())])
LEVELS = ("serializable", "snapshot")


def rows(*ids, p="a"):
    return pa.table({"id": list(ids), "p": [p] * len(ids)}, SCHEMA)


def merge(t):
    clauses = t.merge(rows(0, 50), "target.id = source.id").when_matched_update_all()
    return clauses.when_not_matched_insert_all().execute()


def expire(t):
    t.append(rows(60, p="z"))
    t.expire_snapshots("2100-01-01", retain_last=1)


@dataclass(frozen=True)
class Operation:
    """`reads`: whether it has to see an added file of these ids and this partition. `touches` the file of the rows 0
    and 1; `places` rows in files of the current spec."""

    run: object
    reads: object = lambda ids, p: False
    touches: bool = True
    places: bool = True


def _row_0(ids, p):
    return min(ids) <= 0 <= max(ids)


def _partition_a(ids, p):
    return p == "a"


def _keys_0_to_50(ids, p):
    return min(ids) <= 50 and max(ids) >= 0


OPERATIONS = {
    "append": Operation(lambda t: t.append(rows(9)), touches=False),
    "upsert by keys": Operation(lambda t: t.upsert(rows(0), on="id", deletes="equality"), touches=False),
    "rewrite of manifests": Operation(lambda t: t.rewrite_manifests(), touches=False, places=False),
    "compaction": Operation(lambda t: t.optimize()),
    "delete of a row": Operation(lambda t: t.delete("id = 0"), _row_0),
    "delete of a partition": Operation(lambda t: t.delete("p = 'a'"), _partition_a, places=False),
    "update": Operation(lambda t: t.update({"p": "p"}, "id = 0"), _row_0),
    "merge": Operation(merge, _keys_0_to_50),
    "overwrite of rows": Operation(lambda t: t.overwrite(rows(0), where="id = 0"), _row_0),
    "overwrite of a partition": Operation(lambda t: t.overwrite(rows(9), where="p = 'a'"), _partition_a),
    "overwrite of partitions": Operation(lambda t: t.overwrite(rows(9), partitions="dynamic"), _partition_a),
}


@dataclass(frozen=True)
class Rival:
    """`adds` are ids and partition of a data file that it adds; `removes`, `marks` what it does to the file of the rows
    0 and 1."""

    run: object
    adds: tuple = ()
    removes: bool = False
    marks: bool = False


def rivals(marking):
    """Row deletes mark rows, or write the rest of a file again."""
    return {
        "rows that match": Rival(lambda t: t.append(rows(0)), ((0,), "a")),
        "another range of the partition": Rival(lambda t: t.append(rows(70)), ((70,), "a")),
        "the same row of another partition": Rival(lambda t: t.append(rows(0, p="z")), ((0,), "z")),
        "a delete in the file": Rival(
            lambda t: t.delete("id = 1"), () if marking else ((0,), "a"), not marking, marking
        ),
        "a delete in another file": Rival(lambda t: t.delete("id = 5"), () if marking else ((4,), "b")),
        "a delete of the partition": Rival(lambda t: t.delete("p = 'a'"), removes=True),
        "other rows for the partition": Rival(lambda t: t.overwrite(rows(80), where="p = 'a'"), ((80,), "a"), True),
        "a delete by keys": Rival(lambda t: t.upsert(rows(1), on="id", deletes="equality"), ((1,), "a"), marks=True),
        "a compaction": Rival(lambda t: t.optimize(), removes=True),
        "a rewrite of manifests": Rival(lambda t: t.rewrite_manifests()),
        "a column": Rival(lambda t: t.add_column("more", "int")),
        "a property": Rival(lambda t: t.set_properties({"x": "y"})),
    }


REASONS = {
    "delete-delete": r"^\d files to remove, or to delete rows of, were removed concurrently$",
    "concurrent-delete": r"^rows of \d files were deleted concurrently by row deletes$",
    "concurrent-append": r"^\d files were added concurrently that may contain rows where .*(id|p)",
    "partitioning-changed": r"^the partitioning changed concurrently$",
}
MODES = {"copy-on-write": "2", "merge-on-read": "3"}


def made(make, name, mode):
    """Files of rows 0 and 1, 2 and 3 in partition a, of 4 and 5 in b."""
    wanted = {f"write.{o}.mode": mode for o in ("delete", "update", "merge")} | {"format-version": MODES[mode]}
    table, eyes = make(rows(0, 1), name=name, partition_by=["p"], properties=wanted)
    table.append(rows(2, 3))
    table.append(rows(4, 5, p="b"))
    return table, eyes


def undo(eyes, kept):
    """Everything since is gone: no file that is kept names one that is not."""
    for path in [p for p in eyes.root.rglob("*") if p.is_file() and p not in kept]:
        path.unlink()


def expected(operation, rival, level):
    found = set()
    if operation.touches and rival.removes:
        found.add("delete-delete")
    if operation.touches and rival.marks:
        found.add("concurrent-delete")
    if level == "serializable" and rival.adds and operation.reads(*rival.adds):
        found.add("concurrent-append")
    return found


@pytest.mark.few(5)
@pytest.mark.spec("I-016", "I-017", "I-019")
@pytest.mark.parametrize("mode", ["merge-on-read", pytest.param("copy-on-write", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", OPERATIONS)
def test_what_a_commit_cannot_follow(make, monkeypatch, name, mode):
    """Either it follows, or it is planned again, and says why; by default as under serializable."""
    operation = OPERATIONS[name]
    table, eyes = made(make, "t", mode)
    file = next(
        e["data_file"]["file_path"] for m in eyes.manifests() for e in eyes.entries(m) if m["sequence_number"] == 1
    )
    kept = {p for p in eyes.root.rglob("*") if p.is_file()}
    for what, rival in rivals(mode == "merge-on-read").items():
        found = verdicts(monkeypatch, bh.open(table.uri), operation.run, rival.run)
        assert found[None] == found["serializable"], what
        for level in LEVELS:
            wanted = expected(operation, rival, level)
            assert isinstance(found[level], Replan if wanted else Rebase), (what, level, found[level])
            conflicts = getattr(found[level], "conflicts", ())
            assert {c.kind for c in conflicts} == wanted, (what, level)
            for conflict in conflicts:
                assert re.match(REASONS[conflict.kind], conflict.message), conflict
                assert conflict.paths and (file in conflict.paths) == (conflict.kind != "concurrent-append")
                assert conflict.version == bh.open(table.uri).version
        undo(eyes, kept)


@pytest.mark.few(7)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", OPERATIONS)
def test_specs_and_versions_that_are_gone(make, monkeypatch, name, mode):
    """Rows are placed again by a spec that changed; where the versions since are gone, nothing is taken for checked."""
    operation = OPERATIONS[name]
    table, _ = made(make, "spec", mode)
    found = verdicts(monkeypatch, table, operation.run, lambda t: t.partition_by())
    kinds = {c.kind for c in getattr(found["serializable"], "conflicts", ())}
    # what marks rows, or removes whole files, places none
    marks = mode == "merge-on-read" and name == "delete of a row"
    assert kinds == ({"partitioning-changed"} if operation.places and not marks else set())
    assert found["snapshot"] == found["serializable"]
    table, eyes = made(make, "expired", mode)
    assert set(verdicts(monkeypatch, table, operation.run, expire).values()) == {None}
    with_rival(monkeypatch, table, operation.run, expire)
    assert eyes.document()["snapshots"][-1]["snapshot-id"] == table.version


@pytest.mark.slow  # tests/waist/test_conflicts.py tries most pairs
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", [n for n, o in OPERATIONS.items() if o.touches])
def test_rows_after_each_pair(make, monkeypatch, name, mode):
    """Whatever is planned again, the rows are those of both, one after the other."""
    operation = OPERATIONS[name]
    for i, (what, rival) in enumerate(rivals(mode == "merge-on-read").items()):
        table, eyes = made(make, f"t{i}", mode)
        serial, _ = made(make, f"serial{i}", mode)
        rival.run(serial)
        operation.run(bh.open(serial.uri))
        with_rival(monkeypatch, table, operation.run, rival.run)
        assert _rows(table.uri) == _rows(serial.uri), what
        if mode == "copy-on-write" and what != "a delete by keys":
            assert sorted(eyes.rows()["id"].to_pylist()) == [id for id, _ in _rows(table.uri)]


def _rows(uri):
    return sorted((r["id"], r["p"]) for r in bh.open(uri).to_arrow().to_pylist())


@pytest.mark.parametrize("mode", MODES)
def test_the_reason_is_said(make, monkeypatch, mode):
    """Rows that can be read only once are not written again: whoever has them is told why, and what was there stays."""
    table, eyes = made(make, "t", mode)
    before = {p.name for p in (eyes.root / "data").rglob("*.*")}
    with pytest.raises(CommitConflictError, match=r"append lost to .*partitioning-changed: the partitioning changed"):
        with_rival(monkeypatch, table, lambda t: t.append(rows(9).to_reader()), lambda t: t.partition_by())
    assert {p.name for p in (eyes.root / "data").rglob("*.*")} == before
    assert _rows(table.uri) == [(i, "ab"[i > 3]) for i in range(6)]
