"""Compactions: the entries of some versions as one file, read in their place."""

import json
from dataclasses import replace

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.delta.adapter import FORMAT
from boathouse.errors import CorruptTableError, InvalidArgumentError, UnsupportedFeatureError, VersionNotFoundError
from boathouse.storage import Stores
from boathouse.table.context import TableContext
from boathouse.table.features import CompactableLog
from boathouse.table.location import At, Location
from boathouse.testing.faults import FaultyStorage


def rows(*ids):
    return pa.table({"x": pa.array(ids, pa.int64())})


def name(first, last):
    return f"{first:020d}.{last:020d}.compacted.json"


def ids(path, **at):
    return sorted(bh.open(str(path), **at).to_arrow().column("x").to_pylist())


def fetched(path):
    """The files of the log that opening the newest version and listing its files reads."""
    seen = []

    def wrap(inner):
        seen.append(FaultyStorage(inner))
        return seen[-1]

    snapshot = FORMAT.open(TableContext(Location(f"file://{path}"), Stores(wrap=wrap)))
    list(snapshot.files())
    return {op.key.rsplit("/", 1)[-1] for s in seen for op in s.log if op.name == "get" and op.key.endswith(".json")}


@pytest.fixture
def table(tmp_path):
    """Versions 0 to 6: appends of 0 to 3, a delete, a transaction and properties, one more append."""
    path = tmp_path / "t"
    t = bh.create(str(path), rows().schema, format="delta")
    for n in range(3):
        t.append(rows(n, n + 10))
    t.delete("x = 11")
    t.append(rows(3), txn=("app", 5))
    t.set_properties({"own": "1"})
    return path


@pytest.mark.spec("D-299")
def test_what_a_compaction_contains(table, delta):
    log = delta.log(table)
    uri = bh.open(str(table)).compact_log(1, 5)
    assert uri.endswith(name(1, 5))
    lines = [json.loads(x) for x in (table / "_delta_log" / name(1, 5)).read_text().splitlines()]
    kinds = sorted(next(iter(x)) for x in lines)
    assert kinds == ["add", "add", "add", "add", "remove", "txn"]
    assert {x["txn"]["version"] for x in lines if "txn" in x} == {5}
    removed = next(a["remove"] for a in log[4] if "remove" in a)
    assert [x["remove"] for x in lines if "remove" in x] == [removed], "the tombstone remains as it was"
    assert bh.open(str(table)).version == 6


@pytest.mark.spec("D-299")
def test_readers_take_it_for_its_range(table):
    before = ids(table)
    assert fetched(table) == {f"{v:020d}.json" for v in range(7)}
    bh.open(str(table)).compact_log(1, 5)
    assert fetched(table) == {f"{0:020d}.json", name(1, 5), f"{6:020d}.json"}
    assert ids(table) == before == [0, 1, 2, 3, 10, 12]
    t = bh.open(str(table))
    assert t.properties["own"] == "1"
    assert [e.version for e in t.history()] == list(range(6, -1, -1))
    assert ids(table, version=3) == [0, 1, 2, 10, 11, 12], "an older version needs the entries"
    t.append(rows(4), txn=("app", 5))
    assert ids(table) == before, "the transaction is known"
    t.append(rows(4))
    assert ids(table) == sorted([*before, 4])


@pytest.mark.spec("D-299")
def test_of_several_the_longest_that_do_not_overlap(table):
    t = bh.open(str(table))
    for first, last in ((0, 1), (1, 2), (1, 4), (2, 5), (3, 4)):
        t.compact_log(first, last)
    assert fetched(table) == {name(0, 1), name(2, 5), f"{6:020d}.json"}
    assert ids(table) == [0, 1, 2, 3, 10, 12]


@pytest.mark.spec("D-299")
@pytest.mark.parametrize("range", [(5, 2), (3, 3), (5, 6), (4, 9)])
def test_wrong_ranges_are_ignored(table, range):
    """Ends before it begins, one version, up to the version itself, or beyond it."""
    (table / "_delta_log" / name(*range)).write_text("no JSON")
    assert ids(table) == [0, 1, 2, 3, 10, 12]


@pytest.mark.spec("D-299")
@pytest.mark.parametrize("content", ["no JSON", '{"add": 1}\n', '{"add": {"path"'])
def test_a_damaged_one_is_ignored(table, content):
    (table / "_delta_log" / name(1, 5)).write_text(content)
    assert ids(table) == [0, 1, 2, 3, 10, 12]


