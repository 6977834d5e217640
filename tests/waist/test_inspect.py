"""Metadata tables of every format: those that mean something in each, and refusals of the others by name."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import boathouse as bh
from boathouse.errors import InvalidArgumentError, UnsupportedFeatureError
from boathouse.table.grouping import Groups
from boathouse.table.inspection import NAMES


@pytest.fixture
def table(tmp_path, format_name, traits, properties):
    uri = str(tmp_path / "t")
    kinds = pa.struct([("a.b", pa.int64())])
    rows = pa.table({
        "id": pa.array(range(20), pa.int64()), "p": ["x", "y"] * 10, "t": [f"t{i:02d}" for i in range(20)],
        "s": pa.array([{"a.b": i} for i in range(20)], kinds), "l": [[i] for i in range(20)],
    })  # fmt: skip
    bh.create(uri, rows.schema, format=format_name, properties=properties, partition_by=traits.by("p"))
    table = bh.open(uri, format=format_name)
    table.append(rows, message="first")
    table.append(rows.slice(0, 4))
    table.delete("id = 7")
    return bh.open(uri, format=format_name)


@pytest.mark.feature("metadata tables")
def test_which_tables_there_are(table, format_name, traits):
    for name in NAMES:
        if name in traits.metadata_tables:
            found = getattr(table.inspect, name)()
            found.validate(full=True)
            assert isinstance(found, pa.Table) and found.num_columns > 1
        else:
            with pytest.raises(UnsupportedFeatureError, match=rf"{name} has no meaning for {format_name}.*partitions"):
                getattr(table.inspect, name)()
    with pytest.raises(InvalidArgumentError, match="'path' is not a metadata table"):
        table.inspect.to_arrow("path")


@pytest.mark.spark
@pytest.mark.feature("metadata tables")
@pytest.mark.route("metadata tables")
def test_on_spark(table, format_name, traits, spark):
    on_spark = bh.open(table.uri, format=format_name, spark=spark)
    for name in traits.metadata_tables:
        frame, mine = on_spark.inspect.to_spark(name), table.inspect.to_arrow(name)
        assert frame.columns == mine.column_names and frame.count() == mine.num_rows, name


def test_files_are_those_of_the_table(table, traits):
    mine, files = table.inspect.data_files(), table.files()
    assert sorted(mine["file_path"].to_pylist()) == sorted(files["path"].to_pylist())
    assert sum(mine["record_count"].to_pylist()) == sum(files["rows"].to_pylist())
    assert sum(mine["file_size_in_bytes"].to_pylist()) == sum(files["size"].to_pylist())
    assert set(mine["file_format"].to_pylist()) == {traits.file_format}
    if traits.partitions:
        assert [r["p"] for r in mine["partition"].to_pylist()] == [r["p"] for r in files["partition"].to_pylist()]


def test_readable_metrics(table, traits):
    if not traits.readable_metrics:
        assert "readable_metrics" not in table.inspect.files().column_names
        return
    found = table.inspect.files()["readable_metrics"].combine_chunks()
    names = [f.name for f in found.type]
    assert names == sorted(names) and {"id", "p", "t", "s.a.b"} <= set(names) and "l" not in names
    assert pc.min(found.field(names.index("id")).field("lower_bound")).as_py() == 0
    assert pc.max(found.field(names.index("id")).field("upper_bound")).as_py() == 19
    assert pc.max(found.field(names.index("t")).field("upper_bound")).as_py() == "t19"


def test_history_and_snapshots(table):
    commits = [h for h in table.history() if not h.metadata_only][::-1]
    snapshots, history = table.inspect.snapshots(), table.inspect.history()
    assert snapshots["snapshot_id"].to_pylist() == [h.version for h in commits]
    assert snapshots["parent_id"].to_pylist() == [h.parent for h in commits]
    assert [t.timestamp() * 1000 for t in snapshots["committed_at"].to_pylist()] == [h.timestamp_ms for h in commits]
    assert history["snapshot_id"].to_pylist() == [h.version for h in commits]
    assert set(history["is_current_ancestor"].to_pylist()) == {True}
    assert "first" in str(snapshots["summary"].to_pylist())


def test_partitions_and_position_deletes(table, traits):
    rows = table.inspect.partitions().to_pylist()
    physical = sum(r["record_count"] for r in rows)
    deleted = sum(r["position_delete_record_count"] for r in rows)
    assert physical - deleted == table.count() == 23
    found = table.inspect.position_deletes()
    assert found.num_rows == deleted == (1 if table._handle.snapshot.row_deletes("delete") != "rewrite" else 0)
    assert set(found["file_path"].to_pylist()) <= set(table.inspect.files()["file_path"].to_pylist())
    if not traits.partitions:
        assert len(rows) == 1 and "partition" not in rows[0]
    else:
        assert {r["partition"]["p"] for r in rows} == {"x", "y"}
        assert sum(r["file_count"] for r in rows) == table.inspect.data_files().num_rows
        assert all(r["partition"]["p"] == "y" for r in found.to_pylist())


def test_versions_before(table, format_name):
    first = next(h for h in table.history()[::-1] if h.version is not None and h.message == "first")
    old = bh.open(table.uri, format=format_name, version=first.version)
    assert old.inspect.position_deletes().num_rows == 0
    assert sum(old.inspect.files()["record_count"].to_pylist()) == 20
    assert sum(r["record_count"] for r in old.inspect.partitions().to_pylist()) == 20


def test_tables_without_rows(tmp_path, format_name):
    uri = str(tmp_path / "e")
    bh.create(uri, "id bigint", format=format_name)
    table = bh.open(uri, format=format_name)
    for name in ("files", "partitions", "position_deletes"):
        assert table.inspect.to_arrow(name).num_rows == 0


def test_refs_of_lance(tmp_path):
    lance = pytest.importorskip("lance")
    uri = str(tmp_path / "t")
    bh.write(pa.table({"id": [1]}), uri, format="lance")
    bh.open(uri).append(pa.table({"id": [2]}))
    theirs = lance.dataset(uri)
    theirs.tags.create("then", 1)
    theirs.create_branch("side", 1)
    found = bh.open(uri).inspect.refs().to_pylist()
    assert [(r["name"], r["type"], r["snapshot_id"]) for r in found[::2]] == [("main", "BRANCH", 2), ("then", "TAG", 1)]
    assert (found[1]["name"], found[1]["type"]) == ("side", "BRANCH")


def test_groups():
    """Numbered in the order of their first rows; null, NaN and the zeros as documented."""
    nan = float("nan")
    columns = [pa.array([1.0, nan, None, nan, 0.0, -0.0, 1.0, None]), pa.array(list("aabaaaab"))]
    groups = Groups.of(columns, 8)
    assert groups.first.tolist() == [0, 1, 2, 4, 5] and groups.which.tolist() == [0, 1, 2, 1, 3, 4, 0, 2]
    values = groups.which * 0 + [5, 1, 2, 9, 4, 4, 5, 3]
    assert groups.sums(values).tolist() == [10, 10, 5, 4, 4]
    assert groups.greatest(values).tolist() == [0, 3, 7, 4, 5]
    assert groups.sums(values, values > 4).tolist() == [10, 9, 0, 0, 0]
    assert len(Groups.of([], 3)) == 1 and len(Groups.of([], 0)) == 0
