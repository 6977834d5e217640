"""Clustering columns that are declared here (PROTOCOL.md, "Clustered Table"), and what the log then says."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import boathouse as bh
from boathouse import errors
from boathouse.api.create import create_table
from boathouse.table.edits import CreateTable
from boathouse.types.text import parse_schema

SCHEMA = parse_schema("id bigint, s struct<a: bigint, b: string>, l array<int>, day date")


def log(path: str, version: int) -> list[dict]:
    return [json.loads(line) for line in (Path(path) / f"_delta_log/{version:020}.json").read_text().splitlines()]


def domain(actions: list[dict]) -> dict:
    (found,) = (a["domainMetadata"] for a in actions if "domainMetadata" in a)
    assert found["domain"] == "delta.clustering" and found["removed"] is False
    return json.loads(found["configuration"])


@pytest.mark.spec("D-307")
@pytest.mark.parametrize("mapped", [False, True])
def test_a_new_table_is_clustered(tmp_path, mapped):
    path = str(tmp_path)
    properties = {"delta.columnMapping.mode": "name"} if mapped else {}
    create_table(path, "delta", CreateTable(SCHEMA, (), properties, cluster_by=(("s", "b"), ("id",))))
    first = log(path, 0)
    protocol = next(a["protocol"] for a in first if "protocol" in a)
    assert {"clustering", "domainMetadata"} <= set(protocol["writerFeatures"])
    columns = domain(first)["clusteringColumns"]
    assert mapped != (columns == [["s", "b"], ["id"]]) and [len(c) for c in columns] == [2, 1]
    t = bh.open(path)
    assert t.detail()["clusteringColumns"] == ["s.b", "id"]
    for i in range(4):
        t.append([{"id": i % 2, "s": {"a": 1, "b": "xy"[i % 2]}, "day": None}])
    t.optimize()
    added = [a["add"] for a in log(path, 5) if "add" in a]
    assert len(added) == 1 and added[0]["clusteringProvider"] == "boathouse"


@pytest.mark.feature("clustering columns", format="delta")
def test_clustering_columns_are_changed(tmp_path):
    path = str(tmp_path)
    t = bh.create(path, SCHEMA)
    t.append([{"id": 1}])
    done = t.cluster_by("id", "`day`")
    assert t.detail()["clusteringColumns"] == ["id", "day"] and done.version == 2
    assert (
        any("protocol" in a for a in log(path, 2))
        and bh.open(path, version=1).detail().get("clusteringColumns") is None
    )
    t.cluster_by()
    assert domain(log(path, 3))["clusteringColumns"] == [] and "clusteringColumns" not in t.detail()
    t.cluster_by("s.a")
    with pytest.raises(errors.InvalidArgumentError, match="cannot be dropped"):
        t.set_properties({"delta.columnMapping.mode": "name"})
        t.drop_column("s.a")


def test_what_cannot_be_clustered_by(tmp_path):
    t = bh.create(str(tmp_path / "t"), SCHEMA)
    parted = bh.create(str(tmp_path / "p"), SCHEMA, partition_by="day")
    for call, error in (
        (lambda: t.cluster_by("nope"), errors.ColumnNotFoundError),
        (lambda: t.cluster_by("l"), errors.InvalidArgumentError),
        (lambda: t.cluster_by("s"), errors.InvalidArgumentError),
        (lambda: t.cluster_by("id", "id"), errors.InvalidArgumentError),
        (lambda: t.cluster_by("id", "day", "s.a", "s.b", "l"), errors.InvalidArgumentError),
        (lambda: parted.cluster_by("id"), errors.InvalidArgumentError),
    ):
        with pytest.raises(error):
            call()
    assert (t.refresh().version, parted.refresh().version) == (0, 0)
    for format in ("iceberg", "lance"):
        other = bh.create(str(tmp_path / format), "id bigint", format=format)
        with pytest.raises(errors.UnsupportedFeatureError, match="clustering"):
            other.cluster_by("id")


def test_a_clone_replaces_a_table(tmp_path):
    source = bh.create(str(tmp_path / "s"), "id bigint, v string")
    source.cluster_by("id")
    source.append([{"id": 1, "v": "a"}, {"id": 2, "v": "b"}])
    target = bh.create(str(tmp_path / "t"), "x int", properties={"delta.enableInCommitTimestamps": "true"})
    target.append(pa.table({"x": pa.array([1, 2, 3], pa.int32())}))
    id, before = target.detail()["id"], target.version
    done = source.clone(str(tmp_path / "t"), replace=True, properties={"delta.appendOnly": "true", "owner": "me"})
    t = bh.open(str(tmp_path / "t"))
    assert (done.operation, done.rows_added, done.files_removed, t.version) == ("clone", 2, 1, before + 1)
    assert sorted(t.to_arrow()["id"].to_pylist()) == [1, 2] and t.detail()["clusteringColumns"] == ["id"]
    assert dict(t.properties) == {"delta.appendOnly": "true", "owner": "me"} and t.detail()["id"] == id
    assert bh.open(t.uri, version=before).to_arrow()["x"].to_pylist() == [1, 2, 3]
    with pytest.raises(errors.ConstraintViolationError, match="append-only"):
        t.delete()
    t.append([{"id": 3, "v": "c"}])
    assert (t.count(), source.refresh().count()) == (3, 2)
    again = bh.create(str(tmp_path / "plain"), "y int")
    with pytest.raises(errors.ConstraintViolationError, match="append-only"):
        again.clone(t.uri, replace=True)
    with pytest.raises(errors.AlreadyExistsError):
        source.clone(t.uri)
    with pytest.raises(errors.UnsupportedFeatureError, match="nonsense"):
        source.clone(str(tmp_path / "new"), properties={"delta.nonsense": "1"})
    assert not (tmp_path / "new").exists()
    lance = bh.create(str(tmp_path / "l"), "id bigint", format="lance")
    with pytest.raises(errors.UnsupportedFeatureError, match="own properties"):
        lance.clone(str(tmp_path / "m"), properties={"a": "b"})
    iceberg = bh.create(str(tmp_path / "i"), "id bigint", format="iceberg")
    with pytest.raises(errors.TableNotFoundError):
        source.clone(iceberg.uri, replace=True)


def test_defaults_of_new_tables(tmp_path):
    schema = parse_schema("id bigint, v int, t string")
    for format, properties in (("delta", {}), ("iceberg", {"format-version": "3"})):
        path = str(tmp_path / format)
        asked = CreateTable(schema, (), properties, defaults={"v": "1 + 2", "t": "'x'"})
        create_table(path, format, asked)
        bh.open(path).append([{"id": 1}])
        assert bh.open(path).to_arrow().to_pylist() == [{"id": 1, "v": 3, "t": "x"}]
    with pytest.raises(errors.ExpressionError, match="names a column"):
        create_table(str(tmp_path / "d2"), "delta", CreateTable(schema, defaults={"v": "id + 1"}))
    with pytest.raises(errors.InvalidArgumentError, match="no value of int"):
        create_table(str(tmp_path / "i2"), "iceberg", CreateTable(schema, (), properties, defaults={"v": "'a'"}))
    with pytest.raises(errors.UnsupportedFeatureError, match="defaults"):
        create_table(str(tmp_path / "l2"), "lance", CreateTable(schema, defaults={"v": "1"}))
