"""Manifests that lose files, rewritten on the driver or by tasks: the same entries, and nothing if one cannot be."""

import json

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

import boathouse as bh
from boathouse.errors import CorruptTableError, MissingFileError
from boathouse.iceberg.commit.head_manifests import HeadManifests
from boathouse.iceberg.manifests import columns, rewrite
from boathouse.iceberg.manifests.row_ids import row_ids
from boathouse.iceberg.manifests.verbatim import encoded_files
from boathouse.iceberg.metadata.versions import VERSIONS as VERSIONS_OF
from boathouse.table.attempt import held_back

COMMITS, PARTITIONS = 5, 3
MANY = 70
"""Files of a manifest that is decoded by columns."""
VERSIONS = ("1", "2", "3")


def made(root, version, spark=None, commits=COMMITS, partitions=PARTITIONS):
    """A table with a manifest a commit, each with a file a partition; the number of rows says which commit it was."""
    fields = [("p", pa.int64()), ("s.x", pa.string()), ("d", pa.float64())]
    properties = {"format-version": version, "commit.manifest-merge.enabled": "false"}
    bh.create(str(root), pa.schema(fields), format="iceberg", partition_by=["p"], properties=properties)
    table = bh.open(str(root))
    for i in range(commits):
        p = [p for p in range(partitions) for _ in range(i + 1)]
        texts, numbers = [f"é{i}" if i % 2 else None] * len(p), [float("nan") if i % 3 else -0.0] * len(p)
        table.append(pa.table([p, texts, numbers], names=[name for name, _ in fields]))
    return bh.open(str(root), spark=spark)


def by_tasks(monkeypatch):
    """Every manifest is rewritten by `map`, each by a task of its own. Returns how many tasks there were in each
    call."""
    monkeypatch.setattr(rewrite, "MUCH", 0)
    monkeypatch.setattr(rewrite, "_BUNDLE", 1)
    calls, whole = [], rewrite.rewritten

    def counted(task, map):
        def run(fn, tasks):
            calls.append(len(tasks))
            return map(fn, tasks)

        return whole(task, run)

    monkeypatch.setattr(rewrite, "rewritten", counted)
    return calls


def state(table):
    """What the manifests say, without the names that are new in each table."""
    order = {}
    for row in table.inspect.snapshots().sort_by("committed_at").to_pylist():
        order[row["snapshot_id"]] = len(order)

    def plain(row):
        row = {k: v for k, v in row.items() if k not in ("path", "length", "file_path", "readable_metrics")}
        file = row.get("data_file")
        if file is not None:
            row["data_file"] = {k: v for k, v in dict(file).items() if k not in ("file_path", "split_offsets")}
        for name in ("snapshot_id", "added_snapshot_id"):
            if name in row:
                row[name] = order[row[name]]
        return json.dumps(row, default=str, sort_keys=True)

    rows = sorted(map(str, table.to_arrow().to_pylist()))
    found = {"entries": table.inspect.entries(), "manifests": table.inspect.manifests()}
    plainly = {name: [plain(r) for r in t.to_pylist()] for name, t in found.items()}
    summary = table.inspect.snapshots().sort_by("committed_at").to_pylist()[-1]["summary"]
    counted = {k: v for k, v in dict(summary).items() if not k.startswith("boathouse.")}
    return rows, plainly, counted


def written(root):
    return {p.name for p in (root / "metadata").iterdir()}


def theirs(root):
    """The rows that pyiceberg reads."""
    head = max((root / "metadata").glob("v*.metadata.json"), key=lambda p: int(p.name[1:].split(".")[0]))
    return StaticTable.from_metadata(f"file://{head}").scan().to_arrow()


@pytest.mark.few(2)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("where", ["p = 1", None], ids=["some", "all"])
def test_tasks_write_what_the_driver_writes(tmp_path, monkeypatch, version, where):
    here, there = made(tmp_path / "here", version), made(tmp_path / "there", version)
    here.delete(where)
    calls = by_tasks(monkeypatch)
    there.delete(where)
    assert calls == [COMMITS]
    assert state(there) == state(here)
    entries = there.inspect.entries()
    assert entries.column("status").to_pylist().count(2) == COMMITS * (1 if where else PARTITIONS)
    if version != "1":
        assert sorted(entries.column("sequence_number").to_pylist())[::PARTITIONS] == list(range(1, COMMITS + 1))
    found = theirs(tmp_path / "there")
    assert sorted(found.column("p").to_pylist()) == sorted(there.to_arrow().column("p").to_pylist())


