"""Manifests written anew: entries keep what they say of their files, and readers of a partition open fewer."""

from __future__ import annotations

import datetime as dt
from itertools import pairwise

import pyarrow as pa
import pytest
from foreign_writer import Foreign, current, theirs
from test_expiry import MODES, on_disk, reachable

import boathouse as bh
from boathouse.errors import InvalidArgumentError

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string()), ("day", pa.date32()), ("b", pa.bool_())])
TOTALS = ("total-records", "total-data-files", "total-delete-files", "total-position-deletes")


def rows(*ids):
    return pa.table(
        {
            "id": list(ids),
            "p": [None if i % 7 == 0 else f"p{i % 3}" for i in ids],
            "day": [dt.date(2026, 1, 1 + i % 2) for i in ids],
            "b": [i % 5 == 0 for i in ids],
        },
        SCHEMA,
    )


@pytest.fixture(params=["1", "2", "3"])
def version(request):
    return request.param


@pytest.fixture
def table(tmp_path, version):
    """Six appends, and deletes by marks where there are any."""
    properties = {"format-version": version} | ({} if version == "1" else MODES)
    t = bh.create(
        str(tmp_path / "t"), SCHEMA, format="iceberg", partition_by=["p", "days(day)", "b"], properties=properties
    )
    for i in range(6):
        t.append(rows(*range(10 * i, 10 * i + 10)))
    for id in (3, 13, 14):
        t.delete(f"id = {id}")
    return t


@pytest.fixture
def foreign(table):
    return Foreign(table.uri.removeprefix("file://"))


def entries(foreign):
    """What live entries say, with the numbers that they inherit, by file: fastavro reads them."""
    found = {}
    for row in foreign._avro(current(foreign)["manifest-list"]):
        next_id = row.get("first_row_id")
        for e in foreign._avro(row["manifest_path"]):
            if e["status"] == 2:
                continue
            file = dict(e["data_file"])
            if row.get("content", 0) == 0 and next_id is not None and file.get("first_row_id") is None:
                file["first_row_id"] = next_id
                next_id += file["record_count"]
            for name in ("sequence_number", "file_sequence_number"):
                file[name] = row.get("sequence_number") if e.get(name) is None else e[name]
            snapshot = e["snapshot_id"] or row["added_snapshot_id"]
            key = (file["file_path"], file.get("referenced_data_file"))
            found[key] = {"snapshot": snapshot, **{k: v for k, v in file.items() if v is not None}}
    return found


def manifests(foreign, content=0):
    return [r for r in foreign._avro(current(foreign)["manifest-list"]) if r.get("content", 0) == content]


@pytest.mark.few(1)
@pytest.mark.feature("rewrite of manifests", format="iceberg")
def test_entries_stay_as_they_are(table, foreign, version):
    lineage = ["_row_id", "_last_updated_sequence_number"] if version == "3" else []
    before, said = entries(foreign), table.scan(["id", *lineage]).to_arrow().sort_by("id")
    summary, deletes = current(foreign)["summary"], len(manifests(foreign, 1))
    assert len(manifests(foreign)) > 1 and table.rewrite_manifests(dry_run=True).commit is None
    done = table.rewrite_manifests(message="sorted")
    assert (done.files_added, done.files_removed, done.rows_added, done.rows_deleted) == (0, 0, 0, 0)
    assert entries(foreign) == before
    assert len(manifests(foreign)) == 1 and len(manifests(foreign, 1)) == min(deletes, 1)
    assert table.scan(["id", *lineage]).to_arrow().sort_by("id") == said
    assert theirs(foreign) == said["id"].to_pylist()
    after = current(foreign)["summary"]
    assert after["operation"] == "replace" and {k: after.get(k) for k in TOTALS} == {k: summary.get(k) for k in TOTALS}
    entry = table.history()[0]
    assert (entry.operation, entry.message, entry.data_change) == ("replace", "sorted", False)
    assert entry.metrics["entries-processed"] == len(before) and entry.metrics["manifests-kept"] == 0
    assert table.changes(table.version).to_arrow().num_rows == 0
    assert table.rewrite_manifests().version is None, "there is nothing to gain"
    assert on_disk(foreign) == reachable(foreign)
    table.append(rows(70))
    table.optimize()
    assert theirs(foreign) == [*said["id"].to_pylist(), 70]


def test_each_has_few_partitions(table, foreign):
    table.set_properties({"commit.manifest.target-size-bytes": str(manifests(foreign)[0]["manifest_length"])})
    before = entries(foreign)
    table.rewrite_manifests(["p"])
    made = manifests(foreign)
    assert len(made) > 2 and entries(foreign) == before
    ranges = []
    for row in made:
        values = [e["data_file"]["partition"]["p"] for e in foreign._avro(row["manifest_path"])]
        assert values == sorted(values, key=lambda v: (v is None, v)), "nulls come last"
        summary = row["partitions"][0]
        ranges.append((summary["lower_bound"], summary["upper_bound"], summary["contains_null"]))
    assert [r[2] for r in ranges].count(True) < len(ranges)
    bounded = [(low, high) for low, high, _ in ranges if low is not None]
    assert all(high <= low for (_, high), (low, _) in pairwise(bounded))


def test_specs_are_apart(table, foreign):
    """Those of another spec stay, until they are named."""
    table.partition_by("day")
    for i in (80, 81):
        table.append(rows(i))
    before = entries(foreign)
    table.rewrite_manifests()
    assert [r["partition_spec_id"] for r in manifests(foreign)].count(1) == 1
    assert [r["partition_spec_id"] for r in manifests(foreign)].count(0) > 1
    assert table.history()[0].metrics["manifests-kept"] > 1
    table.rewrite_manifests(spec_id=0)
    assert sorted(r["partition_spec_id"] for r in manifests(foreign)) == [0, 1] and entries(foreign) == before
    with pytest.raises(InvalidArgumentError, match="no partition spec 7"):
        table.rewrite_manifests(spec_id=7)
    with pytest.raises(InvalidArgumentError, match="'id' is not a field of partition spec 1"):
        table.rewrite_manifests(["id"])


@pytest.mark.few(3)
@pytest.mark.parametrize("other", ["append", "delete", "optimize"])
def test_beside_other_writers(table, foreign, monkeypatch, other):
    """What they commit between the plan and the commit is listed too."""
    from boathouse.ops.files.rewrite_manifests import ManifestsRewritten

    original = ManifestsRewritten.plan
    calls = {
        "append": lambda t: t.append(rows(90)),
        "delete": lambda t: t.delete("id = 20"),
        "optimize": bh.Table.optimize,
    }

    def slow(self, start):
        planned = original(self, start)
        calls[other](bh.open(table.uri))
        return planned

    monkeypatch.setattr(ManifestsRewritten, "plan", slow)
    table.rewrite_manifests()
    wanted = set(range(60)) - {3, 13, 14} - ({20} if other == "delete" else set())
    wanted |= {90} if other == "append" else set()
    assert theirs(foreign) == sorted(wanted) == sorted(table.to_arrow()["id"].to_pylist())
    assert len(manifests(foreign)) == 1
