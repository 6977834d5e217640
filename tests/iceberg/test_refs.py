"""Branches and tags of other engines, by name."""

import datetime as dt

import pyarrow as pa
import pytest
from foreign_writer import Foreign
from pyiceberg.table import StaticTable

import boathouse as bh
from boathouse.errors import CorruptTableError, VersionNotFoundError

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string())])


def rows(*ids, p="a"):
    return pa.table({"id": list(ids), "p": [p] * len(ids)}, SCHEMA)


def ids_of(table, **scan):
    return sorted(table.scan(["id"], **scan).to_arrow()["id"].to_pylist())


@pytest.fixture
def branched(tmp_path):
    """Snapshots 1, 2 and 4 on main, 3 on the branch `dev` after 1; the tag `old` is 1, and `p` became `q` after 2."""
    bh.create(str(tmp_path / "t"), SCHEMA, format="iceberg")
    foreign = Foreign(tmp_path / "t")
    first = foreign.commit(foreign.data(rows(1, 2), (1, 2)))
    second = foreign.commit(foreign.data(rows(3), (1, 2)))

    def fork(document):
        document["refs"] |= {"dev": {"snapshot-id": first, "type": "branch", "min-snapshots-to-keep": 3},
                             "old": {"snapshot-id": first, "type": "tag", "max-ref-age-ms": 10**12}}  # fmt: skip
        document["current-snapshot-id"] = document["refs"]["main"]["snapshot-id"] = first

    foreign.edit(fork)
    third = foreign.commit(foreign.data(rows(9, p="dev"), (1, 2)))

    def evolve(document):
        document["refs"]["dev"]["snapshot-id"] = third
        document["current-snapshot-id"] = document["refs"]["main"]["snapshot-id"] = second
        fields = [dict(f) for f in document["schemas"][0]["fields"]]
        fields[1]["name"] = "q"
        document["schemas"].append({"type": "struct", "schema-id": 1, "fields": fields})
        document["current-schema-id"] = 1

    foreign.edit(evolve)
    fourth = foreign.commit(foreign.positions([(path, 0) for path in foreign.live()]))
    return foreign, (first, second, third, fourth)


@pytest.mark.spec("I-220")
@pytest.mark.feature("branches and tags", format="iceberg", engine="either")
def test_by_name(branched):
    """A tag has the schema of its snapshot, a branch that of the table."""
    foreign, (first, _, third, fourth) = branched
    uri = str(foreign.root)
    table, dev, old = bh.open(uri), bh.open(uri, ref="dev"), bh.open(uri, ref="old")
    assert [t.version for t in (table, bh.open(uri, ref="main"), dev, old)] == [fourth, fourth, third, first]
    assert ids_of(table) == [2] and ids_of(dev) == [1, 2, 9] and ids_of(old) == [1, 2]
    assert table.schema.names == dev.schema.names == ("id", "q") and old.schema.names == ("id", "p")
    assert dev.scan(where="q = 'dev'").to_arrow().to_pylist() == [{"id": 9, "q": "dev"}]
    assert old.scan(where="p = 'a' AND id > 1").to_arrow().to_pylist() == [{"id": 2, "p": "a"}]
    theirs = StaticTable.from_metadata(f"file://{foreign.head}")
    for name, ours in (("dev", dev), ("old", old)):
        snapshot = theirs.snapshot_by_name(name)
        assert snapshot.snapshot_id == ours.version
        assert sorted(theirs.scan(snapshot_id=snapshot.snapshot_id).to_arrow()["id"].to_pylist()) == ids_of(ours)
    with pytest.raises(VersionNotFoundError, match="no branch or tag 'none'") as caught:
        bh.open(uri, ref="none")
    assert "dev, main, old" in str(caught.value)


def test_the_line_of_a_branch(branched):
    """History, times and changes follow the branch's own ancestors."""
    foreign, (first, second, third, _) = branched
    uri = str(foreign.root)
    dev = bh.open(uri, ref="dev")
    assert [e.version for e in dev.history() if e.version] == [third, first]
    times = {s["snapshot-id"]: s["timestamp-ms"] for s in foreign.document["snapshots"]}
    at = dt.datetime.fromtimestamp(times[second] / 1000, dt.UTC)
    assert bh.open(uri, ref="dev", timestamp=at).version == first
    assert sorted((c["id"], c["q"]) for c in dev.changes(0).to_arrow().to_pylist()) == [(1, "a"), (2, "a"), (9, "dev")]
    assert {r["name"]: r["type"] for r in dev.inspect.refs().to_pylist()} == {
        "main": "BRANCH", "dev": "BRANCH", "old": "TAG"}  # fmt: skip


def test_a_ref_of_a_snapshot_that_is_gone(branched):
    foreign, _ = branched
    foreign.edit(lambda d: d["refs"]["old"].update({"snapshot-id": 77}))
    with pytest.raises(CorruptTableError, match="a ref 'old' to snapshot 77, which is not listed"):
        bh.open(str(foreign.root))
