"""What is read from storage: each manifest once for a snapshot and what is planned on it, and by other processes."""

import pickle
from collections import Counter

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse import registry
from boathouse.api.table import Table
from boathouse.expr.parse import parse
from boathouse.expr.resolve import bind_predicate
from boathouse.iceberg import files
from boathouse.iceberg.manifests import reader as manifest_reader
from boathouse.ops.handle import Handle
from boathouse.storage import Stores
from boathouse.table.context import TableContext
from boathouse.table.location import Location
from boathouse.table.tally import Tally
from boathouse.testing.faults import FaultyStorage, Plan


@pytest.fixture
def appended(tmp_path):
    """A table of five commits of two files each, and the same through a storage that logs its requests."""
    path = tmp_path / "t"
    schema = pa.schema([("n", pa.int64()), ("p", pa.string())])
    table = bh.create(str(path), schema, format="iceberg", partition_by=["p"])
    for i in range(5):
        table.append(pa.table({"n": [10 * i, 10 * i + 1], "p": ["a", "b"]}))
    logged = []

    def wrap(inner):
        logged.append(FaultyStorage(inner, Plan()))
        return logged[-1]

    stores, found, location = Stores(wrap=wrap), registry.load("iceberg"), Location(f"file://{path}")
    return Table(Handle(found.open(TableContext(location, stores)))), logged


def avro_reads(logged):
    found = Counter(o.key for s in logged for o in s.log if o.name.startswith("get") and o.key.endswith(".avro"))
    return {key.rpartition("/")[2]: n for key, n in found.items()}


@pytest.mark.parametrize("where", ["n >= 10 AND n < 12", "n = 21", "p = 'a'", "true"])
def test_a_delete_reads_no_manifest_twice(appended, where):
    table, logged = appended
    table.delete(where)
    reads = avro_reads(logged)
    assert len([k for k in reads if not k.startswith("snap-")]) == 5
    assert set(reads.values()) == {1}
    assert bh.open(table.uri).to_arrow().num_rows == {"n = 21": 9, "p = 'a'": 5, "true": 0}.get(where, 8)


def test_a_snapshot_reads_its_manifests_once_for_all_its_plans(appended):
    table, logged = appended
    for _ in range(3):
        assert table.scan(where="n > 20").to_arrow().num_rows == 5
        assert table.count() == 10
        assert len(list(table._handle.snapshot.files([("n",)]))) == 5
    assert set(avro_reads(logged).values()) == {1} and len(avro_reads(logged)) == 6


def test_what_does_not_fit_is_read_again(appended, monkeypatch):
    table, logged = appended
    size = table._handle.snapshot.listing
    size = max(size.reader.entries(m, m.path, True).columns.nbytes for m in size.manifest_files)
    monkeypatch.setattr(manifest_reader, "REMEMBERED", 3 * size)
    snapshot = registry.load("iceberg").open(table._handle.context)
    for s in logged:
        s.log.clear()
    for _ in range(3):
        assert sum(b.num_rows for b in snapshot.files()) == 10
    counts = sorted(avro_reads(logged).values())
    assert counts == [1, 1, 1, 1, 3, 3]


@pytest.mark.parametrize("where", [None, "p = 'a' AND n > 15", "n > 15", "n < 0"])
def test_many_manifests_are_read_by_map(appended, monkeypatch, where):
    table, _ = appended
    snapshot = table._handle.snapshot
    bound = None if where is None else bind_predicate(parse(where), snapshot.schema)
    expected, tally = list(snapshot.files([("n",)], bound, tally=(counted := Tally()))), Tally()
    monkeypatch.setattr(files, "MANY", 2)
    given = []

    def elsewhere(function, tasks):
        given.extend(tasks)
        for task in tasks:
            yield from pickle.loads(pickle.dumps(function))(pickle.loads(pickle.dumps(task)))

    again = bh.open(table.uri)._handle.snapshot
    assert list(again.files([("n",)], bound, elsewhere, tally)) == expected
    assert len(given) == 5
    assert tally.skipped == counted.skipped
    given.clear()
    assert list(snapshot.files([("n",)], bound, elsewhere)) == expected
    assert not given, "what is remembered needs no executor"


@pytest.mark.parametrize("few", [64, 0])
@pytest.mark.parametrize("where", [None, "n > 15"])
def test_adjacent_manifests_are_decoded_together(appended, monkeypatch, where, few):
    table, _ = appended
    snapshot = table._handle.snapshot
    bound = None if where is None else bind_predicate(parse(where), snapshot.schema)
    expected = list(snapshot.files([("n",)], bound))
    monkeypatch.setattr(files, "MANY", 2)
    monkeypatch.setattr(files, "_TASKS", 2)
    monkeypatch.setattr(manifest_reader, "FEW", few)
    given = []

    def here(function, tasks):
        given.extend(len(task.sources) for task in tasks)
        for task in tasks:
            yield from function(task)

    again = bh.open(table.uri)._handle.snapshot
    assert list(again.files([("n",)], bound, here)) == expected
    assert given == [2, 2, 1]
    assert list(again.files([("n",)], bound, here)) == expected
    assert len(given) == 3, "all of them are remembered"
    newer = bh.open(table.uri)._handle.snapshot
    newer.listing.reader.adopt(again.listing.reader)
    assert list(newer.files([("n",)], bound, here)) == expected
    assert len(given) == 3