@pytest.mark.few(1)
@pytest.mark.parametrize("version", VERSIONS)
def test_entries_are_repeated_as_they_are_encoded(tmp_path, monkeypatch, version):
    """Also with row ids that they inherit, beside deleted entries, and when they are as few as are read one by one."""
    found, whole = [], columns.encoded_files

    def noted(*args):
        found.append(whole(*args))
        return found[-1]

    states = []
    for name, encoded in (("here", noted), ("there", lambda *args: None)):
        monkeypatch.setattr(columns, "encoded_files", encoded)
        table = made(tmp_path / name, version, commits=2, partitions=MANY)
        for where in ("p = 1", "p > 40 and p < 44", "p = 7 or p = 69", "p = 8", "p = 9"):
            table.delete(where)
            states.append(state(table))
    assert states[:5] == states[5:]
    assert [f is not None for f in found] == [True] * 8 + [False] * 2
    assert sorted(theirs(tmp_path / "here").column("p").to_pylist()) == sorted(table.to_arrow().column("p").to_pylist())


@pytest.mark.parametrize("version", VERSIONS)
def test_entries_of_another_encoding_are_made_anew(tmp_path, version):
    """A manifest of version 1 or 2 in a table that was upgraded, or with other fields."""
    table = made(tmp_path / "t", version, commits=1, partitions=MANY)
    entries = table._handle.snapshot.listing
    source = entries.manifest_files[0]
    live, spec, own = entries.live(source), entries.spec(source), int(version)
    ids = row_ids(live.columns, live.rows, source, pa.nulls(len(live), pa.int64()))
    for other in (1, 2, 3):
        assert (encoded_files(live, ids, VERSIONS_OF[other].manifest(spec)) is not None) == (other == own)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_manifest_that_was_rewritten_meanwhile(tmp_path, monkeypatch, version):
    """Its files are searched in the manifests that took its place."""
    table, other = made(tmp_path / "t", version), bh.open(str(tmp_path / "t"))
    after = HeadManifests.after

    def after_another(self):
        monkeypatch.setattr(HeadManifests, "after", after)
        other.delete("p = 2")
        return after(self)

    monkeypatch.setattr(HeadManifests, "after", after_another)
    by_tasks(monkeypatch)
    table.delete("p = 1")
    assert table.to_arrow().column("p").unique().to_pylist() == [0]
    assert theirs(tmp_path / "t").num_rows == sum(range(1, COMMITS + 1))


def test_a_manifest_that_reads_back_differently(tmp_path, monkeypatch):
    table = made(tmp_path / "t", "2")
    by_tasks(monkeypatch)
    before, whole, calls = written(tmp_path / "t"), rewrite.readback.check_manifest, []

    def check(data, row, entries, spec):
        calls.append(row)
        if len(calls) == COMMITS - 1:
            raise held_back("a test says so", row["manifest_path"])
        whole(data, row, entries, spec)

    monkeypatch.setattr(rewrite.readback, "check_manifest", check)
    with pytest.raises(CorruptTableError, match="a test says so"):
        table.delete("p = 1")
    assert written(tmp_path / "t") == before
    assert bh.open(str(tmp_path / "t")).to_arrow().num_rows == PARTITIONS * sum(range(1, COMMITS + 1))


@pytest.mark.spark
@pytest.mark.parametrize("version", VERSIONS)
def test_executors_write_what_the_driver_writes(tmp_path, monkeypatch, spark, version):
    here, there = made(tmp_path / "here", version), made(tmp_path / "there", version, spark)
    here.delete("p = 1")
    calls = by_tasks(monkeypatch)
    there.delete("p = 1")
    assert calls == [COMMITS]
    assert state(bh.open(str(tmp_path / "there"))) == state(here)
    assert theirs(tmp_path / "there").num_rows == here.to_arrow().num_rows


@pytest.mark.spark
def test_a_manifest_that_is_gone_when_an_executor_reads_it(tmp_path, monkeypatch, spark):
    table = made(tmp_path / "t", "2", spark)
    path = table.inspect.manifests().column("path").to_pylist()[2].removeprefix("file://")
    after, left = HeadManifests.after, []

    def without_one(self):
        (tmp_path / "t" / "metadata" / path.rsplit("/", 1)[1]).unlink()
        left.append(written(tmp_path / "t"))
        return after(self)

    monkeypatch.setattr(HeadManifests, "after", without_one)
    by_tasks(monkeypatch)
    with pytest.raises(MissingFileError, match=path.rsplit("/", 1)[1]):
        table.delete("p = 1")
    assert [written(tmp_path / "t")] == left


@pytest.mark.slow
@pytest.mark.spark
def test_executors_rewrite_many_manifests(tmp_path, monkeypatch, spark):
    """Several manifests a task."""
    here, there = (made(tmp_path / n, "3", s, 30, MANY) for n, s in (("here", None), ("there", spark)))
    here.delete("p = 1")
    bundle = rewrite._BUNDLE
    calls = by_tasks(monkeypatch)
    monkeypatch.setattr(rewrite, "_BUNDLE", bundle // 32)
    there.delete("p = 1")
    assert 1 < calls[0] < 30
    assert state(bh.open(str(tmp_path / "there"))) == state(here)
    assert theirs(tmp_path / "there").num_rows == here.to_arrow().num_rows
