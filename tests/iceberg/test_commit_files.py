"""What commits say of their files: the same as a comparison of both versions, for a fraction of the work."""

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse.ops.stream import commits as stream_commits
from boathouse.ops.stream.commits import Reading, Wanted
from boathouse.ops.stream.unit_changes import compare
from boathouse.table.features import CommitRecords, required


def rows(start):
    return pa.table({"a": pa.array(range(start, start + 10), pa.int64()), "p": ["x", "y"] * 5})


@pytest.fixture
def table(make):
    """Appends with and without new columns, a delete, a compaction, and small manifests that are merged."""
    made, _ = make(rows(0), partition_by=["p"], properties={"commit.manifest.min-count-to-merge": "3"})
    for i in range(1, 4):
        made.append(rows(10 * i))
    made.delete("a = 3")
    made.append(rows(50))
    made.optimize()
    made.add_column("n", "int")
    made.append(rows(60).append_column("n", pa.array(range(10), pa.int32())))
    made.append(rows(70).append_column("n", pa.array(range(10), pa.int32())))
    return made


def test_records_agree_with_the_versions(table):
    newest = table._handle.snapshot
    records, said = required(newest, CommitRecords, "stream"), []
    for entry in newest.history.entries():
        if entry.version is None or entry.parent is None:
            continue
        before, after = (bh.open(table.uri, version=v)._handle.snapshot for v in (entry.parent, entry.version))
        found = records.commit_files(entry.version, after)
        lost, gained = compare(before.plan(), after.plan())
        if found is None:
            assert lost.any, "only what takes rows away must be compared"
            continue
        said.append(entry.operation)
        added = gained.units.column("path").to_pylist() if entry.data_change else []
        assert sorted(found.units.column("path").to_pylist()) == sorted(added)
        assert found.units.schema == gained.units.schema and not found.removed
        assert found.layout_changed == (before.schema != after.schema)
    assert len(said) >= 6


def test_a_stream_compares_no_versions_where_rows_are_added(table, monkeypatch):
    base = bh.open(table.uri)._handle.snapshot
    for i in range(5):
        table.append(rows(100 + 10 * i).append_column("n", pa.array(range(10), pa.int32())))
    table.optimize()
    newest = table._handle.snapshot
    reading = Reading.of(base, Wanted())
    monkeypatch.setattr(stream_commits, "compare_commit", lambda *_: pytest.fail("versions were compared"))
    known = {e.version for e in base.history.entries()}
    later = [e for e in newest.history.entries() if e.version is not None and e.version not in known]
    found = reading.commits(newest, later[::-1])
    assert [sum(p.units.num_rows for p, _ in portion.scans) for portion, _ in found] == [2] * 5 + [0]
