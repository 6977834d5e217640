"""What commits say of their fragments: the same as a comparison of both versions, for a fraction of the work."""

import pyarrow as pa
import pytest

import boathouse as bh
import lance
from boathouse.ops.stream import commits as stream_commits
from boathouse.ops.stream.commits import Reading, Wanted
from boathouse.ops.stream.unit_changes import compare
from boathouse.table.features import CommitRecords, required


def rows(start):
    return pa.table({"a": pa.array(range(start, start + 10), pa.int64())})


@pytest.fixture
def path(tmp_path):
    """Versions 1 to 9, by us and by pylance."""
    path = str(tmp_path / "t")
    bh.write(rows(0), path, format="lance")
    bh.open(path).append(rows(10))
    lance.write_dataset(rows(20), path, mode="append", max_rows_per_file=4)
    bh.open(path).delete("a = 3")
    bh.open(path).append(rows(30))
    lance.dataset(path).optimize.compact_files()
    bh.open(path).set_properties({"k": "v"})
    bh.open(path).append(rows(40))
    return path


def test_records_agree_with_the_versions(path):
    newest = bh.open(path)._handle.snapshot
    records, said = required(newest, CommitRecords, "stream"), []
    for number in range(2, newest.version + 1):
        before, after = (bh.open(path, version=n)._handle.snapshot for n in (number - 1, number))
        found = records.commit_files(number, after)
        lost, gained = compare(before.plan(), after.plan())
        entry = next(e for e in newest.history.entries() if e.version == number)
        if found is None:
            assert lost.any, "only what takes rows away must be compared"
            continue
        said.append(number)
        paths = found.units.column("path").to_pylist()
        assert paths == ([] if not entry.data_change else gained.units.column("path").to_pylist())
        assert found.units.column("rows").to_pylist() == (
            [10] * len(paths) if len(paths) == 1 else [4, 4, 2][: len(paths)]
        )
    assert len(said) >= 5


def test_a_stream_compares_no_versions_where_rows_are_added(path, monkeypatch):
    base = bh.open(path)._handle.snapshot
    table = bh.open(path)
    for i in range(5):
        table.append(rows(100 + 10 * i))
    table.optimize()
    newest = table._handle.snapshot
    reading = Reading.of(base, Wanted())
    monkeypatch.setattr(stream_commits, "compare_commit", lambda *_: pytest.fail("versions were compared"))
    later = [e for e in newest.history.entries() if e.version > base.version]
    found = reading.commits(newest, later[::-1])
    assert [sum(p.units.num_rows for p, _ in portion.scans) for portion, _ in found] == [1] * 5 + [0]
