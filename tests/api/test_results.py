"""What writes report and what a table says of itself: the same figures and names in every format."""

from __future__ import annotations

import pyarrow as pa
import pytest

import boathouse as bh
from makers.traits import REAL, TRAITS

FIGURES = ("rows_added", "rows_deleted", "rows_copied", "files_added", "files_removed")


@pytest.fixture(params=REAL)
def format(request) -> str:
    return request.param


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def figures(result) -> tuple[int, ...]:
    return tuple(getattr(result, name) for name in FIGURES)


@pytest.fixture
def table(tmp_path, format):
    """Ten rows in two files."""
    uri = str(tmp_path / "t")
    created = bh.write(rows(*range(5)), uri, format=format)
    assert figures(created) == (5, 0, 0, 1, 0) and created.bytes_added > 0 and created.write_id
    t = bh.open(uri)
    assert figures(t.append(rows(*range(5, 10)))) == (5, 0, 0, 1, 0)
    return t


def copied(format: str, rows: int, added: int, removed: int) -> tuple[int, int, int]:
    """(rows copied, files added, files removed) where rows leave a file: nothing moves with deletion vectors."""
    return (0, 0, 0) if TRAITS[format].marks_deletes else (rows, added, removed)


def test_figures_of_each_operation(table, format):
    assert figures(table.delete("id in (1, 2)")) == (0, 2, *copied(format, 3, 1, 1))
    assert figures(table.delete("id >= 5")) == (0, 5, 0, 0, 1)
    assert figures(table.delete("id = 77")) == (0, 0, 0, 0, 0)
    # Marked, the old row stays in its file; otherwise the two rows beside it go to a new one.
    replaced = (2, 1, 0, 1, 0) if TRAITS[format].marks_deletes else (2, 1, 2, 2, 1)
    assert figures(table.overwrite(rows(3, 3), where="id = 3")) == replaced
    files = table.files().num_rows
    assert figures(table.overwrite(rows(1), dry_run=True)) == (0, 4, 0, 0, files)
    assert figures(table.overwrite(rows(1))) == (1, 4, 0, 1, files)
    assert figures(table.overwrite(rows(1, 2), overwrite_schema=True)) == (2, 1, 0, 1, 1)
    assert figures(table.add_column("x", "int")) == (0, 0, 0, 0, 0) == figures(table.set_properties({"a": "b"}))
    assert figures(table.delete()) == (0, 2, 0, 0, 1)
    assert figures(table.append(rows())) == (0, 0, 0, 0, 0)


def test_the_history_keeps_the_figures(table):
    table.delete("id < 2", message="why", metadata={"job": "7"})
    entries = {e.version: e for e in table.history()}
    found = entries[table.version]
    assert (found.message, found.metadata["job"]) == ("why", "7")
    assert found.metrics["rows_deleted"] == 2 and found.metrics["rows_added"] == 0
    assert [e.metrics["rows_added"] for e in table.history()] == [0, 5, 5]
    for entry in entries.values():
        assert entry.engine.startswith("boathouse/") and entry.operation and entry.timestamp_ms and entry.write_id
        assert all(isinstance(v, int) for v in entry.metrics.values())
        assert isinstance(entry.parameters, dict)


def test_nothing_to_do_is_no_version(table):
    version = table.version
    for result in (table.set_properties({}), table.delete("false"), table.overwrite(rows(), where="id = 99")):
        assert result.version is None and "nothing to do" in repr(result)
    assert table.refresh().version == version


def test_detail_has_the_same_names_in_every_format(table, format):
    found = table.detail()
    common = {
        "format": format, "version": table.version, "rows": 10, "files": 2, "deleted_rows": 0, "small_files": 2,
        "partition_by": [], "ref": found["ref"], "location": table.uri, "properties": dict(table.properties),
        "columns": [{"name": "id", "type": "bigint", "nullable": True}],
    }  # fmt: skip
    assert found.items() >= common.items()
    assert found["bytes"] == sum(table.files()["size"].to_pylist()) and found["identity"] and found["timestamp"]


def test_files_have_the_same_columns_in_every_format(table, tmp_path, format):
    names = ["path", "size", "rows", "deleted", "partition"]
    assert table.files().schema.names == names and table.files()["rows"].to_pylist() == [5, 5]
    assert bh.create(str(tmp_path / "empty"), "id int", format=format).files().schema.names == names
    if TRAITS[format].partitions:
        uri = str(tmp_path / "by")
        bh.create(uri, "id bigint, c string", format=format, partition_by="c")
        empty = bh.open(uri)
        filled = bh.open(uri)
        filled.append(pa.table({"id": [1, 2], "c": ["x", None]}))
        assert sorted(map(str, filled.files()["partition"].to_pylist())) == ["{'c': 'x'}", "{'c': None}"]
        assert empty.files().schema == filled.files().schema


def test_results_read_well(table):
    text = repr(table.append(rows(10)))
    assert text.startswith("append -> version") and "1 row added, 1 file added" in text
    assert "dry run" in repr(table.delete("id < 5", dry_run=True))
    assert "<table>" in table.delete("id = 0")._repr_html_()
    assert table.delete("id = 1", dry_run=True).write_id is None


def test_columns_added_by_another_do_not_hinder_merging(table):
    stale = bh.open(table.uri)
    table.add_column("extra", "int")
    stale.append(pa.table({"id": [50], "extra": pa.array([1], pa.int32())}), merge_schema=True)
    assert stale.scan(where="id = 50").to_arrow().to_pylist() == [{"id": 50, "extra": 1}]


def test_application_transactions_of_metadata_are_kept_or_refused(table, format):
    if not TRAITS[format].transactions_of_metadata:
        for write in (
            lambda: table.add_column("z", "int", txn=("x", 1)),
            lambda: table.set_properties({"a": "1"}, txn=("x", 1)),
        ):
            with pytest.raises(NotImplementedError, match="snapshots"):
                write()
        return
    assert table.add_column("z", "int", txn=("x", 1)).commit is not None
    assert table.add_column("z", "int", txn=("x", 1)).skipped
    assert table.set_properties({"a": "1"}, txn=("x", 1)).skipped and "a" not in table.properties


def test_a_scan_says_what_it_reads(table):
    text = repr(table.scan(columns=["ID"], where="id > 3"))
    assert table.uri in text and "columns id" in text and "id > 3" in text


def test_a_refreshed_branch_stays_a_branch(tmp_path):
    uri = str(tmp_path / "i")
    bh.write(rows(1), uri, format="iceberg")
    table = bh.open(uri, ref="main")
    bh.open(uri).append(rows(2))
    assert table.refresh().count() == 2


def test_a_tag_is_never_written(tmp_path):
    import lance

    uri = str(tmp_path / "l")
    bh.write(rows(1), uri, format="lance")
    lance.dataset(uri).tags.create("first", 1)
    bh.open(uri).append(rows(2))
    tagged = bh.open(uri, ref="first")
    with pytest.raises(PermissionError, match="tag"):
        tagged.append(rows(3))
    assert tagged.refresh().count() == 1 and bh.open(uri).count() == 2