@pytest.mark.spec("D-299")
def test_below_and_across_a_checkpoint_none_is_taken(tmp_path):
    path = tmp_path / "t"
    t = bh.create(str(path), rows().schema, format="delta", properties={"delta.checkpointInterval": "4"})
    for n in range(7):
        t.append(rows(n))
    t.compact_log(2, 6)
    (path / "_delta_log" / name(1, 3)).write_text("no JSON")
    assert fetched(path) == {f"{v:020d}.json" for v in (5, 6, 7)}
    assert t.compact_log().endswith(name(5, 7)), "by default from the checkpoint on"
    assert ids(path) == list(range(7))


def test_one_file_with_two_vectors(tmp_path, delta):
    """A path has an action for each of its vectors."""
    path = tmp_path / "t"
    t = bh.create(str(path), rows().schema, format="delta", properties={"delta.enableDeletionVectors": "true"})
    t.append(rows(*range(9)))
    for n in (1, 2, 3):
        t.delete(f"x = {n}")
    t.compact_log(0, 3)
    lines = [json.loads(x) for x in (path / "_delta_log" / name(0, 3)).read_text().splitlines()]
    assert sum("remove" in x for x in lines) == 2 and sum("add" in x for x in lines) == 1
    assert ids(path) == [0, 4, 5, 6, 7, 8] == [r["x"] for r in delta.rows(path)]


def test_domains_keep_their_tombstones(tmp_path):
    path = tmp_path / "t"
    bh.write(rows(1), str(path), format="delta")
    domain = {"domainMetadata": {"domain": "a", "configuration": "{}", "removed": False}}
    features = ["domainMetadata", "appendOnly", "invariants"]
    protocol = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": features}}
    gone = {"domainMetadata": {"domain": "a", "configuration": "", "removed": True}}
    log = path / "_delta_log"
    for n, actions in enumerate([(protocol, domain), (gone,), ({"commitInfo": {}},)], 1):
        (log / f"{n:020d}.json").write_text("".join(json.dumps(a) + "\n" for a in actions))
    bh.open(str(path)).compact_log(1, 2)
    assert [json.loads(x) for x in (log / name(1, 2)).read_text().splitlines()] == [protocol, gone]


def test_the_reference_reads_on(table, delta):
    """deltalake does not take compactions, and is not in their way; its own are read."""
    deltalake = pytest.importorskip("deltalake")
    bh.open(str(table)).compact_log(0, 5)
    assert sorted(r["x"] for r in delta.rows(table)) == ids(table)
    deltalake.write_deltalake(str(table), rows(50), mode="append")
    (table / "_delta_log" / name(0, 5)).unlink()
    deltalake.DeltaTable(str(table)).compact_logs(1, 6)
    assert name(1, 6) in fetched(table)
    assert 50 in ids(table)


def test_what_cannot_be_compacted(table):
    t = bh.open(str(table))
    for first, last in ((3, 3), (4, 2), (0, 7), (-1, 3)):
        with pytest.raises(InvalidArgumentError, match="cannot be compacted"):
            t.compact_log(first, last)
    with pytest.raises(InvalidArgumentError, match="not a version"):
        t.compact_log("1", 3)
    older = FORMAT.open(TableContext(Location(f"file://{table}"), Stores()), At(version=0))
    newest = replace(older, version=6)
    (table / "_delta_log" / f"{1:020d}.json").unlink()
    with pytest.raises(VersionNotFoundError, match="version 1 has no entry"):
        newest.offers(CompactableLog).compact_log(0, 3)


@pytest.mark.parametrize("format", ["iceberg", "lance"])
def test_only_delta_has_them(tmp_path, format):
    t = bh.create(str(tmp_path / "t"), rows().schema, format=format)
    with pytest.raises(UnsupportedFeatureError, match="compact_log"):
        t.compact_log()


def test_a_compaction_that_names_a_file_and_vector_twice_is_left_aside(tmp_path):
    """Newest first, as a damaged one had them: the last action would bring back what was removed."""
    path = tmp_path / "t"
    t = bh.create(str(path), rows().schema, format="delta", properties={"delta.enableDeletionVectors": "true"})
    for n in range(4):
        t.append(rows(n, n + 10))
    t.delete("x in (10, 11)")
    t.delete("x in (2, 12)")
    t.append(rows(5))
    log = path / "_delta_log"
    lines = [line for v in range(6, 0, -1) for line in reversed((log / f"{v:020}.json").read_text().splitlines())]
    (log / name(1, 6)).write_text("".join(f"{line}\n" for line in lines if line.startswith(('{"add"', '{"remove"'))))
    wanted = [0, 1, 3, 5, 13]
    assert ids(path) == wanted
    assert bh.open(str(path)).delete("x = 13").rows_deleted == 1
    assert ids(path) == wanted[:-1]
    (log / f"{3:020}.json").unlink()
    with pytest.raises(CorruptTableError, match="lacks version 3"):
        bh.open(str(path))
