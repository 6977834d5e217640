"""Each commit has an id, in results and in the history; only commits of rows are versions of an Iceberg table."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

import boathouse as bh

TOKENS = {"delta": "{:020d}", "iceberg": "v{}.metadata.json", "lance": "{}", "toy": "{}"}


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def test_results_and_history_name_the_same_commits(tmp_path, format_name):
    t = bh.create(str(tmp_path / format_name), rows().schema, format=format_name)
    done = [
        t.append(rows(1, 2)),
        t.set_properties({"owner": "us"}, message="ours"),
        t.add_column("more", "int", metadata={"job": "7"}),
        t.delete("id = 1"),
    ]
    history = t.history()[::-1]
    first = {"delta": 0, "iceberg": 1, "lance": 1}.get(format_name)
    if first is not None:
        assert [e.commit for e in history] == [TOKENS[format_name].format(first + i) for i in range(5)]
    made = [(e.commit, None if e.metadata_only else e.version, e.write_id) for e in history[1:]]
    assert made == [(d.commit, d.version, d.write_id) for d in done]
    assert [e.message for e in history] == [None, None, "ours", None, None]
    assert history[3].metadata["job"] == "7"
    assert [t.find_write(d.write_id) is not None for d in done] == [True] * 4
    assert [e.commit for e in t.history(limit=2)] == [done[3].commit, done[2].commit]
    assert (t.delete("id = 77").commit, t.append(rows(5), dry_run=True).commit) == (None, None)


def test_an_iceberg_commit_of_metadata_is_no_version(tmp_path):
    path = str(tmp_path / "t")
    t = bh.create(path, rows().schema, format="iceberg")
    first = t.append(rows(1))
    done = t.set_properties({"owner": "us"})
    assert done.version is None and t.version == first.version
    assert repr(done).startswith("set-properties -> metadata v3") and repr(first).startswith("append -> version ")
    history = t.history()
    assert [(e.operation, e.metadata_only, e.version) for e in history] == [
        ("set-properties", True, first.version), ("append", False, first.version), ("create", True, 0),
    ]  # fmt: skip
    assert all(e.engine.startswith("boathouse/") for e in history)
    assert t.find_write(done.write_id) == first.version
    later = t.append(rows(2))
    pinned = bh.open(path, version=first.version)
    assert [e.commit for e in pinned.history()] == [first.commit, history[2].commit]
    assert [e.commit for e in t.history()] == [later.commit, done.commit, first.commit, history[2].commit]
    foreign = StaticTable.from_metadata(f"{path}/metadata/{later.commit}")
    assert [e.snapshot_id for e in foreign.history()] == [first.version, later.version]


def test_the_history_of_metadata_survives_its_files(tmp_path):
    """Removed files are named by those that follow; without any record of one, its snapshot is still listed."""
    path = tmp_path / "t"
    t = bh.create(str(path), rows().schema, format="iceberg", properties={"write.metadata.previous-versions-max": "2"})
    first = t.append(rows(1))
    t.set_properties({"a": "1"})
    second = t.append(rows(2))
    t.set_properties({"b": "1"})
    (path / "metadata" / "v3.metadata.json").unlink()
    found = [(e.commit, e.version, e.operation) for e in bh.open(str(path)).history()]
    assert found == [
        ("v5.metadata.json", second.version, "set-properties"),
        ("v4.metadata.json", second.version, "append"),
        ("v3.metadata.json", first.version, "metadata"),
        (None, first.version, "append"),
    ]


def test_every_entry_of_a_history_is_opened(tmp_path, format_name):
    """Also those of commits that made no version: they are opened as the table was after them, never as it is now."""
    path = str(tmp_path / format_name)
    t = bh.create(path, rows().schema, format=format_name)
    counts = [0, 2, 2, 3, 0]
    t.append(rows(1, 2))
    t.set_properties({"owner": "us"})
    t.append(rows(3))
    t.delete()
    history = t.history()[::-1]
    assert [bh.open(path, format=format_name, version=e.version).scan().count() for e in history] == counts
    first = bh.open(path, format=format_name, version=t.history()[-1].version)
    assert first.scan().count() == 0 and [e.commit for e in first.history()] == [history[0].commit]


@pytest.mark.parametrize("format", ["delta", "lance"])
def test_every_commit_of_other_formats_is_a_version(tmp_path, format):
    t = bh.create(str(tmp_path / "t"), rows().schema, format=format)
    done = t.set_properties({"owner": "us"})
    assert done.version == t.version and repr(done).startswith(f"set-properties -> version {done.version}")
