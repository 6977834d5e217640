"""What is declared of a Delta table here, as delta-spark reads it and goes on with it: clustering columns, defaults,
generated columns, and tables that became a clone of another."""

from __future__ import annotations

import pyarrow as pa
import pytest
from reference_spark import DELTA, started

import boathouse as bh
from boathouse.api.create import create_table
from boathouse.table.edits import CreateTable
from boathouse.types.text import parse_schema

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    found = started(DELTA, tmp_path_factory.mktemp("reference"))
    yield found
    found.close()


@pytest.mark.parametrize("mapped", [False, True])
def test_delta_spark_goes_on_with_what_is_declared(reference, tmp_path, mapped):
    path = str(tmp_path / "t")
    properties = {"delta.columnMapping.mode": "name"} if mapped else {}
    asked = CreateTable(
        parse_schema("id bigint, s struct<a: bigint, b: string>, n int, twice bigint"),
        (),
        properties,
        comment="of tests",
        generated={"twice": "id * 2"},
        defaults={"n": "7"},
        cluster_by=(("s", "b"), ("id",)),
    )
    create_table(path, "delta", asked)
    bh.open(path).append([{"id": 1, "s": {"a": 1, "b": "x"}}])
    t = f"delta.`{path}`"
    (detail,) = reference.rows(f"DESCRIBE DETAIL {t}").to_pylist()
    assert [c.strip("`") for c in detail["clusteringColumns"]] == ["s.b", "id"] and detail["description"] == "of tests"
    reference.sql(f"INSERT INTO {t} (id, s) VALUES (2, named_struct('a', 2L, 'b', 'y'))")
    reference.sql(f"OPTIMIZE {t}")
    rows = bh.open(path).to_arrow().sort_by("id").to_pylist()
    assert [(r["id"], r["n"], r["twice"]) for r in rows] == [(1, 7, 2), (2, 7, 4)]
    bh.open(path, allow_mixed_writers=True).cluster_by("n")
    assert reference.rows(f"DESCRIBE DETAIL {t}").to_pylist()[0]["clusteringColumns"] == ["n"]
    reference.sql(f"ALTER TABLE {t} CLUSTER BY (id)")
    assert bh.open(path).detail()["clusteringColumns"] == ["id"]
    bh.open(path, allow_mixed_writers=True).cluster_by()
    assert reference.rows(f"DESCRIBE DETAIL {t}").to_pylist()[0]["clusteringColumns"] == []


def test_delta_spark_reads_what_became_a_clone(reference, tmp_path):
    source = bh.create(str(tmp_path / "s"), "id bigint, v string")
    source.cluster_by("id")
    source.append([{"id": 1, "v": "a"}, {"id": 2, "v": "b"}])
    target = bh.create(str(tmp_path / "t"), "x int")
    target.append(pa.table({"x": pa.array([1, 2, 3], pa.int32())}))
    source.clone(target.uri, replace=True, properties={"delta.enableChangeDataFeed": "true"})
    t = f"delta.`{tmp_path / 't'}`"
    assert sorted(reference.rows(f"SELECT * FROM {t}")["id"].to_pylist()) == [1, 2]
    assert reference.rows(f"SELECT count(*) AS n FROM {t} VERSION AS OF 1")["n"].to_pylist() == [3]
    assert reference.rows(f"DESCRIBE HISTORY {t} LIMIT 1").to_pylist()[0]["operation"] == "CLONE"
    reference.sql(f"INSERT INTO {t} VALUES (3, 'c')")
    assert sorted(bh.open(target.uri).to_arrow()["id"].to_pylist()) == [1, 2, 3] and source.refresh().count() == 2
